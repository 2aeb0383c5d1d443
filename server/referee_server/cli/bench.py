"""`referee bench`: how fast it is, as ratios of runs taken in turn.

One absolute time says more about the machine, and about who else was using it, than about the program. So what can be
compared is: bare gRPC and the service take turns, and each round gives a ratio; the median of them is the figure.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from referee.v1 import event_pb2, match_pb2
from referee_server import __version__
from referee_server.cli.bench_playouts import measure
from referee_server.cli.bench_stage import Stage, asked, middle_rate, ping_pong, read, stage
from referee_server.cli.output import ExitCode, fail, print_json, print_rows
from referee_server.journal import pack
from referee_server.match.verify import verify

_BOTS: Final = ("first", "stride", "first", "stride")
"""Instant agents: what is measured is the referee."""
_KIB: Final = 1024


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    rounds: int
    seconds: float
    matches: int
    single: int
    playout_rounds: int
    verified: int
    crowd: int
    crowd_options: tuple[str, ...]
    batches: int
    batch: int
    imports: int


FULL: Final = Size(5, 4.0, 256, 10, 25, 400, 1_000, (), 10, 1_000, 11)
QUICK: Final = Size(1, 1.0, 32, 2, 5, 20, 64, ("--option", "deals_per_dealer=1"), 3, 100, 5)


@dataclass(frozen=True)
class Figure:
    """One line of the result.

    Attributes:
        key: its letter, for `--only`.
        what: what was measured.
        budget: what it is to be.
        measured: what it is, as text.
        value: the same as a number, to compare with the budget; None when it could not be measured.
        ok: whether it keeps the budget; None when that cannot be said.
        note: how it came about.
    """

    key: str
    what: str
    budget: str
    measured: str
    value: float | None
    ok: bool | None
    note: str


def _seats(names: Sequence[str]) -> list[str]:
    return [f"agent:{name}" for name in names]


async def _throughput(size: Size) -> list[Figure]:
    """Decisions a second of many matches at once against bare unary calls."""
    ratios, ours, bare = [], [], []
    for _ in range(size.rounds):
        bare.append(await ping_pong("unary", len(_BOTS), max(1, size.matches // len(_BOTS)), size.seconds))
        async with stage() as here:
            names = await here.agents(_BOTS)
            samples = await here.play(size.matches, "guillotine", _seats(names))
            logs = read(here.logs(size.matches))
        share = sum(map(asked, logs)) / sum(map(len, logs))
        ours.append(middle_rate(samples) * share)
        ratios.append(ours[-1] / bare[-1])
    value = statistics.median(ratios)
    note = (
        f"{statistics.median(ours):,.0f} decisions/s in {size.matches} matches against {statistics.median(bare):,.0f} "
        f"calls/s of {len(_BOTS)} clients with as many in flight; {size.rounds} rounds, {_spread(ratios)}"
    )
    return [Figure("a", "decisions/s, against bare unary gRPC", "≥ 8x", f"{value:.2f}x", value, value >= 8, note)]


async def _alone(size: Size) -> list[Figure]:
    """Time a decision of a match that is alone against a bare round trip on a stream."""
    ratios, ours, bare = [], [], []
    for _ in range(size.rounds):
        trip = 1 / await ping_pong("stream", 1, 1, size.seconds)
        async with stage() as here:
            names = await here.agents(_BOTS[:2])
            for _ in range(size.single):
                await here.play(1, "regicide", _seats(names))
            logs = read(here.logs(size.single))
        times = [_playing_s(log) / asked(log) for log in logs]
        bare.append(trip)
        ours.append(statistics.median(times))
        ratios.append(ours[-1] / trip)
    value = statistics.median(ratios)
    note = (
        f"{statistics.median(ours) * 1e6:,.0f} µs a decision against {statistics.median(bare) * 1e6:,.0f} µs a round "
        f"trip; {size.rounds} rounds of {size.single} matches, {_spread(ratios)}"
    )
    what = "one match alone, time a decision against a bare stream"
    return [Figure("b", what, "≤ 1.5x", f"{value:.2f}x", value, value <= 1.5, note)]


def _playing_s(log: Sequence[event_pb2.MatchEvent]) -> float:
    times = [event.match_time_us for event in log if event.HasField("action_applied")]
    return (times[-1] - times[0]) / 1e6


async def _engine(size: Size) -> list[Figure]:
    """Random playouts against OpenSpiel's hearts."""
    found = await asyncio.to_thread(measure, size.playout_rounds, 0.1)
    rates = "; ".join(f"{name} {rate:,.0f}/s" for name, rate in found.rates.items())
    what = "rules engine, random playouts against OpenSpiel's hearts"
    if not found.ratios:
        note = f"OpenSpiel (`pyspiel`) is not installed, so there is nothing to compare with; {rates}"
        return [Figure("c", what, "≥ 1x", "not compared", None, None, note)]
    value = min(found.ratios.values())
    ratios = "; ".join(f"{name} {ratio:.2f}x" for name, ratio in found.ratios.items())
    note = f"{ratios}; {rates}; hearts {found.hearts['applies']:,.0f}/s; {found.rounds} rounds"
    return [Figure("c", what, "≥ 1x", f"{value:.2f}x", value, value >= 1, note)]


