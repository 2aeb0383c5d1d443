"""Connections opened for no good, by the thousand, beside agents that play: how soon they go, and what they leave."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rpc.http2 import Code, Kind, Peer, frame

from .swarm import Swarm

CLOSED_LIMIT_S = 12.0
"""Time for the handshake, and two seconds."""
LEAK_LIMIT = 150
"""Bytes that a stream that was reset may leave behind."""

_PLAYS = "/referee.v1.AgentService/Play"
_BATCH = 1_000


@dataclass(frozen=True)
class Connections:
    """What came of them.

    Attributes:
        silent: how many connections were opened that said nothing.
        closed_s: how long it took from the last of them until all were closed.
        served_s: how long a newcomer waited for his first answer while they were there.
        resets: how many streams were opened and reset at once.
        leak: by how many bytes the referee's memory grew for each of these.
        decisions: what the agents decided meanwhile.
        faults: faults of agents meanwhile.
    """

    silent: int
    closed_s: float
    served_s: float
    resets: int
    leak: float
    decisions: int
    faults: int

    def __str__(self) -> str:
        return (
            f"{self.silent:,} silent connections were closed within {self.closed_s:.1f} s (limit {CLOSED_LIMIT_S:g} s),"
            f" a newcomer was served after {self.served_s:.2f} s; {self.resets:,} streams reset at once left"
            f" {self.leak:.0f} bytes each (limit {LEAK_LIMIT}); {self.decisions:,} decisions and {self.faults} faults"
        )


def measure(folder: Path, silent: int, resets: int, say: Callable[[str], None] = lambda _: None) -> Connections:
    """Opens connections and streams beside four agents at play."""
    swarm = Swarm(folder)
    try:
        swarm.feed(swarm.spec(), 8)
        before = swarm.wait(lambda now: now.decisions > 1_000, "matches are at play", 60)
        port = int(swarm.address.rpartition(":")[2])
        with ExitStack() as stack:
            peers = [stack.enter_context(Peer(port)) for _ in range(silent)]
            opened = time.monotonic()
            with swarm.host() as host:
                host.serving()
            served_s = time.monotonic() - opened
            for peer in peers:
                peer.gone()
            closed_s = time.monotonic() - opened
        say(f"all closed after {closed_s:.1f} s")
        with Peer(port) as peer:
            peer.greet()
            _reset(peer, resets)  # what is taken once is no leak
            rss = swarm.rss()
            _reset(peer, resets)
            leak = (swarm.rss() - rss) / resets
        after = swarm.sum()
    finally:
        swarm.close()
    decisions, faults = after.decisions - before.decisions, after.faults - before.faults
    return Connections(silent, closed_s, served_s, resets, leak, decisions, faults)


def _reset(peer: Peer, count: int) -> None:
    for number in range(count):
        stream = peer.call(_PLAYS)
        peer.send(frame(Kind.RST_STREAM, struct.pack(">I", Code.CANCEL), stream=stream))
        if number % _BATCH == _BATCH - 1 or number == count - 1:
            while not peer.answered(peer.call("/referee.v1.GameService/GetServerInfo", b"")):
                time.sleep(0.01)
