"""The tournaments of one service: created, started, paused, cancelled, and gone on with after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from google.protobuf.timestamp_pb2 import Timestamp

from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import tournament_pb2 as pb
from referee.v1 import tournament_service_pb2 as service_pb
from referee_games import dealing
from referee_games.contract import shown
from referee_server.director.director import Director
from referee_server.director.executor import Executor, ExecutorError, Order
from referee_server.director.importing import records_of
from referee_server.director.orders import tournament_id_from
from referee_server.journal import LogError as DamageError
from referee_server.journal import (
    StorageError,
    TournamentAdded,
    TournamentNoted,
    TournamentRow,
    TournamentSummarised,
)
from referee_server.journal.errors import DamagedLogError
from referee_server.match.errors import RefusedError
from referee_server.match.verify import LogError
from referee_server.tables.creation import SERVER_VERSION, id_of
from referee_server.tables.hall import Hall
from referee_server.tournament.book import (
    CANCELLED,
    FINISHED,
    RUNNING,
    SCHEDULE_VERSION,
    STARTING,
    WAITING,
    Book,
    BookError,
)
from referee_server.tournament.cup import Cup
from referee_server.tournament.cupfile import CupError, parse_cup
from referee_server.tournament.summary import summary_of

_log = structlog.get_logger(__name__)

OVER: Final = (FINISHED, CANCELLED)
"""States in which nothing more happens to a tournament."""


class Tournaments:
    """All tournaments of a service.

    Attributes:
        running: the directors at work, by tournament.
    """

    def __init__(
        self, hall: Hall, random_bytes: Callable[[int], bytes], make_executor: Callable[[Book], Executor]
    ) -> None:
        """Makes it; nothing is started yet.

        Args:
            hall: where tables are played, and whose journal is kept.
            random_bytes: the operating system's generator, for master secrets and ids.
            make_executor: makes what plays the tables of a tournament.
        """
        self.running: dict[str, Director] = {}
        self._hall = hall
        self._random_bytes = random_bytes
        self._make_executor = make_executor
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._creating = asyncio.Lock()

    # The ledger of the directors.

    def wall_ns(self) -> int:
        """See `Ledger.wall_ns`."""
        return self._hall.clock.wall_ns()

    def begun(self, match_ids: Sequence[str]) -> set[str]:
        """See `Ledger.begun`."""
        return self._hall.matches.running.keys() & set(match_ids)

    async def note(self, tournament_id: str, event: bytes, state: str) -> None:
        """See `Ledger.note`. Where the storage is away for now, waits until it is back."""
        self._hall.committer.store(TournamentNoted(tournament_id, (event,), state))
        await self._stored()

    def summarise(self, book: Book) -> None:
        """See `Ledger.summarise`."""
        summary = summary_of(book).SerializeToString()
        self._hall.committer.store(TournamentSummarised(book.tournament_id, book.sequence, summary))

    async def keep(self, order: Order, log: bytes) -> None:
        """See `Ledger.keep`. The first log of a match stands."""
        if self._hall.journal.match(order.match_id) is not None:
            return
        records = await asyncio.to_thread(records_of, order, log)
        for record in records:
            self._hall.committer.store(record)
        if not order.held_back:
            self._hall.committer.then(lambda: self._hall.housekeeper.archive(order.match_id))
        await self._stored()

    async def reveal(self, match_ids: Sequence[str]) -> None:
        """See `Ledger.reveal`."""
        for match_id in match_ids:
            try:
                self._hall.matches.reveal(match_id)
            except (DamageError, LogError):
                _log.error("match_damaged", match_id=match_id)  # what is left of it stays as it is
        await self._stored()

    async def _stored(self) -> None:
        stored = asyncio.Event()
        self._hall.committer.then(stored.set)
        waits = [asyncio.ensure_future(stored.wait()), asyncio.ensure_future(self._hall.stopped.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if not stored.is_set():
            raise StorageError("the storage has failed")

    # What a host can do.

    async def create(self, toml: str, request_id: str = "") -> str:
        """Creates a tournament and returns its id. A repeat with the same request id returns the first one's.

        Raises:
            CupError: it is not a tournament.
            RefusedError: the request id was used for another, or nothing can be stored.
        """
        cup = parse_cup(toml)
        Book.check(cup)
        # One after the other: of two that come together the second has to find what the first has stored.
        async with self._creating:
            return await self._create(cup, toml, request_id)

    async def _create(self, cup: Cup, toml: str, request_id: str) -> str:
        self._hall.check_storage()
        earlier = self._hall.journal.tournament_by_request(request_id) if request_id else None
        if earlier is not None:
            if (await self.read(earlier.tournament_id)).created.toml != toml:
                raise RefusedError(
                    reason_pb.ERROR_REASON_REQUEST_ID_REUSED, "that request id was used for another request"
                )
            return earlier.tournament_id
        event, master = self._created(cup, toml)
        tournament_id = event.tournament_created.tournament_id
        if self._hall.journal.tournament(tournament_id) is not None:
            raise CupError.of("seed", f"this tournament has been played from the same seed: {tournament_id}")
        now_ms = self._hall.clock.wall_ns() // 10**6
        self._hall.committer.store(TournamentAdded(tournament_id, request_id, master, now_ms, WAITING))
        self.summarise(Book(event))
        await self.note(tournament_id, event.SerializeToString(), WAITING)
        _log.info("tournament_created", tournament_id=tournament_id, name=cup.name)
        return tournament_id

    def _created(self, cup: Cup, toml: str) -> tuple[pb.TournamentEvent, bytes]:
        master = bytes.fromhex(cup.seed) if cup.seed is not None else self._random_bytes(dealing.SECRET_BYTES)
        tournament_id = tournament_id_from(master, toml) if cup.seed is not None else id_of(self._random_bytes(16))
        now_ns = self._hall.clock.wall_ns()
        created = pb.TournamentCreated(
            tournament_id=tournament_id,
            toml=toml,
            commitment=dealing.commitment(tournament_id, master),
            unsealed=cup.seed is not None,
            schedule_version=SCHEDULE_VERSION,
            server_version=SERVER_VERSION,
        )
        time = Timestamp(seconds=now_ns // 10**9, nanos=now_ns % 10**9)
        return pb.TournamentEvent(sequence=1, event_time=time, tournament_created=created), master

    def start(self, tournament_id: str) -> Director:
        """Starts a tournament, or goes on with it; one that runs runs on.

        Raises:
            RefusedError: there is none, or it has ended.
        """
        director = self.running.get(tournament_id)
        if director is not None:
            return director
        book = self.book(tournament_id)
        if book.over:
            raise RefusedError(
                reason_pb.ERROR_REASON_TOURNAMENT_STATE,
                "the tournament has ended",
                tournament_id=tournament_id,
                state=book.state,
            )
        executor = self._make_executor(book)
        director = Director(self, book, self._hall.journal.tournament_secret(tournament_id), executor)
        self.running[tournament_id] = director
        task = self._tasks[tournament_id] = asyncio.ensure_future(self._run(director, executor))
        # Whoever waits is told why it ended; where nobody waits, the log has it.
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return director

    async def _run(self, director: Director, executor: Executor) -> None:
        tournament_id = director.book.tournament_id
        try:
            await director.run()
            await self._stored()  # whoever lists it finds its last summary
        except ExecutorError as error:
            _log.warning("tournament_stopped", tournament_id=tournament_id, why=str(error))
            raise
        finally:
            del self.running[tournament_id]
            await executor.close()
        _log.info("tournament_ended", tournament_id=tournament_id, state=director.book.state)

    async def wait(self, tournament_id: str) -> None:
        """Waits until a tournament that was started runs no longer.

        Raises:
            ExecutorError: its tables cannot be played.
            StorageError: the storage has failed.
        """
        await asyncio.shield(self._tasks[tournament_id])

    def director(self, tournament_id: str) -> Director:
        """Returns the director of a tournament that runs.

        Raises:
            RefusedError: there is no such tournament, or it does not run.
        """
        director = self.running.get(tournament_id)
        if director is None:
            state = self.book(tournament_id).state
            raise RefusedError(
                reason_pb.ERROR_REASON_TOURNAMENT_STATE,
                "the tournament is not running",
                tournament_id=tournament_id,
                state=state,
            )
        return director

    async def pause(self, tournament_id: str) -> None:
        """Starts no more tables; those at play finish."""
        await self.director(tournament_id).pause()

    async def go_on(self, tournament_id: str) -> None:
        """Starts a tournament, or starts its tables again."""
        await self.start(tournament_id).go_on()

    async def cancel(self, tournament_id: str) -> None:
        """Ends a tournament; tables at play are cancelled. Returns once that is on record."""
        self.start(tournament_id).cancel()
        await self.wait(tournament_id)

    async def change(self, tournament_id: str, toml: str) -> None:
        """Gives a tournament that does not run another description, one with which it can go on.

        Raises:
            BookError: it makes another tournament of it.
        """
        book = self.book(tournament_id)
        now_ns = self._hall.clock.wall_ns()
        event = pb.TournamentEvent(
            sequence=book.sequence + 1,
            event_time=Timestamp(seconds=now_ns // 10**9, nanos=now_ns % 10**9),
            tournament_changed=pb.TournamentChanged(toml=toml),
        )
        book.evolve(event)
        self.summarise(book)
        await self.note(tournament_id, event.SerializeToString(), book.state)

    # What there is.

    async def summary(self, row: TournamentRow) -> service_pb.Tournament:
        """Returns what lists show of a tournament, see `summary_of`; what happens at present is not in it.

        Raises:
            RefusedError: its log is damaged.
        """
        director = self.running.get(row.tournament_id)
        if director is not None:
            return summary_of(director.book)
        if row.summary:
            return service_pb.Tournament.FromString(row.summary)
        # Written by a release without summaries, or the referee was killed after a fact: once the log has to be read.
        book = await self.read(row.tournament_id)
        if not self._hall.halted:
            self.summarise(book)
        return summary_of(book)

    async def read(self, tournament_id: str) -> Book:
        """Returns a tournament as it stands, like `book`, but lets matches go on while a long log is read."""
        director = self.running.get(tournament_id)
        return director.book if director is not None else await asyncio.to_thread(self.book, tournament_id)

    def book(self, tournament_id: str) -> Book:
        """Returns a tournament as it stands.

        Raises:
            RefusedError: there is none, or its log is damaged.
        """
        director = self.running.get(tournament_id)
        if director is not None:
            return director.book
        self.row(tournament_id)
        try:
            return Book.read(self._hall.journal.tournament_log(tournament_id))
        except (DamagedLogError, BookError) as error:
            raise RefusedError(
                reason_pb.ERROR_REASON_TOURNAMENT_DAMAGED,
                "the tournament's log is damaged, or of another release",
                tournament_id=tournament_id,
            ) from error

    def rows(self) -> list[TournamentRow]:
        """Returns all tournaments, oldest first."""
        return self._hall.journal.tournaments()

    def row(self, tournament_id: str) -> TournamentRow:
        """Returns the row of a tournament.

        Raises:
            RefusedError: there is none.
        """
        row = self._hall.journal.tournament(tournament_id) if len(tournament_id) <= 64 else None
        if row is None:
            raise RefusedError(
                reason_pb.ERROR_REASON_TOURNAMENT_UNKNOWN,
                f"there is no tournament {shown(tournament_id)}",
                tournament_id=shown(tournament_id),
            )
        return row

    def page(self, before_number: int, limit: int) -> list[TournamentRow]:
        """Returns tournaments, newest first: at most so many, with numbers below that one, 0 for any."""
        return self._hall.journal.newest_tournaments(before_number=before_number, limit=limit)

    def resume_all(self) -> int:
        """Goes on with every tournament that was running when the service last ended; returns how many."""
        rows = [row for row in self.rows() if row.state in (RUNNING, STARTING)]
        for row in rows:
            self.start(row.tournament_id)
        return len(rows)

    async def close(self) -> None:
        """Lets go of all tournaments; they are gone on with at the next start."""
        tasks = [task for task in self._tasks.values() if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
