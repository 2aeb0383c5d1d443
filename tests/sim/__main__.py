"""Runs simulated worlds: `python -m sim --seeds 0:1000`, and one again to look at it: `--seed 17 --verbose`."""

from __future__ import annotations

import argparse
import gc
import sys
import time

from sim.ledger import BrokenError
from sim.world import World


def main() -> int:
    parser = argparse.ArgumentParser(prog="sim", description=__doc__)
    parser.add_argument("--seeds", default="0:200", help="the first seed, and the one behind the last")
    parser.add_argument("--seed", type=int, help="one world only")
    parser.add_argument("--verbose", action="store_true", help="tell what happens")
    parser.add_argument("--open-seats", action="store_true", help="half of the seats of agents are open instead")
    parser.add_argument("--matches", type=int, help="end once that many matches have been played")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure")
    given = parser.parse_args()
    first, last = map(int, given.seeds.split(":"))
    seeds = range(first, last) if given.seed is None else [given.seed]
    started = time.monotonic()
    matches = worlds = failures = 0
    counts: dict[str, int] = {}
    for seed in seeds:
        world = World(seed, print if given.verbose else None, opened=given.open_seats)
        try:
            world.run()
        except BrokenError as error:
            failures += 1
            print(f"seed {seed}: {error}", flush=True)
            if given.verbose:
                raise
            if not given.keep_going:
                break
        worlds += 1
        matches += len(world.ledger.matches)
        for what, count in world.counts.items():
            counts[what] = counts.get(what, 0) + count
        if worlds % 1_000 == 0:
            gc.collect()
            print(f"{worlds} worlds, {matches} matches, {matches / (time.monotonic() - started):.1f}/s", flush=True)
        if given.matches and matches >= given.matches:
            break
    spent = time.monotonic() - started
    print(f"{worlds} worlds, {matches} matches, {failures} failures, {spent:.0f} s, {matches / spent:.1f} matches/s")
    print(", ".join(f"{count} {what.lower()}" for what, count in sorted(counts.items())))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
