"""The parts of the contract that games build on."""

from __future__ import annotations

from typing import Any

import pytest

from referee_games.cards import clockwise, subsets
from referee_games.contract import OptionError, rank_places, shown
from referee_games.guillotine import Guillotine
from referee_games.regicide import Regicide


@pytest.mark.parametrize(
    ("totals", "lowest_wins", "places"),
    [((5, 9, 9, 10), True, (1, 2, 2, 4)), ((5, 9, 9, 10), False, (4, 2, 2, 1)), ((0, 0), True, (1, 1))],
)
def test_equal_totals_share_a_place(totals: tuple[int, ...], lowest_wins: bool, places: tuple[int, ...]) -> None:
    assert rank_places(totals, lowest_wins=lowest_wins) == places


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"players": "many"}, "option players is a whole number from 2 to 4, not 'many'"),
        ({"pairs": "yes"}, "option pairs is true or false, not 'yes'"),
        ({"joker": "wild"}, "option joker is one of when_void, any_time, as_trump, not 'wild'"),
        ({"pairs": "true"}, "option pairs needs players=4, not 2"),
        ({"bid": 1}, "regicide has no option 'bid'; it has players, pairs, opened_to, stock, joker, change, "),
    ],
)
def test_a_refusal_says_what_would_be_right(given: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError) as refused:
        Regicide().configure(given)
    assert str(refused.value).startswith(message)


def test_options_can_be_given_as_they_are_typed() -> None:
    given = {"players": "4", "pairs": "true", "target": "20"}
    assert Regicide().configure(given) == {**Regicide().configure({}), "players": 4, "pairs": True, "target": 20}


@pytest.mark.parametrize("foreign", ["\x1b[2J", "ы" * 99, b"\xff" * 99, object()])
def test_foreign_text_is_shown_in_a_form_that_is_safe_to_print(foreign: Any) -> None:
    text = shown(foreign)
    assert text.isprintable()
    assert len(text) <= 42


def test_an_action_of_another_game_has_no_number() -> None:
    assert (Guillotine().number("contract:domino"), Regicide().number("contract:domino")) == (37, None)


def test_the_cards_of_a_mask_are_looked_up_in_order() -> None:
    assert subsets((8, 9, 10))[0b101] == (8, 10)


def test_seats_are_counted_clockwise() -> None:
    assert clockwise(4, 3) == (1, 2, 0)
