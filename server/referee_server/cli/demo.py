"""`referee demo`: the main job in one go."""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from referee_games import registry
from referee_server.agents.local import Exit, LocalAgents
from referee_server.cli.data import DataFolder
from referee_server.cli.output import ExitCode, Failure, fail, print_rows

if TYPE_CHECKING:
    from referee.v1 import match_pb2
    from referee_server.cli.service import Service

BOTS: Final = ("greedy", "random", "stride", "first")
"""The house bots that play, each in a process of its own, under its own name."""
AT_ONCE: Final = 16
"""How many matches are in play at once."""
_START_S: Final = 60.0


def run_demo(game: str | None, matches: int, data: str, *, as_json: bool) -> None:
    """Plays, shows and verifies.

    Args:
        game: the only game to play; None plays all.
        matches: how many of each.
        data: the data folder.
        as_json: whether to print JSON lines instead of tables.

    Raises:
        Failure: it cannot be played, or a log does not hold.
    """
    games = [game] if game is not None else registry.names()
    for name in games:
        try:
            registry.find(name)
        except registry.UnknownGameError as error:
            fail(str(error))
    # Before gRPC is imported: from then on this process must not fork.
    agents = LocalAgents()
    try:
        asyncio.run(_demo(games, matches, DataFolder(data), agents, as_json=as_json))
    finally:
        agents.kill()


async def _demo(games: list[str], matches: int, data: DataFolder, agents: LocalAgents, *, as_json: bool) -> None:
    from referee_server.cli.logs import configure
    from referee_server.cli.service import Service, ServiceSettings

    configure("error")
    say = _Say(as_json)
    async with Service(data, ServiceSettings(address="127.0.0.1:0")) as service:
        say(f"a referee listens on {service.address} and keeps everything in {data.path}")
        await _start_agents(agents, service, data)
        say(f"{len(BOTS)} agents connected over gRPC: {', '.join(BOTS)}")
        exits = asyncio.ensure_future(agents.exits.get())
        try:
            for game in games:
                playing = asyncio.ensure_future(_play(service, data, game, matches, as_json=as_json))
                try:
                    done, _ = await asyncio.wait((playing, exits), return_when=asyncio.FIRST_COMPLETED)
                    if exits in done:
                        gone = exits.result()
                        fail(f"agent {gone.name} ended {_how(gone)}", ExitCode.CHECK_FAILED)
                    ended = playing.result()
                finally:
                    playing.cancel()
                    await asyncio.gather(playing, return_exceptions=True)
                _show(game, ended, as_json=as_json)
                await _verify(service, [match.match_id for match in ended], say)
        finally:
            exits.cancel()
            await agents.close()
    if not as_json:
        last = ended[-1].match_id
        flag = "" if str(data.path) == "referee-data" else f" --data {data.path}"
        # As it was called: in a checkout it is not on the path.
        command = sys.argv[0] if sys.argv[0].endswith("referee") else "referee"
        print(f"next: {command} replay {last}{flag}")
        for further in ("matches", "verify --all", "serve --practice"):
            print(f"      {command} {further}{flag}")


