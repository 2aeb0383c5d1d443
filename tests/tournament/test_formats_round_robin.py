"""Round robin: every group, or a sample of them, in even seats and company."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import comb
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee_server.tournament.formats import Plan, Scheduler, count
from tournament.play import PAIRS, alone, meetings, play, played, rounds, spread

_BERGER = Path(__file__).parent / "pairings" / "berger.txt"


def _published(entrants: int) -> list[list[tuple[int, int]]]:
    text = _BERGER.read_text("utf-8")
    block = text.split(f"{entrants - 1} or {entrants} players\n")[1].split("\n\n")[0]
    return [[(int(a), int(b)) for a, b in (p.split("-") for p in line.split())] for line in block.splitlines()]


@pytest.mark.parametrize("entrants", [4, 6, 8, 10])
def test_twos_meet_as_in_the_published_berger_tables(entrants: int) -> None:
    made = rounds(Scheduler(Plan("round_robin", entrants, alone(2))))
    assert [[(t.seats[0] + 1, t.seats[1] + 1) for t in tables] for tables in made] == _published(entrants)


@pytest.mark.parametrize("entrants", [3, 5, 7, 9])
def test_in_an_odd_field_of_twos_the_partner_of_the_highest_number_has_the_bye(entrants: int) -> None:
    scheduler = Scheduler(Plan("round_robin", entrants, alone(2)))
    left = [[p for p in line if entrants + 1 not in p] for line in _published(entrants + 1)]
    assert [[(t.seats[0] + 1, t.seats[1] + 1) for t in tables] for tables in rounds(scheduler)] == left
    assert dict(scheduler.byes) == dict.fromkeys(range(entrants), 1)


@pytest.mark.parametrize(
    ("entrants", "seats"), [(2, 2), (11, 2), (3, 3), (4, 3), (8, 3), (9, 3), (4, 4), (7, 4), (8, 4), (10, 4), (7, 5)]
)
def test_without_a_number_of_rounds_every_group_meets_exactly_once(entrants: int, seats: int) -> None:
    scheduler = played(Plan("round_robin", entrants, alone(seats), seed=5))
    groups = [tuple(sorted(table.seats)) for table in scheduler.tables]
    assert sorted(groups) == list(combinations(range(entrants), seats))
    assert scheduler.complete


@pytest.mark.parametrize("entrants", [4, 5, 8, 9])
def test_every_four_play_in_each_of_their_three_partnerships(entrants: int) -> None:
    scheduler = played(Plan("round_robin", entrants, PAIRS))
    played_as = {frozenset((frozenset(t.seats[::2]), frozenset(t.seats[1::2]))) for t in scheduler.tables}
    assert len(played_as) == len(scheduler.tables) == 3 * comb(entrants, 4)


@pytest.mark.parametrize(("entrants", "seats"), [(6, 3), (9, 3), (12, 3), (7, 4), (8, 4), (10, 4), (12, 4)])
def test_every_group_comes_in_an_order_that_is_even_at_every_round(entrants: int, seats: int) -> None:
    plan = Plan("round_robin", entrants, alone(seats))
    result = spread(plan, played(plan))
    assert result.seats <= 1
    assert result.games <= 3
    assert result.against <= 6


@pytest.mark.parametrize("entrants", [5, 6, 8, 9, 10])
def test_every_partnership_comes_in_an_order_that_is_even_at_every_round(entrants: int) -> None:
    plan = Plan("round_robin", entrants, PAIRS)
    result = spread(plan, played(plan))
    assert result.seats <= 3
    assert result.against <= 8
    assert result.partners <= 4
    assert result.games <= 3


def test_millions_of_groups_are_made_as_they_are_needed() -> None:
    plan = Plan("round_robin", 100, alone(4))
    scheduler = Scheduler(plan, ahead=10)
    assert scheduler.total == count(plan) == comb(100, 4)
    assert 10 <= len(scheduler.tables) < 40
    assert not scheduler.complete


@given(
    entrants=st.integers(2, 40),
    seats=st.integers(2, 4),
    sets=st.integers(1, 3),
    number=st.integers(1, 9),
    seed=st.integers(0, 99),
)
@settings(max_examples=60)
def test_in_a_sample_seats_and_games_are_within_one_at_every_round(
    entrants: int, seats: int, sets: int, number: int, seed: int
) -> None:
    plan = Plan("round_robin", max(entrants, seats), alone(seats), rounds=number, sets=sets, seed=seed)
    result = spread(plan, played(plan))
    assert result.seats <= 1
    assert result.games <= sets


@pytest.mark.parametrize(
    ("entrants", "seats", "number"),
    [
        *((entrants, 2, entrants + entrants % 2 - 1) for entrants in range(2, 14)),
        (3, 3, 5),
        (9, 3, 4),  # the affine plane of order 3
        (9, 3, 12),
        (15, 3, 7),  # Kirkman's schoolgirls
        (27, 3, 13),  # affine space
        (21, 3, 7),  # a grid of three columns, seven rows
        (33, 3, 11),
        (16, 4, 5),  # sixteen golfers for five days
        (16, 4, 10),
        (64, 4, 21),
        (20, 4, 5),
        (28, 4, 7),
        (1000, 4, 4),
        (25, 5, 6),
        (24, 3, 4),
        (17, 3, 4),
    ],
)
def test_opponents_are_within_one_at_every_round_where_a_design_is_known(
    entrants: int, seats: int, number: int
) -> None:
    plan = Plan("round_robin", entrants, alone(seats), rounds=number, seed=3)
    scheduler = played(plan)
    if entrants <= 64:
        assert spread(plan, scheduler).against <= 1
    else:
        assert max(Counter(pair for table in scheduler.tables for _, pair in meetings(plan, table)).values()) == 1


@pytest.mark.parametrize(("entrants", "seats", "number"), [(9, 3, 4), (15, 3, 7), (16, 4, 5), (25, 5, 6), (64, 4, 21)])
def test_a_complete_design_lets_every_two_meet_exactly_once(entrants: int, seats: int, number: int) -> None:
    plan = Plan("round_robin", entrants, alone(seats), rounds=number)
    met = Counter(pair for table in played(plan).tables for _, pair in meetings(plan, table))
    assert met == dict.fromkeys(combinations(range(entrants), 2), 1)


@pytest.mark.parametrize("entrants", [4, 8, 12, 16, 20, 5, 13, 17, 29])
def test_whist_pairs_everyone_once_and_opposes_everyone_twice(entrants: int) -> None:
    number = entrants - 1 if entrants % 4 == 0 else entrants
    plan = Plan("round_robin", entrants, PAIRS, rounds=number)
    scheduler = played(plan)
    everyone = list(combinations(range(entrants), 2))
    met = Counter(meeting for table in scheduler.tables for meeting in meetings(plan, table))
    assert met == {(True, pair): 1 for pair in everyone} | {(False, pair): 2 for pair in everyone}
    assert dict(scheduler.byes) == ({} if entrants % 4 == 0 else dict.fromkeys(range(entrants), 1))


@pytest.mark.parametrize("entrants", [*range(5, 18), 24, 30])
def test_elsewhere_opponents_are_within_three_and_partners_within_one(entrants: int) -> None:
    for seats in (3, 4):
        plan = Plan("round_robin", entrants, alone(seats), rounds=7, seed=1)
        assert spread(plan, played(plan)).against <= 3
    plan = Plan("round_robin", entrants, PAIRS, rounds=7, seed=1)
    result = spread(plan, played(plan))
    assert result.seats <= 3
    assert result.against <= 2
    assert result.partners <= 1


@given(
    entrants=st.integers(4, 12),
    seats=st.sampled_from([2, 3, 4, 0]),
    rounds_=st.integers(0, 4),
    fillers=st.integers(0, 2),
    duplicate=st.sampled_from(["none", "rotation", "once"]),
    sets=st.integers(1, 2),
)
@settings(max_examples=60)
def test_the_count_of_tables_is_known_beforehand(
    entrants: int, seats: int, rounds_: int, fillers: int, duplicate: str, sets: int
) -> None:
    sides = alone(seats) if seats else PAIRS
    plan = Plan("round_robin", entrants, sides, duplicate, rounds=rounds_, fillers=fillers, sets=sets)
    assert len(played(plan).tables) == count(plan)


@pytest.mark.parametrize(("entrants", "seats"), [(5, 2), (7, 3), (10, 4), (11, 4), (3, 4)])
def test_house_bots_fill_the_table_of_those_left_over(entrants: int, seats: int) -> None:
    plan = Plan("round_robin", entrants, alone(seats), rounds=entrants, fillers=2)
    scheduler = played(plan)
    for tables in rounds(scheduler):
        seated = sorted(e for table in tables for e in table.seats if e >= 0)
        assert seated == list(range(entrants))
    filled = Counter(e for table in scheduler.tables if min(table.seats) < 0 for e in table.seats if e >= 0)
    assert max(filled.values()) - min(filled.values()) == 0
    assert not scheduler.byes


def test_a_withdrawn_entrant_keeps_its_tables_and_gets_no_more() -> None:
    plan = Plan("round_robin", 8, alone(2))
    scheduler = Scheduler(plan, ahead=1)
    before = list(scheduler.tables)
    assert scheduler.withdraw(3) == 1
    tables = play(scheduler, plan).tables
    assert tables[: len(before)] == before
    assert sum(3 in table.seats for table in tables) == 1
    assert len(tables) == comb(7, 2) + 1


@pytest.mark.parametrize(("seats", "entrants"), [(2, 6), (3, 6), (4, 7)])
def test_a_late_entrant_still_meets_everyone_in_every_group(seats: int, entrants: int) -> None:
    plan = Plan("round_robin", entrants, alone(seats))
    scheduler = Scheduler(plan, ahead=1)
    assert scheduler.enter(entrants, 2) == 2
    groups = [tuple(sorted(table.seats)) for table in play(scheduler, plan).tables]
    assert sorted(groups) == list(combinations(range(entrants + 1), seats))
    assert all(entrants not in table.seats for table in scheduler.tables if table.round < 2)


def test_a_late_entrant_reopens_a_schedule_that_was_complete() -> None:
    plan = Plan("round_robin", 4, alone(2))
    scheduler = played(plan)
    assert scheduler.complete
    scheduler.enter(4)
    assert not scheduler.complete
    assert {frozenset(table.seats) for table in scheduler.more()} <= {frozenset((i, 4)) for i in range(4)}
