"""The engines against matches of random legal play that a separate, naive implementation of the rules recorded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from referee_games import registry
from referee_games.contract import CHANCE, OVER, DealScored, Fact

from .play import pack_of

HOME = Path(__file__).parent.parent / "data" / "vectors"
FOLDERS = [HOME, *(Path(folder) for folder in [os.environ.get("REFEREE_VECTORS", "")] if folder)]


def vectors() -> Iterator[Any]:
    for folder in FOLDERS:
        for path in sorted(folder.glob("*.jsonl")):
            with path.open(encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    yield pytest.param(line, id=f"{path.stem}-{number}")


@pytest.mark.parametrize("line", list(vectors()))
def test_a_vector_is_offered_the_same_choices_and_ends_with_the_same_scores(line: str) -> None:
    vector = json.loads(line)
    game = registry.find(vector["game"])
    state = game.start(game.configure(vector["options"]), vector["first_dealer"])
    packs = iter(vector["packs"])
    deals: list[dict[str, Any]] = []

    def note(facts: tuple[Fact, ...]) -> None:
        deals.extend(
            {"dealer": fact.dealer, **fact.details, "score": list(fact.scores)}
            for fact in facts
            if isinstance(fact, DealScored)
        )

    for step in vector["steps"]:
        if state.actor == CHANCE:
            pack = next(packs)
            note(state.deal(pack_of(game, state.dealer, pack["hands"], pack["stock"])))
        legal = [game.texts[action] for action in state.legal()]
        assert (state.deal_number, state.actor, sorted(legal)) == (step["deal"], step["seat"], sorted(step["legal"]))
        action = game.number(step["action"])
        assert action is not None
        note(state.apply(action))

    assert state.actor == OVER
    assert next(packs, None) is None
    assert deals == vector["deals"]
    assert list(state.totals()) == vector["totals"]
    assert list(state.places()) == vector["places"]
