"""Plain values and protocol messages: nothing is lost on the way, and what cannot be said is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.v1 import agent_service_pb2, game_pb2, match_service_pb2
from referee_client import convert
from referee_games.contract import Decision, GenericView
from referee_games.views import GuillotineDeal, GuillotineView, RegicideDeal, RegicideView, Trick, Turn

CHOICES: dict[str, dict[str, tuple[Any, ...]]] = {
    "guillotine": {
        "rank_order": ("standard", "french"),
        "deals_per_dealer": (1, 6),
        "guillotine_unit": ("card", "spade", "trick"),
        "domino_pass": ("forced", "free"),
    },
    "regicide": {
        "players": (2, 3, 4),
        "pairs": (False, True),
        "opened_to": ("opener", "dealer"),
        "stock": ("deal_out", "exchange"),
        "joker": ("when_void", "any_time", "as_trump"),
        "change": ("one", "both"),
        "first_change": ("any", "not_leader"),
        "pair_score": ("pair", "player"),
        "tie": ("carry", "each", "split"),
        "target": (1, 50),
        "max_deals": (1, 500),
    },
}
CONTRACTS = ("royalty", "queens", "spades", "parliament", "guillotine", "domino")


def full_options(game: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({name: st.sampled_from(values) for name, values in CHOICES[game].items()})


def some_options(game: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {}, optional={name: st.sampled_from(values) for name, values in CHOICES[game].items() if name != "pairs"}
    )


seats = st.integers(0, 3)
card = st.sampled_from([rank + suit for suit in "CDHS" for rank in "A789TJQK"] + ["X1", "X2"])
suit = st.sampled_from(["", "C", "D", "H", "S"])
small = st.integers(0, 1000)


def tuples(elements: st.SearchStrategy[Any], low: int = 0, high: int = 9) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(elements, min_size=low, max_size=high).map(tuple)


tricks = st.builds(Trick, seats, tuples(card, 0, 4), st.integers(-1, 3), suit, st.booleans())
points = tuples(st.integers(-500, 500), 2, 4)
guillotine_views = st.builds(
    GuillotineView,
    seat=st.integers(-1, 3),
    options=full_options("guillotine"),
    phase=st.sampled_from(["contract", "tricks", "domino", "over"]),
    deal=small,
    dealer=seats,
    contract=st.sampled_from(["", *CONTRACTS]),
    hand=tuples(card),
    hand_counts=tuples(small, 4, 4),
    trick=st.none() | tricks,
    tricks=tuples(tricks),
    turns=tuples(st.builds(Turn, seats, card | st.just(""))),
    totals=points,
    deals=tuples(st.builds(GuillotineDeal, seats, st.sampled_from(["", *CONTRACTS]), points)),
)
regicide_views = st.builds(
    RegicideView,
    seat=st.integers(-1, 3),
    options=full_options("regicide"),
    phase=st.sampled_from(["open", "name", "discard", "change", "play", "over"]),
    deal=small,
    dealer=seats,
    opener=st.integers(-1, 3),
    opened=card | st.just(""),
    trump=suit,
    reversed=st.booleans(),
    hand=tuples(card),
    hand_counts=tuples(small, 2, 4),
    stock_count=small,
    discard=card | st.just(""),
    trick=st.none() | tricks,
    tricks=tuples(tricks),
    tricks_taken=tuples(small, 2, 4),
    totals=tuples(small, 2, 4),
    pot=small,
    deals=tuples(st.builds(RegicideDeal, seats, tuples(small, 2, 4), tuples(small, 2, 4), small)),
)
generic_views = st.builds(GenericView, st.text(), st.binary())


@given(guillotine_views | regicide_views | generic_views)
def test_a_view_survives_the_wire(view: Any) -> None:
    for holder in (agent_service_pb2.Decision, match_service_pb2.WatchMatchResponse):
        message = holder()
        convert.view_into(view, message)
        assert convert.view_from(holder.FromString(message.SerializeToString())) == view


@given(guillotine_views, st.integers(0, 2**31 - 1), tuples(card, 1), st.integers(0, 2**40), st.integers(0, 2**40))
def test_a_decision_survives_the_wire(view: Any, number: int, legal: Any, allowance: int, bank: int) -> None:
    decision = Decision("m" * 26, "guillotine", 2, number, view, legal, allowance, bank)
    message = agent_service_pb2.Decision.FromString(convert.decision_to(decision).SerializeToString())
    assert convert.decision_from(message, "guillotine") == decision


@pytest.mark.parametrize("game", CHOICES)
@given(data=st.data())
def test_options_survive_the_wire(game: str, data: st.DataObject) -> None:
    some = data.draw(some_options(game))
    assert convert.options_from(game, convert.options_to(game, some)) == some
    full = data.draw(full_options(game))
    assert convert.options_from(game, convert.options_to(game, full), written_out=True) == full


def test_an_empty_trick_that_seat_0_leads_is_a_trick() -> None:
    options = {name: values[0] for name, values in CHOICES["guillotine"].items()}
    view = GuillotineView(0, options, "tricks", 0, 0, "royalty", (), (), Trick(0, ()), (), (), (), ())
    message = agent_service_pb2.Decision()
    convert.view_into(view, message)
    assert convert.view_from(message) == view


def test_a_view_does_not_share_its_options_with_the_next() -> None:
    options = {name: values[0] for name, values in CHOICES["guillotine"].items()}
    message = agent_service_pb2.Decision()
    convert.view_into(GuillotineView(0, options, "over", 0, 0, "", (), (), None, (), (), (), ()), message)
    first: Any = convert.view_from(message)
    first.options["rank_order"] = "upside down"
    second: Any = convert.view_from(message)
    assert second.options["rank_order"] == "standard"


def test_deals_are_told_apart_when_a_tuple_takes_the_place_of_another() -> None:
    options = {name: values[0] for name, values in CHOICES["guillotine"].items()}
    for points_now in range(20_000):
        deals = (GuillotineDeal(0, "queens", (points_now, 0, 0, 0)),)
        message = agent_service_pb2.Decision()
        convert.view_into(GuillotineView(0, options, "over", 1, 0, "", (), (), None, (), (), (), deals), message)
        assert message.guillotine.deals[0].scores[0] == points_now


def test_options_of_other_games_go_by_key_and_text() -> None:
    message = convert.options_to("tiny", {"rounds": 3, "fast": True, "kind": "odd"})
    assert dict(message.generic.values) == {"rounds": "3", "fast": "true", "kind": "odd"}
    assert convert.options_from("tiny", message) == {"rounds": "3", "fast": "true", "kind": "odd"}


def test_key_and_text_are_accepted_for_every_game() -> None:
    message = game_pb2.GameOptions(generic=game_pb2.GenericOptions(values={"rank_order": "french"}))
    assert convert.options_from("guillotine", message) == {"rank_order": "french"}


def test_nothing_set_is_nothing_given() -> None:
    assert convert.options_from("regicide", game_pb2.GameOptions()) == {}
    assert convert.options_from("regicide", game_pb2.GameOptions(regicide=game_pb2.RegicideOptions())) == {}


def test_options_of_another_game_are_refused() -> None:
    message = convert.options_to("regicide", {"players": 3})
    with pytest.raises(ValueError, match="options of regicide were given for a match of 'guillotine'"):
        convert.options_from("guillotine", message)


def test_an_unknown_enum_number_is_refused_by_field() -> None:
    options = game_pb2.GuillotineOptions.FromString(b"\x20\x63")  # field 4, 99
    with pytest.raises(ValueError, match="field domino_pass has the unknown value 99"):
        convert.options_from("guillotine", game_pb2.GameOptions(guillotine=options))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"speed": 3}, "no option 'speed'"),
        ({"tie": "share"}, "option tie is one of carry, each, split, not 'share'"),
        ({"players": "3"}, "option players is a whole number"),
        ({"players": True}, "option players is a whole number"),
        ({"target": 2**31}, "option target is a whole number"),
        ({"pairs": 1}, "option pairs is true or false"),
    ],
)
def test_options_that_a_message_cannot_hold_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        convert.options_to("regicide", options)


def test_a_view_without_a_word_for_it_is_refused() -> None:
    options = {name: values[0] for name, values in CHOICES["guillotine"].items()}
    view = GuillotineView(0, options, "lunch", 0, 0, "", (), (), None, (), (), (), ())
    with pytest.raises(ValueError, match="no word for 'lunch'"):
        convert.view_into(view, agent_service_pb2.Decision())


def test_a_view_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(TypeError, match="not dict"):
        convert.view_into({}, agent_service_pb2.Decision())  # type: ignore[arg-type]


def test_a_message_without_a_view_is_refused() -> None:
    with pytest.raises(ValueError, match="holds no view"):
        convert.view_from(agent_service_pb2.Decision())


def test_a_newer_phase_is_refused() -> None:
    message = agent_service_pb2.Decision()
    message.guillotine.MergeFromString(b"\x18\x63")
    with pytest.raises(ValueError, match="unknown value 99"):
        convert.view_from(message)
