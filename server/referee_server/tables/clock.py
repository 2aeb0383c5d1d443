"""The one clock of the service. Only it reads the time that matches depend on; tests bring their own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """Something that will happen, unless it is cancelled."""

    def cancel(self) -> None:
        """Calls it off. Calling it off twice, or after it happened, does no harm."""


class Clock(Protocol):
    """Monotonic time in microseconds, and calls at such a time."""

    def now_us(self) -> int:
        """Returns the time, in microseconds from an arbitrary start; never runs backwards."""

    def call_at(self, when_us: int, callback: Callable[[], None]) -> Timer:
        """Calls back in the event loop at that time or as soon as possible after it, never before it."""

    def wall_ns(self) -> int:
        """Returns wall time, in nanoseconds since 1970; for people, nothing depends on it."""


class MonotonicClock:
    """The clock of the running event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def now_us(self) -> int:
        """Returns the monotonic time."""
        return time.monotonic_ns() // 1_000

    def call_at(self, when_us: int, callback: Callable[[], None]) -> Timer:
        """Calls back through the loop's own timers, which run on the same clock."""
        # One microsecond more, since the loop may wake a hair early and the machine takes no tick before its time.
        return self._loop.call_at((when_us + 1) / 1_000_000, self._when_due, when_us, callback)

    def _when_due(self, when_us: int, callback: Callable[[], None]) -> None:
        if self.now_us() < when_us:
            self.call_at(when_us, callback)
        else:
            callback()

    def wall_ns(self) -> int:
        """Returns the wall time."""
        return time.time_ns()
