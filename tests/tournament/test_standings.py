from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee_server.tournament.model import DealOutcome, Interval, Outcome, Standing
from referee_server.tournament.standings import standings
from tournament.made import PAIRS, outcome, tournament


def ranked(outcomes: Sequence[Outcome], entrants: int, **options: object) -> list[tuple[int, int]]:
    """Rank and number of each entrant, in the order of the standings."""
    lines = standings(outcomes, entrants, lowest_wins=False, resamples=0, **options)  # type: ignore[arg-type]
    return [(line.rank, line.entrant) for line in lines]


def line_of(entrant: int, outcomes: Sequence[Outcome], entrants: int = 4, **options: object) -> Standing:
    lines = standings(outcomes, entrants, lowest_wins=False, resamples=0, **options)  # type: ignore[arg-type]
    return next(line for line in lines if line.entrant == entrant)


def test_a_line_adds_up_what_its_tables_were_worth() -> None:
    line = line_of(
        1, [outcome(0, (0, 1, 2, 3), (5, 9, 2, 2)), outcome(1, (1, 0, 3, 2), (7, 8, 7, 7)), outcome(2, (0, 2), (1, 0))]
    )
    assert (line.played, line.place_points, line.points, line.firsts) == (2, 4, 16, 1)
    assert line.mean == Interval(2, 2, 2)


def test_a_shared_first_place_counts_in_parts() -> None:
    table = [outcome(0, (0, 1, 2), (6, 6, 1))]
    assert [line_of(entrant, table, 3).firsts for entrant in range(3)] == [0.5, 0.5, 0]


def test_an_entrant_on_several_sides_has_their_mean_and_every_first_place() -> None:
    line = line_of(0, [outcome(0, (0, 0, 0, 0), (4, 3, 2, 1))])
    assert (line.played, line.place_points, line.firsts) == (1, 1.5, 1)


def test_partners_both_have_what_their_side_made() -> None:
    table = [outcome(0, (0, 1, 2, 3), (9, 4), sides=PAIRS)]
    assert ranked(table, 4) == [(1, 0), (1, 2), (3, 1), (3, 3)]
    assert [line_of(entrant, table).points for entrant in range(4)] == [9, 4, 9, 4]


@pytest.mark.parametrize("reason", ["not_started", "cancelled", "referee_fault"])
def test_tables_without_a_result_leave_points_alone(reason: str) -> None:
    table = outcome(0, (0, 1, 2, 3), reason=reason, deals=[DealOutcome(0, 0, (9, 1, 1, 1))])
    line = line_of(0, [table])
    assert (line.played, line.place_points, line.points, line.mean.value, line.rating.value) == (0, 0, 0, 0, 1500)
    assert ranked([table], 4) == [(1, 0), (1, 1), (1, 2), (1, 3)]


def blamed(number: int, reason: str) -> Outcome:
    return outcome(
        number,
        (0, 1),
        (5, 3) if reason in ("completed", "forfeited") else (),
        reason=reason,
        faults={0: {"timeout": 2, "illegal": 1}, 1: {"timeout": 1}},
        losses={0: "timeout: replaced"},
        substituted={0: 3},
    )


@pytest.mark.parametrize("reason", ["completed", "forfeited", "not_started", "cancelled"])
def test_faults_time_losses_and_causes_are_counted_apart_from_points(reason: str) -> None:
    played = [blamed(0, reason), blamed(1, reason)]
    line, other = line_of(0, played), line_of(1, played)
    assert line.faults == {"illegal": 2, "timeout": 4}
    assert line.time_losses == 4
    assert line.losses == {"timeout: replaced": 2}
    assert line.substituted == 6
    assert (other.faults, other.time_losses, other.losses, other.substituted) == ({"timeout": 2}, 2, {}, 0)


def test_a_fault_of_the_referee_blames_nobody() -> None:
    line = line_of(0, [blamed(0, "referee_fault")])
    assert (line.faults, line.time_losses, line.losses, line.substituted) == ({}, 0, {}, 0)


