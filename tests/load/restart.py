"""How long it takes until every match that was in flight is offered again after a kill."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from .swarm import Swarm

LIMIT_S = 5.0


@dataclass(frozen=True)
class Restart:
    """Seconds since the start of the next referee.

    Attributes:
        listening_s: until it listened.
        offered_s: until every seat had its match offered again.
        asked_s: until every match had its open question put again.
        matches: how many matches were in flight.
        events: how many events each of them had, about.
    """

    listening_s: float
    offered_s: float
    asked_s: float
    matches: int
    events: int

    def __str__(self) -> str:
        return (
            f"{self.matches} matches of {self.events} events: listening after {self.listening_s:.2f} s,"
            f" all offered after {self.offered_s:.2f} s, all asked after {self.asked_s:.2f} s (limit {LIMIT_S:g} s)"
        )


def measure(folder: Path, matches: int, hold: int = 25) -> Restart:
    """Plays matches up to a decision, kills the referee, and starts the next one."""
    swarm = Swarm(folder, hold=hold)
    try:
        # So long an allowance that none of the questions left open runs out.
        swarm.create(swarm.spec(allowance_ms=600_000), matches)
        swarm.wait(lambda now: now.asked >= matches, "every match is held", 600)
        with swarm.host() as host:
            events = host.list()[-1].event_count
        swarm.restart()
        began = swarm.referee.started
        assert swarm.referee.listening(60)
        until_s = time.monotonic() + 120
        now = swarm.sum()
        while (now.offered < 4 * matches or now.asked < matches or now.settled < began) and time.monotonic() < until_s:
            time.sleep(0.05)
            now = swarm.sum()
        assert now.asked >= matches, now
        return Restart(swarm.referee.up_s, now.settled - began, now.settled - began, matches, events)
    finally:
        swarm.close()
