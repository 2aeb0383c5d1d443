"""What waits to be sent, and when it has to go."""

from __future__ import annotations

import math
from collections import deque

from referee.v1 import agent_service_pb2 as pb

MAX_ITEMS = 256
MAX_BYTES = 64 * 1024


class Outbox:
    """Gathers items into messages.

    One message for many answers is what makes the stream fast, so an answer waits while there are other questions to
    answer. It never waits past half of the time that its decision had left, nor longer than `hold`: a batch saves some
    tenths of a millisecond, and the other seats are waiting.

    Attributes:
        deadline: when the outbox has to be emptied, on the clock of the caller, in seconds; infinite while empty.
        max_items: greatest number of items in a message.
        max_bytes: greatest size of a message.
    """

    def __init__(self, hold: float = 0.02) -> None:
        self.deadline = math.inf
        self.max_items = MAX_ITEMS
        self.max_bytes = MAX_BYTES
        self._hold = hold
        self._items: deque[tuple[pb.ClientItem, int]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def full(self) -> bool:
        """Whether the items would fill a message."""
        return len(self._items) >= self.max_items or self._bytes >= self.max_bytes

    def add(self, item: pb.ClientItem, now: float, asked: float = 0.0, left: float = math.inf) -> None:
        """Puts an item at the end.

        Args:
            item: what is to be sent.
            now: the time.
            asked: for an answer, when its question came.
            left: for an answer, how much time it had then, in seconds; infinite when untimed.

        Raises:
            ValueError: the item alone is too large for a message.
        """
        size = item.ByteSize() + 4  # the tag and the length beside it
        if size > self.max_bytes:
            raise ValueError(f"an item of {size:,} bytes is too large to send")
        self._items.append((item, size))
        self._bytes += size
        due = min(now + self._hold, asked + left / 2)
        if due < self.deadline:
            self.deadline = due

    def take(self) -> list[pb.ClientItem]:
        """Takes out the items of one message; none if there are none."""
        items: list[pb.ClientItem] = []
        room = self.max_bytes
        while self._items and len(items) < self.max_items and (room := room - self._items[0][1]) >= 0:
            item, size = self._items.popleft()
            self._bytes -= size
            items.append(item)
        if not self._items:
            self.deadline = math.inf
        return items

    def clear(self) -> None:
        """Throws everything away: what was not sent on a lost stream is asked for again on the next."""
        self._items.clear()
        self._bytes = 0
        self.deadline = math.inf