def test_every_cause_of_a_loss_is_listed() -> None:
    played = [
        outcome(0, (0, 1), (3, 1), places=(2, 1), losses={0: "timeout: replaced"}),
        outcome(1, (1, 0), (3, 1), places=(1, 2), losses={1: "illegal: forfeit"}),
        outcome(2, (0, 1), reason="not_started", losses={0: "no_show: match not started"}),
    ]
    assert line_of(0, played).losses == {
        "illegal: forfeit": 1,
        "no_show: match not started": 1,
        "timeout: replaced": 1,
    }


def test_house_bots_have_no_line() -> None:
    assert ranked([outcome(0, (0, -1, 1, -2), (1, 9, 3, 7))], 2) == [(1, 1), (2, 0)]


# Rank: what decides, in the order of the rules.


def test_place_points_a_table_rank_and_not_their_sum() -> None:
    # 1 has played twice and made 3 of 4; 0 has played once and made 2 of 2.
    played = [outcome(0, (1, 2, 3), (9, 5, 1)), outcome(1, (0, 1, 2), (9, 5, 1))]
    assert [entrant for _, entrant in ranked(played, 4)][:2] == [0, 1]


def test_who_has_not_played_stands_behind_who_lost_every_table() -> None:
    assert ranked([outcome(0, (0, 1), (3, -1))], 4) == [(1, 0), (2, 1), (3, 2), (3, 3)]


def test_a_bye_counts_as_the_tables_that_it_stands_for() -> None:
    played = [outcome(0, (0, 1), (3, 1)), outcome(1, (1, 0), (3, 1))]
    line = line_of(2, played, 3, byes={2: 1}, bye_points=0.75, bye_tables=2)
    assert (line.byes, line.played, line.place_points, line.mean.value) == (1, 0, 1.5, 0.75)
    assert ranked(played, 3, byes={2: 1}, bye_points=0.75, bye_tables=2) == [(1, 2), (2, 0), (2, 1)]
    assert ranked(played, 3, byes={2: 1}, bye_points=0.25) == [(1, 0), (1, 1), (3, 2)]


def test_first_tie_break_is_direct_comparison() -> None:
    # 0 and 1 both have 3 of 4, and 1 was before 0 where they met; 0 has more points of the game.
    played = [outcome(0, (0, 1, 2), (80, 90, 1)), outcome(1, (0, 2, 3), (99, 5, 1)), outcome(2, (1, 2, 3), (4, 7, 1))]
    assert ranked(played, 4)[:2] == [(1, 1), (2, 0)]


def test_direct_comparison_is_among_the_equals_only() -> None:
    # 0, 1 and 2 beat each other in a ring, and each beat 3: nobody is ahead, though 0 has met 3 more often.
    ring = [(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)]
    played = [outcome(number, pair, (2, 1)) for number, pair in enumerate(ring)]
    assert ranked(played, 4) == [(1, 0), (1, 1), (1, 2), (4, 3)]


def test_second_tie_break_is_points_of_the_game() -> None:
    played = [outcome(0, (0, 2), (3, 1)), outcome(1, (1, 3), (8, 1))]
    assert ranked(played, 4)[:2] == [(1, 1), (2, 0)]


def test_third_tie_break_is_first_places() -> None:
    # All make one place point and five points of the game a table, and nobody is ahead of anybody.
    played = [
        outcome(0, (0, 2, 3), (5, 9, 1)),
        outcome(1, (0, 2, 3), (5, 1, 9)),
        outcome(2, (1, 2, 3), (9, 5, 1)),
        outcome(3, (1, 2, 3), (1, 5, 9)),
    ]
    assert ranked(played, 4) == [(1, 1), (1, 3), (3, 2), (4, 0)]


def test_fourth_tie_break_is_fewer_faults() -> None:
    played = [outcome(0, (0, 1), (3, 3), faults={0: {"illegal": 1}})]
    assert ranked(played, 2) == [(1, 1), (2, 0)]


def test_equals_in_everything_share_the_rank() -> None:
    played = [outcome(0, (0, 1, 2, 3), (5, 3, 3, 1))]
    assert ranked(played, 4) == [(1, 0), (2, 1), (2, 2), (4, 3)]


