"""Watchers that never read: what they cost those who play.

Run as `python -m load.watchers ADDRESS TOKEN COUNT` it is a process full of such watchers, which opens a stream again
when the referee cuts it. It prints a line when all of them are there.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from crash.referee import Child, environment
from referee.v1 import match_pb2
from referee.v1 import match_service_pb2 as pb
from referee.v1.match_service_pb2_grpc import MatchServiceStub

from .swarm import Swarm

_STREAMS = 60  # on one connection; the referee allows 64


@dataclass(frozen=True)
class Watched:
    """What they cost.

    Attributes:
        count: how many watchers.
        rate: decisions a second with them, to those without.
        median: median time from answer to verdict with them, to that without.
        worst_s: the longest such time with them, and without.
        rss: memory for each of them, in bytes.
        faults: faults of agents, with them or without.
        cpu: processor time of the referee a decision with them, to that without: what they cost it, whoever else
            needs the processors meanwhile.
        own: how much of the machine's processor time the watchers themselves took.
    """

    count: int
    rate: float
    median: float
    worst_s: tuple[float, float]
    rss: float
    faults: int
    cpu: float
    own: float

    def __str__(self) -> str:
        return (
            f"{self.count} watchers that never read: decision rate {self.rate:.2f}x, median answer to verdict"
            f" {self.median:.2f}x, worst {self.worst_s[0] * 1e3:.0f} against {self.worst_s[1] * 1e3:.0f} ms without;"
            f" {self.rss / 1024:.0f} KiB each; {self.faults} faults; processor time of the referee a decision"
            f" {self.cpu:.2f}x, of the watchers themselves {self.own:.0%} of the machine"
        )


@dataclass
class _Turn:
    decisions: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0

    def __post_init__(self) -> None:
        self.medians: list[float] = []
        self.worst_s = 0.0

    @property
    def rate(self) -> float:
        return self.decisions / self.seconds

    @property
    def cost_s(self) -> float:
        return self.cpu_s / self.decisions


def measure(
    folder: Path, count: int, turns: int = 3, turn_s: float = 5.0, say: Callable[[str], None] = lambda _: None
) -> Watched:
    """Plays with and without watchers, in turns."""
    swarm = Swarm(folder)
    with_, without = _Turn(), _Turn()
    rss = own_s = 0.0
    try:
        spec = swarm.spec(allowance_ms=2_000, bank_ms=0)
        swarm.create(spec, 1)
        swarm.feed(spec, 16)
        swarm.wait(lambda now: now.decisions > 1_000, "matches are at play", 60)
        for _ in range(turns):
            _play(swarm, without, turn_s)
            before = swarm.rss()
            argv = [sys.executable, "-m", "load.watchers", swarm.address, swarm.referee.token, str(count)]
            watchers = Child(argv, environment())
            try:
                assert watchers.wait_for("watching", 120)
                own_s -= _cpu_s(watchers.popen.pid)
                _play(swarm, with_, turn_s)
                own_s += _cpu_s(watchers.popen.pid)
                rss = max(rss, (swarm.rss() - before) / count)
                say(f"with: {with_.rate:,.0f} decisions/s, without: {without.rate:,.0f}")
            finally:
                watchers.stop(signal.SIGTERM)
                watchers.close()
        faults = swarm.sum().faults
    finally:
        swarm.close()
    medians = [sorted(turn.medians)[len(turn.medians) // 2] for turn in (with_, without)]
    worst = with_.worst_s, without.worst_s
    own = own_s / (with_.seconds * (os.cpu_count() or 1))
    cost = with_.cost_s / without.cost_s
    return Watched(count, with_.rate / without.rate, medians[0] / medians[1], worst, rss, faults, cost, own)


def _cpu_s(pid: int) -> float:
    """Returns the processor time that a process has used, in seconds."""
    used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def _play(swarm: Swarm, turn: _Turn, seconds: float) -> None:
    began, before = time.monotonic(), swarm.sum().decisions
    turn.cpu_s -= _cpu_s(swarm.referee.pid)
    while time.monotonic() - began < seconds:
        time.sleep(0.2)
        now = swarm.sum()
        turn.medians += [ways[0] for ways in now.ways_s if ways]
        turn.worst_s = max([turn.worst_s, *(ways[2] for ways in now.ways_s if ways)])
    turn.seconds += time.monotonic() - began
    turn.cpu_s += _cpu_s(swarm.referee.pid)
    turn.decisions += swarm.sum().decisions - before


# The process of watchers.


async def _watch(stub: Any, metadata: Any, opened: Callable[[], None]) -> None:
    public = pb.View(public=pb.PublicView())
    first = True
    while True:
        try:
            states = [match_pb2.MATCH_STATE_RUNNING]
            page = await stub.ListMatches(pb.ListMatchesRequest(states=states, page_size=1), metadata=metadata)
            if not page.matches:
                await asyncio.sleep(0.2)
                continue
            call = stub.WatchMatch(
                pb.WatchMatchRequest(match_id=page.matches[0].match_id, view=public), metadata=metadata
            )
            await call.read()
            if first:
                first = False
                opened()
            await call.code()  # and never reads again
        except grpc.aio.AioRpcError:
            await asyncio.sleep(0.2)


async def _main(address: str, token: str, count: str) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    metadata = (("authorization", f"Bearer {token}"),)
    missing = int(count)

    def opened() -> None:
        nonlocal missing
        missing -= 1
        if missing == 0:
            print("watching", file=sys.stderr, flush=True)

    channels = []
    tasks = []
    for number in range(int(count)):
        if number % _STREAMS == 0:
            # Each a connection of its own; the library would share one between equal channels.
            channels.append(grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]))
        tasks.append(asyncio.ensure_future(_watch(MatchServiceStub(channels[-1]), metadata, opened)))
        await asyncio.sleep(0.002)
    await stopped.wait()
    os._exit(0)  # nobody is interested in how a thousand calls are taken down


if __name__ == "__main__":
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    asyncio.run(_main(*sys.argv[1:]))
