"""How late the referee itself is: it measures all the time, and never charges it to an agent.

A beat is due every ten milliseconds. By how much a beat comes late is time in which the loop did something else and
could not have read an answer or fired a timer. The sum only grows; what it grew by while a question was open is taken
off the time of that question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog

from referee_server.tables.clock import Clock, Timer

_log = structlog.get_logger(__name__)

BEAT_US: Final = 10_000
"""Time between beats, in microseconds."""
SLACK_US: Final = 1_000
"""What a timer may be late by on an idle machine; not counted."""
LATE_US: Final = 200_000
"""By how much the referee is late within `WINDOW_US` when it calls itself late and starts no new matches."""
WINDOW_US: Final = 1_000_000


class LatenessMeter:
    """Measures the delay of the event loop.

    Attributes:
        late: whether the referee is late now: no new matches are started.
    """

    def __init__(self, clock: Clock, on_recovered: Callable[[], None]) -> None:
        """Starts measuring.

        Args:
            clock: the service's clock.
            on_recovered: called when the referee is no longer late.
        """
        self._clock = clock
        self._on_recovered = on_recovered
        self._total_us = 0
        self._window_total_us = 0
        self._window_start_us = clock.now_us()
        self.late = False
        self._due_us = clock.now_us() + BEAT_US
        self._timer: Timer | None = clock.call_at(self._due_us, self._beat)

    def total_us(self) -> int:
        """Returns all lateness so far, the beat that is overdue at this moment included, in microseconds."""
        return self._total_us + self._overdue_us(self._clock.now_us())

    def add(self, late_us: int) -> None:
        """Counts time that the referee lost otherwise, such as by waiting for its storage."""
        self._total_us += late_us

    def close(self) -> None:
        """Stops measuring."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _overdue_us(self, now_us: int) -> int:
        overdue = now_us - self._due_us
        return overdue if overdue > SLACK_US else 0

    def _beat(self) -> None:
        now_us = self._clock.now_us()
        late_us = self._overdue_us(now_us)
        self._total_us += late_us
        self._window_total_us += late_us
        if now_us - self._window_start_us >= WINDOW_US:
            self._judge(now_us)
        self._due_us = now_us + BEAT_US
        self._timer = self._clock.call_at(self._due_us, self._beat)

    def _judge(self, now_us: int) -> None:
        was_late, lost_us = self.late, self._window_total_us
        self.late = lost_us * WINDOW_US > LATE_US * (now_us - self._window_start_us)
        self._window_total_us = 0
        self._window_start_us = now_us
        if self.late and not was_late:
            _log.warning("referee_late", lost_ms=lost_us // 1_000)
        elif was_late and not self.late:
            _log.info("referee_on_time")
            self._on_recovered()
