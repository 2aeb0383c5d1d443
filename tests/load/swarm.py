"""Agents in processes of their own that answer at once, a referee for them, and a feeder that keeps matches at play."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from crash.referee import PATIENCE_S, Child, Host, Referee, environment, until
from crash.world import free_port
from referee.v1 import match_pb2
from referee_client import convert

_LATER = (
    grpc.StatusCode.FAILED_PRECONDITION,  # agents are known once they have connected
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.DEADLINE_EXCEEDED,
)
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Sum:
    """What all agents report together.

    Attributes:
        decisions: questions asked.
        accepted: answers accepted.
        other: answers that had another verdict.
        over: seats whose match has ended.
        faults: faults of these seats.
        offered: matches offered on the present streams, by seat.
        asked: questions left open on the present streams.
        settled: when the last offer or open question came, on the monotonic clock.
        ways_s: times from answer to verdict since the last report: median, 99th percentile and longest, of each agent.
    """

    decisions: int
    accepted: int
    other: int
    over: int
    faults: int
    offered: int
    asked: int
    settled: float
    ways_s: tuple[tuple[float, ...], ...]


class Swarm:
    """A referee on fresh data, with agents.

    Args:
        folder: an empty folder.
        hold: from which decision on the agents leave questions open; 0 for never.
        agents: how many agents.
        listen: where the referee is to listen.
    """

    def __init__(self, folder: Path, hold: int = 0, agents: int = 4) -> None:
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        self.referee = Referee(folder / "data", self.address)
        assert self.referee.listening(), self.referee.text
        self.names = [f"agent{number}" for number in range(agents)]
        self._reports = [folder / f"{name}.report" for name in self.names]
        self.agents = [
            Child([sys.executable, "-m", "load.agent", self.address, name, str(path), str(hold)], environment())
            for name, path in zip(self.names, self._reports, strict=True)
        ]
        self.created = 0
        self._enough = threading.Event()
        self._feeder: threading.Thread | None = None
        until(lambda: all(path.exists() and path.stat().st_size for path in self._reports), "the agents are up")

    def restart(self) -> None:
        """Kills the referee and starts the next one; does not wait for it."""
        self.referee.close()
        self.referee = Referee(self.folder / "data", self.address)

    def sum(self) -> Sum:
        lines = [_last_line(path) for path in self._reports]

        def total(key: str) -> int:
            return sum(line[key] for line in lines)

        return Sum(
            decisions=total("decisions"),
            accepted=total("accepted"),
            other=total("other"),
            over=total("over"),
            faults=total("faults"),
            offered=total("offered"),
            asked=total("asked"),
            settled=max(line["settled"] for line in lines),
            ways_s=tuple(tuple(line["ways"]) for line in lines),
        )

    def spec(
        self, game: str = "guillotine", *, allowance_ms: int = 5_000, bank_ms: int = 60_000, **options: int
    ) -> match_pb2.MatchSpec:
        """Returns a match of all agents, or of the first two for Regicide."""
        spec = match_pb2.MatchSpec(game=game, options=convert.options_to(game, options))
        for name in self.names[: 4 if game == "guillotine" else 2]:
            spec.seats.add(agent=name)
        spec.clock.allowance_ms, spec.clock.bank_ms = allowance_ms, bank_ms
        return spec

    def create(self, spec: match_pb2.MatchSpec, count: int) -> None:
        with self.host() as host:
            for _ in range(count):
                until(lambda: self._try(host, spec), "a match is created", every_s=0.02)

    def _try(self, host: Host, spec: match_pb2.MatchSpec) -> bool:
        try:
            # Under one id until it was acknowledged: a busy referee may have made it and not said so in time.
            host.create(spec, f"request-{self.created}")
        except grpc.RpcError as error:
            if isinstance(error, grpc.Call) and error.code() in _LATER:
                return False
            raise
        self.created += 1
        return True

    @contextlib.contextmanager
    def host(self) -> Iterator[Host]:
        with self.referee.host() as host:
            yield host

    def feed(self, spec: match_pb2.MatchSpec, in_flight: int, most: int = sys.maxsize) -> None:
        """Keeps matches at play from now on, `most` of them in all."""
        seats = len(spec.seats)

        def run() -> None:
            with self.host() as host:
                while not self._enough.wait(0.02) and self.created < most:
                    for _ in range(min(in_flight - (self.created - self.sum().over // seats), most - self.created)):
                        self._try(host, spec)

        self._feeder = threading.Thread(target=run, daemon=True)
        self._feeder.start()

    def wait(self, condition: Callable[[Sum], bool], what: str, seconds: float) -> Sum:
        until(lambda: condition(self.sum()), what, seconds, every_s=0.1)
        return self.sum()

    def end_feed(self) -> None:
        self._enough.set()
        if self._feeder is not None:
            self._feeder.join(PATIENCE_S)
        self._feeder = None
        self._enough.clear()

    def cpu_s(self) -> float:
        """Returns the processor time that the referee has used, in seconds."""
        fields = Path(f"/proc/{self.referee.pid}/stat").read_bytes().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    def rss(self) -> int:
        """Returns the referee's resident memory in bytes."""
        return int(Path(f"/proc/{self.referee.pid}/statm").read_text().split()[1]) * _PAGE

    def close(self) -> None:
        self.end_feed()
        for agent in self.agents:
            agent.send(signal.SIGCONT)
            agent.close()
        self.referee.close()


def _last_line(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 2_048))
        lines = file.read().split(b"\n")
    whole: dict[str, Any] = json.loads(lines[-2])
    return whole
