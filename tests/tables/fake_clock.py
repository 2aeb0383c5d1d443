"""A clock that stands still until a test moves it."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

START_NS = 1_700_000_000 * 10**9


class FakeTimer:
    """A call that is due at some time, unless it is cancelled."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class FakeClock:
    """Implements `tables.clock.Clock`; time passes only in `advance`."""

    def __init__(self, now_us: int = 1_000_000) -> None:
        self._now_us = now_us
        self._timers: list[tuple[int, int, FakeTimer]] = []
        self._order = count()

    def now_us(self) -> int:
        return self._now_us

    def wall_ns(self) -> int:
        return START_NS + self._now_us * 1_000

    def call_at(self, when_us: int, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(callback)
        heapq.heappush(self._timers, (max(when_us, self._now_us), next(self._order), timer))
        return timer

    def advance(self, by_us: int) -> None:
        """Lets time pass; what falls due is called in its order, each at its own time."""
        until_us = self._now_us + by_us
        while self._timers and self._timers[0][0] <= until_us:
            when_us, _, timer = heapq.heappop(self._timers)
            self._now_us = max(self._now_us, when_us)
            if timer.callback is not None:
                timer.callback()
        self._now_us = until_us

    def skip(self, by_us: int) -> None:
        """Lets time pass as while the loop was busy: nothing is called."""
        self._now_us += by_us
