"""Who sits where: every entrant equally often in each seat.

Seats of a batch of tables are the colours of the edges of a graph that joins every table with its members. It has two
kinds of nodes only, tables and runs of as many tables of one entrant as there are seats, so that by a theorem of König
the colours suffice: in every run an entrant takes each seat once, whoever meets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Final

from referee_server.tournament.formats.plan import Plan, pair_seatings

_FREE: Final = -1

_Step = tuple[int, int, int]  # table, run, seat


class Seats:
    """How often each entrant sat in each seat, and who is to sit where next."""

    def __init__(self, plan: Plan) -> None:
        self._seats = plan.seats
        self._pairs = plan.pairs
        self._counts: dict[int, list[int]] = {}

    def count(self, entrant: int) -> list[int]:
        """Returns how often an entrant sat in each seat."""
        return self._counts.setdefault(entrant, [0] * self._seats)

    def sit(self, tables: Iterable[Sequence[int]]) -> None:
        """Notes that tables were scheduled with these members in the seats."""
        for table in tables:
            for seat, entrant in enumerate(table):
                if entrant >= 0:
                    self.count(entrant)[seat] += 1

    def arrange(self, tables: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Returns the tables, given in playing order, with their members in the order of the seats.

        Within one for every entrant at every end of a round if all of them begin with equally many tables in each seat;
        else, and for pairs, as near as can be found.
        """
        even = all(min(had) == max(had) for had in map(self.count, {e for table in tables for e in table if e >= 0}))
        if self._pairs or not even:
            return self._one_by_one(tables)
        runs = _Runs(self._seats)
        return _Colouring(runs, [[runs.take(entrant) for entrant in table] for table in tables]).seated()

    def _one_by_one(self, tables: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        counts: dict[int, list[int]] = {}
        result = []
        for table in tables:
            for entrant in table:
                counts.setdefault(entrant, list(self.count(entrant)))
            options = pair_seatings(table) if self._pairs else permutations(table)
            best = min(options, key=lambda seating: _unevenness(seating, counts))
            for seat, entrant in enumerate(best):
                if entrant >= 0:
                    counts[entrant][seat] += 1
            result.append(best)
        return result


def _unevenness(seating: Sequence[int], counts: Mapping[int, list[int]]) -> int:
    """Returns how much more often than elsewhere the members sat where they would sit, in squares."""
    had = ((counts[entrant], seat) for seat, entrant in enumerate(seating) if entrant >= 0)
    return sum((times[seat] - min(times)) ** 2 for times, seat in had)


class _Runs:
    """Runs of tables in which an entrant has each seat once."""

    def __init__(self, seats: int) -> None:
        self.owner: list[int] = []  # by run: the entrant
        self._seats = seats
        self._open: dict[int, tuple[int, int]] = {}  # by entrant: its last run and how many tables that still takes

    def take(self, entrant: int) -> int:
        """Returns the run of an entrant's next table. A house bot may sit anywhere: each time it has a new one."""
        run, room = self._open.get(entrant, (0, 0))
        if not room or entrant < 0:
            run, room = len(self.owner), self._seats
            self.owner.append(entrant)
        self._open[entrant] = run, room - 1
        return run


class _Colouring:
    """Colours edges one by one; where no colour is free at both ends, two colours change places along a path."""

    def __init__(self, runs: _Runs, tables: Sequence[Sequence[int]]) -> None:
        """Seats tables, their members given as runs in the order of the seats that they would have by choice."""
        self._runs = runs
        self._tables = [[_FREE] * len(members) for members in tables]  # by table and seat: the run
        self._at = [[_FREE] * len(tables[0]) for _ in runs.owner]  # by run and seat: the table
        for table, members in enumerate(tables):
            for wish, run in enumerate(members):
                self._seat(table, run, wish)

    def seated(self) -> list[tuple[int, ...]]:
        """Returns the entrants of every table in the order of the seats."""
        return [tuple(self._runs.owner[run] for run in table) for table in self._tables]

    def _seat(self, table: int, run: int, wish: int) -> None:
        here, there = self._tables[table], self._at[run]
        order = [wish, *(seat for seat in range(len(here)) if seat != wish)]
        seat = next((seat for seat in order if here[seat] == there[seat] == _FREE), _FREE)
        if seat == _FREE:
            seat = next(seat for seat in order if there[seat] == _FREE)
            self._exchange(table, seat, next(seat for seat in order if here[seat] == _FREE))
        here[seat], there[seat] = run, table

    def _exchange(self, table: int, mine: int, other: int) -> None:
        """Frees seat `mine` at a table that has `other` free, along the path on which the two alternate.

        It cannot end at the run that is to be seated, which has `mine` free: it comes to runs by `mine` only.
        """
        path: list[_Step] = []
        while table != _FREE and (run := self._tables[table][mine]) != _FREE:
            path.append((table, run, mine))
            table = self._at[run][other]
            if table != _FREE:
                path.append((table, run, other))
        for at, run, seat in path:
            self._tables[at][seat] = self._at[run][seat] = _FREE
        for at, run, seat in path:
            new = other if seat == mine else mine
            self._tables[at][new] = run
            self._at[run][new] = at
