"""The agent that is examined: how it is started, watched and ended, and what can be found about it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from dataclasses import dataclass

from referee_server.agents.local import Exit, LocalAgents


class Wrong(Exception):  # noqa: N818  it ends a check, whosever error it was
    """The agent did something that the protocol does not allow, or left out what it asks for.

    Attributes:
        what: what the agent did.
        right: what would be right.
    """

    def __init__(self, what: str, right: str) -> None:
        super().__init__(what)
        self.what, self.right = what, right


class NotMeant(Exception):  # noqa: N818  the same
    """The check has nothing to look at in this agent."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How agents are examined.

    Attributes:
        command: the agent's command, with placeholders.
        games: the only games to play; empty plays all that the agent names.
        start_s: how long the agent may take from its start to Hello, and from an offer to Ready, in seconds.
        answer_s: how long it may take for a decision, in seconds.
        quick: plays fewer matches and waits less.
    """

    command: tuple[str, ...]
    games: tuple[str, ...] = ()
    start_s: float = 30.0
    answer_s: float = 10.0
    quick: bool = False


class Agent:
    """The agent's process."""

    def __init__(self, agents: LocalAgents, setting: Setting, address: str) -> None:
        self.name = f"conformance-{secrets.token_hex(3)}"
        self.credential = secrets.token_hex(32)
        self.exit: Exit | None = None
        self.pids = agents.pids
        self._agents = agents
        filled = {"{address}": address, "{name}": self.name, "{credential}": self.credential}
        argv = []
        for part in setting.command:
            for placeholder, value in filled.items():
                part = part.replace(placeholder, value)
            argv.append(part)
        env = {
            **os.environ,
            "REFEREE_ADDRESS": address,
            "REFEREE_NAME": self.name,
            "REFEREE_CREDENTIAL": self.credential,
            "PYTHONUNBUFFERED": "1",
        }
        agents.start(self.name, argv, env)
        self.watch = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        while self.exit is None:
            gone = await self._agents.exits.get()
            if gone.name == self.name:
                self.exit = gone

    def how(self) -> str:
        """Returns how the process ended, and the last of what it said."""
        assert self.exit is not None
        code = self.exit.code
        how = f"with code {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        said = " ".join(self.exit.output.split())[-300:]
        return f"{how}, saying: {said}" if said else f"{how}, saying nothing"

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the process and what it started."""
        if self.exit is None and self.name in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pids[self.name], number)

    async def stop(self) -> None:
        """Ends it, whatever it takes."""
        if self.exit is None:
            self._agents.stop(self.name)
            await asyncio.wait((self.watch,), timeout=10)
        self.watch.cancel()
