"""How soon an agent that froze, or whose cable was pulled, is noticed."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path

from .swarm import Swarm

LIMIT_S = 31.0
"""Time between pings, time for the reply, and one second."""


@dataclass(frozen=True)
class Frozen:
    """What came of it.

    Attributes:
        noticed_s: how long it took until the referee ended the stream.
        others: decisions that agents of other matches made meanwhile.
    """

    noticed_s: float
    others: int

    def __str__(self) -> str:
        return f"noticed after {self.noticed_s:.1f} s (limit {LIMIT_S:g} s); the others made {self.others:,} decisions"


def measure(folder: Path) -> Frozen:
    """Freezes one of four agents in the middle of a match, while two others play on."""
    swarm = Swarm(folder)
    try:
        swarm.create(swarm.spec(allowance_ms=600_000), 1)  # with all four
        others = swarm.spec("regicide", players=2)
        others.seats[0].agent, others.seats[1].agent = swarm.names[2:]
        swarm.feed(others, 2)
        swarm.wait(lambda now: now.decisions > 0, "a match is at play", 30)
        swarm.agents[0].send(signal.SIGSTOP)
        froze = time.monotonic()
        before = swarm.sum().decisions
        assert swarm.referee.wait_for('"stream_ended"', 2 * LIMIT_S)
        return Frozen(time.monotonic() - froze, swarm.sum().decisions - before)
    finally:
        swarm.close()
