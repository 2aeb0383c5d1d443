"""Agents for the tests of playing, and the parts of a script that they share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import referee_client
from referee_client import Agent

from .fake import FakeStream, decision, over

Play = Callable[..., Any]
"""`client.play`, as the tests call it."""


class First(Agent):
    """Answers the first legal action and writes down what happens."""

    name = "first"

    def __init__(self) -> None:
        self.asked: list[int] = []

    def choose(self, decision: referee_client.Decision) -> str:
        self.asked.append(decision.number)
        return decision.legal[0]


class AsyncFirst(First):
    async def choose(self, decision: referee_client.Decision) -> str:  # type: ignore[override]
        await asyncio.sleep(0)
        return First.choose(self, decision)


class SlowFirst(First):
    slow = True


async def finish(stream: FakeStream, match_id: str = "m") -> None:
    await stream.send(match_over=over(match_id))
    await stream.next("leave")
    await stream.end()


async def one_match(stream: FakeStream) -> None:
    await stream.greet()
    await stream.start()
    await stream.send(decision=decision(0))
    await stream.next("answer")
    await finish(stream)
