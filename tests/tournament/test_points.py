from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee_games.contract import rank_places
from referee_server.tournament.model import DealOutcome
from referee_server.tournament.points import (
    counted_points,
    game_points,
    over,
    place_points,
    seated,
    side_firsts,
    side_points,
)
from tournament.made import PAIRS, outcome


@pytest.mark.parametrize(
    ("places", "points"),
    [
        ((1, 2, 3, 4), (3, 2, 1, 0)),
        ((4, 1, 2, 3), (0, 3, 2, 1)),
        ((1, 1, 3, 4), (2.5, 2.5, 1, 0)),
        ((1, 2, 2, 4), (3, 1.5, 1.5, 0)),
        ((1, 2, 3, 3), (3, 2, 0.5, 0.5)),
        ((1, 1, 1, 4), (2, 2, 2, 0)),
        ((1, 1, 1, 1), (1.5, 1.5, 1.5, 1.5)),
        ((1, 2), (1, 0)),
        ((1, 1), (0.5, 0.5)),
        ((2, 1, 3), (1, 2, 0)),
        ((1,), (0,)),
    ],
)
def test_place_points_count_who_was_placed_behind_and_shared_places_half(
    places: tuple[int, ...], points: tuple[float, ...]
) -> None:
    assert side_points(places) == points


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=8))
def test_place_points_of_a_table_always_add_up_to_the_same(totals: list[int]) -> None:
    points = side_points(rank_places(totals, lowest_wins=True))
    assert sum(points) == len(totals) * (len(totals) - 1) / 2


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=8))
def test_first_places_of_a_table_add_up_to_one(totals: list[int]) -> None:
    assert sum(side_firsts(rank_places(totals, lowest_wins=False))) == pytest.approx(1)


def test_places_are_the_official_ones_though_the_totals_say_otherwise() -> None:
    table = outcome(0, (0, 1, 2, 3), (9, 7, 5, 3), places=(4, 1, 2, 3))
    assert place_points(table) == (0, 3, 2, 1)


def test_partners_get_the_points_of_their_side() -> None:
    table = outcome(0, (5, 6, 7, 8), (30, 12), sides=PAIRS)
    assert place_points(table) == (1, 0, 1, 0)
    assert game_points(table, lowest_wins=False) == (30, 12, 30, 12)


def test_points_of_the_game_are_turned_where_the_lowest_total_wins() -> None:
    table = outcome(0, (0, 1, 2), (40, -10, 0), lowest_wins=True)
    assert game_points(table, lowest_wins=True) == (-40, 10, 0)


def test_deals_that_a_substitute_played_or_that_were_cut_short_do_not_count() -> None:
    deals = [
        DealOutcome(0, 0, (5, 1)),
        DealOutcome(1, 1, (7, 2), counted=False),
        DealOutcome(2, 0, (0, 0), counted=False),
        DealOutcome(3, 1, (1, 3)),
    ]
    table = outcome(0, (0, 1), (13, 6), deals=deals)
    assert counted_points(table, lowest_wins=False) == (6, 4)
    assert game_points(table, lowest_wins=False) == (13, 6)


def test_a_table_where_no_deal_counts_has_no_counted_points() -> None:
    table = outcome(0, (0, 1), (5, 1), deals=[DealOutcome(0, 0, (5, 1), counted=False)])
    assert counted_points(table, lowest_wins=False) == ()


@pytest.mark.parametrize("reason", ["not_started", "cancelled", "referee_fault"])
def test_a_table_without_a_result_gives_no_points(reason: str) -> None:
    table = outcome(0, (0, 1), reason=reason, deals=[DealOutcome(0, 0, (5, 1))])
    assert (
        place_points(table) == game_points(table, lowest_wins=False) == counted_points(table, lowest_wins=False) == ()
    )


def test_somebody_who_plays_several_sides_gets_their_mean() -> None:
    table = outcome(0, (4, 4, 4, 9), (1, 2, 3, 4))
    assert seated(table) == {4: (0, 1, 2), 9: (3,)}
    assert over(side_points(table.places), (0, 1, 2)) == 1


def test_somebody_on_both_seats_of_a_side_plays_it_once() -> None:
    assert seated(outcome(0, (4, 9, 4, 9), (3, 1), sides=PAIRS)) == {4: (0,), 9: (1,)}
