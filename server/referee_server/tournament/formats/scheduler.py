"""The schedule of a tournament, growing with its outcomes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Final, Protocol

from referee_server.tournament.formats.every import EveryGroup
from referee_server.tournament.formats.gauntlet import SampledGauntlet
from referee_server.tournament.formats.history import History, Round
from referee_server.tournament.formats.knockout import Knockout
from referee_server.tournament.formats.plan import Plan, check, count
from referee_server.tournament.formats.sample import Sample
from referee_server.tournament.formats.solo import Solo
from referee_server.tournament.formats.standing import Ladder, Swiss
from referee_server.tournament.model import Outcome, Table

AHEAD: Final = 256
"""Tables without an outcome that a schedule holds ready where it need not wait for outcomes."""
_NOBODY: Final[Mapping[int, int]] = MappingProxyType({})


class Format(Protocol):
    """Makes rounds.

    Attributes:
        waits: whether a round needs the outcomes of all rounds before it.
        decided_by_play: whether the end depends on outcomes.
    """

    @property
    def waits(self) -> bool:
        """See above."""

    @property
    def decided_by_play(self) -> bool:
        """See above."""

    def over(self, number: int, field: tuple[int, ...]) -> bool:
        """Returns whether no round comes after the first `number`, with these entrants in the field."""

    def plan(self, number: int, field: tuple[int, ...]) -> list[Round]:
        """Returns rounds from `number` on that hold while the field does; none where nobody can play at present."""

    def undo(self, rounds: Sequence[Round]) -> None:
        """Takes back planned rounds that were not paired, because the field changed."""


def _format(plan: Plan, history: History) -> Format:
    if plan.format == "swiss":
        return Swiss(plan, history)
    if plan.format == "ladder":
        return Ladder(plan, history)
    if plan.format == "knockout":
        return Knockout(plan, history)
    if plan.solo:
        return Solo(plan, history)
    if not plan.rounds:
        return EveryGroup(plan, history)
    return SampledGauntlet(plan, history) if plan.format == "gauntlet" else Sample(plan, history)


class Scheduler:
    """The tables of a tournament, in playing order, as far as they are known.

    They follow from the plan, the entries and withdrawals with their rounds, and the outcomes, in whatever order these
    came. What is scheduled stays. Where rounds need not wait for each other, only so many tables are made that a stated
    number of them has no outcome yet, so that a tournament of millions begins at once.

    Attributes:
        tables: all tables so far; not to be changed by others.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        late: Sequence[tuple[int, int]] = (),
        withdrawn: Mapping[int, int] = _NOBODY,
        ahead: int = AHEAD,
    ) -> None:
        """Schedules the first tables.

        Args:
            plan: the tournament.
            late: late entrants, numbered on from `plan.entrants`, each with the first round it may play.
            withdrawn: entrant → first round that it no longer plays.
            ahead: tables without an outcome to hold ready, from 1.

        Raises:
            ValueError: the plan makes no tournament, in words for the host; or an entry is not possible.
        """
        check(plan)
        if ahead < 1:
            raise ValueError(f"at least 1 table is held ready, not {ahead}")
        self.tables: list[Table] = []
        self._plan = plan
        self._ahead = ahead
        self._history = History(plan)
        self._format = _format(plan, self._history)
        self._from = dict.fromkeys(range(plan.entrants), 0)
        self._until: dict[int, int] = {}
        self._known_field: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())  # with what it depends on
        self._round = 0
        self._board = 0
        self._queue: deque[tuple[Round, list[tuple[int, ...]]]] = deque()  # planned, not yet paired; with seated tables
        self._queued_for: tuple[int, ...] = ()
        self._taken: set[int] = set()
        self._unscored: list[Outcome] = []  # of the round being played
        for entrant, number in late:
            self.enter(entrant, number)
        for entrant, number in withdrawn.items():
            self.withdraw(entrant, number)
        self.more()

    @property
    def complete(self) -> bool:
        """Whether no further tables will follow unless somebody enters."""
        field = self._field()
        self._drop_stale(field)
        if self._queue or (self._format.decided_by_play and self._pending):
            return False
        return self._format.over(self._round, field)

    @property
    def byes(self) -> Mapping[int, int]:
        """Entrant → in how many rounds it had no table; who had one in each is left out."""
        return MappingProxyType(self._history.byes)

    @property
    def total(self) -> int:
        """How many tables there will be; 0 while that cannot be known."""
        if self.complete:
            return len(self.tables)
        changed = self._until or len(self._from) > self._plan.entrants
        return 0 if changed else count(self._plan)

    @property
    def eliminated(self) -> Mapping[int, int]:
        """Knock-out: entrant → round in which it went out, extra sets counting for the round that was tied."""
        return MappingProxyType(self._format.eliminated) if isinstance(self._format, Knockout) else _NOBODY

    def take(self, outcome: Outcome) -> list[Table]:
        """Takes in the outcome of a table; returns the tables that are new.

        Raises:
            ValueError: there is no such table, or it has its outcome.
        """
        number = outcome.table.number
        if not 0 <= number < len(self.tables):
            raise ValueError(f"table {number} is not in the schedule")
        if number in self._taken:
            raise ValueError(f"table {number} has its outcome")
        self._taken.add(number)
        if self._format.waits:
            self._unscored.append(outcome)
        return self.more()

    def more(self) -> list[Table]:
        """Schedules what is due; returns it. Of use after an entry or withdrawal; `take` does it by itself."""
        before = len(self.tables)
        while not self._pending if self._format.waits else self._pending < self._ahead:
            self._score()
            field = self._field()
            self._drop_stale(field)
            if not self._queue:
                if self._format.over(self._round, field):
                    break
                rounds = self._format.plan(self._round, field)
                if not rounds:
                    break
                self._queue.extend(zip(rounds, self._seat(rounds), strict=True))
                self._queued_for = field
            self._pair(*self._queue.popleft())
        return self.tables[before:]

    def enter(self, entrant: int, number: int | None = None) -> int:
        """Lets a late entrant in; returns the first round that it may play.

        Args:
            entrant: its number, the next that is free.
            number: the round; without it the next that is paired. Not before that of an earlier entry.

        Raises:
            ValueError: a number that is not the next, a round that is paired, or a knock-out.
        """
        number = self._round if number is None else number
        if self._plan.format == "knockout":
            raise ValueError("a knock-out takes no late entries: its bracket is drawn up at the start")
        if entrant != len(self._from):
            raise ValueError(f"the next entrant to enter has number {len(self._from)}, not {entrant}")
        if number < max(self._round, self._from[entrant - 1]):
            raise ValueError(f"entrant {entrant} comes too late for round {number}")
        self._from[entrant] = number
        return number

    def withdraw(self, entrant: int, number: int | None = None) -> int:
        """Lets an entrant leave for good; returns the first round that it no longer plays.

        Args:
            entrant: its number. Tables that it has already stay as they are.
            number: the round; without it the next that is paired.

        Raises:
            ValueError: an entrant that is unknown or left before, a round that is paired, or a knock-out that is over.
        """
        if self._format.decided_by_play and self.complete:
            raise ValueError("the tournament is over: nobody can leave it")
        number = self._round if number is None else number
        if entrant not in self._from or entrant in self._until:
            raise ValueError(f"entrant {entrant} is not in the tournament")
        if number < self._round:
            raise ValueError(f"round {number} is paired: entrant {entrant} cannot leave it")
        self._until[entrant] = number
        return number

    @property
    def _pending(self) -> int:
        return len(self.tables) - len(self._taken)

    def _field(self) -> tuple[int, ...]:
        now, until = self._round, self._until
        key = now, len(self._from), len(until)
        if key != self._known_field[0]:
            field = tuple(e for e, first in self._from.items() if first <= now and (e not in until or now < until[e]))
            # The very object if nothing changed, so that comparing it costs nothing.
            self._known_field = key, self._known_field[1] if field == self._known_field[1] else field
        return self._known_field[1]

    def _drop_stale(self, field: tuple[int, ...]) -> None:
        if self._queue and field != self._queued_for:
            self._format.undo([made for made, _ in self._queue])
            self._queue.clear()

    def _score(self) -> None:
        """Enters a whole round's outcomes. Place points are halves, which add up exactly in any order."""
        if self._format.waits and self._round:
            self._history.score(self._unscored)
            self._unscored.clear()

    def _seat(self, rounds: Sequence[Round]) -> Iterator[list[tuple[int, ...]]]:
        """Yields for each round its tables in playing order, members in the order of the seats."""
        plan = self._plan
        if plan.solo:
            yield from ([group for _ in range(plan.sets) for group in made.groups] for made in rounds)
        elif plan.duplicate == "rotation":
            seatings = [seating for _ in range(plan.sets) for seating in plan.seatings()]
            for made in rounds:
                yield [tuple(group[member] for member in seating) for seating in seatings for group in made.groups]
        elif rounds[0].seated:
            for made in rounds:
                yield [(*group[-i % 2 :], *group[: -i % 2]) for i in range(plan.sets) for group in made.groups]
        else:
            tables = [group for made in rounds for _ in range(plan.sets) for group in made.groups]
            seated = iter(self._history.seats.arrange(tables))
            yield from (list(islice(seated, plan.sets * len(made.groups))) for made in rounds)

    def _pair(self, made: Round, tables: Sequence[tuple[int, ...]]) -> None:
        """Makes a round part of the schedule."""
        plan, groups = self._plan, len(made.groups)
        a_set = len(tables) // plan.sets if groups else 1  # tables that play one board set
        for i, members in enumerate(tables):
            board = self._board + (i if plan.duplicate == "none" else i // a_set)
            seats = self._alone(members[0], board) if plan.solo else members
            self.tables.append(Table(len(self.tables), self._round, board, i % groups, seats))
        self._board += len(tables) if plan.duplicate == "none" else plan.sets if groups else 0
        self._history.seats.sit(tables)
        self._history.release(made)
        self._round += 1

    def _alone(self, entrant: int, board: int) -> tuple[int, ...]:
        """Seats an entrant where everybody sits on this board, among house bots that are the same for all."""
        n, fillers = self._plan.seats, self._plan.fillers
        return tuple(entrant if seat == board % n else -1 - (board + seat) % fillers for seat in range(n))


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it stands; see `Scheduler` for what the attributes mean."""

    tables: tuple[Table, ...]
    complete: bool
    byes: Mapping[int, int]
    total: int
    eliminated: Mapping[int, int]


def schedule(
    plan: Plan,
    outcomes: Mapping[int, Outcome],
    *,
    late: Sequence[tuple[int, int]] = (),
    withdrawn: Mapping[int, int] = _NOBODY,
) -> Schedule:
    """Returns the schedule that follows from a plan and outcomes by table number.

    With more outcomes, and entries and withdrawals from rounds that were not yet paired, it only grows.

    Args:
        plan: the tournament.
        outcomes: by number of the table.
        late: late entrants, numbered on from `plan.entrants`, each with the first round it may play.
        withdrawn: entrant → first round that it no longer plays.

    Raises:
        ValueError: the plan makes no tournament, an entry is not possible, or an outcome is of no table.
    """
    scheduler = Scheduler(plan, late=late, withdrawn=withdrawn)
    # By number, but not all tables of one may be known before others have their outcomes.
    for number in sorted(outcomes):
        scheduler.take(outcomes[number])
    return Schedule(
        tuple(scheduler.tables),
        scheduler.complete,
        dict(scheduler.byes),
        scheduler.total,
        dict(scheduler.eliminated),
    )
