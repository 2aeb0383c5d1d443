"""A tournament as its log tells it: evolve alone, like a match. What is to be played next follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from google.protobuf.message import DecodeError

from referee.v1 import tournament_pb2 as pb
from referee_server.tournament.changes import changes
from referee_server.tournament.cup import Cup
from referee_server.tournament.cupfile import CupError, entrant_of, parse_cup
from referee_server.tournament.formats import Plan, Scheduler, check
from referee_server.tournament.model import Outcome, Table
from referee_server.tournament.record import outcome_from
from referee_server.tournament.stopping import Stopping

SCHEDULE_VERSION: Final = 1
"""Version of the rules by which tables are scheduled. A tournament goes on under the rules that it began with."""

_AHEAD: Final = 512
"""How many tables without an outcome are known where rounds need not wait for each other: enough to play round somebody
who is slow, few enough for who comes late. Never to be changed: when late entrants enter depends on it."""

WAITING: Final = "WAITING"
STARTING: Final = "STARTING"
RUNNING: Final = "RUNNING"
PAUSED: Final = "PAUSED"
FINISHED: Final = "FINISHED"
CANCELLED: Final = "CANCELLED"


class BookError(ValueError):
    """The log of a tournament is not one that this version can follow.

    Attributes:
        sequence: number of the first bad fact.
    """

    def __init__(self, sequence: int, message: str) -> None:
        super().__init__(f"fact {sequence}: {message}")
        self.sequence = sequence


class Book:
    """A tournament: everything that its log so far says.

    Attributes:
        created: the first fact.
        described: its description as the host wrote it, as it is now.
        cup: the same with late entrants.
        state: where it stands.
        scheduler: who meets whom.
        outcomes: what came of the tables that have ended, by number.
        attempts: how often each table that ended through the referee's fault was played, by number.
        started: what the entrants brought along; None before play began.
        withdrawn: entrants that left.
        ended: the last fact; None before the end.
        sequence: number of the last fact.
        stopping: the rule that ends it early; None for none.
    """

    def __init__(self, event: pb.TournamentEvent) -> None:
        """Opens the book at its first fact.

        Raises:
            BookError: it is not how a tournament begins.
        """
        if event.sequence != 1 or event.WhichOneof("payload") != "tournament_created":
            raise BookError(1, "it is not how a tournament begins")
        self.created = event.tournament_created
        if self.created.schedule_version > SCHEDULE_VERSION:
            raise BookError(1, "it was scheduled by a newer release of the referee")
        try:
            self.described = parse_cup(self.created.toml)
            self.cup = _settled(self.described)
            self.scheduler = Scheduler(plan_of(self.cup, self.created.commitment), ahead=_AHEAD)
        except ValueError as error:
            raise BookError(1, str(error)) from None
        self.state = WAITING
        self.outcomes: dict[int, Outcome] = {}
        self.attempts: dict[int, int] = {}
        self.started: pb.TournamentStarted | None = None
        self.withdrawn: set[int] = set()
        self.ended: pb.TournamentEnded | None = None
        self.sequence = 1
        self.stopping = Stopping(self.cup) if self.cup.stop is not None else None
        self._boards: dict[int, list[int]] = {}
        self._noted = 0
        self._open_from = 0
        self._note_tables()

    @classmethod
    def read(cls, records: Sequence[bytes]) -> Book:
        """Returns the tournament that a log tells.

        Raises:
            BookError: the log is not one that this version can follow.
        """
        if not records:
            raise BookError(1, "there is nothing in the log")
        book: Book | None = None
        for number, record in enumerate(records, 1):
            try:
                event = pb.TournamentEvent.FromString(record)
            except DecodeError:
                raise BookError(number, "its bytes are not a fact") from None
            if book is None:
                book = cls(event)
            else:
                book.evolve(event)
        assert book is not None
        return book

    @staticmethod
    def check(cup: Cup) -> None:
        """Refuses a description that can be read, but not played.

        Raises:
            CupError: these entrants cannot play that format.
        """
        try:
            check(plan_of(cup, "0" * 64))
        except ValueError as error:
            raise CupError.of("format", str(error)) from None

    @property
    def tournament_id(self) -> str:
        """Its id."""
        return self.created.tournament_id

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.ended is not None

    @property
    def decided(self) -> bool:
        """Whether nothing more is to be played: the schedule is done, or the stopping rule has spoken."""
        if self.stopping is not None and self.stopping.verdict is not None:
            return True
        return self.scheduler.complete and len(self.outcomes) == len(self.scheduler.tables)

    @property
    def counted(self) -> list[Outcome]:
        """The outcomes that count, in the order of the schedule: all, or those up to where the stopping rule spoke."""
        known = [self.outcomes[number] for number in sorted(self.outcomes)]
        through = self.stopping.through if self.stopping is not None else None
        return known if through is None else [outcome for outcome in known if outcome.table.board <= through]

    @property
    def most_attempts(self) -> int:
        """How often a table is played at most, where the referee fails."""
        # A seat that has seen its cards must not meet them again where an entrant meets a board set once.
        return 1 if self.cup.mode == "once" else self.cup.running.attempts

    def unplayed(self) -> Iterable[Table]:
        """Yields the tables known so far that have not ended, in the order of the schedule."""
        while self._open_from in self.outcomes:
            self._open_from += 1
        later = islice(self.scheduler.tables, self._open_from, None)
        return (table for table in later if table.number not in self.outcomes)

    def board_is_done(self, board: int) -> bool:
        """Tells whether every table of a board set has ended."""
        return all(number in self.outcomes for number in self._boards[board])

    def tables_of(self, board: int) -> list[Table]:
        """Returns the tables of a board set."""
        return [self.scheduler.tables[number] for number in self._boards[board]]

    def _note_tables(self) -> None:
        """Takes note of the tables that were added to the schedule."""
        self.scheduler.more()
        for table in islice(self.scheduler.tables, self._noted, None):
            self._boards.setdefault(table.board, []).append(table.number)
        self._noted = len(self.scheduler.tables)

    def _look_at_boards(self) -> None:
        """Asks the stopping rule, as far as all board sets from the first on have been played."""
        stopping = self.stopping
        while stopping is not None and stopping.verdict is None:
            board = stopping.next_board
            if board not in self._boards or not self.board_is_done(board):
                return
            stopping.look([self.outcomes[number] for number in self._boards[board]])

    def evolve(self, event: pb.TournamentEvent) -> None:
        """Takes a fact in.

        Raises:
            BookError: it does not follow.
        """
        if event.sequence != self.sequence + 1 or self.ended is not None:
            raise BookError(event.sequence, "it does not follow")
        self.sequence = event.sequence
        match event.WhichOneof("payload"):
            case "tournament_started":
                self.started = event.tournament_started
                if self.state != PAUSED:
                    self.state = RUNNING
            case "table_ended":
                self._table_ended(event.table_ended)
            case "entrant_entered":
                self._enter(event.entrant_entered)
            case "entrant_withdrawn":
                self.withdrawn.add(event.entrant_withdrawn.entrant)
                self.scheduler.withdraw(event.entrant_withdrawn.entrant)
                self._note_tables()
            case "tournament_paused":
                self.state = PAUSED
            case "tournament_continued":
                self.state = RUNNING if self.started is not None else STARTING
            case "tournament_changed":
                self._change(event.tournament_changed)
            case "tournament_ended":
                self.ended = event.tournament_ended
                self.state = CANCELLED if self.ended.cancelled else FINISHED
            case _:
                raise BookError(event.sequence, "it is newer than this release of the referee")

    def _table_ended(self, ended: pb.TableEnded) -> None:
        outcome = outcome_from(ended)
        number = outcome.table.number
        tables = self.scheduler.tables
        if number in self.outcomes or not 0 <= number < len(tables) or tables[number] != outcome.table:
            raise BookError(self.sequence, f"table {number} is not one that was to be played")
        self.attempts[number] = ended.attempt
        if outcome.reason == "referee_fault" and ended.attempt < self.most_attempts:
            return
        self.outcomes[number] = outcome
        self.scheduler.take(outcome)
        self._note_tables()
        self._look_at_boards()

    def _change(self, changed: pb.TournamentChanged) -> None:
        try:
            described = parse_cup(changed.toml)
        except CupError as error:
            raise BookError(self.sequence, str(error)) from None
        if changes(self.described, described).barred:
            raise BookError(self.sequence, "it makes another tournament of it")
        late = self.cup.entrant[len(self.described.entrant) :]
        self.described = described
        self.cup = _settled(described).model_copy(update={"entrant": [*described.entrant, *late]})

    def _enter(self, entered: pb.EntrantEntered) -> None:
        kind = "bot" if entered.seat.WhichOneof("kind") == "bot" else "remote"
        try:
            entrant = entrant_of(self.cup, entered.name, kind, entered.seat.bot or entered.seat.agent)
            self.scheduler.enter(len(self.cup.entrant))
        except ValueError as error:
            raise BookError(self.sequence, str(error)) from None
        self.cup = self.cup.model_copy(update={"entrant": [*self.cup.entrant, entrant]})
        self._note_tables()


def _settled(cup: Cup) -> Cup:
    """Returns a description whose mode of duplicate play no longer depends on who enters late."""
    return cup.model_copy(update={"duplicate": cup.duplicate.model_copy(update={"mode": cup.mode})})


def plan_of(cup: Cup, commitment: str) -> Plan:
    """Returns what the schedule of a tournament follows from. Its draws are open to all, like the commitment.

    Raises:
        ValueError: these entrants cannot play that format.
    """
    mode = cup.mode
    return Plan(
        format=cup.format.kind,
        entrants=len(cup.entrant),
        sides=cup.rules.sides(cup.game_options),
        duplicate=mode,
        permutations=cup.duplicate.seatings == "all" and mode == "rotation",
        sets=cup.format.sets,
        rounds=cup.format.rounds,
        fillers=len(cup.duplicate.fillers),
        challengers=cup.format.challengers,
        seed=int(commitment[:16], 16),
    )
