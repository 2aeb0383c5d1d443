"""Wall time is for people: whatever it does, no deadline moves."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from referee.v1 import match_pb2
from referee_server.journal import AgentAdded, MemoryJournal
from referee_server.tables.hall import Hall

HOUR_NS = 3_600 * 10**9
YEAR_2039_NS = 2_177_452_800 * 10**9


class Alarm:
    def __init__(self, when_us: int, callback: Callable[[], None]) -> None:
        self.when_us = when_us
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class HandClock:
    """A clock whose two times are moved by hand, each by itself."""

    def __init__(self) -> None:
        self.us = 1_000_000
        self.ns = 1_700_000_000 * 10**9
        self.alarms: list[Alarm] = []

    def now_us(self) -> int:
        return self.us

    def wall_ns(self) -> int:
        return self.ns

    def call_at(self, when_us: int, callback: Callable[[], None]) -> Alarm:
        self.alarms.append(Alarm(when_us, callback))
        return self.alarms[-1]

    def run_until(self, us: int) -> None:
        """Lets monotonic time pass, and calls whatever is due on the way."""
        while True:
            due = [alarm for alarm in self.alarms if not alarm.cancelled and alarm.when_us <= us]
            if not due:
                break
            first = min(due, key=lambda alarm: alarm.when_us)
            self.alarms.remove(first)
            self.us = max(self.us, first.when_us)
            first.callback()
        self.us = us


@pytest.mark.parametrize("leap_ns", [-HOUR_NS, HOUR_NS, 10**9, YEAR_2039_NS, -1_700_000_000 * 10**9])
async def test_a_leap_of_wall_time_moves_no_deadline(leap_ns: int) -> None:
    clock = HandClock()
    journal = MemoryJournal()
    journal.commit([AgentAdded("a1", "ann", "ann", bytes(32), 0)])
    hall = Hall(journal, clock, os.urandom)
    spec = match_pb2.MatchSpec(game="regicide")
    spec.seats.add(agent="ann")
    spec.seats.add(bot="first")
    spec.clock.connect_ms = 30_000
    created_us = clock.us
    match_id = hall.matches.create(spec)
    await hall.committer.settled()
    clock.ns += leap_ns
    clock.run_until(created_us + 29_999_999)
    assert match_id in hall.matches.running
    clock.run_until(created_us + 30_000_001)
    await hall.committer.settled()
    assert match_id not in hall.matches.running
    await hall.close()
