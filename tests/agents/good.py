"""A well-behaved agent made with the client package: says of each match how it ended, as a JSON line."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from referee_client import Agent, Decision, Result, run


class Good(Agent):
    max_matches = 256
    takes_open_seats = False
    wants_events = True

    def choose(self, decision: Decision) -> str:
        return decision.legal[-1]

    def on_match_over(self, result: Result) -> None:
        print(json.dumps(asdict(result)), flush=True)


if __name__ == "__main__":
    Good.name = sys.argv[2]
    run(Good(), sys.argv[1], credential=sys.argv[3])
