"""Knock-out and gauntlet."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee_server.tournament.formats import Plan, Scheduler
from tournament.play import PAIRS, alone, meetings, outcome, outcome_of, play, played, rounds

_BRACKETS = (Path(__file__).parent / "pairings" / "brackets.txt").read_text("utf-8")
_PUBLISHED = {
    int(head): line.split() for head, line in (block.split("\n")[:2] for block in _BRACKETS.split("\n\n")[1:])
}


@pytest.mark.parametrize("entrants", _PUBLISHED)
def test_the_first_round_is_that_of_the_standard_bracket(entrants: int) -> None:
    couples = [tuple(map(int, couple.split("-"))) for couple in _PUBLISHED[entrants]]
    scheduler = Scheduler(Plan("knockout", entrants, alone(2)))
    meet = [tuple(sorted(entrant + 1 for entrant in table.seats)) for table in scheduler.tables]
    assert meet == [couple for couple in couples if max(couple) <= entrants]
    assert {seed + 1 for seed in scheduler.byes} == {min(couple) for couple in couples if max(couple) > entrants}


def test_the_best_two_meet_in_the_final_and_losers_are_out_in_their_round() -> None:
    scheduler = played(Plan("knockout", 8, alone(2)))
    met = [[set(table.seats) for table in tables] for tables in rounds(scheduler)]
    assert met == [[{0, 7}, {3, 4}, {1, 6}, {2, 5}], [{0, 3}, {1, 2}], [{0, 1}]]
    assert dict(scheduler.eliminated) == {7: 0, 6: 0, 5: 0, 4: 0, 3: 1, 2: 1, 1: 2}


@given(
    entrants=st.integers(2, 70),
    seats=st.integers(2, 5),
    strength=st.permutations(range(70)),
    sets=st.integers(1, 2),
)
@settings(max_examples=80)
def test_the_strongest_wins_and_everybody_else_goes_out_once(
    entrants: int, seats: int, strength: list[int], sets: int
) -> None:
    plan = Plan("knockout", max(entrants, seats), alone(seats), sets=sets)
    scheduler = played(plan, lambda entrant: strength[entrant])
    field = set(range(plan.entrants))
    winner = max(field, key=lambda entrant: strength[entrant])
    assert scheduler.complete
    assert set(scheduler.eliminated) == field - {winner}
    assert all(len(set(table.seats)) == seats and min(table.seats) >= 0 for table in scheduler.tables)


@pytest.mark.parametrize(
    ("seats", "field", "left"), [(3, 9, [9, 3]), (4, 16, [16, 8, 4]), (4, 8, [8, 4]), (5, 25, [25, 10, 5])]
)
def test_half_of_a_table_goes_on_rounded_down(seats: int, field: int, left: list[int]) -> None:
    scheduler = played(Plan("knockout", field, alone(seats)))
    assert [sum(len(table.seats) for table in tables) for tables in rounds(scheduler)] == left


def test_tables_of_four_are_drawn_up_like_a_snake() -> None:
    scheduler = Scheduler(Plan("knockout", 16, alone(4)))
    groups = [sorted(entrant + 1 for entrant in table.seats) for table in scheduler.tables]
    assert groups == [[1, 8, 9, 16], [2, 7, 10, 15], [3, 6, 11, 14], [4, 5, 12, 13]]


def test_a_tie_is_played_on_three_times_and_then_the_better_seed_goes_on() -> None:
    plan = Plan("knockout", 4, alone(2), sets=2)
    scheduler = Scheduler(plan)
    while not scheduler.complete:
        for table in scheduler.tables[len(scheduler._taken) :]:
            tied = 1 in table.seats
            places = [1, 1] if tied else outcome(table, plan).places
            scheduler.take(outcome_of(table, plan, places=places))
    tied_rounds = [{frozenset(table.seats) for table in tables if 1 in table.seats} for tables in rounds(scheduler)]
    assert tied_rounds == [{frozenset((1, 2))}] * 4 + [{frozenset((0, 1))}] * 4
    assert dict(scheduler.eliminated) == {3: 0, 2: 0, 1: 4}
    boards = [table.board for table in scheduler.tables]
    assert boards == list(range(4 + 3 * 2 + 2 + 3 * 2))


def test_extra_sets_are_played_by_the_tied_alone() -> None:
    plan = Plan("knockout", 4, alone(2), "rotation")
    scheduler = Scheduler(plan)
    for table in list(scheduler.tables):
        places = [1, 1] if 1 in table.seats else outcome(table, plan).places
        scheduler.take(outcome_of(table, plan, places=places))
    assert [table.seats for table in scheduler.tables[4:]] == [(1, 2), (2, 1)]


def test_who_did_not_come_to_a_table_that_never_started_is_out() -> None:
    plan = Plan("knockout", 2, alone(2))
    scheduler = Scheduler(plan)
    assert scheduler.take(outcome_of(scheduler.tables[0], plan, losses={0: "no_show"})) == []
    assert (scheduler.complete, dict(scheduler.eliminated)) == (True, {0: 0})


def test_who_withdraws_gives_its_opponent_a_walkover() -> None:
    plan = Plan("knockout", 4, alone(2))
    scheduler = Scheduler(plan)
    scheduler.withdraw(0)
    play(scheduler, plan)
    assert scheduler.complete
    assert dict(scheduler.eliminated) == {3: 0, 2: 0, 0: 1}
    assert len(scheduler.tables) == 2


@pytest.mark.parametrize("fillers", [0, 1])
def test_a_table_of_more_that_withdrawals_left_too_small_goes_to_the_best_seed_or_is_filled(fillers: int) -> None:
    plan = Plan("knockout", 8, alone(4), fillers=fillers)
    scheduler = Scheduler(plan)
    scheduler.withdraw(0)
    # Of each four the two best seeds go on, 3 being the strongest of them; then 0 is gone.
    play(scheduler, plan, strength=lambda entrant: entrant if 0 <= entrant < 4 else -abs(entrant) - 9)
    assert scheduler.complete
    assert set(range(8)) - set(scheduler.eliminated) == {3 if fillers else 1}


@pytest.mark.parametrize("challengers", [1, 2, 5])
def test_in_a_gauntlet_of_twos_every_challenger_meets_everyone_once(challengers: int) -> None:
    plan = Plan("gauntlet", 8, alone(2), challengers=challengers)
    met = sorted(pair for table in played(plan).tables for _, pair in meetings(plan, table))
    assert met == [(a, b) for a, b in combinations(range(8), 2) if a < challengers]


@pytest.mark.parametrize("seats", [3, 4])
@pytest.mark.parametrize("challengers", [1, 3])
def test_in_a_gauntlet_every_group_with_a_challenger_meets_once(seats: int, challengers: int) -> None:
    plan = Plan("gauntlet", 8, alone(seats), challengers=challengers)
    groups = sorted(tuple(sorted(table.seats)) for table in played(plan).tables)
    assert groups == [group for group in combinations(range(8), seats) if group[0] < challengers]


@pytest.mark.parametrize("sides", [alone(2), alone(3), alone(4), PAIRS])
@pytest.mark.parametrize("challengers", [1, 2, 3])
def test_in_a_sampled_gauntlet_every_challenger_plays_each_round_with_whom_it_met_least(
    sides: tuple[tuple[int, ...], ...], challengers: int
) -> None:
    plan = Plan("gauntlet", 14, sides, challengers=challengers, rounds=9)
    scheduler = played(plan)
    met: Counter[tuple[int, int]] = Counter()
    for tables in rounds(scheduler):
        assert sorted(e for t in tables for e in t.seats if e < challengers) == list(range(challengers))
        met.update(pair for table in tables for _, pair in meetings(plan, table))
    for challenger in range(challengers):
        times = [met[challenger, other] for other in range(challengers, 14)]
        assert max(times) - min(times) <= (1 if challengers == 1 else 2)


def test_a_late_entrant_of_a_gauntlet_meets_the_challengers_only() -> None:
    plan = Plan("gauntlet", 5, alone(2), challengers=2)
    scheduler = Scheduler(plan)
    scheduler.enter(5)
    assert {frozenset(table.seats) for table in play(scheduler, plan).tables if 5 in table.seats} == {
        frozenset((0, 5)),
        frozenset((1, 5)),
    }
