"""Ways to kill a referee: at any moment, at a chosen line, while it starts, while it stops."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from referee_server.failpoints import NAMES, VARIABLE

from .referee import environment, until
from .world import World

EXPORT = frozenset(name for name in NAMES if name.startswith("export."))
"""Places in the command that exports, not in the service."""
FIRST = frozenset({"start.mark", "start.token"})
"""Places that are reached only when there is no data folder yet."""
SERVICE = NAMES - EXPORT - FIRST
_ONCE = frozenset({"start.open", "start.resumed", "stop.drain", "stop.close", "agent.register"})
_FEW = 4
"""At which hit, at most, a place that is reached seldom kills."""
_MANY = 60
_OFTEN = frozenset(
    [
        "read.after",
        "parse.after",
        "decide.before",
        "decide.after",
        "commit.before",
        "begin.before",
        "insert.after",
        "journal.commit.before",
        "journal.commit.after",
        "commit.after",
        "tell.before",
        "tell.after",
        "write.before",
        "write.after",
    ]
)


@dataclass
class Kills:
    """What was done to a referee.

    Attributes:
        ways: how often it was killed in which way.
        fired: how often each failpoint did it.
    """

    ways: Counter[str] = field(default_factory=Counter)
    fired: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        ways = ", ".join(f"{count} {way}" for way, count in sorted(self.ways.items()))
        least = min((self.fired[name] for name in SERVICE), default=0)
        hits = f"; every failpoint at least {least} times" if least else ""
        return f"{sum(self.ways.values())} kills ({ways}){hits}"


def at_random(world: World, kills: Kills, most_s: float = 2.0) -> None:
    """Kills at a moment drawn: mostly at play, now and then while it starts, and while it stops."""
    rng = world.rng
    draw = rng.random()
    world.start()
    if draw < 0.15:
        time.sleep(rng.uniform(0.005, 0.6))
        kills.ways["starting"] += 1
    elif draw < 0.3:
        if world.listening():
            time.sleep(rng.uniform(0.005, most_s / 2))
            world.referee.send(signal.SIGTERM)
            time.sleep(rng.uniform(0.0, 0.15))
        kills.ways["stopping"] += 1
    else:
        world.listening()
        time.sleep(rng.uniform(0.005, most_s))
        kills.ways["playing"] += 1
    world.kill()


def at_failpoint(world: World, kills: Kills, name: str, count: int = 0, seconds: float = 15.0) -> bool:
    """Has it kill itself at a place; returns whether it came there.

    Args:
        world: the world.
        kills: to take note in.
        name: the place.
        count: at which hit; 0 draws one.
        seconds: how long to wait for it to come there.
    """
    rng = world.rng
    most = 1 if name in _ONCE else _MANY if name in _OFTEN else _FEW
    count = count or rng.randint(1, most)
    world.in_flight += count if name.startswith("match.") else 0
    world.start(f"{name}:{count}:kill")
    try:
        if world.listening() and name.startswith("stop."):
            world.at_play()
            world.referee.send(signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while world.referee.popen.poll() is None and time.monotonic() < deadline:
            if name == "agent.register":
                world.visit()
            time.sleep(0.01)
    finally:
        world.in_flight -= count if name.startswith("match.") else 0
    world.kill()
    fired = world.referee.fired() == [name]
    kills.ways["at failpoints"] += 1
    kills.fired[name] += fired
    return fired


def twice(world: World, kills: Kills) -> None:
    """Kills it at play, and then its successor while that takes the matches up."""
    world.start()
    world.listening()
    world.at_play()
    world.kill()
    kills.ways["playing"] += 1
    at_failpoint(world, kills, "start.resume", world.rng.randint(1, world.in_flight))


def export(data: Path, out: Path, failpoints: str) -> subprocess.CompletedProcess[str]:
    """Exports every log of a data folder, with failpoints."""
    argv = [sys.executable, "-m", "referee_server.entry", "export", "--all", "--data", str(data), "-o", str(out)]
    return subprocess.run(
        argv, env=environment(**{VARIABLE: failpoints}), capture_output=True, text=True, timeout=60, check=False
    )


def drained(world: World) -> int:
    """Stops it in good order while matches are at play; returns the exit code."""
    world.start()
    world.listening()
    world.at_play()
    code = world.referee.stop()
    until(lambda: world.referee.popen.poll() is not None, "the end")
    world.kill()
    return code