async def _logs(size: Size) -> list[Figure]:
    """How fast logs are verified, and how large they are."""
    async with stage() as here:
        names = await here.agents(_BOTS)
        await here.play(size.verified, "guillotine", _seats(names))
        logs = here.logs(size.verified)
        began = time.perf_counter()
        await here.referee("verify", "--all")
        value = len(logs) / (time.perf_counter() - began)
    parsed = read(logs)
    times = []
    for events in parsed:
        began = time.process_time()
        verify(events)
        times.append(time.process_time() - began)
    largest = max(len(pack(match_id, events)) for match_id, events in logs) / _KIB
    count = f"{len(logs)} whole matches of Guillotine, {statistics.median(map(len, parsed)):.0f} events each"
    return [
        Figure(
            "d",
            "logs verified a second by `verify --all`",
            "≥ 100",
            f"{value:.0f}",
            value,
            value >= 100,
            f"{count}; {1 / statistics.median(times):.0f} of them in a second of processor time",
        ),
        Figure("d", "largest log, compressed", "≤ 32 KiB", f"{largest:.1f} KiB", largest, largest <= 32, f"of {count}"),
    ]  # fmt: skip


async def _time_losses(size: Size) -> list[Figure]:
    """Instant agents that run out of time in a crowd."""
    async with stage() as here:
        names = await here.agents(_BOTS)
        clock = ("--allowance", "0.2", "--bank", "0")
        await here.play(size.crowd, "guillotine", _seats(names), *clock, *size.crowd_options)
        logs = read(here.logs(size.crowd))
    lost = sum(event.fault_ruled.kind == match_pb2.FAULT_KIND_TIMEOUT for log in logs for event in log)
    faults = sum(event.HasField("fault_ruled") for log in logs for event in log)
    note = (
        f"{size.crowd} matches at once, {sum(map(asked, logs)):,} decisions, 200 ms each and no bank; {faults} faults"
    )
    return [Figure("e", "time losses of instant agents", "0", str(lost), lost, lost == 0, note)]


async def _constancy(size: Size) -> list[Figure]:
    """What the last matches of a long run cost, against the first."""
    what = [f"processor time a match, last {size.batch:,} against first", "memory, at the end against after the first"]
    if sys.platform != "linux":
        return [Figure("f", one, "≤ 1.05x", "not measured", None, None, "needs Linux's /proc") for one in what]
    costs, memory = [], []
    async with stage() as here:
        await _batch(here, max(10, size.batch // 10))  # to warm up
        for _ in range(size.batches):
            before = here.cpu_s()
            await _batch(here, size.batch)
            costs.append(here.cpu_s() - before)
            memory.append(here.rss_mib())
    cost, growth = costs[-1] / costs[0], memory[-1] / memory[0]
    each = f"{size.batches} x {size.batch:,} short matches between house bots in one process"
    return [
        Figure(
            "f", what[0], "≤ 1.05x", f"{cost:.2f}x", cost, cost <= 1.05,
            f"{costs[0] / size.batch * 1e3:.2f} and {costs[-1] / size.batch * 1e3:.2f} ms; {each}",
        ),
        Figure(
            "f", what[1], "≤ 1.05x", f"{growth:.2f}x", growth, growth <= 1.05,
            f"{memory[0]:.0f} and {memory[-1]:.0f} MiB; {each}",
        ),
    ]  # fmt: skip


async def _batch(here: Stage, count: int) -> None:
    await here.play(count, "guillotine", ["first", "stride", "first", "stride"], "--option", "deals_per_dealer=1")


async def _imports(size: Size) -> list[Figure]:
    """How long an agent waits for its imports."""
    figures = []
    for module, what in (("referee_client", "import of the client"), ("referee_client.client", "the same with gRPC")):
        code = f"import time; began = time.perf_counter(); import {module}; print(time.perf_counter() - began)"
        times = [await asyncio.to_thread(_printed, code) for _ in range(size.imports)]
        value = statistics.median(times)
        note = f"median of {size.imports} fresh processes, {_spread(times)}"
        figures.append(Figure("g", what, "≤ 0.4 s", f"{value:.3f} s", value, value <= 0.4, note))
    return figures


def _printed(code: str) -> float:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def _spread(values: Sequence[float]) -> str:
    return f"from {min(values):.2f} to {max(values):.2f}"


FIGURES: Final[dict[str, Callable[[Size], Awaitable[list[Figure]]]]] = {
    "a": _throughput,
    "b": _alone,
    "c": _engine,
    "d": _logs,
    "e": _time_losses,
    "f": _constancy,
    "g": _imports,
}
"""What can be measured, by letter."""


def machine(size: Size) -> dict[str, Any]:
    """Returns what was measured on, and with what."""
    packages: dict[str, str | None] = {}
    for name in ("grpcio", "protobuf", "open_spiel"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return {
        "machine": platform.platform(),
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "referee": __version__,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **packages,
        "quick": size is QUICK,
    }


def run_bench(only: Sequence[str], *, quick: bool, as_json: bool) -> None:
    """Measures and prints.

    Raises:
        Failure: a process could not be started, or ended.
    """
    unknown = sorted(set(only) - set(FIGURES))
    if unknown:
        fail(f"no figure {unknown[0]!r}; there are {', '.join(FIGURES)}", ExitCode.USAGE)
    size = QUICK if quick else FULL
    about = machine(size)
    if as_json:
        print_json(about)
    else:
        print(", ".join(f"{key} {value}" for key, value in about.items() if value is not None))
        if quick:
            print("quick: to see that it works; too little is measured for the figures to mean much")
    rows = []
    for key in only or FIGURES:
        for figure in asyncio.run(_measure(key, size)):
            told = {True: "ok", False: "over", None: "-"}[figure.ok]
            rows.append({**vars(figure), "verdict": told})
            if as_json:
                print_json(rows[-1])
            else:
                print(f"{figure.key} {figure.what}: {figure.measured} ({figure.note})", flush=True)
    if not as_json:
        columns = {"key": "", "what": "what", "budget": ">budget", "measured": ">measured", "verdict": ""}
        print()
        print_rows(rows, columns, as_json=False, empty="")


async def _measure(key: str, size: Size) -> list[Figure]:
    return await FIGURES[key](size)
