"""Who sits where: every entrant equally often in each seat.

Seats of a batch of tables are the colours of the edges of a graph that joins every table with its members. It has two
kinds of nodes only, tables and runs of as many tables of one entrant as there are seats, so that by a theorem of König
the colours suffice: in every run an entrant takes each seat once, whoever meets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from referee_server.tournament.formats.plan import Plan, pair_seatings

_FREE: Final = -1
_FROZEN: Final = -2  # a seat that this run of the entrant had before the batch began

_Step = tuple[int, int, int]  # table, run, seat
_Counts = Callable[[int], list[int]]


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

        Within one for every entrant at every end of a round whenever it was so before and no run is open; else as near
        as can be found. For pairs it is what comes nearest table by table.
        """
        if self._pairs:
            return self._arrange_pairs(tables)
        colouring = _Colouring(self._seats)
        for table in tables:
            colouring.add(table, self.count)
        return colouring.seated()

    def _arrange_pairs(self, tables: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        counts: dict[int, list[int]] = {}
        result = []
        for table in tables:
            mine = [counts.setdefault(entrant, list(self.count(entrant))) for entrant in table]
            of = dict(zip(table, mine, strict=True))
            best = min(
                pair_seatings(table),
                key=lambda seating: sum(of[e][seat] - min(of[e]) for seat, e in enumerate(seating) if e >= 0),
            )
            for seat, entrant in enumerate(best):
                if entrant >= 0:
                    counts[entrant][seat] += 1
            result.append(best)
        return result


class _Colouring:
    """Colours edges one by one; where no colour is free at both ends, two colours change places along a path."""

    def __init__(self, seats: int) -> None:
        self._seats = seats
        self._tables: list[list[int]] = []  # by table and seat: the run
        self._runs: list[list[int]] = []  # by run and seat: the table
        self._room: list[int] = []  # by run: tables it still takes
        self._owner: list[int] = []  # by run: the entrant
        self._open: dict[int, int] = {}  # by entrant: its last run
        self._loose: set[tuple[int, int]] = set()  # table and seat that the run has twice, for want of another

    def add(self, members: Sequence[int], count: _Counts) -> None:
        """Seats one more table."""
        table = len(self._tables)
        self._tables.append([_FREE] * self._seats)
        for wish, entrant in enumerate(members):
            run = self._run(entrant, count)
            self._room[run] -= 1
            self._seat(table, run, wish, count)

    def seated(self) -> list[tuple[int, ...]]:
        """Returns the members of every table in the order of the seats."""
        return [tuple(self._owner[run] for run in table) for table in self._tables]

    def _run(self, entrant: int, count: _Counts) -> int:
        run = self._open.get(entrant, -1)
        if run >= 0 and self._room[run]:
            return run
        seats = [_FREE] * self._seats
        if run < 0 and entrant >= 0:
            had = count(entrant)
            seats = [_FROZEN if times > min(had) else _FREE for times in had]
        self._runs.append(seats)
        self._room.append(seats.count(_FREE) if entrant >= 0 else 1)  # a house bot may sit anywhere
        self._owner.append(entrant)
        if entrant >= 0:
            self._open[entrant] = len(self._runs) - 1
        return len(self._runs) - 1

    def _seat(self, table: int, run: int, wish: int, count: _Counts) -> None:
        here, there = self._tables[table], self._runs[run]
        order = [wish, *(seat for seat in range(self._seats) if seat != wish)]
        at_table = [seat for seat in order if here[seat] == _FREE]
        at_run = [seat for seat in order if there[seat] == _FREE]
        seat = next((seat for seat in at_table if there[seat] == _FREE), _FREE)
        if seat == _FREE:
            seat = next((mine for mine in at_run for other in at_table if self._exchange(table, mine, other)), _FREE)
        if seat == _FREE:
            seat = min(at_table, key=count(self._owner[run]).__getitem__)
            self._loose.add((table, seat))
        else:
            there[seat] = table
        here[seat] = run

    def _exchange(self, table: int, mine: int, other: int) -> bool:
        """Frees seat `mine` at a table that has `other` free, along the path of the two; False where it is blocked."""
        path: list[_Step] = []
        while True:
            run = self._tables[table][mine]
            if run == _FREE:
                break
            if (table, mine) in self._loose:
                return False
            path.append((table, run, mine))
            table = self._runs[run][other]
            if table == _FREE:
                break
            if table == _FROZEN:
                return False
            path.append((table, run, other))
        for at, run, seat in path:
            self._tables[at][seat] = self._runs[run][seat] = _FREE
        for at, run, seat in path:
            new = other if seat == mine else mine
            self._tables[at][new] = run
            self._runs[run][new] = at
        return True
