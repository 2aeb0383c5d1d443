"""Sends fuzzed messages: `python -m fuzz --messages 1000000`; `--server` over a socket instead of in process."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from fuzz.server import fuzz_server
from fuzz.world import FuzzWorld
from sim.ledger import BrokenError

_A_WORLD = 5_000
"""How many messages one simulated world gets."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000, help="how many messages to send")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--server", action="store_true", help="send them to a server over a socket")
    parser.add_argument("--verbose", action="store_true", help="tell what happens")
    given = parser.parse_args()
    started = time.monotonic()
    if given.server:
        report = asyncio.run(fuzz_server(seed=given.seed, messages=given.messages))
        _say(report.sent, started, report.statuses)
        print("\n".join(report.wrong))
        return 1 if report.wrong else 0
    sent, seed, statuses = 0, given.seed, dict[str, int]()
    while sent < given.messages:
        world = FuzzWorld(seed, min(_A_WORLD, given.messages - sent), print if given.verbose else None)
        try:
            world.run()
        except BrokenError as error:
            print(f"seed {seed}: {error}")
            return 1
        sent += world.sent
        seed += 1
        for what, count in world.statuses.items():
            statuses[what] = statuses.get(what, 0) + count
        if seed % 20 == 0:
            _say(sent, started, {})
    _say(sent, started, statuses)
    return 0


def _say(sent: int, started: float, statuses: dict[str, int]) -> None:
    spent = time.monotonic() - started
    print(f"{sent} messages, {spent:.0f} s, {sent / spent:.0f}/s", flush=True)
    for what, count in sorted(statuses.items()):
        print(f"  {count:8} {what}")


if __name__ == "__main__":
    sys.exit(main())
