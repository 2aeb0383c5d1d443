"""The hall: all tables and all agents' streams; who sits where, and what comes after what."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog
from google.protobuf.timestamp_pb2 import Timestamp

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import event_pb2, match_pb2
from referee_client import convert
from referee_games import dealing, registry
from referee_games.contract import shown
from referee_server import __version__
from referee_server.journal import (
    AgentRow,
    EventsAdded,
    Journal,
    LogStored,
    MatchAdded,
    MatchRow,
    StorageError,
    pack,
)
from referee_server.match import inputs, spec
from referee_server.match.errors import RefusedError
from referee_server.match.machine import Machine
from referee_server.match.state import DECIDE_VERSION, OPEN, begin
from referee_server.match.verify import parse, replay
from referee_server.tables.clock import Clock
from referee_server.tables.committer import Committer
from referee_server.tables.lateness import LatenessMeter
from referee_server.tables.names import fold_name
from referee_server.tables.rates import MESSAGES_BURST, MESSAGES_PER_S, Bucket
from referee_server.tables.session import Session
from referee_server.tables.table import Table

_log = structlog.get_logger(__name__)

SERVER_VERSION: Final = f"referee {__version__}"
_PRACTICE_LABEL: Final = "practice"
_PRACTICE_BOT: Final = "greedy"
_MAX_ID: Final = 64
"""No id is longer, in characters; longer text is not looked up."""
_DRAIN_LOOK_S: Final = 0.01
_CHECKPOINT_S: Final = 0.5
_REST_US: Final = 10_000_000
"""How long an agent is left alone by practice after a match that it did not start."""


@dataclass(frozen=True, slots=True)
class HallSettings:
    """How a hall behaves.

    Attributes:
        practice: seats idle agents that take open seats with house bots.
        durable_power: waits for the disk at every commit (survives power loss), in a thread.
    """

    practice: bool = False
    durable_power: bool = False


class Hall:
    """All matches being played and all agents that are there.

    Attributes:
        clock: the service's clock.
        journal: where everything is kept.
        committer: its only writer.
        meter: how late the referee is.
        draining: whether the service is shutting down: nothing new is asked or started.
        on_serving: told with False when the service cannot serve for now, and with True when it can again.
        stopped: set when the storage has failed; the service ends then.
    """

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
        settings: HallSettings | None = None,
    ) -> None:
        """Makes an empty hall.

        Args:
            journal: where everything is kept.
            clock: the service's clock.
            random_bytes: the operating system's generator, for secrets and ids.
            settings: how it behaves; None for the defaults.
        """
        self.journal = journal
        self.clock = clock
        self.settings = settings or HallSettings()
        self.stopped = asyncio.Event()
        self.committer = Committer(
            journal,
            in_thread=self.settings.durable_power,
            on_failure=self._storage_failed,
            on_stall=self._storage_stalled,
        )
        self.on_serving: Callable[[bool], None] = lambda serving: None
        self._stalled_us = 0
        self._random_bytes = random_bytes
        self._tables: dict[str, Table] = {}
        self._sessions: dict[str, Session] = {}
        self.meter = LatenessMeter(clock, self._seat_everybody)
        self.draining = False
        self._buckets: dict[str, Bucket] = {}
        self._somebody_came = asyncio.Event()
        self._checkpointing: asyncio.Task[None] | None = None
        self._archiving: set[asyncio.Task[None]] = set()
        self._practice_games = itertools.cycle(registry.names())

    # What tables need of it.

    @property
    def halted(self) -> bool:
        """Whether nothing new is asked: the referee shuts down, or its storage is away."""
        return self.draining or self.committer.stalled

    def session_of(self, agent_id: str) -> Session | None:
        """Returns the agent's stream, if it has one that has been taken in."""
        session = self._sessions.get(agent_id)
        return session if session is not None and session.attached else None

    def close_session(self, agent_id: str, why: RefusedError) -> None:
        """Ends the agent's stream, if it has one."""
        session = self._sessions.get(agent_id)
        if session is not None:
            session.close(why)

    def stored_events(self, match_id: str) -> list[bytes]:
        """Returns the events of a match that are committed."""
        return self.journal.read(match_id)

    def digest(self, match_id: str) -> bytes:
        """Returns the digest of a match's committed events."""
        row = self.journal.match(match_id)
        return row.digest if row is not None else b""

    def later(self, callback: Callable[[], None]) -> None:
        """Calls back in a later turn of the loop."""
        asyncio.get_running_loop().call_soon(callback)

    def ended(self, table: Table) -> None:
        """Takes note that a match has ended and its end is being stored."""
        self.committer.then(lambda: self._clear(table))

    def _clear(self, table: Table) -> None:
        self._tables.pop(table.match_id, None)
        for seat in table.match.seats:
            session = self._sessions.get(seat.agent_id)
            if session is not None and session.tables.pop(table.match_id, None) is not None:
                session.idle_since_us = self.clock.now_us()
                if table.match.unstarted:
                    # Who declines is not asked again at once, or it would go on for ever.
                    session.rests_until_us = session.idle_since_us + _REST_US
                    self.clock.call_at(session.rests_until_us, self._seat_everybody)
        self._start_archiving(table.match_id)
        self._seat_everybody()

    def _start_archiving(self, match_id: str) -> None:
        task = asyncio.ensure_future(self._archive(match_id))
        self._archiving.add(task)
        task.add_done_callback(self._archiving.discard)

    def start(self) -> int:
        """Takes up what the last run left, and begins to keep house; returns how many matches go on."""
        self._checkpointing = asyncio.ensure_future(self._checkpoint())
        return self._resume_all()

    async def _checkpoint(self) -> None:
        """Moves what was committed to its place, often and aside, so that it never takes long."""
        while True:
            await asyncio.sleep(_CHECKPOINT_S)
            if self.committer.committed and self.committer.failed is None and not self.committer.stalled:
                self.committer.committed = False
                try:
                    await asyncio.to_thread(self.journal.checkpoint)
                except StorageError as error:
                    # What was committed is safe where it is; the next commit finds out whether that still works.
                    _log.warning("checkpoint_failed", error=type(error).__name__)

    async def _archive(self, match_id: str) -> None:
        try:
            events = self.journal.read(match_id)
            blob = await asyncio.to_thread(pack, match_id, events)
        except StorageError as error:
            self._storage_failed(error)
        else:
            self.committer.store(LogStored(match_id, blob))

    def _storage_failed(self, error: StorageError) -> None:
        self.stopped.set()
        why = RefusedError(reason_pb.ERROR_REASON_STORAGE, "the journal cannot be written; the referee stops")
        for session in self._sessions.values():
            session.close(why)

    def _storage_stalled(self, stalled: bool) -> None:
        self.on_serving(not stalled)
        if stalled:
            self._stalled_us = self.clock.now_us()
            return
        # Nobody was asked and nobody was answered meanwhile: the time is the referee's.
        self.meter.add(self.clock.now_us() - self._stalled_us)
        self.later(self._go_on)

    def _go_on(self) -> None:
        for table in list(self._tables.values()):
            table.advance()
        self._seat_everybody()

    # Matches.

    @property
    def running(self) -> Mapping[str, Table]:
        """The matches that have not ended, by id."""
        return self._tables

    def create(self, asked: match_pb2.MatchSpec, request_id: str = "") -> str:
        """Creates a match and returns its id. A repeat with the same request id returns the first one's.

        Raises:
            RefusedError: the spec is not one, or the request id was used for another.
        """
        self.check_storage()
        if request_id:
            row = self.journal.match_by_request(request_id)
            if row is not None:
                return self._repeated(row, asked)
        game = spec.find_game(asked.game)
        try:
            options = spec.configure(game, convert.options_from(asked.game, asked.options))
        except ValueError as error:
            raise RefusedError(
                reason_pb.ERROR_REASON_OPTION_INVALID, str(error), field="spec.options", option="?"
            ) from None
        spec.check_seats(asked, game, options)
        settled = spec.settle(asked)
        settled.options.CopyFrom(convert.options_to(asked.game, options))
        seats = [self._seat(number, seat, asked.game) for number, seat in enumerate(settled.seats)]
        agents = [seat.agent_id for seat in seats if seat.agent_id]
        if len(set(agents)) != len(agents):
            raise RefusedError(
                reason_pb.ERROR_REASON_AGENT_REPEATED, "an agent takes one seat of a match", field="spec.seats"
            )
        secret = asked.given_secret or self._random_bytes(dealing.SECRET_BYTES)
        match_id = _id_from(asked, options) if asked.given_secret else _id(self._random_bytes(16))
        if asked.given_secret and self.journal.match(match_id) is not None:
            raise RefusedError(
                reason_pb.ERROR_REASON_FIELD_INVALID,
                f"this match has been played from the same secret: {match_id}",
                field="spec.given_secret",
            )
        now_ns = self.clock.wall_ns()
        created = event_pb2.MatchCreated(
            match_id=match_id,
            spec=settled,
            seats=seats,
            deal_id=match_id,
            commitment=dealing.commitment(match_id, secret),
            unsealed=bool(asked.given_secret),
            decide_version=DECIDE_VERSION,
            create_time=Timestamp(seconds=now_ns // 10**9, nanos=now_ns % 10**9),
            server_version=SERVER_VERSION,
            nonces_taken=True,
        )
        event = event_pb2.MatchEvent(sequence=1, match_created=created)
        table = Table(self, Machine(begin(event), secret), asked.label, now_ns)
        self._tables[match_id] = table
        self.committer.store(
            MatchAdded(
                match_id=match_id,
                game=game.name,
                request_id=request_id,
                secret=secret,
                summary=table.summary().SerializeToString(),
                create_time_ms=now_ns // 10**6,
                state="WAITING",
            )
        )
        self.committer.store(EventsAdded(match_id, (event.SerializeToString(),)))
        _log.info("match_created", match_id=match_id, game=game.name, label=asked.label)
        # Nothing of the match leaves before its creation is stored.
        self.committer.then(table.begin)
        self.committer.then(self._seat_everybody)
        return match_id

    def _repeated(self, row: MatchRow, asked: match_pb2.MatchSpec) -> str:
        if row.game != asked.game:
            raise RefusedError(reason_pb.ERROR_REASON_REQUEST_ID_REUSED, "that request id was used for another request")
        return row.match_id

    def _seat(self, number: int, asked: match_pb2.SeatSpec, game: str) -> match_pb2.Seat:
        match asked.WhichOneof("kind"):
            case "bot":
                return match_pb2.Seat(
                    seat=number, kind=match_pb2.SEAT_KIND_BOT, name=asked.bot, bot_seed=asked.bot_seed
                )
            case "agent":
                row = self.find_agent(asked.agent)
                return match_pb2.Seat(seat=number, kind=match_pb2.SEAT_KIND_AGENT, agent_id=row.agent_id, name=row.name)
            case _:
                return match_pb2.Seat(seat=number, kind=OPEN)

    def find_agent(self, name: str) -> AgentRow:
        """Returns the agent with that id or name.

        Raises:
            RefusedError: AGENT_UNKNOWN.
        """
        row = self.journal.agent(name) or self.journal.agent_by_name(fold_name(name))
        if row is None or row.revoked:
            raise RefusedError(
                reason_pb.ERROR_REASON_AGENT_UNKNOWN,
                f"there is no agent {shown(name)}; an agent is known once it has connected",
                agent=shown(name),
            )
        return row

    def cancel(self, match_id: str, note: str) -> None:
        """Ends a match without a result.

        Raises:
            RefusedError: MATCH_UNKNOWN or MATCH_OVER.
        """
        self.check_storage()
        table = self._tables.get(match_id)
        if table is None or table.match.over:
            if table is None and self.journal.match(match_id) is None:
                raise unknown_match(match_id)
            raise RefusedError(reason_pb.ERROR_REASON_MATCH_OVER, "the match has ended", match_id=shown(match_id))
        table.feed(inputs.Stop(match_pb2.END_REASON_CANCELLED, note))

    def check_storage(self) -> None:
        """Refuses when nothing can be stored (STORAGE)."""
        if self.draining:
            raise RefusedError(reason_pb.ERROR_REASON_DRAINING, "the referee is shutting down; try again later")
        if self.committer.failed is not None or self.committer.stalled:
            raise RefusedError(reason_pb.ERROR_REASON_STORAGE, "the journal cannot be written for now")

    def _resume_all(self) -> int:
        count = 0
        now_ns = self.clock.wall_ns()
        for row in self.journal.unarchived():
            self._start_archiving(row.match_id)
        for row in self.journal.running():
            if row.damaged_at:
                _log.error("match_damaged", match_id=row.match_id, place=row.damaged_at)
                continue
            match = replay(parse(self.journal.read(row.match_id)))
            machine = Machine(match, self.journal.secret(row.match_id))
            label = match_pb2.Match.FromString(row.summary).label
            table = Table(self, machine, label, row.create_time_ms * 10**6)
            self._tables[row.match_id] = table
            table.resume(now_ns // 10**9, now_ns % 10**9)
            count += 1
        return count

    # Streams.

    async def attach(self, session: Session) -> None:
        """Takes an agent's new stream in: the newest wins. Its running matches go on over it.

        Raises:
            StorageError: the storage has failed.
        """
        old = self._sessions.get(session.agent_id)
        if old is not None:
            old.close(
                RefusedError(
                    reason_pb.ERROR_REASON_SUPERSEDED, "a newer stream of this agent took over; do not reconnect"
                )
            )
            self._drop(old)
        self._sessions[session.agent_id] = session
        self._somebody_came.set()
        await self.committer.settled()
        if self._sessions.get(session.agent_id) is not session or session.closed is not None:
            return
        # Before this moment nothing is offered, asked or shown over it: it would be told twice, or out of order.
        session.attached = True
        self._tell_ended(session)
        after = {position.match_id: position.after_sequence for position in session.hello.positions}
        for table in list(self._tables.values()):
            if table.seats_of(session.agent_id):
                table.attach(session, after)
        self._seat_everybody()

    def _tell_ended(self, session: Session) -> None:
        """Tells an agent the end of the matches that it believes to be running and that ended while it was away."""
        for position in session.hello.positions:
            if position.match_id in self._tables:
                continue
            for seat, result in self.held_seats(position.match_id, session.agent_id):
                over = agent_pb.MatchOver(match_id=position.match_id, seat=seat, result=result)
                session.push(agent_pb.ServerItem(match_over=over))

    def held_seats(self, match_id: str, agent_id: str) -> list[tuple[int, match_pb2.MatchResult]]:
        """Returns the seats that an agent had in a match that has ended, each with the result."""
        row = self.journal.match(match_id) if len(match_id) <= _MAX_ID else None
        if row is None or not row.final:
            return []
        match = match_pb2.Match.FromString(row.summary)
        match.result.digest = row.digest
        return [(seat.seat, match.result) for seat in match.seats if seat.agent_id == agent_id]

    async def wait_for_sessions(self, count: int) -> None:
        """Waits until that many agents are connected."""
        while len(self._sessions) < count:
            self._somebody_came.clear()
            await self._somebody_came.wait()

    def detach(self, session: Session) -> None:
        """Takes note that a stream has ended; without effect if it is not its agent's stream any more."""
        if self._sessions.get(session.agent_id) is session:
            del self._sessions[session.agent_id]
            self._drop(session)

    def _drop(self, session: Session) -> None:
        waiting = list(session.waiting)
        session.waiting.clear()
        for table in list(session.tables.values()):
            table.detach(session)
        session.tables.clear()
        for table in waiting:
            table.advance()

    def bucket_of(self, session: Session) -> Bucket:
        """Returns what limits an agent's messages; it outlives its streams, so that a new one is no new start."""
        bucket = self._buckets.get(session.agent_id)
        if bucket is None:
            burst = MESSAGES_BURST + 2 * session.max_matches
            bucket = self._buckets[session.agent_id] = Bucket(MESSAGES_PER_S, burst, self.clock.now_us())
        return bucket

    def flooded(self, session: Session, why: RefusedError) -> None:
        """Rules on an agent that sends far more than it is asked for, and ends its stream."""
        for table in list(session.tables.values()):
            table.accuse(session.agent_id, match_pb2.FAULT_KIND_FLOOD)
        session.close(why)

    def crashed(self, agent_id: str) -> None:
        """Rules on an agent whose process the referee started and has seen end."""
        for table in list(self._tables.values()):
            table.accuse(agent_id, match_pb2.FAULT_KIND_CRASH)

    def leave(self, session: Session) -> None:
        """Takes an agent's goodbye: no more matches, and no coming back to those at play."""
        session.left = True
        self.detach(session)

    # Seating.

    def _seat_everybody(self) -> None:
        """Offers matches to agents that have room, fills open seats, and seats the idle for practice."""
        if self.committer.failed is not None or self.halted or self.meter.late:
            return
        for table in list(self._tables.values()):
            # One that was just cancelled stands here until its end is stored.
            if table.match.filled_us is None and not table.match.over and not table.broken:
                self._fill(table)
            table.offer()
        if self.settings.practice:
            for session in sorted(self._sessions.values(), key=lambda one: one.idle_since_us):
                rested = self.clock.now_us() >= session.rests_until_us
                if not session.tables and session.hello.takes_open_seats and session.has_room and rested:
                    self._practise(session)

    def _fill(self, table: Table) -> None:
        match = table.match
        for seat in match.seats:
            if seat.kind != OPEN:
                continue
            taken = {other.agent_id for other in match.seats}
            waiting = [
                session
                for session in self._sessions.values()
                if session.hello.takes_open_seats
                and session.agent_id not in taken
                and session.plays(match.game.name)
                and session.has_room
            ]
            if not waiting:
                return
            session = min(waiting, key=lambda one: one.idle_since_us)
            session.tables[match.match_id] = table
            table.feed(inputs.Fill(seat.seat, session.agent_id, session.name))

    def _practise(self, session: Session) -> None:
        for _ in registry.names():
            name = next(self._practice_games)
            if session.plays(name):
                break
        else:
            return
        game = spec.find_game(name)
        seats = game.seats(game.configure({}))
        mine = self._random_bytes(1)[0] % seats
        asked = match_pb2.MatchSpec(game=name, label=_PRACTICE_LABEL)
        for number in range(seats):
            if number == mine:
                asked.seats.add(agent=session.agent_id)
            else:
                asked.seats.add(bot=_PRACTICE_BOT)
        match_id = self.create(asked)
        session.tables[match_id] = self._tables[match_id]

    async def drain(self, grace_s: float) -> None:
        """Asks nothing new, tells the agents so, and waits for the answers to what is open.

        Args:
            grace_s: how long to wait at most, in seconds. What is open then is asked again after the next start.
        """
        self.draining = True
        going = agent_pb.ServerItem(going_away=agent_pb.GoingAway(grace_ms=round(grace_s * 1_000)))
        for session in self._sessions.values():
            session.push(going)
        until_us = self.clock.now_us() + round(grace_s * 1_000_000)
        # A look now and then while shutting down is simpler than a signal from every table.
        while self.clock.now_us() < until_us and any(session.open_count for session in self._sessions.values()):  # noqa: ASYNC110
            await asyncio.sleep(_DRAIN_LOOK_S)

    async def close(self) -> None:
        """Ends all streams and waits until everything is stored. Matches at play go on at the next start."""
        self.draining = True
        self.meter.close()
        if self._checkpointing is not None:
            self._checkpointing.cancel()
            await asyncio.wait((self._checkpointing,))
        why = RefusedError(reason_pb.ERROR_REASON_DRAINING, "the referee is shutting down; try again later")
        for session in list(self._sessions.values()):
            session.close(why)
        if self._archiving:
            await asyncio.gather(*self._archiving, return_exceptions=True)
        if self.committer.failed is None:
            await self.committer.settled()


def unknown_match(match_id: str) -> RefusedError:
    """Returns the refusal for a match that does not exist."""
    return RefusedError(
        reason_pb.ERROR_REASON_MATCH_UNKNOWN, f"there is no match {shown(match_id)}", match_id=shown(match_id)
    )


def _id(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=").lower()


def _id_from(asked: match_pb2.MatchSpec, options: Mapping[str, object]) -> str:
    """Returns the id of a match whose secret the host gave: everything follows from what he asked for."""
    seats = [[seat.WhichOneof("kind"), seat.agent or seat.bot, seat.bot_seed] for seat in asked.seats]
    dealer = asked.first_dealer if asked.HasField("first_dealer") else None
    told = json.dumps([asked.game, sorted(options.items()), seats, dealer], separators=(",", ":"))
    return _id(hashlib.sha256(b"referee.match.v1\0" + asked.given_secret + told.encode()).digest()[:16])
