"""Agents that think, made with the client package: in a thread of their own (`slow`), or `async`."""

from __future__ import annotations

import asyncio
import sys
import time

from referee_client import Agent, Decision, run

THINKS_S = 0.15


class Slow(Agent):
    slow = True
    max_matches = 2

    def choose(self, decision: Decision) -> str:
        time.sleep(THINKS_S)
        return decision.legal[0]


class Async(Agent):
    max_matches = 16

    async def choose(self, decision: Decision) -> str:
        await asyncio.sleep(THINKS_S)
        return decision.legal[0]


if __name__ == "__main__":
    agent = Slow() if sys.argv[4] == "slow" else Async()
    agent.name = sys.argv[2]
    run(agent, sys.argv[1], credential=sys.argv[3])
