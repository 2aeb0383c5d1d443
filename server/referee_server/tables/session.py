"""One agent's stream, as the tables see it: what is to be sent, and how many questions it has open."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee_server.match.errors import RefusedError

if TYPE_CHECKING:
    from referee_server.tables.asking import Asking
    from referee_server.tables.table import Table

MAX_ITEMS: Final = 256
"""Most items in one message, either way."""
MAX_RESPONSE_BYTES: Final = 256 * 1024
"""Most bytes in one message to an agent."""
MAX_REQUEST_BYTES: Final = 64 * 1024
"""Most bytes in one message from an agent."""
MAX_MATCHES: Final = 4_096
"""Most matches, and most open decisions, of one agent at once."""
_WAYS_KEPT: Final = 8
"""How many measurements of the way are kept; the shortest counts, since a longer one holds the agent's own delay."""
_PING_EVERY_US: Final = 1_000_000
_PINGS_OPEN: Final = 8
_QUEUE_BASE: Final = 1_024  # items; a history of events may be longer, so it is queued as one and made when it is sent
_QUEUE_PER_SEAT: Final = 16


class Session:
    """What the service knows of one stream of one agent.

    Attributes:
        agent_id: the agent.
        name: its name.
        hello: what it said of itself.
        positions: how far it knows the events of its matches, by match id, as it said when it came.
        tables: its matches that have not ended, by match id.
        open_count: how many decisions it has been sent and has not answered.
        waiting: questions that wait until another one is answered, the longest first.
        transit_us: the way to the agent and back, as measured by pings, in whole milliseconds, as microseconds.
        idle_since_us: since when it has room for another match.
        rests_until_us: until when no practice match is made for it.
        closed: why it ended; None while it lives.
    """

    def __init__(self, agent_id: str, name: str, hello: agent_pb.Hello, now_us: int) -> None:
        self.agent_id = agent_id
        self.name = name
        self.hello = hello
        self.max_matches = min(hello.max_matches or 1, MAX_MATCHES)
        self.max_open = min(hello.max_open_decisions or self.max_matches, MAX_MATCHES)
        # A client may name a match twice; the last word counts.
        self.positions = {position.match_id: position.after_sequence for position in hello.positions}
        self.tables: dict[str, Table] = {}
        self.open_count = 0
        self.waiting: deque[Asking] = deque()
        self.idle_since_us = now_us
        self.rests_until_us = now_us
        self.transit_us = 0
        self._ways: deque[int] = deque(maxlen=_WAYS_KEPT)
        self._pings: dict[int, int] = {}
        self._ping_number = 0
        self._pinged_us: int | None = None
        self.closed: RefusedError | None = None
        self.left = False
        self._queue: deque[agent_pb.ServerItem | Iterator[agent_pb.ServerItem]] = deque()
        self._ready = asyncio.Event()
        self._closing = asyncio.Event()
        self._finishing = False

    def plays(self, game: str) -> bool:
        """Tells whether it plays that game."""
        return not self.hello.games or game in self.hello.games

    @property
    def has_room(self) -> bool:
        """Whether it takes another match now."""
        return self.closed is None and not self.left and len(self.tables) < self.max_matches

    def push(self, item: agent_pb.ServerItem) -> None:
        """Queues an item. An agent that does not read is cut off at a length that grows with its seats."""
        self._push(item)

    def push_all(self, items: Iterator[agent_pb.ServerItem]) -> None:
        """Queues items that are made only when their turn to be sent has come, one message at a time."""
        self._push(items)

    def _push(self, entry: agent_pb.ServerItem | Iterator[agent_pb.ServerItem]) -> None:
        if self.closed is not None:
            return
        self._queue.append(entry)
        if len(self._queue) > _QUEUE_BASE + _QUEUE_PER_SEAT * len(self.tables):
            self.close(
                RefusedError(
                    reason_pb.ERROR_REASON_SLOW_CONSUMER,
                    "the agent reads too slowly; it may reconnect and go on from its positions",
                )
            )
        self._ready.set()

    def close(self, why: RefusedError) -> None:
        """Ends the stream: what is queued is dropped, and the stream ends with `why`."""
        if self.closed is None:
            self.closed = why
            self._queue.clear()
            self._ready.set()
            self._closing.set()

    def ping_due(self, now_us: int) -> agent_pb.ServerItem | None:
        """Returns a ping to go with the next message, if it is time for one."""
        if self._pinged_us is not None and now_us - self._pinged_us < _PING_EVERY_US:
            return None
        self._pinged_us = now_us
        self._ping_number += 1
        self._pings[self._ping_number] = now_us
        if len(self._pings) > _PINGS_OPEN:
            del self._pings[next(iter(self._pings))]
        return agent_pb.ServerItem(ping=agent_pb.Ping(ping_id=self._ping_number))

    def pong(self, ping_id: int, received_us: int) -> bool:
        """Takes the reply to a ping; returns False if that was not asked for."""
        sent_us = self._pings.pop(ping_id, None)
        if sent_us is None:
            return False
        self._ways.append(received_us - sent_us)
        # Rounded up, in the agent's favour: more digits would be noise, and noise does not compress.
        self.transit_us = -(-min(self._ways) // 1_000) * 1_000
        return True

    def finish(self) -> None:
        """Ends the stream once what is queued has been sent."""
        self._finishing = True
        self._ready.set()

    async def wait_closed(self) -> None:
        """Waits until the stream is to be closed."""
        await self._closing.wait()

    async def next_items(self) -> list[agent_pb.ServerItem]:
        """Waits until there is something to send and returns all that fits one message; empty at the end."""
        while True:
            while not self._queue and self.closed is None and not self._finishing:
                self._ready.clear()
                await self._ready.wait()
            items = self._take()
            if items or self.closed is not None or self._finishing:
                return items

    def _take(self) -> list[agent_pb.ServerItem]:
        items: list[agent_pb.ServerItem] = []
        size = 0
        while self._queue and len(items) < MAX_ITEMS:
            head = self._queue[0]
            if not isinstance(head, agent_pb.ServerItem):
                if items:
                    break
                # One item a message, so that a long history gives others their turn of the loop.
                item = next(head, None)
                if item is not None:
                    return [item]
                self._queue.popleft()
                continue
            size += head.ByteSize() + 8
            if items and size > MAX_RESPONSE_BYTES:
                break
            items.append(head)
            self._queue.popleft()
        return items
