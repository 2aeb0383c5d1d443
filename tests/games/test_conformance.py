"""Every registered game keeps the laws; and the laws are not empty words."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from referee_games import conformance, registry
from referee_games.conformance import BreachError
from referee_games.contract import Fact, Option, OptionError, Options
from referee_games.guillotine import Guillotine, GuillotineState
from referee_games.regicide import Regicide, RegicideState

PLAYED = [conformance.check_match, conformance.check_voiding, conformance.check_secrecy]


@pytest.mark.parametrize("name", registry.names())
def test_a_game_describes_itself(name: str) -> None:
    conformance.check_description(registry.find(name))


@pytest.mark.parametrize("name", registry.names())
def test_a_game_refuses_wrong_options_by_name(name: str) -> None:
    conformance.check_options(registry.find(name))


@pytest.mark.parametrize("check", PLAYED)
@pytest.mark.parametrize("name", registry.names())
def test_a_game_keeps_the_laws_under_every_option(name: str, check: Any) -> None:
    game = registry.find(name)
    draw = random.Random(f"{name} {check.__name__}").randrange
    for options in conformance.variants(game, draw):
        check(game, options, draw)


def test_a_game_from_outside_is_listed_after_the_built_in_ones() -> None:
    assert registry.names() == ["guillotine", "regicide", "high_card"]


def test_a_child_process_finds_the_game_from_outside_on_its_path() -> None:
    code = "from referee_games import registry; print(registry.find('high_card').title)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (child.stdout, child.stderr) == ("High card\n", "")


def test_an_unknown_game_is_refused_with_those_there_are() -> None:
    with pytest.raises(registry.UnknownGameError, match="there is no game 'whist'; there are guillotine, regicide"):
        registry.find("whist")


# Games that break one law each: the kit must catch them.


class PeekingState(RegicideState):
    """Tells the first card of the stock."""

    __slots__ = ()

    def view(self, viewer: int) -> Any:
        return (super().view(viewer), self._stock[:1])


class TellingState(GuillotineState):
    """Tells seat 2 which spades seat 0 holds."""

    __slots__ = ()

    def view(self, viewer: int) -> Any:
        return (super().view(viewer), viewer == 2 and self._hands[0][3])


class EntangledState(GuillotineState):
    """Shares the current trick with its copies."""

    __slots__ = ()

    def copy(self) -> GuillotineState:
        twin = super().copy()
        twin._trick = self._trick
        return twin


class DisorderlyState(GuillotineState):
    """Names its legal actions from the highest down."""

    __slots__ = ()

    def legal(self) -> Sequence[int]:
        return tuple(reversed(super().legal()))


class EagerState(GuillotineState):
    """Calls a seat forced whenever it has one legal action, though the table cannot tell."""

    __slots__ = ()

    def forced(self) -> bool:
        return len(self.legal()) == 1


class GenerousState(RegicideState):
    """Scores a voided deal."""

    __slots__ = ()

    def void_deal(self) -> tuple[Fact, ...]:
        return (self._end_deal([1] * len(self._totals), voided=True),)


@pytest.mark.parametrize(
    ("state", "law"),
    [
        (PeekingState, "is told nothing that he cannot know"),
        (TellingState, "is told nothing that he cannot know"),
        (EntangledState, "does not happen to its original"),
        (DisorderlyState, "ascend"),
        (EagerState, "forced only where the table can tell"),
        (GenerousState, "a voided deal scores nothing"),
    ],
)
def test_the_kit_catches_a_game_that_breaks_a_law(state: Any, law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    game = Guillotine() if issubclass(state, GuillotineState) else Regicide()
    monkeypatch.setattr(game, "start", state)
    with pytest.raises(BreachError, match=law):
        conformance.check_all(game, random.Random(5).randrange)


def test_the_kit_catches_an_option_that_nobody_can_use() -> None:
    class Useless(Guillotine):
        options = (*Guillotine.options, Option("colour", "red", "No use.", ("red",)))

        def check(self, options: Options) -> None:
            if options["rank_order"] == "french":
                raise OptionError("rank_order", "never")

    with pytest.raises(BreachError, match="option rank_order can be 'french'"):
        list(conformance.variants(Useless(), random.Random(0).randrange))


def test_the_rules_import_nothing_beyond_the_standard_library() -> None:
    code = (
        "import sys; before = set(sys.modules); import referee_games.registry, referee_games.conformance\n"
        "print(sorted({name.split('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))"
    )
    server = Path(registry.__file__).parent.parent
    child = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(server)}, capture_output=True, text=True, check=False
    )
    assert (child.stdout, child.stderr) == ("['referee_games']\n", "")
