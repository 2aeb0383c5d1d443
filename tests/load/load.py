"""Instant agents never lose on time: how many decisions, at how many matches at once, with how little time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .swarm import Sum, Swarm

ALLOWANCE_MS = 200
"""Time for each decision; there is no bank."""


@dataclass(frozen=True)
class Load:
    """What came of it. `losses` has to be 0.

    Attributes:
        decisions: how many were asked.
        losses: faults ruled on agents that answer at once, which can only be of time.
        rate: decisions a second.
        in_flight: matches at once.
        median_s: time from an answer to its verdict, the median.
        worst_s: the longest such time seen.
    """

    decisions: int
    losses: int
    rate: float
    in_flight: int
    median_s: float
    worst_s: float

    def __str__(self) -> str:
        return (
            f"{self.losses} time losses in {self.decisions:,} decisions, {self.in_flight} matches at once,"
            f" {ALLOWANCE_MS} ms each and no bank; {self.rate:,.0f} decisions/s,"
            f" answer to verdict {self.median_s * 1e3:.1f} ms median, {self.worst_s * 1e3:.0f} ms worst"
        )


def measure(folder: Path, decisions: int, matches: int, say: Callable[[str], None] = lambda _: None) -> Load:
    """Plays until so many decisions have been asked and every match has ended."""
    swarm = Swarm(folder)
    try:
        spec = swarm.spec(allowance_ms=ALLOWANCE_MS, bank_ms=0)
        swarm.create(spec, 1)
        began = time.monotonic()
        swarm.feed(spec, matches)
        medians, worst = [], 0.0
        now = swarm.sum()
        said = began
        while now.decisions < decisions:
            time.sleep(0.2)
            now = swarm.sum()
            medians += [ways[0] for ways in now.ways_s if ways]
            worst = max([worst, *(ways[2] for ways in now.ways_s if ways)])
            if time.monotonic() - said > 10:
                said = time.monotonic()
                say(f"{now.decisions:,} decisions, {now.faults} faults")
        took = time.monotonic() - began
        reached = now.decisions
        swarm.end_feed()
        now = swarm.wait(lambda now: _all_over(now, swarm), "every match ends", 300)
        medians.sort()
        median = medians[len(medians) // 2] if medians else 0.0
        return Load(now.decisions, now.faults + now.other, reached / took, matches, median, worst)
    finally:
        swarm.close()


def _all_over(now: Sum, swarm: Swarm) -> bool:
    return now.over >= 4 * swarm.created
