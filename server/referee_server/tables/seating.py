"""Who sits where: agents with room are offered their matches, and take open seats; the idle may practise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final

from referee_server.match import inputs
from referee_server.match.seat import OPEN
from referee_server.match.state import WAITING
from referee_server.tables.clock import Timer
from referee_server.tables.host import Host
from referee_server.tables.practice import Practice
from referee_server.tables.session import Session
from referee_server.tables.table import Table

_REST_US: Final = 10_000_000
"""How long an agent is left alone by practice after a match that it did not start."""


class Seating:
    """Sees to it that whoever has room gets a seat, each time that somebody comes, goes, ends or has rested."""

    def __init__(
        self, host: Host, tables: Mapping[str, Table], sessions: Mapping[str, Session], practice: Practice | None
    ) -> None:
        """Makes it for one hall.

        Args:
            host: the hall.
            tables: the matches that have not ended, by id.
            sessions: the streams, by agent.
            practice: makes matches for idle agents that take open seats; None if they are left idle.
        """
        self._host = host
        self._tables = tables
        self._sessions = sessions
        self._practice = practice
        # When an agent that has given a seat back may be given it again.
        self._timer: Timer | None = None

    def seat_everybody(self) -> None:
        """Offers matches to agents that have room, fills open seats, and seats the idle for practice."""
        host = self._host
        if host.committer.failed is not None or host.halted or host.meter.late:
            return
        self.close()
        room = Room(self._sessions, self._tables.values())
        for table in list(self._tables.values()):
            seat_agents(table, room)
        if room.rests_us:
            self._timer = host.clock.call_at(host.clock.now_us() + min(room.rests_us), self.seat_everybody)
        if self._practice is not None:
            self._practise(self._practice, room)

    def _practise(self, practice: Practice, room: Room) -> None:
        for session in sorted(self._sessions.values(), key=lambda one: one.idle_since_us):
            rested = self._host.clock.now_us() >= session.rests_until_us
            idle = not session.tables and session.agent_id not in room.awaited
            if idle and session.hello.takes_open_seats and session.has_room and rested:
                match_id = practice.match_for(session)
                if match_id is not None:
                    session.tables[match_id] = self._tables[match_id]

    def let_rest(self, session: Session) -> None:
        """Makes no practice match for an agent that is idle now, for a while: who declines would be asked for ever."""
        session.rests_until_us = session.idle_since_us + _REST_US
        self._host.clock.call_at(session.rests_until_us, self.seat_everybody)

    def close(self) -> None:
        """Waits for nobody to have rested."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Room:
    """Who has room for another match, as long as nobody comes, goes or ends.

    Attributes:
        awaited: agents that matches wait for which cannot begin yet.
        rests_us: for how long agents are still left alone by matches with open seats which wait for somebody.
    """

    def __init__(self, sessions: Mapping[str, Session], tables: Collection[Table]) -> None:
        """Looks at who is there.

        Args:
            sessions: the streams, by agent.
            tables: the matches that have not ended.
        """
        self.sessions = sessions
        self.awaited: set[str] = set()
        self.rests_us: list[int] = []
        self._tables = tables
        self._held_by_absent: dict[str, set[str]] | None = None

    def is_for(self, table: Table, agent_id: str) -> bool:
        """Tells whether an agent can take a match now, or as soon as it comes."""
        session = self.sessions.get(agent_id)
        if session is not None:
            return session.has_room or table.match_id in session.tables
        return self._absent_hold(agent_id) <= {table.match_id}

    def _absent_hold(self, agent_id: str) -> set[str]:
        """Returns the matches that an agent which is not there has to come back to. How many it takes nobody knows."""
        if self._held_by_absent is None:
            self._held_by_absent = defaultdict(set)
            for table in self._tables:
                for seat in table.match.seats:
                    # Where a house bot has taken over, the match ends without it.
                    held = seat.played_by_agent and table.is_held(seat)
                    if held and seat.agent_id not in self.sessions:
                        self._held_by_absent[seat.agent_id].add(table.match_id)
        return self._held_by_absent.get(agent_id, set())


def seat_agents(table: Table, room: Room) -> None:
    """Fills a waiting match's open seats and offers it, once all who have to take it have room for it.

    If an agent held a match while that waits for another agent, and that one another match which waits for the first,
    neither would ever begin.
    """
    if table.match.state != WAITING or table.broken:
        return
    awaited = [seat.agent_id for seat in table.match.seats if seat.agent_id and not table.is_offered(seat)]
    if not all(room.is_for(table, agent_id) for agent_id in awaited):
        room.awaited.update(awaited)
        return
    if table.match.filled_us is None:
        _fill_open_seats(table, room)
    table.offer()


def _fill_open_seats(table: Table, room: Room) -> None:
    """Fills a match's open seats with agents that take such, who has waited longest first.

    Who has given back a seat of this match has to wait for a while, and comes after all who have waited meanwhile.
    """
    match = table.match
    for seat in match.seats:
        if seat.kind != OPEN or table.broken:
            continue
        taken = {other.agent_id for other in match.seats}
        able = [
            session
            for session in room.sessions.values()
            if session.hello.takes_open_seats
            and session.agent_id not in taken
            and session.plays(match.game.name)
            and session.has_room
        ]
        now_us = table.now_us
        waiting = [session for session in able if match.rests_until_us(session.agent_id) <= now_us]
        if not waiting:
            room.rests_us += [match.rests_until_us(session.agent_id) - now_us for session in able]
            return
        session = min(waiting, key=lambda one: one.idle_since_us)
        session.tables[match.match_id] = table
        table.feed(inputs.Fill(seat.seat, session.agent_id, session.name))