class _Say:
    """Tells a person how it goes; keeps quiet where JSON is wanted."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def __call__(self, text: str) -> None:
        if not self._quiet:
            print(text, flush=True)


async def _start_agents(agents: LocalAgents, service: Service, data: DataFolder) -> None:
    folder = data.path / "agents"
    folder.mkdir(exist_ok=True)
    for bot in BOTS:
        command = [sys.executable, "-m", "referee_client.house", bot, "--connect", service.address, "--name", bot]
        agents.start(bot, [*command, "--credential", str(folder / f"{bot}.token")])
    exits = asyncio.ensure_future(agents.exits.get())
    everybody = asyncio.ensure_future(service.hall.presence.wait_for(len(BOTS)))
    try:
        done, _ = await asyncio.wait((exits, everybody), timeout=_START_S, return_when=asyncio.FIRST_COMPLETED)
        if exits in done:
            gone = exits.result()
            fail(f"agent {gone.name} did not start, and ended {_how(gone)}", ExitCode.CHECK_FAILED)
        if not done:
            fail(f"the agents did not connect within {_START_S:.0f} seconds", ExitCode.UNREACHABLE)
    finally:
        exits.cancel()
        everybody.cancel()


def _how(gone: Exit) -> str:
    """Returns how a process ended, with the last of what it said."""
    how = f"with code {gone.code}" if gone.code >= 0 else f"by {signal.Signals(-gone.code).name}"
    said = gone.output.strip()
    return f"{how}: {said[-400:]}" if said else f"{how} and said nothing"


def _tables(size: int, count: int) -> list[tuple[str, ...]]:
    """Returns who sits where in each match: everybody as often as anybody else, and in every seat."""
    groups = list(itertools.permutations(BOTS, size))
    played: dict[str, int] = defaultdict(int)
    sat: dict[tuple[int, str], int] = defaultdict(int)
    tables = []
    for _ in range(count):
        # Of equals the one that was chosen longest ago.
        group = min(
            groups,
            key=lambda group: (
                sum(played[name] for name in group),
                sum(sat[place] for place in enumerate(group)),
            ),
        )
        groups.remove(group)
        groups.append(group)
        for place in enumerate(group):
            played[place[1]] += 1
            sat[place] += 1
        tables.append(group)
    return tables


async def _play(service: Service, data: DataFolder, game: str, count: int, *, as_json: bool) -> list[match_pb2.Match]:
    import grpc

    from referee.v1 import match_pb2
    from referee.v1 import match_service_pb2 as pb
    from referee.v1.match_service_pb2_grpc import MatchServiceStub
    from referee_server.cli.client import failure

    rules = registry.find(game)
    size = rules.seats(rules.configure({}))
    tables = _tables(size, count)
    metadata = (("authorization", f"Bearer {data.host_token()}"),)
    gate = asyncio.Semaphore(AT_ONCE)
    async with grpc.aio.insecure_channel(service.address) as channel:
        stub: Any = MatchServiceStub(channel)

        async def one(seats: tuple[str, ...]) -> match_pb2.Match:
            async with gate:
                spec = match_pb2.MatchSpec(
                    game=game, label="demo", seats=[match_pb2.SeatSpec(agent=name) for name in seats]
                )
                created = await stub.CreateMatch(pb.CreateMatchRequest(spec=spec), metadata=metadata)
                match_id = created.match.match_id
                watch = stub.WatchMatch(
                    pb.WatchMatchRequest(match_id=match_id, view=pb.View(public=pb.PublicView())), metadata=metadata
                )
                async for _ in watch:
                    pass
                got = await stub.GetMatch(pb.GetMatchRequest(match_id=match_id), metadata=metadata)
                advance()
                ended: match_pb2.Match = got.match
                return ended

        with _progress(rules.title, count, quiet=as_json) as advance:
            try:
                return await asyncio.gather(*(one(seats) for seats in tables))
            except grpc.aio.AioRpcError as error:
                raise failure(error, service.address) from None


@contextmanager
def _progress(title: str, total: int, *, quiet: bool) -> Iterator[Any]:
    if quiet or not sys.stdout.isatty():
        began, done = time.monotonic(), itertools.count(1)
        step = max(1, total // 4)

        def advance() -> None:
            number = next(done)
            if not quiet and (number % step == 0 or number == total):
                print(f"{title}: {number} of {total} matches, {time.monotonic() - began:.1f} s", flush=True)

        yield advance
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("matches"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as progress:
        task = progress.add_task(title, total=total)
        yield lambda: progress.advance(task)


def _show(game: str, ended: list[match_pb2.Match], *, as_json: bool) -> None:
    """Prints the standings of one game."""
    played: dict[str, int] = defaultdict(int)
    points: dict[str, int] = defaultdict(int)
    places: dict[str, int] = defaultdict(int)
    firsts: dict[str, int] = defaultdict(int)
    faults: dict[str, int] = defaultdict(int)
    for match in ended:
        result = match.result
        for seat, side in zip(match.seats, result.sides, strict=True):
            faults[seat.name] += result.fault_counts[seat.seat]
            if not result.totals:
                continue
            played[seat.name] += 1
            points[seat.name] += result.totals[side]
            places[seat.name] += result.official_places[side]
            firsts[seat.name] += result.official_places[side] == 1
    rows = [
        {
            "game": game,
            "agent": name,
            "matches": played[name],
            "mean_place": places[name] / max(1, played[name]),
            "first": firsts[name],
            "mean_points": points[name] / max(1, played[name]),
            "faults": faults[name],
        }
        for name in played
    ]
    rows.sort(key=lambda row: row["mean_place"])  # type: ignore[arg-type, return-value]  # a float
    columns = {
        "agent": f"{registry.find(game).title}",
        "matches": ">matches",
        "mean_place": ">mean place",
        "first": ">first",
        "mean_points": ">mean points",
        "faults": ">faults",
    }
    print_rows(rows, columns, as_json=as_json, empty="no match has a result")


async def _verify(service: Service, match_ids: list[str], say: _Say) -> None:
    from referee_server.cli.proving import verify_source
    from referee_server.cli.sources import Source
    from referee_server.match.verify import LogError

    began = time.monotonic()
    events = 0
    for match_id in match_ids:
        records = service.hall.journal.read(match_id)
        events += len(records)
        try:
            report = verify_source(Source(match_id, match_id, records, b""))
        except LogError as error:
            raise Failure(f"the log of {match_id} does not hold: {error}", ExitCode.CHECK_FAILED) from None
        if report.sealed or not report.ended:
            raise Failure(f"the log of {match_id} is not complete", ExitCode.CHECK_FAILED)
        # The agents are still there, and their connections are to be kept alive.
        await asyncio.sleep(0)
    say(
        f"verified all {len(match_ids)} logs ({events} events) in {time.monotonic() - began:.1f} s: "
        "dealt again, refereed again, nothing differs"
    )
