"""Following a match: history and live tail in one path, the same for every journal.

A follower asks its journal for what comes next, and when there is nothing it waits for a bell that the journal rings
after a commit. The bell carries no events, so a slow follower queues up nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

GROUP: Final = 256
"""The most events given at once."""


@dataclass(slots=True)
class Cursor:
    """Where a follower stands.

    Attributes:
        match_id: the match.
        after: number of the last event given.
        digest: digest of that event, so that the chain need not be computed from its start; None when not yet known.
    """

    match_id: str
    after: int
    digest: bytes | None = None


class Source(Protocol):
    """What a journal does for its followers."""

    def advance(self, cursor: Cursor, limit: int) -> tuple[list[bytes], bool]:
        """Returns the next events, at most `limit`, and whether none will ever follow; moves the cursor on.

        Raises:
            JournalError: there is no such match, the next event is damaged, or the journal fails or is closed.
        """


class Followers:
    """Those who follow the matches of one journal."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._bells: dict[str, dict[_Bell, None]] = {}  # rung in the order in which they came

    def __len__(self) -> int:
        """Returns how many wait for events at the moment or are busy with some."""
        return sum(map(len, self._bells.values()))

    async def follow(self, match_id: str, after: int) -> AsyncGenerator[tuple[int, tuple[bytes, ...]], None]:
        """Implements `Journal.follow`."""
        if after < 0:
            raise ValueError("events are numbered from 1")
        cursor = Cursor(match_id, after)
        bell = _Bell()
        bells = self._bells.setdefault(match_id, {})
        bells[bell] = None
        try:
            over = False
            while not over:
                bell.rung.clear()  # before looking, so that a commit meanwhile is not slept through
                first = cursor.after + 1
                events, over = self._source.advance(cursor, GROUP)
                if events:
                    yield first, tuple(events)
                elif not over:
                    await bell.rung.wait()
        finally:
            del bells[bell]
            if not bells and self._bells.get(match_id) is bells:
                del self._bells[match_id]

    def wake(self, match_ids: Iterable[str]) -> None:
        """Rings for everybody who follows one of these matches. May be called from any thread."""
        for match_id in match_ids:
            for bell in tuple(self._bells.get(match_id, ())):
                bell.ring()

    def wake_all(self) -> None:
        """Rings for everybody."""
        self.wake(tuple(self._bells))


class _Bell:
    __slots__ = ("_loop", "rung")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.rung = asyncio.Event()

    def ring(self) -> None:
        # A loop that was closed with a follower in it has nobody left to wake.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.rung.set)
