"""The director: has the tables of one tournament played, and keeps its log.

Every step is on record before the next depends on it, so a director that is killed is followed by one that goes on:
the schedule follows from the log, the cards from the master secret, and a table that was ordered twice is played once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import structlog
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from referee.v1 import match_pb2
from referee.v1 import tournament_pb2 as pb
from referee_server.director.executor import Entry, Executor, Offer, Order, Played, Player
from referee_server.director.orders import order_for, player_of
from referee_server.tournament.book import PAUSED, RUNNING, STARTING, WAITING, Book
from referee_server.tournament.cup import Entrant
from referee_server.tournament.cupfile import entrant_of
from referee_server.tournament.model import Table
from referee_server.tournament.record import outcome_to

_log = structlog.get_logger(__name__)

_CANCEL_S: Final = 30.0
"""How long tables that are cancelled are waited for at the end, in seconds."""

_FIELDS: Final = {
    pb.TournamentStarted: "tournament_started",
    pb.TableEnded: "table_ended",
    pb.EntrantEntered: "entrant_entered",
    pb.EntrantWithdrawn: "entrant_withdrawn",
    pb.TournamentPaused: "tournament_paused",
    pb.TournamentContinued: "tournament_continued",
    pb.TournamentEnded: "tournament_ended",
    pb.TournamentChanged: "tournament_changed",
}


class Ledger(Protocol):
    """Where a tournament's log is kept."""

    def wall_ns(self) -> int:
        """Returns wall time, in nanoseconds since 1970; for display only."""

    def begun(self, match_ids: Sequence[str]) -> set[str]:
        """Returns those of some matches that are being played: an earlier run that was killed began them."""

    async def note(self, tournament_id: str, event: bytes, state: str) -> None:
        """Stores a fact and where the tournament then stands; returns once that is stored.

        Raises:
            StorageError: the storage has failed.
        """

    def summarise(self, book: Book) -> None:
        """Stores what lists show of a tournament. Nobody waits for that."""

    async def keep(self, order: Order, log: bytes) -> None:
        """Stores the log of a match that was played somewhere else, unless there is one already.

        Raises:
            ExecutorError: it is not the log of that match.
            StorageError: the storage has failed.
        """

    async def reveal(self, match_ids: Sequence[str]) -> None:
        """Reveals what was held back of matches, now that no table with their cards is to come.

        Raises:
            StorageError: the storage has failed.
        """


