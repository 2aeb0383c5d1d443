"""How a match ends that the referee failed: as it is stored, and tried again until the rules let it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from referee.v1 import event_pb2, match_pb2
from referee_server.match import inputs
from referee_server.match.machine import Machine
from referee_server.match.verify import parse, replay
from referee_server.tables.host import Host

if TYPE_CHECKING:
    from referee_server.tables.table import Table

_log = structlog.get_logger(__name__)

_RETRY_US: Final = 5_000_000
"""How soon it is tried again to end a match whose rules fail, in microseconds; the next time after twice that."""
_LONGEST_RETRY_US: Final = 3_600_000_000


class Stopping:
    """Ends one match as the referee's fault, from what is stored: the state in memory is not to be trusted."""

    __slots__ = ("_host", "_note", "_retry_us", "_table")

    def __init__(self, table: Table, host: Host, note: str) -> None:
        """Makes it for one match.

        Args:
            table: the match, which is told by `Table.stopped` once it can be ended.
            host: the hall.
            note: why it ends, as the log of the match tells it.
        """
        self._table = table
        self._host = host
        self._note = note
        self._retry_us = _RETRY_US

    def attempt(self) -> None:
        """Ends the match, or tries it again later. To be called once everything so far is committed."""
        table, run = self._table, self._host.steps.run
        events: list[event_pb2.MatchEvent] = []
        try:
            stored = parse(self._host.stored_events(table.match_id))
            machine = Machine(run(lambda: replay(stored)), table.machine.secret)
            if not machine.match.over:
                stop = inputs.Stop(match_pb2.END_REASON_REFEREE_FAULT, self._note)
                events = run(lambda: machine.step(stop, table.now_us))
        except Exception:
            # The rules fail even over what is stored. It may be a passing trouble; else the next start tries again.
            # Ever more rarely: rules that never return hold up everybody each time.
            _log.exception("match_not_stopped", match_id=table.match_id)
            self._host.clock.call_at(self._host.clock.now_us() + self._retry_us, self.attempt)
            self._retry_us = min(2 * self._retry_us, _LONGEST_RETRY_US)
            return
        table.stopped(machine, events)
