"""Which agents are there: their streams, how often they may come, and who waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from referee.v1 import error_reason_pb2 as reason_pb
from referee_server.match.errors import RefusedError
from referee_server.tables.clock import Clock
from referee_server.tables.rates import MESSAGES_BURST, MESSAGES_PER_S, STREAMS_BURST, STREAMS_PER_S, Bucket
from referee_server.tables.session import Session


class Presence:
    """The streams of all agents, one an agent.

    Attributes:
        sessions: those that take part, by agent. To be changed by the hall only.
        arriving: those that wait until what was before them is stored. To be changed by the hall only.
        on_attached: told the id of every agent that has connected.
    """

    def __init__(self, clock: Clock) -> None:
        self.sessions: dict[str, Session] = {}
        self.arriving: dict[str, Session] = {}
        self.on_attached: list[Callable[[str], None]] = []
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}
        self._stream_buckets: dict[str, Bucket] = {}
        self._somebody_came = asyncio.Event()

    def session_of(self, agent_id: str) -> Session | None:
        """Returns the agent's stream, if it has one."""
        return self.sessions.get(agent_id)

    def attached(self, session: Session) -> None:
        """Takes note that an agent takes part from now on."""
        self.sessions[session.agent_id] = session
        self._somebody_came.set()
        for watch in tuple(self.on_attached):
            watch(session.agent_id)

    def detached(self, session: Session) -> bool:
        """Takes note that a stream has ended; tells whether it took part, as its agent's stream."""
        if self.arriving.get(session.agent_id) is session:
            del self.arriving[session.agent_id]
        if self.sessions.get(session.agent_id) is not session:
            return False
        del self.sessions[session.agent_id]
        return True

    def of(self, agent_id: str) -> Iterator[Session]:
        """Yields an agent's streams, the one that takes part and the one that is arriving."""
        for session in (self.sessions.get(agent_id), self.arriving.get(agent_id)):
            if session is not None:
                yield session

    def close_all(self, why: RefusedError) -> None:
        """Ends all streams."""
        for session in (*self.sessions.values(), *self.arriving.values()):
            session.close(why)

    def bucket_of(self, session: Session) -> Bucket:
        """Returns what limits an agent's messages; it outlives its streams, so that a new one is no new start."""
        bucket = self._buckets.get(session.agent_id)
        if bucket is None:
            burst = MESSAGES_BURST + 2 * session.max_matches
            bucket = self._buckets[session.agent_id] = Bucket(MESSAGES_PER_S, burst, self._clock.now_us())
        return bucket

    def check_stream(self, agent_id: str) -> None:
        """Refuses an agent that begins streams all the time (RATE). The stream that it has, if any, stays."""
        bucket = self._stream_buckets.get(agent_id)
        if bucket is None:
            bucket = self._stream_buckets[agent_id] = Bucket(STREAMS_PER_S, STREAMS_BURST, self._clock.now_us())
        if not bucket.take(self._clock.now_us()):
            raise RefusedError(
                reason_pb.ERROR_REASON_RATE,
                "this agent connects too often; wait longer between attempts",
                retry_ms=bucket.wait_ms(),
            )

    async def wait_for(self, count: int) -> None:
        """Waits until that many agents are connected."""
        while len(self.sessions) < count:
            await self.somebody_came()

    async def somebody_came(self) -> None:
        """Waits until an agent connects."""
        self._somebody_came.clear()
        await self._somebody_came.wait()