class Director:
    """Runs one tournament.

    Attributes:
        book: the tournament so far.
        playing: the tables at play, by number.
        on_change: called after every fact that was stored.
    """

    def __init__(self, ledger: Ledger, book: Book, master: bytes, executor: Executor) -> None:
        self.book = book
        self.playing: dict[int, Order] = {}
        self.on_change: Callable[[], None] = lambda: None
        self._ledger = ledger
        self._master = master
        self._executor = executor
        self._sitting: Counter[int] = Counter()
        self._batches: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._draining = False
        self._cancelled = False
        self._ending = False
        self._failure: BaseException | None = None
        self._revealed: set[int] = set()
        # Tables that an earlier run began. They are at play whether they are ordered or not, so they come first.
        self._begun: list[Table] = []
        self._writing = asyncio.Lock()

    # What a host can do.

    async def pause(self) -> None:
        """Starts no more tables; those at play go on to their end."""
        await self._note(pb.TournamentPaused(), lambda: self.book.state in (STARTING, RUNNING))

    async def go_on(self) -> None:
        """Starts tables, or starts them again."""
        await self._note(pb.TournamentContinued(), lambda: self.book.state in (WAITING, PAUSED))

    def cancel(self) -> None:
        """Ends the tournament: tables at play are cancelled, no more are started."""
        self._cancelled = True
        self._wake.set()

    def drain(self) -> None:
        """Starts no more tables; `run` returns once those at play have ended. Nothing of it is on record."""
        self._draining = True
        self._wake.set()

    async def withdraw(self, entrant: int) -> None:
        """Takes an entrant out of all rounds that are not paired yet."""
        await self._note(
            pb.EntrantWithdrawn(entrant=entrant),
            lambda: not self.book.decided and entrant not in self.book.withdrawn,
        )

    async def enter(self, entrant: Entrant) -> None:
        """Lets somebody in who comes late; it is in the rounds that are paired from now on.

        Raises:
            CupError: it cannot enter.
        """
        kind, value = ("bot", entrant.bot) if entrant.bot else ("remote", entrant.remote or "")
        seat = match_pb2.SeatSpec(bot=entrant.bot) if entrant.bot else match_pb2.SeatSpec(agent=entrant.remote or "")
        await self._note(
            pb.EntrantEntered(name=entrant.name, seat=seat),
            lambda: bool(entrant_of(self.book.cup, entrant.name, kind, value)),
        )

    # The run.

    async def run(self) -> None:
        """Plays until the tournament has ended, or until it is drained.

        Raises:
            ExecutorError: the tables cannot be played.
            StorageError: the storage has failed.
        """
        try:
            await self._start()
            while not self.book.over:
                if self._failure is not None:
                    raise self._failure
                if self._cancelled or self.book.decided:
                    await self._finish()
                    break
                if not self._draining and self.book.state == RUNNING:
                    self._start_tables()
                if self._draining and not self.playing:
                    break
                self._wake.clear()
                await self._wake.wait()
        finally:
            for batch in self._batches:
                batch.cancel()
            await asyncio.gather(*self._batches, return_exceptions=True)

    async def _start(self) -> None:
        for board in sorted({outcome.table.board for outcome in self.book.outcomes.values()}):
            await self._reveal(board)  # who was killed may not have come to it
        if self.book.over:
            return
        players = [player_of(self.book, number) for number in range(len(self.book.cup.entrant))]
        entries = await self._unless_cancelled(players)
        if self.book.started is None and entries is not None:
            nonces = [entry.nonce for entry in entries]
            await self._note(pb.TournamentStarted(nonces=nonces, isolation=[entry.isolation for entry in entries]))
        elif entries is not None:
            ids = {order_for(self.book, self._master, table).match_id: table for table in self.book.unplayed()}
            begun = self._ledger.begun(tuple(ids))
            self._begun = [table for match_id, table in ids.items() if match_id in begun]

    def _offer(self) -> Offer | None:
        """Returns what entrants are told before they add to the cards, where these are those of the tournament."""
        book = self.book
        if book.started is not None or book.cup.mode == "none":
            return None
        return Offer(book.tournament_id, book.cup.name, book.cup.game, book.created.commitment)

    async def _unless_cancelled(self, players: Sequence[Player]) -> tuple[Entry, ...] | None:
        """Lets the executor get ready; returns None if the host had enough of waiting."""
        preparing = asyncio.ensure_future(self._executor.prepare(players, self._offer()))
        waking = asyncio.ensure_future(self._wake.wait())
        try:
            while not preparing.done():
                await asyncio.wait((preparing, waking), return_when=asyncio.FIRST_COMPLETED)
                if self._cancelled or self._draining:
                    return None
                if waking.done():
                    self._wake.clear()
                    waking = asyncio.ensure_future(self._wake.wait())
            return preparing.result()
        finally:
            for task in (preparing, waking):
                task.cancel()
            await asyncio.gather(preparing, waking, return_exceptions=True)

    def _start_tables(self) -> None:
        """Starts as many tables as may be at play, in the order of the schedule, those of one group together."""
        batch: list[Order] = []
        for table in self._next_tables():
            if batch and (batch[-1].table.round, batch[-1].table.group) != (table.round, table.group):
                self._start_batch(batch)
                batch = []
            order = order_for(self.book, self._master, table)
            self.playing[table.number] = order
            self._sitting.update(set(table.seats))
            batch.append(order)
        if batch:
            self._start_batch(batch)

    def _next_tables(self) -> list[Table]:
        running = self.book.cup.running
        room = running.concurrency - len(self.playing)
        share = running.share or _fair_share(self.book)
        sitting = self._sitting.copy()
        chosen, self._begun = self._begun, []
        for table in chosen:
            sitting.update({entrant for entrant in table.seats if entrant >= 0})
        for table in self.book.unplayed():
            if len(chosen) >= room:
                break
            entrants = {entrant for entrant in table.seats if entrant >= 0}
            # Who is slow is not to sit at every table that is at play.
            if (
                table.number in self.playing
                or table in chosen
                or any(sitting[entrant] >= share for entrant in entrants)
            ):
                continue
            sitting.update(entrants)
            chosen.append(table)
        return chosen

    def _start_batch(self, batch: list[Order]) -> None:
        task = asyncio.ensure_future(self._play(batch))
        self._batches.add(task)
        task.add_done_callback(self._batch_ended)

    def _batch_ended(self, task: asyncio.Task[None]) -> None:
        self._batches.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()
        self._wake.set()

    async def _play(self, batch: list[Order]) -> None:
        async with contextlib.aclosing(self._executor.play(batch)) as results:
            async for played in results:
                await self._took(played)

    async def _took(self, played: Played) -> None:
        order = self.playing[played.key.number]
        try:
            if played.log:
                await self._ledger.keep(order, played.log)
            if self._ending:
                return  # it no longer counts
            await self._note(outcome_to(played.outcome, played.key.attempt))
            if played.outcome.reason in ("not_started", "referee_fault"):
                _log.warning("table_without_result", match_id=played.outcome.match_id, reason=played.outcome.reason)
            await self._reveal(order.table.board)
        finally:
            del self.playing[order.table.number]
            self._sitting.subtract(set(order.table.seats))
            self._wake.set()

    async def _reveal(self, board: int) -> None:
        """Reveals the cards of a board set once its last table has ended."""
        book = self.book
        if book.cup.mode == "none" or board in self._revealed or not book.board_is_done(board):
            return
        self._revealed.add(board)
        ended = [book.outcomes[table.number].match_id for table in book.tables_of(board)]
        await self._ledger.reveal([match_id for match_id in ended if match_id])

    async def _finish(self) -> None:
        """Ends the tournament: what is still at play no longer counts."""
        at_play = self._perhaps_at_play()
        self._ending = True
        await self._executor.cancel(at_play)
        if self._batches:
            await asyncio.wait(self._batches, timeout=_CANCEL_S)
        held = {*at_play, *(outcome.match_id for outcome in self.book.outcomes.values())}
        if self.book.cup.mode != "none":
            await self._ledger.reveal(sorted(held - {""}))
        stopping = self.book.stopping
        stopped = stopping is not None and stopping.verdict is not None
        note = stopping.words() if stopping is not None and stopped else ""
        cancelled = not self.book.decided
        await self._note(pb.TournamentEnded(cancelled=cancelled, note=note, master_secret=self._master))

    def _perhaps_at_play(self) -> list[str]:
        """Returns the matches that may be at play: those of an earlier run that was killed among them."""
        if self.book.started is None:
            return []
        return [order_for(self.book, self._master, table).match_id for table in self.book.unplayed()]

    async def _note(self, payload: Message, follows: Callable[[], bool] = lambda: True) -> None:
        """Puts a fact on record, then takes it in; whole or not at all, whoever waits for it.

        `follows` is asked once all facts before it are in: what no longer follows then would spoil the log for good.
        """
        await asyncio.shield(asyncio.ensure_future(self._store(payload, follows)))

    async def _store(self, payload: Message, follows: Callable[[], bool]) -> None:
        async with self._writing:
            if self.book.over or not follows():
                return
            now_ns = self._ledger.wall_ns()
            event = pb.TournamentEvent(
                sequence=self.book.sequence + 1,
                event_time=Timestamp(seconds=now_ns // 10**9, nanos=now_ns % 10**9),
                **{_FIELDS[type(payload)]: payload},  # type: ignore[arg-type]  # the field of this type
            )
            after = _state_after(self.book, payload)
            await self._ledger.note(self.book.tournament_id, event.SerializeToString(), after)
            self.book.evolve(event)
            self._ledger.summarise(self.book)
        self._wake.set()
        self.on_change()


def _state_after(book: Book, payload: Message) -> str:
    match payload:
        case pb.TournamentPaused():
            return PAUSED
        case pb.TournamentContinued():
            return RUNNING if book.started is not None else STARTING
        case pb.TournamentStarted():
            return RUNNING if book.state != PAUSED else PAUSED
        case pb.TournamentEnded(cancelled=cancelled):
            return "CANCELLED" if cancelled else "FINISHED"
    return book.state


def _fair_share(book: Book) -> int:
    """Returns at how many tables one entrant may sit: a quarter of them is kept for the others, if there are others."""
    concurrency = book.cup.running.concurrency
    seats = book.cup.rules.seats(book.cup.game_options)
    return concurrency if len(book.cup.entrant) <= seats else max(1, concurrency - concurrency // 4)
