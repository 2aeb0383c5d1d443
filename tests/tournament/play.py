"""Plays schedules with invented results, and measures how even they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, groupby
from typing import NamedTuple

from referee_server.tournament.formats import Plan, Scheduler
from referee_server.tournament.model import Outcome, Table

PAIRS = ((0, 2), (1, 3))
Strength = Callable[[int], float]


def alone(seats: int) -> tuple[tuple[int, ...], ...]:
    return tuple((seat,) for seat in range(seats))


def lower_is_stronger(entrant: int) -> float:
    return -entrant if entrant >= 0 else -1e9


def outcome(table: Table, plan: Plan, strength: Strength = lower_is_stronger) -> Outcome:
    worth = [sum(strength(table.seats[seat]) for seat in side) for side in plan.sides]
    return outcome_of(table, plan, places=[1 + sum(other > mine for other in worth) for mine in worth])


def outcome_of(
    table: Table, plan: Plan, places: Sequence[int] = (), losses: Mapping[int, str] | None = None
) -> Outcome:
    side_of = {seat: i for i, side in enumerate(plan.sides) for seat in side}
    blamed = losses or {}
    return Outcome(
        table=table,
        match_id=f"m{table.number}",
        reason="completed" if places else "not_started",
        sides=tuple(side_of[seat] for seat in range(plan.seats)),
        totals=tuple(0 for _ in places),
        places=tuple(places),
        faults=tuple({} for _ in range(plan.seats)),
        substituted=(0,) * plan.seats,
        losses=tuple(blamed.get(table.seats[seat], "") for seat in range(plan.seats)),
        deals=(),
    )


def play(scheduler: Scheduler, plan: Plan, strength: Strength = lower_is_stronger, tables: int = 10_000) -> Scheduler:
    """Plays from the first table without an outcome on, as long as there is one."""
    number = 0
    while number < min(len(scheduler.tables), tables):
        scheduler.take(outcome(scheduler.tables[number], plan, strength))
        number += 1
    return scheduler


def played(plan: Plan, strength: Strength = lower_is_stronger) -> Scheduler:
    return play(Scheduler(plan), plan, strength)


def rounds(scheduler: Scheduler) -> list[list[Table]]:
    return [list(tables) for _, tables in groupby(scheduler.tables, key=lambda table: table.round)]


class Spread(NamedTuple):
    """The greatest difference at the end of any round."""

    seats: int  # of how often one entrant sat in one seat and another
    against: int  # of how often two entrants met and two others
    partners: int
    games: int


def spread(plan: Plan, scheduler: Scheduler) -> Spread:
    field = range(plan.entrants)
    seats: Counter[tuple[int, int]] = Counter()
    against: Counter[tuple[int, int]] = Counter()
    partners: Counter[tuple[int, int]] = Counter()
    worst = Spread(0, 0, 0, 0)
    for tables in rounds(scheduler):
        for table in tables:
            seats.update((entrant, seat) for seat, entrant in enumerate(table.seats))
            for is_partner, pair in meetings(plan, table):
                (partners if is_partner else against)[pair] += 1
        pairs = list(combinations(field, 2))
        now = Spread(
            max(_range([seats[e, s] for s in range(plan.seats)]) for e in field),
            _range([against[pair] for pair in pairs]),
            _range([partners[pair] for pair in pairs]),
            _range([sum(seats[e, s] for s in range(plan.seats)) for e in field]),
        )
        worst = Spread(*map(max, zip(worst, now, strict=True)))
    return worst


def meetings(plan: Plan, table: Table) -> Iterator[tuple[bool, tuple[int, int]]]:
    for i, j in combinations(range(plan.seats), 2):
        low, high = sorted((table.seats[i], table.seats[j]))
        if low >= 0:
            yield any({i, j} <= set(side) for side in plan.sides), (low, high)


def _range(values: Sequence[int]) -> int:
    return max(values) - min(values)