def test_points_of_the_game_are_turned_where_the_lowest_total_wins() -> None:
    played = [outcome(0, (0, 2), (3, 11), lowest_wins=True), outcome(1, (1, 3), (8, 11), lowest_wins=True)]
    lines = standings(played, 4, lowest_wins=True, resamples=0)
    assert [(line.entrant, line.points) for line in lines] == [(0, -3), (1, -8), (2, -11), (3, -11)]


def test_who_left_stands_behind_who_stayed() -> None:
    played = [outcome(0, (0, 1), (3, 1))]
    assert ranked(played, 3, withdrawn={0}) == [(1, 1), (2, 2), (3, 0)]
    assert line_of(0, played, 3, withdrawn={0}).withdrawn


@pytest.mark.parametrize(
    ("eliminated", "order"),
    [
        ({1: 0, 2: 0, 3: 1}, [(1, 0), (2, 3), (3, 1), (3, 2)]),
        ({0: 1, 1: 0, 2: 0}, [(1, 3), (2, 0), (3, 1), (3, 2)]),
    ],
)
def test_who_was_eliminated_later_stands_before(eliminated: Mapping[int, int], order: list[tuple[int, int]]) -> None:
    played = [
        outcome(0, (0, 1), (5, 5)),
        outcome(1, (2, 3), (5, 5)),
    ]
    assert [entrant for _, entrant in ranked(played, 4, eliminated=eliminated)] == [entrant for _, entrant in order]


def test_who_left_in_the_final_stands_before_who_was_eliminated_earlier() -> None:
    assert ranked([], 4, eliminated={1: 0, 2: 0, 3: 1}, withdrawn={3}) == [(1, 0), (2, 3), (3, 1), (3, 2)]


# Figures.


def test_place_points_of_all_lines_are_those_of_all_tables() -> None:
    played = tournament([0.0] * 6, 9, 3)
    lines = standings(played, 6, lowest_wins=False, resamples=0)
    assert sum(line.place_points for line in lines) == 27 * 6
    assert sum(line.firsts for line in lines) == pytest.approx(27)


@pytest.mark.parametrize("tables", [0, 1])
def test_with_no_or_one_table_every_figure_is_finite(tables: int) -> None:
    for line in standings([outcome(0, (0, 1, 2, 3), (4, 3, 2, 1))][:tables], 5, lowest_wins=False, resamples=20):
        for figure in (line.mean, line.rating):
            assert all(map(math.isfinite, (figure.low, figure.value, figure.high)))
            assert figure.low <= figure.value <= figure.high


def test_intervals_hold_their_figures_and_are_none_in_the_live_view() -> None:
    played = tournament([0, 0.5, 1, 1.5, 2], 20, 4)
    sure = standings(played, 5, lowest_wins=False, resamples=100)
    live = standings(played, 5, lowest_wins=False, resamples=0)
    for with_interval, without in zip(sure, live, strict=True):
        for wide, bare in ((with_interval.mean, without.mean), (with_interval.rating, without.rating)):
            assert wide.low < wide.value == bare.value == bare.low == bare.high < wide.high


def test_the_field_is_told_apart_by_place_points_and_by_rating() -> None:
    lines = standings(tournament([0, 1, 2, 3, 4], 60, 2), 5, lowest_wins=False, resamples=100)
    assert [line.entrant for line in lines] == [4, 3, 2, 1, 0]
    assert [line.rating.value for line in lines] == sorted((line.rating.value for line in lines), reverse=True)


@given(st.randoms(use_true_random=False), st.integers(0, 30))
def test_tables_in_another_order_give_the_same_standings_to_the_last_bit(draw: random.Random, tables: int) -> None:
    played = [
        outcome(
            number,
            draw.sample(range(-2, 5), 4),
            [draw.randrange(3) for _ in range(4)],
            board=number // 3,
            faults={draw.randrange(4): {"timeout": 1}},
            losses={draw.randrange(4): draw.choice(["timeout: replaced", "illegal: forfeit"])},
        )
        for number in range(tables)
    ]
    shuffled = draw.sample(played, tables)
    assert standings(shuffled, 5, lowest_wins=True, resamples=20) == standings(
        played, 5, lowest_wins=True, resamples=20
    )
