"""Where figures are measured: a service and agents in processes of their own, on data that are thrown away.

Nothing here imports gRPC, so that this process may start others.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from referee.v1 import event_pb2
from referee_server.agents.local import LocalAgents
from referee_server.cli.data import DataFolder
from referee_server.cli.output import ExitCode, fail
from referee_server.match.verify import parse

_PING_PONG: Final = [sys.executable, "-m", "referee_server.cli.bench_pingpong"]
_REFEREE: Final = [sys.executable, "-m", "referee_server.entry"]
_START_S: Final = 60.0
_LOOK_S: Final = 0.25
"""How often the journal is looked at while matches are played, in seconds."""


@dataclass(frozen=True)
class Sample:
    """How far it is.

    Attributes:
        at: when it was looked at, in seconds.
        events: how many events are stored.
        ended: how many matches have ended.
    """

    at: float
    events: int
    ended: int


class Stage:
    """A service on fresh data, and what is asked of it."""

    def __init__(self, folder: Path, processes: LocalAgents) -> None:
        self.data = folder / "data"
        self._folder = folder
        self._processes = processes
        self._env = {**os.environ, "XDG_CONFIG_HOME": str(folder / "config"), "REFEREE_DATA": str(self.data)}
        self.pid = 0

    async def open(self) -> None:
        """Starts the service and waits until it has said where it listens."""
        options = ["--listen", "127.0.0.1:0", "--data", str(self.data), "--log-level", "error"]
        self._processes.start("service", [*_REFEREE, "serve", *options], self._env)
        await self._until(lambda: DataFolder(self.data).address() is not None)
        self.pid = self._processes.pids["service"]

    async def agents(self, bots: Sequence[str]) -> list[str]:
        """Starts house bots, each in a process of its own, and returns their names once all are connected."""
        said = DataFolder(self.data).address()
        assert said is not None
        names = [f"{bot}{number}" for number, bot in enumerate(bots)]
        for name, bot in zip(names, bots, strict=True):
            options = [bot, "--connect", said[0], "--name", name, "--max-matches", "1024"]
            self._processes.start(name, [sys.executable, "-m", "referee_client.house", *options], self._env)
        deadline = time.monotonic() + _START_S
        while (await self.referee("agents", "list", "--json")).count('"connected"') < len(names):
            self._check(deadline)
        return names

    async def referee(self, *arguments: str) -> str:
        """Runs a command and returns what it prints."""
        process = await asyncio.create_subprocess_exec(
            *_REFEREE, *arguments, env=self._env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        try:
            out, err = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            raise
        if process.returncode:
            fail(f"`referee {arguments[0]}` failed: {err.decode()[-300:]}", ExitCode.CHECK_FAILED)
        return out.decode()

    async def play(self, count: int, game: str, seats: Sequence[str], *options: str) -> list[Sample]:
        """Has matches played, all at once, to their end; returns how it went on."""
        before = self.sample().ended
        creating = asyncio.ensure_future(
            self.referee(
                "match", game, *(text for seat in seats for text in ("--seat", seat)), *options,
                "--matches", str(count), "--no-wait",
            )
        )  # fmt: skip
        samples: list[Sample] = []
        try:
            while not samples or samples[-1].ended < before + count:
                await asyncio.sleep(_LOOK_S)
                samples.append(self.sample())
                self._check(None)
                if creating.done():
                    creating.result()
            await creating
        finally:
            creating.cancel()
            await asyncio.gather(creating, return_exceptions=True)
        return samples

    def sample(self) -> Sample:
        """Looks at the journal."""
        with contextlib.closing(DataFolder(self.data).read()) as journal:
            events = ended = after = 0
            while rows := journal.matches(after_number=after, limit=1_000):
                after = rows[-1].number
                events += sum(row.event_count for row in rows)
                ended += sum(row.final for row in rows)
            return Sample(time.perf_counter(), events, ended)

    def logs(self, limit: int) -> list[tuple[str, list[bytes]]]:
        """Returns the events of the first matches."""
        with contextlib.closing(DataFolder(self.data).read()) as journal:
            rows = journal.matches(after_number=0, limit=limit)
            return [(row.match_id, journal.read(row.match_id)) for row in rows]

    def cpu_s(self) -> float:
        """Returns the processor time of the service so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mib(self) -> float:
        """Returns the memory of the service now."""
        fields = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    async def _until(self, condition: Any) -> None:
        deadline = time.monotonic() + _START_S
        while not condition():
            self._check(deadline)
            await asyncio.sleep(0.02)

    def _check(self, deadline: float | None) -> None:
        if not self._processes.exits.empty():
            gone = self._processes.exits.get_nowait()
            fail(f"{gone.name} ended with code {gone.code}: {gone.output[-300:]}", ExitCode.CHECK_FAILED)
        if deadline is not None and time.monotonic() > deadline:
            fail(f"the processes did not start within {_START_S:.0f} s", ExitCode.CHECK_FAILED)


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """Starts a service on fresh data; ends everything and removes the data afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="referee-bench-"))
    processes = LocalAgents()
    try:
        one = Stage(folder, processes)
        await one.open()
        yield one
    finally:
        await processes.close()
        shutil.rmtree(folder, ignore_errors=True)


async def ping_pong(kind: str, clients: int, in_flight: int, seconds: float) -> float:
    """Returns the round trips a second of bare gRPC between processes."""
    server = await _piped("serve")
    counters: list[Any] = []
    try:
        assert server.stdout is not None
        port = (await server.stdout.readline()).decode().strip()
        arguments = [kind, port, str(seconds), str(in_flight)]
        counters = [await _piped(*arguments) for _ in range(clients)]
        for counter in counters:
            await counter.stdout.readline()
        for counter in counters:
            counter.stdin.write(b"go\n")
        counted = [json.loads(await counter.stdout.readline()) for counter in counters]
        return float(sum(one["trips"] / one["seconds"] for one in counted))
    finally:
        for process in (*counters, server):
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _piped(*arguments: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*_PING_PONG, *arguments, stdin=pipe, stdout=pipe)


def asked(events: list[event_pb2.MatchEvent]) -> int:
    """Returns how many decisions of a match were put to agents."""
    return sum(event.action_applied.source == event_pb2.ACTION_SOURCE_AGENT for event in events)


def middle_rate(samples: Sequence[Sample]) -> float:
    """Returns the events a second between the first and the last tenth: without getting going and running out."""
    last = samples[-1].events
    window = [sample for sample in samples if 0.1 * last <= sample.events <= 0.9 * last]
    if len(window) < 2:
        window = [samples[0], samples[-1]] if len(samples) > 1 else []
    if not window:
        return 0.0
    return (window[-1].events - window[0].events) / (window[-1].at - window[0].at)


def read(logs: Sequence[tuple[str, list[bytes]]]) -> list[list[event_pb2.MatchEvent]]:
    """Returns the events of logs, parsed."""
    return [parse(records) for _, records in logs]
