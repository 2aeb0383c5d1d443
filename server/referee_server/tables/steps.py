"""A budget for what the rules of a game take: code that never returns ends its own match, and not the service.

The event loop calls the rules itself. A thread beside it looks at what the loop is doing, a few times a budget; where
it finds the same step at every look, it sends the loop's thread a signal, and the handler, which runs there, raises
inside the very step. What the others lose meanwhile is measured as the referee's lateness, like any delay of the loop.
Code that holds the interpreter, such as an endless loop in C, cannot be interrupted.
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeVar

import structlog

_log = structlog.get_logger(__name__)

T = TypeVar("T")

STEP_BUDGET_S: Final = 5.0
"""How long the rules may take for one step, in seconds. They need well under a millisecond."""
LOOKS: Final = 5
"""How often a step is looked at before it is interrupted. Time in which the whole process stood still is one look."""
_SIGNAL: Final = signal.SIGURG
"""Of no other use here, and without effect where nobody handles it."""


class StepTooLongError(Exception):
    """The rules of a game took longer for one step than they may."""


class _Interrupt(BaseException):
    """Raised inside a step: not an `Exception`, so that rules that handle those do not hold it up."""


class StepBudget:
    """Runs steps, and ends those that take too long once `start` has been called."""

    def __init__(self, budget_s: float = STEP_BUDGET_S) -> None:
        """Makes a budget.

        Args:
            budget_s: how long one step may take, in seconds.
        """
        self._budget_s = budget_s
        # What is being run: one object a step, which is all that tells it from the next one.
        self._running: Callable[[], object] | None = None
        self._seen: Callable[[], object] | None = None
        self._looks = 0
        self._condemned: Callable[[], object] | None = None
        self._loop_thread: int | None = None
        self._kept: Any = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def run(self, step: Callable[[], T]) -> T:
        """Runs a step and returns what it returns. Steps are not run inside of each other.

        Args:
            step: an object of its own, such as a lambda made for this call.

        Raises:
            StepTooLongError: it took too long and was interrupted wherever it was.
        """
        self._running = step
        try:
            return step()
        except _Interrupt:
            raise StepTooLongError(f"a step took longer than {self._budget_s:g} seconds") from None
        finally:
            # The interpreter looks for signals at calls and at jumps back: none can come between the step and this.
            self._running = None

    def start(self) -> None:
        """Begins to watch the steps that this thread runs. Only the main thread can be interrupted."""
        self._loop_thread = threading.get_ident()
        if threading.current_thread() is threading.main_thread():
            self._kept = signal.signal(_SIGNAL, self._interrupt)
        else:
            _log.warning("steps_not_interrupted", reason="the service does not run in the main thread")
        self._thread = threading.Thread(target=self._watch, name="step-budget", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends watching. Without effect where it has not begun."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._kept is not None:
            signal.signal(_SIGNAL, self._kept)
            self._kept = None

    def _watch(self) -> None:
        while not self._closing.wait(self._budget_s / LOOKS):
            self.look()

    def look(self) -> None:
        """Looks at what is being run, and interrupts it where that has been the same long enough."""
        running = self._running
        if running is None or running is not self._seen:
            self._seen, self._looks = running, 0
            return
        self._looks += 1
        if self._looks % LOOKS:
            return
        assert self._loop_thread is not None
        # Where it is, and not what it holds: that could be somebody's hand.
        frame = sys._current_frames().get(self._loop_thread)
        place = traceback.extract_stack(frame, limit=1)[0] if frame is not None else None
        where = f"{place.name}, line {place.lineno}" if place is not None else "?"
        _log.error("step_too_long", budget_s=self._budget_s, place=where, interrupted=self._kept is not None)
        if self._kept is not None:
            self._condemned = running
            signal.pthread_kill(self._loop_thread, _SIGNAL)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handles the signal. The step that it is for may have ended while it was on its way."""
        condemned, self._condemned = self._condemned, None
        if condemned is not None and condemned is self._running:
            raise _Interrupt
