"""What a match costs, the first and the last alike, and whether memory stays flat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .swarm import Swarm

LIMIT = 1.05
"""The most that the last match may cost, to the first."""
LIMIT_SLOPE = 256.0
"""The most that a match may leave behind in memory, in bytes: an id or so."""


@dataclass
class Memory:
    """What came of it.

    Attributes:
        piece: matches in a piece.
        cpu_s: the referee's processor time for a match, by piece.
        rss: the referee's resident memory after each piece, in bytes.
    """

    piece: int
    cpu_s: list[float] = field(default_factory=list)
    rss: list[int] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Cost of a match in the last piece to that in the first one after the warm-up."""
        return self.cpu_s[-1] / self.cpu_s[1]

    @property
    def slope(self) -> float:
        """Growth of memory over the second half, in bytes a match: the first half fills caches."""
        half = len(self.rss) // 2
        return (self.rss[-1] - self.rss[half]) / (self.piece * (len(self.rss) - 1 - half))

    def __str__(self) -> str:
        return (
            f"{len(self.cpu_s)} times {self.piece} matches: {self.cpu_s[1] * 1e3:.2f} ms a match at first,"
            f" {self.cpu_s[-1] * 1e3:.2f} ms at last (ratio {self.ratio:.3f});"
            f" memory {self.rss[0] / 2**20:.1f} to {self.rss[-1] / 2**20:.1f} MiB, {self.slope:+,.0f} bytes a match"
        )


def measure(folder: Path, pieces: int, piece: int, say: Callable[[str], None] = lambda _: None) -> Memory:
    """Plays matches of Regicide between two agents, a piece at a time."""
    swarm = Swarm(folder, agents=2)
    found = Memory(piece)
    try:
        spec = swarm.spec("regicide", players=2, target=10)
        swarm.create(spec, 1)
        swarm.feed(spec, 16, most=pieces * piece)
        cpu_s = swarm.cpu_s()
        for number in range(1, pieces + 1):
            swarm.wait(lambda now, number=number: now.over >= 2 * number * piece, "the matches of a piece end", 3_600)  # type: ignore[misc]
            before_s, cpu_s = cpu_s, swarm.cpu_s()
            found.cpu_s.append((cpu_s - before_s) / piece)
            found.rss.append(swarm.rss())
            say(f"piece {number}: {found.cpu_s[-1] * 1e3:.2f} ms a match, {found.rss[-1] / 2**20:.1f} MiB")
        return found
    finally:
        swarm.close()
