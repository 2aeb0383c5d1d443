"""Whose question is open with whom, and which questions wait because an agent has enough others open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from referee_server.tables.clock import Clock, Timer
from referee_server.tables.session import Session

WAIT_CAP_US: Final = 60_000_000
"""How long a question waits for an agent that has enough others open; then it is put all the same."""


class Asking:
    """The one question of a match that is due or open, as far as its agent's stream is concerned.

    A stream has its waiting questions in a queue, the longest first; when one of its questions closes, the first that
    waits is put. A question leaves the queue only from here, so that no turn is given to one that needs none any more.
    """

    __slots__ = ("_asked", "_clock", "_later", "_since_us", "_timer", "_waiting_in", "go_on")

    def __init__(self, clock: Clock, later: Callable[[Callable[[], None]], None], go_on: Callable[[], None]) -> None:
        """Makes it for one match.

        Args:
            clock: the service's clock.
            later: calls back in a later turn of the loop.
            go_on: asks again whether the question can be put.
        """
        self.go_on = go_on
        self._clock = clock
        self._later = later
        self._asked: Session | None = None
        self._waiting_in: Session | None = None
        self._since_us: int | None = None
        self._timer: Timer | None = None

    @property
    def waited_us(self) -> int:
        """How long the question that is due has waited."""
        return 0 if self._since_us is None else self._clock.now_us() - self._since_us

    def is_open_with(self, session: Session) -> bool:
        """Tells whether that stream has been handed the question."""
        return self._asked is session

    def has_to_wait(self, session: Session) -> bool:
        """Tells whether the question that is due has to wait, and if so lets it wait in the stream's queue."""
        first = session.waiting[0] if session.waiting else self
        full = session.open_count >= session.max_open
        if self.waited_us >= WAIT_CAP_US or not (full or first is not self):
            return False
        if self._waiting_in is not session:
            self._leave_queue()
            self._waiting_in = session
            session.waiting.append(self)
        if self._since_us is None:
            self._since_us = self._clock.now_us()
        if self._timer is None:
            self._timer = self._clock.call_at(self._since_us + WAIT_CAP_US, self._waited_enough)
        return True

    def opened(self, session: Session | None) -> None:
        """Takes note that the question was put, and handed to that stream if there is one."""
        if session is not None and self._asked is not session:
            self._asked = session
            session.open_count += 1
        self.stop_waiting()

    def closed(self) -> None:
        """Takes note that the question is open no more."""
        session, self._asked = self._asked, None
        if session is not None:
            session.open_count -= 1
            self._wake_next(session)

    def lost(self, session: Session) -> None:
        """Takes note that a stream has ended: nothing is open or waits there."""
        if self._asked is session:
            self._asked = None
        if self._waiting_in is session:
            self._leave_queue()

    def stop_waiting(self) -> None:
        """Takes note that the question was put, or that nothing is to be asked."""
        self._since_us = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._leave_queue()

    def _leave_queue(self) -> None:
        session, self._waiting_in = self._waiting_in, None
        if session is not None:
            if self in session.waiting:
                session.waiting.remove(self)
            self._wake_next(session)

    def _waited_enough(self) -> None:
        self._timer = None
        self.go_on()

    def _wake_next(self, session: Session) -> None:
        if session.waiting and session.open_count < session.max_open:
            self._later(session.waiting[0].go_on)
