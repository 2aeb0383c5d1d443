"""An agent that keeps a ledger: what the referee told it, one JSON line each, in a file that only ever grows.

Run as `python -m crash.agent ADDRESS NAME LEDGER SEED THINK_MS`. It is never killed, so a line that was written is
there to be read; the referee is killed, again and again, and the agent comes back by itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Awaitable
from hashlib import sha256
from pathlib import Path

from referee_client import client
from referee_client.agent import Agent
from referee_client.values import Offer, Result, Verdict
from referee_games.contract import Decision

MAX_MATCHES = 4_096


def shown(decision: Decision) -> str:
    """Returns all that a question shows, except the time, in a few bytes."""
    return sha256(repr((decision.view, decision.legal)).encode()).hexdigest()[:16]


class Book:
    """Where an agent writes down what it is told."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, kind: str, match_id: str, **more: object) -> None:
        line = json.dumps({"kind": kind, "match": match_id, **more}, separators=(",", ":"))
        os.write(self._fd, line.encode() + b"\n")


class LedgerAgent(Agent):
    """Plays at random, thinks now and then, and notes every question, verdict and end."""

    max_matches = MAX_MATCHES
    takes_open_seats = False

    def __init__(self, name: str, book: Book, seed: int, think_s: float) -> None:
        self.name = name
        self._book = book
        self._rng = random.Random(seed)
        self._think_s = think_s

    def on_match_start(self, offer: Offer) -> None:
        self._book.note("offer", offer.match_id, seat=offer.seat)

    def choose(self, decision: Decision) -> str | Awaitable[str]:
        self._book.note(
            "asked", decision.match_id, seat=decision.seat, number=decision.number, shown=shown(decision),
            deal=decision.view.deal, hand=decision.view.hand,
        )  # fmt: skip
        action = self._rng.choice(decision.legal)
        if self._think_s and self._rng.random() < 0.2:
            return self._slowly(action)
        return action

    async def _slowly(self, action: str) -> str:
        await asyncio.sleep(self._think_s * self._rng.random())
        return action

    def on_verdict(self, verdict: Verdict) -> None:
        self._book.note(
            "verdict", verdict.match_id, number=verdict.number, status=verdict.status, action=verdict.action
        )

    def on_match_over(self, result: Result) -> None:
        self._book.note("over", result.match_id, seat=result.seat, reason=result.reason, digest=result.digest)


async def _main(address: str, name: str, ledger: str, seed: str, think_ms: str) -> None:
    agent = LedgerAgent(name, Book(Path(ledger)), int(seed), int(think_ms) / 1000)
    # Waits of a tenth of a second: the referee is killed every second or so, and is back at once.
    playing = asyncio.ensure_future(
        client.play(
            agent,
            address,
            credential=os.urandom(32).hex(),
            connect_timeout=None,
            backoff=client.Backoff(first=0.05, longest=0.1),
        )
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, playing.cancel)
    await asyncio.wait((playing,))
    if not playing.cancelled():
        playing.result()


if __name__ == "__main__":
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    asyncio.run(_main(*sys.argv[1:]))
