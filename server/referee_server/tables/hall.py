"""The hall: all tables and all agents' streams; who sits where, and what comes after what."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import match_pb2
from referee_games import dealing, registry
from referee_games.contract import shown
from referee_server import failpoints
from referee_server.journal import (
    AgentRow,
    EventsAdded,
    Journal,
    MatchAdded,
    MatchRow,
    StorageError,
)
from referee_server.journal import LogError as DamageError
from referee_server.match import inputs
from referee_server.match.errors import RefusedError
from referee_server.match.machine import Machine
from referee_server.match.names import fold_name
from referee_server.match.state import Match, begin
from referee_server.match.verify import parse
from referee_server.tables import creation, messages, revealing, seating
from referee_server.tables.clock import Clock, Timer
from referee_server.tables.committer import Committer
from referee_server.tables.entering import Entering
from referee_server.tables.housekeeping import Housekeeper
from referee_server.tables.lateness import LatenessMeter
from referee_server.tables.presence import Presence
from referee_server.tables.resuming import resumable
from referee_server.tables.roster import Roster
from referee_server.tables.session import Session
from referee_server.tables.steps import STEP_BUDGET_S, StepBudget
from referee_server.tables.table import Table
from referee_server.tables.watchers import Watchers, WatchLimits

_log = structlog.get_logger(__name__)

_ID_LENGTH: Final = 26
_DRAIN_LOOK_S: Final = 0.01
_REST_US: Final = 10_000_000
"""How long an agent is left alone by practice after a match that it did not start."""


@dataclass(frozen=True, slots=True)
class HallSettings:
    """How a hall behaves.

    Attributes:
        practice: seats idle agents that take open seats with house bots.
        durable_power: waits for the disk at every commit (survives power loss), in a thread.
        step_budget_s: how long the rules of a game may take for one step, in seconds.
        watches: how many matches may be watched at once.
    """

    practice: bool = False
    durable_power: bool = False
    step_budget_s: float = STEP_BUDGET_S
    watches: WatchLimits = field(default_factory=WatchLimits)


class Hall:
    """All matches being played and all agents that are there.

    Attributes:
        clock: the service's clock.
        journal: where everything is kept.
        committer: its only writer.
        roster: who the agents are.
        meter: how late the referee is.
        steps: runs whatever calls the rules of a game.
        watchers: who watches matches.
        housekeeper: keeps the journal in order.
        entering: agents that are asked for their share in the cards of a tournament.
        draining: whether the service is shutting down: nothing new is asked or started.
        presence: which agents are there.
        on_ended: told the id of every match that has ended, once its end is stored; and of one that had to be let go.
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
            on_refused=self._match_refused,
        )
        self.roster = Roster(journal, self.committer, clock)
        self.meter = LatenessMeter(clock, self._seat_everybody)
        self.steps = StepBudget(self.settings.step_budget_s)
        self.watchers = Watchers(clock, self.settings.watches)
        self.draining = False
        self.on_ended: list[Callable[[str], None]] = []
        self.on_serving: Callable[[bool], None] = lambda serving: None
        self._stalled_us = 0
        self.housekeeper = Housekeeper(journal, self.committer)
        self.presence = Presence(clock)
        self.entering = Entering(clock, self.presence.session_of)
        self._random_bytes = random_bytes
        self._tables: dict[str, Table] = {}
        # Matches on their way to the journal, by request id.
        self._coming: dict[str, Table] = {}
        # When an agent that has given a seat back may be given it again.
        self._rest_timer: Timer | None = None
        self._practice_games = itertools.cycle(registry.names())

    # What tables need of it.

    @property
    def halted(self) -> bool:
        """Whether nothing new is asked: the referee shuts down, or its storage is away."""
        return self.draining or self.committer.stalled

    def session_of(self, agent_id: str) -> Session | None:
        """Returns the agent's stream, if it has one."""
        return self.presence.session_of(agent_id)

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
        self.committer.then(lambda: self._clear(table), table.match_id)

    def reopened(self, table: Table) -> None:
        """Takes note that a seat of a match is open again, and that this is being stored."""
        self.committer.then(self._seat_everybody, table.match_id)

    def _clear(self, table: Table) -> None:
        self._tables.pop(table.match_id, None)
        for watch in tuple(self.on_ended):
            watch(table.match_id)
        for seat in table.match.seats:
            session = self.presence.sessions.get(seat.agent_id)
            if session is not None and session.tables.pop(table.match_id, None) is not None:
                session.idle_since_us = self.clock.now_us()
                if table.match.unstarted:
                    # Who declines is not asked again at once, or it would go on for ever.
                    session.rests_until_us = session.idle_since_us + _REST_US
                    self.clock.call_at(session.rests_until_us, self._seat_everybody)
        if table.broken:
            # Some may have been given a seat in memory that was never theirs.
            for session in self.presence.sessions.values():
                session.tables.pop(table.match_id, None)
        if not table.match.held_back:
            self.housekeeper.archive(table.match_id)
        self._seat_everybody()

    # The service as a whole.

    def start(self) -> int:
        """Takes up what the last run left, and begins to keep house; returns how many matches go on."""
        self.housekeeper.start()
        return self.resume_all()

    def _storage_failed(self, error: StorageError) -> None:
        self.stopped.set()
        why = RefusedError(reason_pb.ERROR_REASON_STORAGE, "the journal cannot be written; the referee stops")
        self._close_all(why)

    def _match_refused(self, match_id: str, error: Exception) -> None:
        """Ends a match of which the journal takes nothing as it is; where not even that can be stored, lets it go."""
        table = self._tables.get(match_id)
        known = self.journal.match(match_id) is not None
        if table is None or not known or isinstance(error, DamageError) or not table.refused(error):
            # Like a match that cannot be resumed: it stays in the journal as it is, and the others are played on.
            _log.error("match_refused", match_id=match_id, error=type(error).__name__)
            if table is not None:
                del self._tables[match_id]
                table.let_go()
                for watch in tuple(self.on_ended):
                    watch(match_id)
            for session in self.presence.sessions.values():
                session.tables.pop(match_id, None)
            self.later(self._seat_everybody)

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

    def _close_all(self, why: RefusedError) -> None:
        self.presence.close_all(why)
        self.watchers.close(why)

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
        settled, options = self.steps.run(lambda: creation.settle(asked))
        if request_id:
            earlier = self._requested(request_id, asked, settled)
            if earlier is not None:
                return earlier
        given = bool(asked.given_secret)
        secret = asked.given_secret or self._random_bytes(dealing.SECRET_BYTES)
        match_id = creation.id_from(asked, options) if given else creation.id_of(self._random_bytes(16))
        if match_id in self._tables or (given and self.journal.match(match_id) is not None):
            raise RefusedError(
                reason_pb.ERROR_REASON_FIELD_INVALID,
                f"this match has been played from the same secret: {match_id}",
                field="spec.given_secret",
            )
        seats = creation.seats_of(settled, self.find_agent)
        creation.seed_bots(seats, secret if given else self._random_bytes(dealing.SECRET_BYTES))
        self._open(creation.Origin(match_id, match_id, secret, given=given), settled, seats, request_id)
        return match_id

    def create_table(self, asked: match_pb2.MatchSpec, origin: creation.Origin) -> None:
        """Creates a match of a tournament, unless there is one of that id already.

        Raises:
            RefusedError: the spec is not one, or nothing can be stored.
        """
        self.check_storage()
        if origin.match_id in self._tables or self.journal.match(origin.match_id) is not None:
            return
        settled, _ = self.steps.run(lambda: creation.settle(asked))
        self._open(origin, settled, creation.seats_of(settled, self.find_agent), "")

    def _open(
        self,
        origin: creation.Origin,
        settled: match_pb2.MatchSpec,
        seats: Sequence[match_pb2.Seat],
        request_id: str,
    ) -> None:
        """Opens the table of a new match, and sends the match to the journal."""
        match_id = origin.match_id
        now_ns = self.clock.wall_ns()
        event = creation.created(origin, settled, seats, now_ns)
        match = self.steps.run(lambda: begin(event))
        table = Table(self, Machine(match, origin.secret), settled.label, now_ns)
        self._tables[match_id] = table
        failpoints.hit("match.create")
        self.committer.store(
            MatchAdded(
                match_id=match_id,
                game=settled.game,
                request_id=request_id,
                secret=origin.secret,
                summary=table.summary().SerializeToString(),
                create_time_ms=now_ns // 10**6,
                state="WAITING",
            )
        )
        self.committer.store(EventsAdded(match_id, (event.SerializeToString(),)))
        _log.info("match_created", match_id=match_id, game=settled.game, label=settled.label)
        if request_id:
            self._coming[request_id] = table
            self.committer.then(lambda: self._coming.__delitem__(request_id))
        # Nothing of the match leaves before its creation is stored.
        self.committer.then(lambda: failpoints.hit("match.created"))
        self.committer.then(table.begin, match_id)
        self.committer.then(self._seat_everybody)

    def _requested(self, request_id: str, asked: match_pb2.MatchSpec, settled: match_pb2.MatchSpec) -> str | None:
        """Returns the match that a request id has brought about already; refuses when that was another request."""
        coming = self._coming.get(request_id)
        row = self.journal.match_by_request(request_id) if coming is None else None
        if coming is not None:
            match_id, created, secret = coming.match_id, coming.match.created, coming.machine.secret
        elif row is not None:
            match_id, secret = row.match_id, self.journal.secret(row.match_id)
            created = parse(self.journal.read(match_id, limit=1))[0].match_created
        else:
            return None
        if not creation.is_repeat(created, secret, asked, settled):
            raise RefusedError(reason_pb.ERROR_REASON_REQUEST_ID_REUSED, "that request id was used for another request")
        return match_id

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
        if table is None or table.match.over or table.broken:
            if table is None and self.journal.match(match_id) is None:
                raise creation.unknown_match(match_id)
            raise RefusedError(reason_pb.ERROR_REASON_MATCH_OVER, "the match has ended", match_id=shown(match_id))
        table.feed(inputs.Stop(match_pb2.END_REASON_CANCELLED, note))

    def reveal(self, match_id: str) -> None:
        """Reveals what was held back of a match that has ended, if it was and that has not been done yet.

        Raises:
            LogError: its log is damaged.
            StorageError: the storage failed.
        """
        row = self.journal.match(match_id)
        records = revealing.reveal(self.journal, row) if row is not None else []
        for record in records:
            self.committer.store(record)
        if records:
            self.committer.then(lambda: self.housekeeper.archive(match_id), match_id)

    def check_storage(self) -> None:
        """Refuses when nothing can be stored (STORAGE)."""
        if self.draining:
            raise RefusedError(reason_pb.ERROR_REASON_DRAINING, "the referee is shutting down; try again later")
        if self.committer.failed is not None or self.committer.stalled:
            raise RefusedError(reason_pb.ERROR_REASON_STORAGE, "the journal cannot be written for now")

    def resume_all(self) -> int:
        """Takes up every match that was being played when the service last ended; returns how many."""
        count = 0
        for row, match in resumable(self.journal, self.steps):
            try:
                self._resume(row, match)
            except Exception:
                # It stays in the journal as it is. Whatever is wrong with one match, the others are played on.
                self._tables.pop(row.match_id, None)
                _log.exception("match_not_resumed", match_id=row.match_id)
                continue
            count += 1
        failpoints.hit("start.resumed")
        return count

    def _resume(self, row: MatchRow, match: Match) -> None:
        machine = Machine(match, self.journal.secret(row.match_id))
        label = match_pb2.Match.FromString(row.summary).label
        table = Table(self, machine, label, row.create_time_ms * 10**6)
        failpoints.hit("start.resume")
        self._tables[row.match_id] = table
        if any(match.created.tournament.isolation):
            table.sleep()  # programs that this referee starts play there: who goes on with the tournament wakes it
        else:
            self._take_up(table)

    def _take_up(self, table: Table) -> None:
        now_ns = self.clock.wall_ns()
        table.resume(now_ns // 10**9, now_ns % 10**9)

    def wake(self, match_id: str) -> None:
        """Goes on with a match that stood still until its programs were started; without effect on any other."""
        table = self._tables.get(match_id)
        if table is None or not table.asleep or table.match.over:
            return
        self._take_up(table)
        for agent_id in {seat.agent_id for seat in table.match.seats}:
            self.committer.then(lambda agent_id=agent_id: self._attach_to(table, agent_id), match_id)  # type: ignore[misc]
        self.committer.then(self._seat_everybody, match_id)

    def _attach_to(self, table: Table, agent_id: str) -> None:
        session = self.session_of(agent_id)
        if session is not None:
            table.attach(session)

    # Streams.

    async def attach(self, session: Session) -> None:
        """Takes an agent's new stream in: the newest wins. Its running matches go on over it.

        Raises:
            StorageError: the storage has failed.
        """
        agent_id = session.agent_id
        superseded = RefusedError(
            reason_pb.ERROR_REASON_SUPERSEDED, "a newer stream of this agent took over; do not reconnect"
        )
        arriving = self.presence.arriving.pop(agent_id, None)
        if arriving is not None:
            arriving.close(superseded)
        old = self.presence.sessions.get(agent_id)
        if old is not None:
            old.close(superseded)
            self.detach(old)
        # Until all of its past is committed the stream is nobody's, so that nothing is handed to it twice.
        self.presence.arriving[agent_id] = session
        await self.committer.settled()
        failpoints.hit("agent.attach")
        if self.presence.arriving.get(agent_id) is not session:
            return
        del self.presence.arriving[agent_id]
        if session.closed is not None:
            return
        self.presence.attached(session)
        self.entering.attached(agent_id)
        for table in list(self._tables.values()):
            if table.seats_of(agent_id):
                table.attach(session)
            elif session.positions.pop(table.match_id, None) is not None:
                self.committer.tell(session, messages.not_playing(table.match_id))
        self._seat_everybody()
        # What ends from now on is told by its table.
        for match_id in [match_id for match_id in session.positions if match_id not in self._tables]:
            self._tell_ended(session, match_id)
            await asyncio.sleep(0)  # there may be many

    def _tell_ended(self, session: Session, match_id: str) -> None:
        """Tells an agent of the end of a match that it missed; or that it has no seat in any such match."""
        if len(match_id) > _ID_LENGTH:
            return
        row = self.journal.match(match_id)
        seats = match_pb2.Match.FromString(row.summary).seats if row is not None else ()
        if not any(seat.agent_id == session.agent_id for seat in seats):
            session.push(messages.not_playing(match_id))
        for seat, result in self.held_seats(match_id, session.agent_id):
            session.push(messages.match_over(match_id, seat, result, result.digest))

    def held_seats(self, match_id: str, agent_id: str) -> list[tuple[int, match_pb2.MatchResult]]:
        """Returns the seats that an agent had in a match that has ended, each with the result and its digest."""
        row = self.journal.match(match_id) if len(match_id) <= _ID_LENGTH else None
        if row is None or row.state not in revealing.ENDED:
            return []
        match = match_pb2.Match.FromString(row.summary)
        match.result.digest = row.digest
        return [(seat.seat, match.result) for seat in match.seats if seat.agent_id == agent_id]

    def flooded(self, session: Session, why: RefusedError) -> None:
        """Rules on an agent that sends far more than it is asked for, and ends its stream."""
        for table in list(session.tables.values()):
            table.accuse(session.agent_id, match_pb2.FAULT_KIND_FLOOD)
        session.close(why)

    def crashed(self, agent_id: str) -> None:
        """Rules on an agent whose process the referee started and has seen end."""
        for table in list(self._tables.values()):
            table.accuse(agent_id, match_pb2.FAULT_KIND_CRASH)

    def absent(self, match_id: str, agent_id: str) -> None:
        """Takes note that an agent does not come to a match, because its program could not be started."""
        table = self._tables.get(match_id)
        if table is not None:
            self.committer.then(lambda: table.absent(agent_id))

    def end_stream(self, agent_id: str, why: RefusedError) -> None:
        """Ends an agent's stream, if it has one, and all that it watches."""
        for session in self.presence.of(agent_id):
            session.close(why)
        self.watchers.end(agent_id, why)

    def shut_out(self, agent_id: str, why: RefusedError) -> None:
        """Ends all that an agent has here, since it may not come back: nobody waits for it where others can play."""
        self.end_stream(agent_id, why)
        for table in list(self._tables.values()):
            table.forsake(agent_id)

    def detach(self, session: Session) -> None:
        """Takes note that a stream has ended; without effect if it is not its agent's stream any more."""
        if self.presence.detached(session):
            self._drop(session)

    def _drop(self, session: Session) -> None:
        for table in list(session.tables.values()):
            if not table.match.over:
                table.detach(session)
        session.tables.clear()

    def leave(self, session: Session) -> None:
        """Takes an agent's goodbye: no more matches, and no coming back to those at play."""
        session.left = True
        self.detach(session)

    # Seating.

    def _seat_everybody(self) -> None:
        """Offers matches to agents that have room, fills open seats, and seats the idle for practice."""
        if self.committer.failed is not None or self.halted or self.meter.late:
            return
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None
        room = seating.Room(self.presence.sessions, self._tables.values())
        for table in list(self._tables.values()):
            seating.seat_agents(table, room)
        if room.rests_us:
            self._rest_timer = self.clock.call_at(self.clock.now_us() + min(room.rests_us), self._seat_everybody)
        if self.settings.practice:
            for session in sorted(self.presence.sessions.values(), key=lambda one: one.idle_since_us):
                rested = self.clock.now_us() >= session.rests_until_us
                idle = not session.tables and session.agent_id not in room.awaited
                if idle and session.hello.takes_open_seats and session.has_room and rested:
                    self._practise(session)

    def _practise(self, session: Session) -> None:
        asked = seating.practice_match(session, self._practice_games, self._random_bytes(1)[0])
        if asked is None:
            return
        try:
            match_id = self.create(asked)
        except RefusedError:
            return  # its credential has been revoked a moment ago
        session.tables[match_id] = self._tables[match_id]

    async def drain(self, grace_s: float) -> None:
        """Asks nothing new, tells the agents so, and waits for the answers to what is open.

        Args:
            grace_s: how long to wait at most, in seconds. What is open then is asked again after the next start.
        """
        self.draining = True
        going = agent_pb.ServerItem(going_away=agent_pb.GoingAway(grace_ms=round(grace_s * 1_000)))
        for session in self.presence.sessions.values():
            session.push(going)
        failpoints.hit("stop.drain")
        until_us = self.clock.now_us() + round(grace_s * 1_000_000)
        # A look now and then while shutting down is simpler than a signal from every table.
        while self.clock.now_us() < until_us and self._answers_to_come:  # noqa: ASYNC110
            await asyncio.sleep(_DRAIN_LOOK_S)

    @property
    def _answers_to_come(self) -> bool:
        """Whether an answer can still come, and be stored: with the storage away, some were not even asked yet."""
        storing = not self.committer.stalled and self.committer.failed is None
        return storing and any(session.open_count for session in self.presence.sessions.values())

    async def close(self) -> None:
        """Ends all streams and waits until everything is stored. Matches at play go on at the next start.

        Raises:
            StorageError: the storage has failed or is away; what is not stored nobody was told.
        """
        self.draining = True
        self.meter.close()
        if self._rest_timer is not None:
            self._rest_timer.cancel()
        failpoints.hit("stop.close")
        why = RefusedError(reason_pb.ERROR_REASON_DRAINING, "the referee is shutting down; try again later")
        self._close_all(why)
        await self.housekeeper.close()
        if self.committer.failed is None and not self.committer.stalled:
            await self.committer.settled()
