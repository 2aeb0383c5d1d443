"""Transcripts of one seeded match a game, as people read them: a change of any rule shows up as a readable difference.

`pytest --update-golden` writes them anew.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from referee_games import registry
from referee_games.conformance import shuffled
from referee_games.contract import CHANCE, OVER, CardsDealt, CardShown, DealScored, Fact, Game, TrickTaken

GOLDEN = Path(__file__).parent.parent / "golden"
SEEDS = {"guillotine": 13, "regicide": 24}  # chosen so that every contract, a joker opened and a pass occur
MATCHES: dict[str, dict[str, object]] = {
    "guillotine": {"deals_per_dealer": 2, "domino_pass": "free"},
    "regicide": {"players": 3, "joker": "any_time", "change": "both", "target": 15},
}


def words(game: Game, cards: tuple[int, ...]) -> str:
    return " ".join(game.texts[card] for card in cards)


def told(game: Game, fact: Fact) -> Iterator[str]:
    """Yields the lines that tell a fact."""
    match fact:
        case CardsDealt(hands, stock):
            for seat, hand in enumerate(hands):
                yield f"  cards for seat {seat}: {words(game, tuple(sorted(hand)))}"
            if stock:
                yield f"  stock: {words(game, stock)}"
        case CardShown(card, seat):
            yield f"  {game.texts[card]} is opened and taken by seat {seat}"
        case TrickTaken(seat, cards):
            yield f"  trick {words(game, cards)} taken by seat {seat}"
        case DealScored():
            details = " ".join(f"{name}={value}" for name, value in fact.details.items())
            yield f"  scores {list(fact.scores)} totals {list(fact.totals)} {details}"


def transcript(name: str, seed: int) -> Iterator[str]:
    """Plays a random match and yields its lines."""
    game = registry.find(name)
    options = game.configure(MATCHES[name])
    draw = random.Random(seed)
    state = game.start(options, draw.randrange(game.seats(options)))
    yield f"{game.title}, first dealer {state.dealer}"
    for option, value in options.items():
        yield f"  {option} {value}"
    while state.actor != OVER:
        if state.actor == CHANCE:
            yield f"deal {state.deal_number}, dealer {state.dealer}"
            facts = state.deal(shuffled(game.pack, draw.randrange))
        else:
            legal = state.legal()
            action = draw.choice(legal)
            mark = " (forced)" if state.forced() else ""
            choices = words(game, tuple(legal))
            yield f"seat {state.actor}: {game.texts[action]}{mark}" + (f"  of  {choices}" if len(legal) > 1 else "")
            facts = state.apply(action)
        for fact in facts:
            yield from told(game, fact)
    yield f"totals {list(state.totals())} places {list(state.places())}"


@pytest.mark.parametrize("name", MATCHES)
def test_a_seeded_match_reads_as_it_did(name: str, update_golden: bool) -> None:
    lines = "\n".join(transcript(name, SEEDS[name])) + "\n"
    path = GOLDEN / f"{name}.txt"
    if update_golden:
        path.write_text(lines, encoding="utf-8")
    assert lines.splitlines() == path.read_text(encoding="utf-8").splitlines()
