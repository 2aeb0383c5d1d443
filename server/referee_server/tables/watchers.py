"""Who watches matches, and how much: watches are counted and ended by credential, and who does not read has to wait.

Each watch begins with the history of its match. Somebody who never reads, is cut off and comes back at once would have
the referee send histories to nobody all the time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from referee.v1 import error_reason_pb2 as reason_pb
from referee_server.match.errors import RefusedError
from referee_server.tables.clock import Clock

HOST: Final = "host"
"""Who holds the host's credential; others are known by their agent's id or their address."""
FIRST_WAIT_US: Final = 1_000_000
"""How long somebody waits who was cut off for reading too slowly, in microseconds; the next time twice as long."""
LONGEST_WAIT_US: Final = 60_000_000
WELL_US: Final = 60_000_000
"""A watch that has lasted so long without being cut off has been read well, and what was before is forgotten."""
_KEPT: Final = 4_096


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """How many matches may be watched at once.

    Attributes:
        host: with the host's credential.
        other: with any other credential; for callers that nobody knows, from one address.
    """

    host: int = 1_024
    other: int = 64


class Watcher:
    """One watch of a match.

    Attributes:
        who: whose watch it is.
        began_us: when it began, on the service's clock.
        why: why it was ended; None while it may go on.
    """

    __slots__ = ("_ended", "began_us", "on_end", "who", "why")

    def __init__(self, who: str, began_us: int) -> None:
        self.who = who
        self.began_us = began_us
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
    """All watches of matches.

    Attributes:
        count: how many there are.
    """

    def __init__(self, clock: Clock, limits: WatchLimits) -> None:
        self.count = 0
        self._clock = clock
        self._limits = limits
        # In the order in which they came, so that they are ended in it too.
        self._watching: dict[str, dict[Watcher, None]] = {}
        self._slow: OrderedDict[str, _Slowness] = OrderedDict()
        self._closed: RefusedError | None = None

    def admit(self, who: str) -> Watcher:
        """Lets a watch begin, to be given to `leave` at its end.

        Args:
            who: whose it is.

        Raises:
            RefusedError: RATE, with the time to wait, for who read too slowly before or watches too much already; or
                nobody watches any more.
        """
        if self._closed is not None:
            raise self._closed
        now_us = self._clock.now_us()
        slow = self._slow.get(who)
        if slow is not None and now_us < slow.until_us:
            raise RefusedError(
                reason_pb.ERROR_REASON_RATE,
                "this caller was cut off for reading too slowly; wait before watching again",
                retry_ms=-(-(slow.until_us - now_us) // 1_000),
            )
        most = self._limits.host if who == HOST else self._limits.other
        if len(self._watching.get(who, ())) >= most:
            raise RefusedError(
                reason_pb.ERROR_REASON_RATE,
                f"one caller watches at most {most} matches at once",
                retry_ms=FIRST_WAIT_US // 1_000,
            )
        watcher = Watcher(who, now_us)
        self._watching.setdefault(who, {})[watcher] = None
        self.count += 1
        return watcher

    def leave(self, watcher: Watcher, *, slow: bool = False) -> None:
        """Takes note that a watch has ended.

        Args:
            watcher: the watch.
            slow: whether it was cut off because it was read too slowly.
        """
        watching = self._watching[watcher.who]
        del watching[watcher]
        if not watching:
            del self._watching[watcher.who]
        self.count -= 1
        well = self._clock.now_us() - watcher.began_us >= WELL_US
        if well:
            self._slow.pop(watcher.who, None)
        if slow:
            self._slow_down(watcher)

    def _slow_down(self, watcher: Watcher) -> None:
        now_us = self._clock.now_us()
        before = self._slow.pop(watcher.who, None)
        if before is None:
            wait_us = FIRST_WAIT_US
        elif watcher.began_us < before.since_us:
            # One of many that were cut off together: they count as one.
            self._slow[watcher.who] = before
            return
        else:
            wait_us = min(2 * before.wait_us, LONGEST_WAIT_US)
        self._slow[watcher.who] = _Slowness(now_us, wait_us)
        if len(self._slow) > _KEPT:
            self._slow.popitem(last=False)

    def end(self, who: str, why: RefusedError) -> None:
        """Ends all watches of one."""
        for watcher in tuple(self._watching.get(who, ())):
            watcher.end(why)

    def close(self, why: RefusedError) -> None:
        """Ends all watches, and lets none begin any more."""
        self._closed = why
        for who in tuple(self._watching):
            self.end(who, why)


@dataclass(frozen=True, slots=True)
class _Slowness:
    """Since when somebody has to wait, and how long."""

    since_us: int
    wait_us: int

    @property
    def until_us(self) -> int:
        return self.since_us + self.wait_us
