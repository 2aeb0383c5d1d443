"""How often, and how soon, an agent process that ended is started again."""

from __future__ import annotations

from collections import deque
from typing import Final

WINDOW_S: Final = 60.0
"""Restarts are counted over this time, in seconds."""
FIRST_WAIT_S: Final = 0.5
"""How long the first restart within that time waits, in seconds; each further one waits twice as long."""
MOST_WAIT_S: Final = 8.0
"""The longest wait before a restart, in seconds."""
MOST: Final = 20
"""The most restarts within that time that can be asked for."""


class Restarts:
    """Allows so many restarts within any minute, each after a longer wait. One more, and it is over for good."""

    def __init__(self, allowed: int) -> None:
        self._allowed = allowed
        self._times: deque[float] = deque()

    def ended(self, now: float) -> float | None:
        """Notes that the process has ended, though nobody asked it to.

        Args:
            now: when, in seconds of a monotonic clock.

        Returns:
            How long to wait before it is started again, in seconds; None when it is not.
        """
        while self._times and now - self._times[0] >= WINDOW_S:
            self._times.popleft()
        if len(self._times) >= self._allowed:
            return None
        wait_s = min(MOST_WAIT_S, FIRST_WAIT_S * 2.0 ** len(self._times))
        self._times.append(now)
        return wait_s
