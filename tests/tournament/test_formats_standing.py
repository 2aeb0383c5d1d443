"""Formats that follow the standing: Swiss and ladder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee_server.tournament.formats import Plan, Scheduler, bye_worth
from referee_server.tournament.model import Table
from tournament.play import PAIRS, alone, meetings, outcome, outcome_of, play, played, rounds, spread


def _pairs(tables: Sequence[Table]) -> list[tuple[int, ...]]:
    """Who meets, numbered from 1 as players are in chess, the better number first."""
    return [tuple(sorted(entrant + 1 for entrant in table.seats)) for table in tables]


def test_a_swiss_of_eight_pairs_as_by_hand() -> None:
    # The better number always wins. Upper half against lower half of every bracket; when its members have met, the
    # lowest change first.
    made = rounds(played(Plan("swiss", 8, alone(2), rounds=3)))
    assert [_pairs(tables) for tables in made] == [
        [(1, 5), (2, 6), (3, 7), (4, 8)],
        [(1, 3), (2, 4), (5, 7), (6, 8)],
        [(1, 2), (3, 5), (4, 6), (7, 8)],
    ]


def test_a_swiss_of_seven_pairs_as_by_hand() -> None:
    # Round 1: 7 has the bye, half a point. Round 2: 1, 2 and 3 have one point, 7 a half, 4, 5 and 6 none. 6 has the
    # bye; 1 plays 2, 3 and 7 go down; 7 and 4, then 5, are left with 3 who met nobody of them.
    scheduler = played(Plan("swiss", 7, alone(2), rounds=2))
    first, second = rounds(scheduler)
    assert _pairs(first) == [(1, 4), (2, 5), (3, 6)]
    assert _pairs(second) == [(1, 2), (3, 7), (4, 5)]
    assert dict(scheduler.byes) == {6: 1, 5: 1}


@pytest.mark.parametrize(("entrants", "number"), [(2, 2), (3, 3), (4, 3), (5, 4), (8, 4), (9, 5), (100, 8), (1024, 11)])
def test_a_swiss_has_one_round_more_than_the_logarithm_unless_told(entrants: int, number: int) -> None:
    assert len(rounds(played(Plan("swiss", entrants, alone(2))))) == number


def test_a_draw_counts_half_as_a_bye_does() -> None:
    # All five have a half. 3 has the bye, being the lowest without one; 0 has met 2, so the lower half change places.
    plan = Plan("swiss", 5, alone(2), rounds=2)
    scheduler = Scheduler(plan)
    for table in list(scheduler.tables):
        scheduler.take(outcome_of(table, plan, places=[1, 1]))
    assert {frozenset(table.seats) for table in scheduler.tables[2:]} == {frozenset((0, 4)), frozenset((1, 2))}


@given(entrants=st.integers(4, 10), seed=st.permutations(range(10)), number=st.integers(1, 5))
@settings(max_examples=80)
def test_in_a_swiss_of_twos_nobody_meets_again_while_that_can_be_avoided(
    entrants: int, seed: list[int], number: int
) -> None:
    plan = Plan("swiss", entrants, alone(2), rounds=number)
    met: set[frozenset[int]] = set()
    for tables in rounds(played(plan, lambda entrant: seed[entrant])):
        pairs = [frozenset(table.seats) for table in tables]
        playing = sorted(entrant for pair in pairs for entrant in pair)
        if any(True for _ in _fresh(playing, met)):
            assert not met.intersection(pairs)
        met.update(pairs)


def _fresh(free: list[int], met: set[frozenset[int]]) -> Iterator[None]:
    """Yields for each way to pair those who are free without a repetition."""
    if not free:
        yield
        return
    for other in free[1:]:
        if frozenset((free[0], other)) not in met:
            yield from _fresh([entrant for entrant in free[1:] if entrant != other], met)


@pytest.mark.parametrize(
    ("entrants", "seats", "number"), [(30, 2, 8), (27, 3, 5), (64, 4, 5), (200, 4, 8), (400, 2, 10)]
)
def test_in_a_swiss_large_enough_nobody_meets_again(entrants: int, seats: int, number: int) -> None:
    plan = Plan("swiss", entrants, alone(seats), rounds=number)
    met = Counter(pair for table in played(plan).tables for _, pair in meetings(plan, table))
    assert max(met.values()) == 1


@pytest.mark.parametrize("entrants", [8, 9, 16, 17, 40, 101])
@pytest.mark.parametrize("order", [1, 3, 7])
def test_a_swiss_of_twos_seats_everyone_within_two(entrants: int, order: int) -> None:
    plan = Plan("swiss", entrants, alone(2))
    assert spread(plan, played(plan, lambda entrant: entrant * order % 103)).seats <= 2


@pytest.mark.parametrize(("entrants", "sides"), [(15, alone(3)), (24, alone(4)), (16, PAIRS)])
def test_a_larger_swiss_seats_everyone_within_three(entrants: int, sides: tuple[tuple[int, ...], ...]) -> None:
    plan = Plan("swiss", entrants, sides, rounds=8)
    assert spread(plan, played(plan)).seats <= 3


@given(entrants=st.integers(3, 14), seats=st.integers(2, 4), number=st.integers(1, 6), fillers=st.integers(0, 1))
@settings(max_examples=60)
def test_left_over_is_the_lowest_of_those_who_were_so_least_often(
    entrants: int, seats: int, number: int, fillers: int
) -> None:
    entrants = max(entrants, seats)
    plan = Plan("swiss", entrants, alone(seats), rounds=number, fillers=fillers)
    points = dict.fromkeys(range(entrants), 0.0)
    left_over: Counter[int] = Counter()
    for tables in rounds(played(plan)):
        playing = {e for table in tables if min(table.seats) >= 0 for e in table.seats}
        left = set(range(entrants)) - playing
        order = sorted(range(entrants), key=lambda e: (left_over[e], points[e], -e))
        assert left == set(order[: entrants % seats])
        for table in tables:
            places = outcome(table, plan).places
            for seat, entrant in enumerate(table.seats):
                if entrant >= 0:
                    points[entrant] += sum(place > places[seat] for place in places)
                    points[entrant] += (sum(place == places[seat] for place in places) - 1) / 2
        for entrant in left:
            left_over[entrant] += 1
            points[entrant] += 0 if fillers else bye_worth(plan)


def test_a_late_entrant_of_a_swiss_begins_without_points() -> None:
    plan = Plan("swiss", 8, alone(2), rounds=3)
    scheduler = Scheduler(plan)
    scheduler.enter(8)
    play(scheduler, plan)
    assert [8 in {e for table in tables for e in table.seats} for tables in rounds(scheduler)] == [False, False, True]
    assert scheduler.byes[8] == 1  # the field is odd now, and it is the lowest


def test_in_a_swiss_of_pairs_the_highest_partners_the_lowest_and_partners_change() -> None:
    plan = Plan("swiss", 4, PAIRS, rounds=3)
    partners = [{frozenset(t.seats[::2]), frozenset(t.seats[1::2])} for t in played(plan).tables]
    assert partners[0] == {frozenset((0, 3)), frozenset((1, 2))}
    assert len(set.union(*partners)) == 6


def test_a_ladder_without_rounds_never_ends() -> None:
    plan = Plan("ladder", 6, alone(3))
    scheduler = play(Scheduler(plan), plan, tables=500)
    assert len(scheduler.tables) == 502
    assert (scheduler.complete, scheduler.total) == (False, 0)


def test_on_a_ladder_nobody_meets_again_in_the_next_two_rounds() -> None:
    plan = Plan("ladder", 24, alone(2), rounds=30)
    met = [{frozenset(table.seats) for table in tables} for tables in rounds(played(plan))]
    for earlier, before, now in zip(met, met[1:], met[2:], strict=False):
        assert not now & (before | earlier)


def test_a_ladder_ends_after_its_rounds() -> None:
    scheduler = played(Plan("ladder", 9, alone(4), rounds=5))
    assert (len(rounds(scheduler)), scheduler.complete) == (5, True)


def test_on_a_ladder_neighbours_in_strength_meet_far_more_often_than_others() -> None:
    plan = Plan("ladder", 24, alone(2), rounds=60)
    met = Counter(pair for table in played(plan).tables[360:] for _, pair in meetings(plan, table))
    near = sum(times for (a, b), times in met.items() if b - a <= 6)
    every = sum(b - a <= 6 for a, b in combinations(range(24), 2)) / (24 * 23 / 2)
    assert near / met.total() > 1.4 * every


def test_a_ladder_lets_anybody_in_at_any_round_and_waits_while_there_are_too_few() -> None:
    plan = Plan("ladder", 2, alone(2))
    scheduler = Scheduler(plan)
    scheduler.withdraw(1)
    assert scheduler.take(outcome(scheduler.tables[0], plan)) == []
    assert not scheduler.complete
    scheduler.enter(2)
    (table,) = scheduler.more()
    assert (table.round, set(table.seats)) == (1, {0, 2})
