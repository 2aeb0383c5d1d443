"""A fleet under test: a socket at which its agents say hello, a clock that is set by hand, and what is left alive."""

from __future__ import annotations

import asyncio
import heapq
import json
import sys
import uuid
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from e2e.kit import MARK, PATIENCE_S, Home, until
from referee_server.agents.fleet import Fleet, Program, Running, StartFailure
from referee_server.agents.isolation import Probe, Tier, this_python
from referee_server.agents.launcher import children_of
from referee_server.agents.limits import Limits
from referee_server.agents.local import Exit, LocalAgents

HERE: Final = Path(__file__).parent
CLEAN_S: Final = 5.0
"""Within how many seconds everything of an agent has to be gone."""


class HandClock:
    """Time passes when it is told to."""

    def __init__(self) -> None:
        self.time = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self.time + seconds, id(done), done))
        await done

    def sleeping(self) -> list[float]:
        """Returns how long those that wait have to wait still."""
        return sorted(due - self.time for due, _, done in self._waiting if not done.done())

    def advance(self, seconds: float) -> None:
        self.time += seconds
        while self._waiting and self._waiting[0][0] <= self.time:
            done = heapq.heappop(self._waiting)[2]
            if not done.done():
                done.set_result(None)


class Yard:
    """Where a test keeps its agents."""

    def __init__(self, path: Path, probes: Mapping[Tier, Probe], tier: Tier) -> None:
        self.path = path
        self.tier: Tier = tier
        self.socket = path / "hello.sock"
        self.home = Home(path, uuid.uuid4().hex)
        self.clock = HandClock()
        self.exits: asyncio.Queue[tuple[str, Exit, bool]] = asyncio.Queue()
        self.agents = LocalAgents()
        self.data = path / "data"
        self.data.mkdir()
        self.fleet = Fleet(
            self.agents,
            probes=probes,
            on_exit=lambda key, gone, again: self.exits.put_nowait((key, gone, again)),
            hidden=(self.data,),
            clock=self.clock,
        )
        self.says_hello = True
        self._heard: defaultdict[str, asyncio.Queue[Any]] = defaultdict(asyncio.Queue)
        self._links: dict[str, asyncio.StreamWriter] = {}
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_unix_server(self._hear, self.socket)

    async def close(self) -> None:
        await self.fleet.close()
        await self.agents.close()
        if self._server is not None:
            self._server.close()
        for link in self._links.values():
            link.close()
        self.home.close()

    def program(self, how: str, **more: Any) -> Program:
        argv = (sys.executable, "-S", "-B", str(HERE / "misbehave.py"), how)
        given = {"reads": (*this_python(), HERE), "tier": self.tier, "limits": Limits(), **more}
        return Program(name="anna", argv=argv, **given)

    async def start(self, program: Program | str, key: str = "anna", **env: str) -> Running | StartFailure:
        program = self.program(program) if isinstance(program, str) else program
        given = {"HELLO": str(self.socket), "KEY": key, MARK: self.home.mark, **env}
        return await asyncio.wait_for(self.fleet.start(program, key, given, socket=self.socket), PATIENCE_S)

    async def started(self, program: Program | str, key: str = "anna", **env: str) -> Running:
        running = await self.start(program, key, **env)
        assert isinstance(running, Running), running
        return running

    async def failed(self, program: Program | str, key: str = "anna", **env: str) -> StartFailure:
        failure = await self.start(program, key, **env)
        assert isinstance(failure, StartFailure), failure
        return failure

    async def heard(self, key: str = "anna") -> Any:
        """Returns the next thing that an agent says."""
        return await asyncio.wait_for(self._heard[key].get(), PATIENCE_S)

    def tell(self, key: str = "anna") -> None:
        """Lets an agent go on."""
        self._links[key].write(b"go\n")

    async def ended(self) -> tuple[str, Exit, bool]:
        return await asyncio.wait_for(self.exits.get(), PATIENCE_S)

    async def waits(self, seconds: float) -> None:
        """Returns when somebody waits for so many seconds."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while seconds not in self.clock.sleeping():
            assert asyncio.get_running_loop().time() < deadline, self.clock.sleeping()
            await asyncio.sleep(0.01)

    async def clean(self) -> None:
        """Returns when nothing of any agent is left, not even a zombie."""
        launcher = self.agents._process.pid
        await asyncio.to_thread(until, lambda: not self.alive() and not children_of(launcher), CLEAN_S, "left behind")

    def alive(self) -> list[int]:
        return self.home.alive()

    def scratch(self) -> list[str]:
        """Returns the fresh folders that there are."""
        assert self.fleet._scratch is not None
        return [path.name for path in self.fleet._scratch.iterdir()]

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                key, what = json.loads(line)
                if self._links.get(key) is not writer:
                    if key in self._links:
                        self._links[key].close()
                    self._links[key] = writer
                    if self.says_hello:
                        self.fleet.connected(key)
                self._heard[key].put_nowait(what)
        except ConnectionError:
            pass
        finally:
            writer.close()
