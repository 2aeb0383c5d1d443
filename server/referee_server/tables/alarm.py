"""The one timer of a match: what runs out when it rings, and why nothing may run out yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from referee_server.match import inputs
from referee_server.match.state import WAITING
from referee_server.tables.clock import Timer
from referee_server.tables.host import Host
from referee_server.tables.owed import Owed

if TYPE_CHECKING:
    from referee_server.tables.table import Table

_RECHECK_US: Final = 10_000
"""How soon a time limit that the referee may not enforce now is looked at again, in microseconds."""


class Alarm:
    """Rings when a time limit of one match is over, and lets nobody run out of time that the referee took."""

    __slots__ = ("_due_us", "_host", "_owed", "_table", "_timer")

    def __init__(self, table: Table, host: Host, owed: Owed) -> None:
        """Makes it for one match; it is not set yet.

        Args:
            table: the match.
            host: the hall.
            owed: what the referee owes the match.
        """
        self._table = table
        self._host = host
        self._owed = owed
        self._timer: Timer | None = None
        # The match time that it was set for; None while it rings at another time than it was set for.
        self._due_us: int | None = None

    def set(self, due_us: int | None) -> None:
        """Sets it for that match time, and for no other; None if there is nothing to ring for."""
        if self._timer is not None:
            if due_us == self._due_us:
                return
            self._timer.cancel()
            self._timer = None
        self._due_us = due_us
        if due_us is not None and not self._table.broken:
            self._timer = self._host.clock.call_at(due_us + self._table.epoch_us, self._ring)

    def stop(self) -> None:
        """Does not ring any more, until it is set again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _put_off(self, until_us: int) -> None:
        """Rings at that time of the service's clock instead of what it was set for."""
        self._due_us = None
        self._timer = self._host.clock.call_at(until_us, self._ring)

    def _ring(self) -> None:
        self._timer = None
        table = self._table
        if table.match.over or table.broken:
            return
        owed_us = self._owed_us()
        if owed_us > 0:
            # While the referee owes time nobody runs out of it; and an answer may be waiting to be read.
            self._put_off(self._host.clock.now_us() + owed_us)
        elif table.match.state == WAITING and self._busy_seats():
            self._wait_for_busy()
        else:
            self.tick()

    def _owed_us(self) -> int:
        """Returns for how long at least no time limit is enforced: the referee was late, or is halted."""
        if self._host.halted:
            return _RECHECK_US
        table = self._table
        deadline, due = table.match.deadline_us, table.machine.wake_at()
        if deadline is not None and table.now_us >= deadline:
            return deadline + table.lateness_us() - table.now_us
        # Who comes, or comes back, may be waiting to be let in.
        return due + self._owed.limits_us() - table.now_us if due is not None else 0

    def _busy_seats(self) -> bool:
        """Tells whether an agent is here that only has no room for the match yet: nobody is to blame for that."""
        match = self._table.match
        return match.filled_us is not None and any(
            not seat.ready and seat.offered_us is None and self._host.session_of(seat.agent_id) is not None
            for seat in match.seats
        )

    def _wait_for_busy(self) -> None:
        """Lets the match wait for its turn. Who has been offered it has to be ready in time all the same."""
        table, match = self._table, self._table.match
        wake_us = table.now_us + match.created.spec.clock.connect_ms * 1_000
        for seat in match.seats:
            limit_us = match.limit_us(seat)
            if limit_us is None or (seat.offered_us is None and not match.may_reopen(seat)):
                continue
            limit_us += self._owed.limits_us()
            if table.now_us < limit_us:
                wake_us = min(wake_us, limit_us)
            elif match.may_reopen(seat):
                self.tick()  # which begins with such a seat
                return
            else:
                # A tick would name the first seat that is not ready, which may be a busy one; this outcome is the same.
                table.feed(inputs.Decline(seat.seat))
                return
        self._put_off(wake_us + table.epoch_us)

    def tick(self) -> None:
        """Lets the match take note that time has passed."""
        table = self._table
        try:
            table.feed(inputs.Tick(table.lateness_us()))
        except inputs.NotNowError:
            # Nothing has run out yet: what was to has been answered, or the referee owes it time.
            self._due_us = None
            self.set(table.machine.wake_at())
