"""What holds in every format: schedules only grow, outcomes come in any order, board sets are shared fairly."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee_server.tournament.formats import Plan, Scheduler, bye_worth, count, schedule
from referee_server.tournament.model import Outcome
from tournament.play import PAIRS, alone, outcome, outcome_of, play, played, rounds, spread

FORMATS = ("round_robin", "swiss", "knockout", "gauntlet", "ladder")


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    form = draw(st.sampled_from(FORMATS))
    pairs = form != "knockout" and draw(st.booleans())
    sides = PAIRS if pairs else alone(draw(st.integers(2, 4)))
    seats = 4 if pairs else len(sides)
    duplicate = draw(st.sampled_from(["none", "rotation", "once"]))
    fillers = draw(st.integers(0, 2))
    if duplicate == "once" and form != "round_robin":
        fillers = 0
    return Plan(
        form,
        draw(st.integers(seats, 9)),
        sides,
        duplicate,
        permutations=duplicate == "rotation" and draw(st.booleans()),
        sets=draw(st.integers(1, 2)),
        rounds=0 if form == "knockout" else draw(st.integers(1 if form == "ladder" else 0, 3)),
        fillers=fillers,
        challengers=draw(st.integers(1, 2)) if form == "gauntlet" else 1,
        seed=draw(st.integers(0, 9)),
    )


@given(plan=plans(), data=st.data())
@settings(max_examples=80)
def test_a_schedule_only_grows_and_never_depends_on_the_order_of_outcomes(plan: Plan, data: st.DataObject) -> None:
    strength = data.draw(st.permutations(range(plan.entrants + 2)))
    changes = list(data.draw(st.sampled_from(["", "e", "w", "ew", "we", "wew", "ee"])))
    scheduler = Scheduler(plan, ahead=3)
    late: list[tuple[int, int]] = []
    withdrawn: dict[int, int] = {}
    outcomes: dict[int, Outcome] = {}
    while len(outcomes) < min(len(scheduler.tables), 300):
        before = list(scheduler.tables)
        waiting = [table for table in scheduler.tables if table.number not in outcomes]
        table = data.draw(st.sampled_from(waiting[:5] + waiting[-5:]))
        came = outcome(table, plan, lambda entrant: strength[entrant] if entrant >= 0 else -1)
        outcomes[table.number] = came
        new = scheduler.take(came)
        assert scheduler.tables == before + new
        if changes and data.draw(st.sampled_from([False, True])):
            kind = changes.pop()
            if kind == "e" and plan.format != "knockout" and len(late) < 2:
                late.append((plan.entrants + len(late), scheduler.enter(plan.entrants + len(late))))
            elif len(withdrawn) < 2 and not (plan.format == "knockout" and scheduler.complete):
                entrant = data.draw(st.sampled_from(sorted(set(range(plan.entrants)) - set(withdrawn))))
                withdrawn[entrant] = scheduler.withdraw(entrant)
            scheduler.more()
    again = Scheduler(plan, ahead=3, late=late, withdrawn=withdrawn)
    for number in sorted(outcomes):
        again.take(outcomes[number])
    assert again.tables == scheduler.tables
    assert (again.complete, again.byes, again.eliminated) == (
        scheduler.complete,
        scheduler.byes,
        scheduler.eliminated,
    )


@given(plan=plans())
@settings(max_examples=60)
def test_every_schedule_ends_with_dense_numbers_and_no_entrant_twice_in_a_group(plan: Plan) -> None:
    scheduler = played(plan)
    tables = scheduler.tables
    assert scheduler.complete
    assert scheduler.total == len(tables)
    assert [table.number for table in tables] == list(range(len(tables)))
    assert [table.round for table in tables] == sorted(table.round for table in tables)
    boards = list(dict.fromkeys(table.board for table in tables))
    assert boards == list(range(len(boards)))
    for made in rounds(scheduler):
        groups: defaultdict[int, set[frozenset[int]]] = defaultdict(set)
        for table in made:
            groups[table.group].add(frozenset(e for e in table.seats if e >= 0))
            assert len([e for e in table.seats if e >= 0]) == len({e for e in table.seats if e >= 0})
        assert sorted(groups) == list(range(len(groups)))
        members = [entrant for met in groups.values() for group in met for entrant in group]
        assert len(members) == len(set(members))


@given(plan=plans())
@settings(max_examples=40)
def test_the_count_agrees_with_what_is_made_wherever_it_is_given(plan: Plan) -> None:
    assert count(plan) in (0, len(played(plan).tables))
    assert (count(plan) == 0) == (plan.format == "knockout")


def test_the_function_gives_what_the_scheduler_gives() -> None:
    plan = Plan("swiss", 7, alone(2), seed=2)
    scheduler = played(plan)
    outcomes = {table.number: outcome(table, plan) for table in scheduler.tables}
    whole = schedule(plan, outcomes)
    assert (whole.tables, whole.complete, whole.byes) == (tuple(scheduler.tables), True, scheduler.byes)
    first = schedule(plan, {number: outcomes[number] for number in range(3)})
    assert (first.tables, first.complete, first.total) == (tuple(scheduler.tables[: 3 + 3]), False, 12)


def test_a_round_is_paired_only_when_the_round_before_it_is_over() -> None:
    plan = Plan("swiss", 8, alone(2))
    scheduler = Scheduler(plan)
    for table in scheduler.tables[3:0:-1]:
        assert scheduler.take(outcome(table, plan)) == []
    assert len(scheduler.take(outcome(scheduler.tables[0], plan))) == 4


def test_a_table_has_one_outcome() -> None:
    plan = Plan("swiss", 4, alone(2))
    scheduler = Scheduler(plan)
    scheduler.take(outcome(scheduler.tables[0], plan))
    with pytest.raises(ValueError, match="table 0 has its outcome"):
        scheduler.take(outcome(scheduler.tables[0], plan))


@pytest.mark.parametrize("sides", [alone(2), alone(3), alone(4), PAIRS])
@pytest.mark.parametrize("all_of_them", [False, True])
def test_in_rotation_every_group_plays_every_set_in_every_seating(
    sides: tuple[tuple[int, ...], ...], all_of_them: bool
) -> None:
    plan = Plan("round_robin", 8, sides, "rotation", permutations=all_of_them, sets=2, rounds=3)
    seen: defaultdict[tuple[int, int], list[tuple[int, ...]]] = defaultdict(list)
    for table in played(plan).tables:
        seen[table.board, table.group].append(table.seats)
    n = plan.seats
    for seatings in seen.values():
        group = seatings[0]
        if not all_of_them:
            assert set(seatings) == {(*group[-i:], *group[:-i]) for i in range(n)}
        elif sides == PAIRS:
            partners = [set(group[::2]), set(group[1::2])]
            expected = {p for p in permutations(group) if set(p[::2]) in partners}
            assert set(seatings) == expected
            assert len(seatings) == 8
        else:
            assert sorted(seatings) == sorted(permutations(group))
    assert len({board for board, _ in seen}) == plan.sets * plan.rounds


@given(plan=plans().filter(lambda plan: plan.duplicate == "none"))
@settings(max_examples=25)
def test_without_duplicate_every_table_has_a_board_set_of_its_own(plan: Plan) -> None:
    tables = played(plan).tables
    assert [table.board for table in tables] == [table.number for table in tables]


@given(plan=plans().filter(lambda plan: plan.duplicate == "once"))
@settings(max_examples=40)
def test_in_once_nobody_meets_a_board_set_twice(plan: Plan) -> None:
    met = Counter((table.board, e) for table in played(plan).tables for e in table.seats if e >= 0)
    assert set(met.values()) == {1}


@pytest.mark.parametrize("sides", [alone(2), alone(3), alone(4), PAIRS])
@pytest.mark.parametrize("fillers", [1, 3])
def test_once_with_house_bots_compares_all_entrants_in_one_seat_against_the_same_bots(
    sides: tuple[tuple[int, ...], ...], fillers: int
) -> None:
    plan = Plan("round_robin", 5, sides, "once", sets=3, rounds=4, fillers=fillers)
    boards: defaultdict[int, dict[int, tuple[int, ...]]] = defaultdict(dict)
    for table in played(plan).tables:
        (entrant,) = (e for e in table.seats if e >= 0)
        boards[table.board][entrant] = table.seats
    assert len(boards) == 12
    seats: Counter[int] = Counter()
    for at in boards.values():
        assert sorted(at) == list(range(5))
        assert len({tuple(-99 if e >= 0 else e for e in seated) for seated in at.values()}) == 1
        seats[at[0].index(0)] += 1
    assert set(seats.values()) == {12 // plan.seats}


def test_once_among_entrants_plays_one_board_set_at_all_tables_in_even_seats() -> None:
    plan = Plan("round_robin", 12, alone(4), "once", sets=2, rounds=6)
    scheduler = played(plan)
    boards: defaultdict[int, list[int]] = defaultdict(list)
    for table in scheduler.tables:
        boards[table.board] += table.seats
    assert all(sorted(seated) == list(range(12)) for seated in boards.values())
    assert spread(plan, scheduler).seats <= 1


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (Plan("cup", 4, alone(2)), "format 'cup' is none of round_robin, swiss"),
        (Plan("swiss", 4, alone(2), "twice"), "duplicate 'twice' is none of none, rotation, once"),
        (Plan("swiss", 3, alone(4)), "3 entrants cannot fill a table of 4 seats: 1 more are needed"),
        (Plan("swiss", 0, alone(2), fillers=1), "0 entrants"),
        (Plan("swiss", 10_001, alone(2)), "10001 entrants: a tournament takes 1 to 10,000"),
        (Plan("swiss", 4, ((0, 1), (2, 3))), "sides .* are not offered"),
        (Plan("swiss", 9, alone(7)), "2 to 6 seats, not 7"),
        (Plan("swiss", 4, alone(2), sets=0), "sets are at least 1"),
        (Plan("swiss", 4, alone(2), permutations=True), "permutations are a kind of rotation"),
        (Plan("swiss", 4, alone(2), "once", fillers=1), "nothing to pair"),
        (Plan("knockout", 8, PAIRS), "not offered for pairs"),
        (Plan("knockout", 8, alone(2), rounds=3), "leave rounds at 0"),
        (Plan("knockout", 3, alone(4), fillers=2), "at least 4 entrants, not 3"),
        (Plan("gauntlet", 4, alone(2), challengers=5), "5 challengers: a gauntlet of 4 takes 1 to 4"),
        (Plan("gauntlet", 4, alone(2), challengers=0), "0 challengers"),
    ],
)
def test_a_plan_that_makes_no_tournament_is_refused_in_plain_words(plan: Plan, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Scheduler(plan)
    with pytest.raises(ValueError, match=says):
        count(plan)


def test_an_entry_is_refused_out_of_turn_too_late_or_in_a_knock_out() -> None:
    scheduler = Scheduler(Plan("swiss", 4, alone(2)))
    with pytest.raises(ValueError, match="number 4, not 6"):
        scheduler.enter(6)
    with pytest.raises(ValueError, match="too late for round 0"):
        scheduler.enter(4, 0)
    with pytest.raises(ValueError, match="takes no late entries"):
        Scheduler(Plan("knockout", 4, alone(2))).enter(4)


def test_only_who_is_there_can_withdraw_and_only_once_from_a_round_not_paired() -> None:
    scheduler = Scheduler(Plan("swiss", 6, alone(2)))
    with pytest.raises(ValueError, match="round 0 is paired"):
        scheduler.withdraw(1, 0)
    scheduler.withdraw(1)
    for unknown in (1, 7):
        with pytest.raises(ValueError, match=f"entrant {unknown} is not in"):
            scheduler.withdraw(unknown)


@pytest.mark.parametrize(
    ("plan", "worth"),
    [
        (Plan("swiss", 5, alone(2)), 0.5),
        (Plan("swiss", 5, alone(4), sets=3), 4.5),
        (Plan("swiss", 5, alone(3), "rotation"), 3.0),
        (Plan("ladder", 5, PAIRS, "rotation", permutations=True), 4.0),
        (Plan("round_robin", 5, alone(2), rounds=3), 0.5),
        (Plan("round_robin", 5, alone(2)), 0.0),
        (Plan("knockout", 5, alone(2)), 0.0),
    ],
)
def test_a_bye_is_worth_the_average_of_the_tables_missed_where_byes_are_not_shared_evenly(
    plan: Plan, worth: float
) -> None:
    assert bye_worth(plan) == worth


def test_equal_seeds_give_equal_samples_and_other_seeds_others() -> None:
    def tables(seed: int) -> list[tuple[int, ...]]:
        return [table.seats for table in played(Plan("round_robin", 11, alone(3), rounds=3, seed=seed)).tables]

    assert tables(4) == tables(4)
    assert tables(4) != tables(5)


def test_who_is_blamed_for_a_table_without_result_gets_nothing_and_the_others_the_average() -> None:
    plan = Plan("swiss", 4, alone(4), rounds=2)
    scheduler = Scheduler(plan)
    scheduler.take(outcome_of(scheduler.tables[0], plan, losses={0: "no_show"}))
    assert scheduler._history.points == {0: 0.0, 1: 1.5, 2: 1.5, 3: 1.5}
    assert len(scheduler.tables) == 2


def test_places_that_are_shared_share_their_points() -> None:
    plan = Plan("swiss", 4, alone(4), rounds=1)
    scheduler = Scheduler(plan)
    scheduler.take(outcome_of(scheduler.tables[0], plan, places=[1, 2, 2, 4]))
    scheduler.more()
    seats = scheduler.tables[0].seats
    assert [scheduler._history.points[entrant] for entrant in seats] == [3.0, 1.5, 1.5, 0.0]


def test_tables_are_held_ready_no_further_ahead_than_asked() -> None:
    plan = Plan("round_robin", 20, alone(2))
    scheduler = Scheduler(plan, ahead=15)
    assert len(scheduler.tables) == 20
    for table in scheduler.tables[:5]:
        assert scheduler.take(outcome(table, plan)) == []
    assert len(scheduler.take(outcome(scheduler.tables[5], plan))) == 10
    assert len(play(scheduler, plan, tables=0).tables) == 30
