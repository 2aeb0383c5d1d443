"""The long runs: each proves one promise by numbers, and ends with a line that says how it went."""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from crash.kill import SERVICE, Kills, at_failpoint, at_random, twice
from crash.world import World

from . import connections, frozen, load, memory, restart, timing, watchers

_DOUBLE_EVERY = 20
_SAY_EVERY_S = 10.0


def _kill(arguments: argparse.Namespace, folder: Path) -> bool:
    kills = Kills()
    world = World(folder, arguments.seed)
    failpoints = [name for name in sorted(SERVICE) for _ in range(arguments.failpoints)]
    world.rng.shuffle(failpoints)
    rounds = ["random"] * arguments.cycles + failpoints
    world.rng.shuffle(rounds)
    said = time.monotonic()
    missed = 0
    try:
        for number, what in enumerate(rounds, 1):
            if what != "random":
                missed += not at_failpoint(world, kills, what)
            elif number % _DOUBLE_EVERY == 0:
                twice(world, kills)
            else:
                at_random(world, kills)
            if time.monotonic() - said > _SAY_EVERY_S:
                said = time.monotonic()
                _say(f"{number} of {len(rounds)}: {kills}; {len(world.created)} matches, {world.look():,} questions")
        world.start()
        assert world.listening(), world.referee.text
        found = world.finish()
    finally:
        world.close()
    print(f"kill: seed {arguments.seed}: {kills}; {found}")
    if world.up_s:
        print(f"kill: up again after {max(world.up_s):.2f} s at most; {missed} failpoints were not reached in time")
    if not found.good:
        print(found.details())
    return found.good


def _load(arguments: argparse.Namespace, folder: Path) -> bool:
    found = load.measure(folder, arguments.decisions, arguments.matches, _say)
    print(f"load: {found}")
    return found.losses == 0


def _watchers(arguments: argparse.Namespace, folder: Path) -> bool:
    found = watchers.measure(folder, arguments.count, arguments.turns, arguments.seconds, _say)
    print(f"watchers: {found}")
    return found.faults == 0


def _restart(arguments: argparse.Namespace, folder: Path) -> bool:
    found = restart.measure(folder, arguments.matches, arguments.hold)
    print(f"restart: {found}")
    return found.asked_s <= restart.LIMIT_S


def _frozen(arguments: argparse.Namespace, folder: Path) -> bool:
    found = frozen.measure(folder)
    print(f"frozen: {found}")
    return found.noticed_s <= frozen.LIMIT_S


def _connections(arguments: argparse.Namespace, folder: Path) -> bool:
    # As many as the system allows: this process holds one end of each, and the referee the other.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    found = connections.measure(folder, arguments.silent, arguments.resets, _say)
    print(f"connections: {found}")
    return (
        found.closed_s <= connections.CLOSED_LIMIT_S
        and found.served_s <= connections.CLOSED_LIMIT_S
        and found.leak <= connections.LEAK_LIMIT
        and found.faults == 0
    )


def _memory(arguments: argparse.Namespace, folder: Path) -> bool:
    found = memory.measure(folder, arguments.pieces, arguments.matches, _say)
    print(f"memory: {found}")
    return found.ratio <= memory.LIMIT and found.slope <= memory.LIMIT_SLOPE


def _timing(arguments: argparse.Namespace, folder: Path) -> bool:
    found = timing.measure(arguments.pairs, arguments.runs, arguments.seed, _say)
    print(f"timing: {found}")
    return found.shift_us <= timing.LIMIT_US


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the commands of this module; each has `run`, which returns whether all was well."""

    def add(name: str, run: Callable[[argparse.Namespace, Path], bool], about: str, **numbers: int | float) -> None:
        parser = commands.add_parser(name, help=about, description=about)
        for key, default in numbers.items():
            parser.add_argument(f"--{key}", type=type(default), default=default, help=f"default: {default}")
        parser.set_defaults(run=lambda arguments: _in_folder(run, arguments))

    add("kill", _kill, "Kill the referee over and over; nothing may be lost.", cycles=1_000, failpoints=0, seed=1)
    add("load", _load, "Instant agents with little time; none may lose on time.", decisions=1_000_000, matches=256)
    add("watchers", _watchers, "Watchers that never read, and what they cost.", count=1_000, turns=3, seconds=10.0)
    add("restart", _restart, "Kill with many matches in flight; time until all go on.", matches=1_000, hold=25)
    add("frozen", _frozen, "Freeze an agent; time until it is noticed.")
    add("connections", _connections, "Thousands of connections for no good.", silent=10_000, resets=100_000)
    add("timing", _timing, "Whether hidden cards show in the time that things take.", pairs=40, runs=40, seed=1)
    add("memory", _memory, "Cost of a match and memory, first and last.", pieces=10, matches=1_000)


def _in_folder(run: Callable[[argparse.Namespace, Path], bool], arguments: argparse.Namespace) -> bool:
    with tempfile.TemporaryDirectory(prefix="referee-soak-") as folder:
        return run(arguments, Path(folder))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns 0 if all was well."""
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    add_commands(parser.add_subparsers(required=True, metavar="WHAT"))
    arguments = parser.parse_args(argv)
    return 0 if arguments.run(arguments) else 1


if __name__ == "__main__":
    sys.exit(main())
