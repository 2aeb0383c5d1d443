"""Who watches matches: known by credential, so that all watches of one can be ended together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from referee_server.match.errors import RefusedError


class Watcher:
    """One watch of a match.

    Attributes:
        who: whose watch it is.
        why: why it was ended; None while it may go on.
    """

    __slots__ = ("_ended", "on_end", "who", "why")

    def __init__(self, who: str) -> None:
        self.who = who
        self.why: RefusedError | None = None
        self.on_end: Callable[[], None] = lambda: None
        """Called once, when it is ended, by whoever waits for something else than its end."""
        self._ended = asyncio.Event()

    def check(self) -> None:
        """Raises what the watch was ended with, if it was."""
        if self.why is not None:
            raise self.why

    def end(self, why: RefusedError) -> None:
        """Ends it: nothing more is shown."""
        if self.why is None:
            self.why = why
            self._ended.set()
            self.on_end()

    async def pause(self, seconds: float) -> None:
        """Waits for a while, or until it is ended."""
        try:
            async with asyncio.timeout(seconds):
                await self._ended.wait()
        except TimeoutError:
            return


class Watchers:
    """All watches of matches."""

    def __init__(self) -> None:
        self._watching: dict[str, set[Watcher]] = {}
        self._closed: RefusedError | None = None
        self.count = 0

    def admit(self, who: str) -> Watcher:
        """Lets a watch begin, to be given to `leave` at its end.

        Args:
            who: whose it is.

        Raises:
            RefusedError: nobody watches any more.
        """
        if self._closed is not None:
            raise self._closed
        watcher = Watcher(who)
        self._watching.setdefault(who, set()).add(watcher)
        self.count += 1
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """Takes note that a watch has ended."""
        watching = self._watching[watcher.who]
        watching.discard(watcher)
        if not watching:
            del self._watching[watcher.who]
        self.count -= 1

    def end(self, who: str, why: RefusedError) -> None:
        """Ends all watches of one."""
        for watcher in tuple(self._watching.get(who, ())):
            watcher.end(why)

    def close(self, why: RefusedError) -> None:
        """Ends all watches, and lets none begin any more."""
        self._closed = why
        for who in tuple(self._watching):
            self.end(who, why)
