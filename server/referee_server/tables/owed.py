"""The time that the referee owes one match: what is taken off a seat's time because the referee itself was late."""

from __future__ import annotations

from typing import Final

from referee.v1 import event_pb2
from referee_server.tables.lateness import SLACK_US, LatenessMeter

LIMITING: Final = frozenset(
    {
        "seat_offered",
        "seat_disconnected",
        "seat_ready",
        "seat_reconnected",
        "seat_filled",
        "seat_reopened",
        "match_resumed",
    }
)
"""Kinds of event with which a seat's time to come, to get ready or to come back begins or ends."""


class Owed:
    """What the referee owes, for the question that is open and for the limits beside the clock."""

    __slots__ = ("_handed_after_us", "_late_before_us", "_limits_since_us", "_meter", "_running", "_seats")

    def __init__(self, meter: LatenessMeter, seats: int) -> None:
        """Begins to count.

        Args:
            meter: how late the referee is, all in all.
            seats: how many seats the match has.
        """
        self._meter = meter
        self._seats = seats
        # The referee's lateness, all in all, when the question that is open was put.
        self._late_before_us = 0
        # How long the open question took to be stored and handed over; None while it is on its way.
        self._handed_after_us: int | None = 0
        # The referee's lateness, all in all, when a seat's time to come, to get ready or to come back began.
        self._limits_since_us: dict[int, int] = {}
        # Seats whose time to get ready or to come back runs.
        self._running: set[int] = set()

    def asked(self) -> None:
        """Takes note that a question is put now."""
        self._late_before_us = self._meter.total_us()
        self._handed_after_us = 0

    def sent(self) -> None:
        """Takes note that the question is on its way to being stored: all of that is the referee's time."""
        self._handed_after_us = None

    def handed(self, after_us: int) -> None:
        """Takes note that the question has left, so long after it was put."""
        if self._handed_after_us is not None:
            return
        if after_us > SLACK_US:
            self._late_before_us = self._meter.total_us()
            self._handed_after_us = after_us
        else:
            self._handed_after_us = 0

    def lateness_us(self, open_us: int) -> int:
        """Returns by how much the referee was late while a question was open for `open_us`."""
        if self._handed_after_us is None:
            return open_us
        return min(self._handed_after_us + self._meter.total_us() - self._late_before_us, open_us)

    def begin_limits(self) -> None:
        """Takes note that the limits beside the clock begin for every seat now."""
        self._limits_since_us = dict.fromkeys(range(self._seats), self._meter.total_us())

    def note(self, event: event_pb2.MatchEvent, *, filled: bool) -> None:
        """Takes note of an event with which such a limit begins or ends (`LIMITING`).

        Args:
            event: the event.
            filled: whether no seat is open: only then the time to come runs.
        """
        late_us = self._meter.total_us()
        match event.WhichOneof("payload"):
            case "seat_offered":
                self._limits_since_us[event.seat_offered.seat] = late_us
                self._running.add(event.seat_offered.seat)
            case "seat_disconnected":
                self._limits_since_us.setdefault(event.seat_disconnected.seat, late_us)
                self._running.add(event.seat_disconnected.seat)
            case "seat_ready":
                self._stopped(event.seat_ready.seat)
            case "seat_reconnected":
                self._stopped(event.seat_reconnected.seat)
            case "seat_reopened":
                # The time to come begins anew for those who have not been asked, once somebody else has the seat.
                self._running.discard(event.seat_reopened.seat)
                self._limits_since_us = {seat: self._limits_since_us[seat] for seat in self._running}
            case "seat_filled" if filled:
                running = {seat: self._limits_since_us[seat] for seat in self._running}
                self.begin_limits()
                self._limits_since_us |= running
            case "match_resumed":
                self._running.clear()
                self.begin_limits()

    def _stopped(self, seat: int) -> None:
        self._running.discard(seat)
        self._limits_since_us.pop(seat, None)

    def limits_us(self) -> int:
        """Returns by how much the referee was late since the first of these limits began to run."""
        since_us = min(self._limits_since_us.values(), default=None)
        return 0 if since_us is None else self._meter.total_us() - since_us
