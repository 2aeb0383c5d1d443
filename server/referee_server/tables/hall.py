"""The hall: where matches and agents' streams meet; who is told of what, and what comes after what."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import match_pb2
from referee_server import failpoints
from referee_server.journal import Journal, StorageError
from referee_server.journal import LogError as DamageError
from referee_server.match.errors import RefusedError
from referee_server.tables import messages, revealing
from referee_server.tables.clock import Clock
from referee_server.tables.committer import Committer
from referee_server.tables.entering import Entering
from referee_server.tables.housekeeping import Housekeeper
from referee_server.tables.lateness import LatenessMeter
from referee_server.tables.matches import Matches
from referee_server.tables.practice import Practice
from referee_server.tables.presence import Presence
from referee_server.tables.roster import Roster
from referee_server.tables.seating import Seating
from referee_server.tables.session import Session
from referee_server.tables.steps import STEP_BUDGET_S, StepBudget
from referee_server.tables.table import Table
from referee_server.tables.watchers import Watchers, WatchLimits

_log = structlog.get_logger(__name__)

_ID_LENGTH: Final = 26
_DRAIN_LOOK_S: Final = 0.01


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
        matches: the matches being played, and what makes more of them.
        seating: who sits where.
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
        self.steps = StepBudget(self.settings.step_budget_s)
        self.watchers = Watchers(clock, self.settings.watches)
        self.draining = False
        self.on_ended: list[Callable[[str], None]] = []
        self.on_serving: Callable[[bool], None] = lambda serving: None
        self._stalled_us = 0
        self.housekeeper = Housekeeper(journal, self.committer)
        self.presence = Presence(clock)
        self.entering = Entering(clock, self.presence.session_of)
        self.matches = Matches(self, random_bytes)
        practice = Practice(self.matches.create, random_bytes) if self.settings.practice else None
        self.seating = Seating(self, self.matches.running, self.presence.sessions, practice)
        self.meter = LatenessMeter(clock, self.seating.seat_everybody)

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
        self.committer.then(self.seating.seat_everybody, table.match_id)

    def _clear(self, table: Table) -> None:
        self.matches.running.pop(table.match_id, None)
        for watch in tuple(self.on_ended):
            watch(table.match_id)
        for seat in table.match.seats:
            session = self.presence.sessions.get(seat.agent_id)
            if session is not None and session.tables.pop(table.match_id, None) is not None:
                session.idle_since_us = self.clock.now_us()
                if table.match.unstarted:
                    self.seating.let_rest(session)
        if table.broken:
            # Some may have been given a seat in memory that was never theirs.
            for session in self.presence.sessions.values():
                session.tables.pop(table.match_id, None)
        if not table.match.held_back:
            self.housekeeper.archive(table.match_id)
        self.seating.seat_everybody()

    # The service as a whole.

    def start(self) -> int:
        """Takes up what the last run left, and begins to keep house; returns how many matches go on."""
        self.housekeeper.start()
        return self.matches.resume_all()

    def _storage_failed(self, error: StorageError) -> None:
        self.stopped.set()
        why = RefusedError(reason_pb.ERROR_REASON_STORAGE, "the journal cannot be written; the referee stops")
        self._close_all(why)

    def _match_refused(self, match_id: str, error: Exception) -> None:
        """Ends a match of which the journal takes nothing as it is; where not even that can be stored, lets it go."""
        table = self.matches.running.get(match_id)
        known = self.journal.match(match_id) is not None
        if table is None or not known or isinstance(error, DamageError) or not table.refused(error):
            # Like a match that cannot be resumed: it stays in the journal as it is, and the others are played on.
            _log.error("match_refused", match_id=match_id, error=type(error).__name__)
            if table is not None:
                del self.matches.running[match_id]
                table.let_go()
                for watch in tuple(self.on_ended):
                    watch(match_id)
            for session in self.presence.sessions.values():
                session.tables.pop(match_id, None)
            self.later(self.seating.seat_everybody)

    def _storage_stalled(self, stalled: bool) -> None:
        self.on_serving(not stalled)
        if stalled:
            self._stalled_us = self.clock.now_us()
            return
        # Nobody was asked and nobody was answered meanwhile: the time is the referee's.
        self.meter.add(self.clock.now_us() - self._stalled_us)
        self.later(self._go_on)

    def _go_on(self) -> None:
        for table in list(self.matches.running.values()):
            table.advance()
        self.seating.seat_everybody()

    def _close_all(self, why: RefusedError) -> None:
        self.presence.close_all(why)
        self.watchers.close(why)

    def check_storage(self) -> None:
        """Refuses when nothing can be stored (STORAGE)."""
        if self.draining:
            raise RefusedError(reason_pb.ERROR_REASON_DRAINING, "the referee is shutting down; try again later")
        if self.committer.failed is not None or self.committer.stalled:
            raise RefusedError(reason_pb.ERROR_REASON_STORAGE, "the journal cannot be written for now")

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
        for table in list(self.matches.running.values()):
            if table.seats_of(agent_id):
                table.attach(session)
            elif session.positions.pop(table.match_id, None) is not None:
                self.committer.tell(session, messages.not_playing(table.match_id))
        self.seating.seat_everybody()
        # What ends from now on is told by its table.
        for match_id in [match_id for match_id in session.positions if match_id not in self.matches.running]:
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
        for table in list(self.matches.running.values()):
            table.accuse(agent_id, match_pb2.FAULT_KIND_CRASH)

    def absent(self, match_id: str, agent_id: str) -> None:
        """Takes note that an agent does not come to a match, because its program could not be started."""
        table = self.matches.running.get(match_id)
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
        for table in list(self.matches.running.values()):
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
        self.seating.close()
        failpoints.hit("stop.close")
        why = RefusedError(reason_pb.ERROR_REASON_DRAINING, "the referee is shutting down; try again later")
        self._close_all(why)
        await self.housekeeper.close()
        if self.committer.failed is None and not self.committer.stalled:
            await self.committer.settled()
