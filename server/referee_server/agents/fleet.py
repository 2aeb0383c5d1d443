"""Keeps the processes of local agents: started a few at a time, watched, started again, and stopped."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from referee_server.agents.isolation import IsolationError, Probe, Room, Tier, command, environment
from referee_server.agents.launcher import Printed
from referee_server.agents.limits import Limits
from referee_server.agents.local import Exit, LocalAgents
from referee_server.agents.restarts import MOST, Restarts

LAST: Final = 2000
"""How many characters of the end of an output are told with a failure."""


class Clock(Protocol):
    """What time it is, and how one waits."""

    def now(self) -> float:
        """Returns the time, in seconds of a monotonic clock."""

    async def sleep(self, seconds: float) -> None:
        """Waits."""


class _SystemClock:
    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Program:
    """How an entrant's agent is started.

    Attributes:
        name: the entrant.
        argv: the command and its arguments; it is not given to a shell.
        cwd: where it runs; None for a fresh folder, removed when the process has ended.
        env: what it finds in its environment beside PATH, LANG, HOME and TMPDIR.
        limits: what each of its processes may use.
        tier: how it is kept from the rest of the machine.
        reads: what it can read in a sandbox beside the runtime and `cwd`: its interpreter, its model.
        restarts: how often in a row it is started again when it ends by itself, 0 to 20. See `Restarts`.
    """

    name: str
    argv: tuple[str, ...]
    cwd: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    tier: Tier = "process"
    reads: tuple[Path, ...] = ()
    restarts: int = 3

    def __post_init__(self) -> None:
        """Raises ValueError for what cannot be started at all."""
        if not self.argv:
            raise ValueError(f"{self.name}: there is no command")
        if not 0 <= self.restarts <= MOST:
            raise ValueError(f"{self.name}: restarts must be from 0 to {MOST}, not {self.restarts}")


@dataclass(frozen=True, slots=True)
class StartFailure:
    """An agent was not started.

    Attributes:
        kind: `refused`: its isolation does not work here; `not_started`: there was no process; `exited`: it ended
            before it said hello; `no_hello`: it did not say hello in time; `stopped`: it was stopped meanwhile.
        text: the same in words, with the end of what it printed.
    """

    kind: Literal["refused", "not_started", "exited", "no_hello", "stopped"]
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the output of a process.

    Attributes:
        process: the process, as the launcher knows it.
        at: how many bytes it had printed.
    """

    process: str
    at: int


class Running:
    """An agent that has been started, through all its restarts.

    Attributes:
        key: what it was started as.
        program: how it was started.
        isolation: what keeps it from the rest of the machine, for the log: tier, and version of what makes it.
        process: the process that runs now, as the launcher knows it.
    """

    def __init__(self, agents: LocalAgents, key: str, program: Program, isolation: str) -> None:
        self.key = key
        self.program = program
        self.isolation = isolation
        self.process = ""
        self._agents = agents
        self._last: tuple[str, Printed] = ("", Printed())

    async def mark(self) -> Mark:
        """Returns the present end of its output."""
        process = self.process
        told = await self._agents.output(process, None)
        return Mark(process, told[1] if told is not None else self._kept(process).total)

    async def output_since(self, mark: Mark) -> str:
        """Returns what it printed behind a mark: the last 64 KiB, without control characters.

        Of a process that has ended meanwhile the output is kept until the next one ends. What was printed after a
        restart does not belong to the mark.
        """
        told = await self._agents.output(mark.process, mark.at)
        return told[0] if told is not None else self._kept(mark.process).since(mark.at)

    def _kept(self, process: str) -> Printed:
        return self._last[1] if self._last[0] == process else Printed()

    def _keep(self, gone: Exit) -> None:
        self._last = (gone.name, gone.printed)


class _Slot:
    """One key: what runs for it, and what is awaited of it."""

    def __init__(self, running: Running, argv: list[str], given: Mapping[str, str], tried: Probe) -> None:
        loop = asyncio.get_running_loop()
        self.running = running
        self.argv = argv
        self.given = given
        self.tried = tried
        self.first: asyncio.Future[StartFailure | None] = loop.create_future()
        self.hello: asyncio.Future[None] = loop.create_future()
        self.exit: asyncio.Future[Exit] = loop.create_future()
        self.scratch: Path | None = None
        self.stopping = False
        self.task: asyncio.Task[None] | None = None

    @property
    def sandboxed(self) -> bool:
        return self.tried.tier != "process"


class Fleet:
    """Keeps agent processes, each under a key of the owner's: an entrant, and which of his processes it is.

    It takes over `agents.exits`. The callback must not raise. It is told of every process that ended though nobody
    stopped it, but for one that never got as far as a hello when it was first started; and whether another one follows.
    """

    def __init__(
        self,
        agents: LocalAgents,
        *,
        probes: Mapping[Tier, Probe],
        on_exit: Callable[[str, Exit, bool], None],
        hidden: tuple[Path, ...],
        start_at_once: int = 2,
        start_limit_s: float = 60.0,
        clock: Clock | None = None,
    ) -> None:
        """Makes it; nothing is started yet.

        Args:
            agents: the launcher.
            probes: the tiers as probed at the start of the service.
            on_exit: told the key, how the process ended, and whether it is started again.
            hidden: folders that no sandbox may show: the referee's data.
            start_at_once: how many cold starts run at the same time, 1 or more; others wait, and their limit with them.
            start_limit_s: how long a process may take from its start until its hello, in seconds.
            clock: the clock for that, and for the waits before restarts.

        Raises:
            ValueError: fewer than one start at a time.
        """
        if start_at_once < 1:
            raise ValueError(f"at least one start at a time is needed, not {start_at_once}")
        self._agents = agents
        self._probes = probes
        self._on_exit = on_exit
        self._hidden = hidden
        self._turns = asyncio.Semaphore(start_at_once)
        self._start_limit_s = start_limit_s
        self._clock: Clock = clock or _SystemClock()
        self._slots: dict[str, _Slot] = {}
        self._live: dict[str, _Slot] = {}
        self._count = 0
        self._closed = False
        self._listener: asyncio.Task[None] | None = None
        self._scratch: Path | None = None

    async def start(
        self, program: Program, key: str, extra_env: Mapping[str, str], *, socket: Path | None = None
    ) -> Running | StartFailure:
        """Starts a process when its turn comes, and waits until `connected` is called for it, or cannot be any more.

        Args:
            program: what to start.
            key: what it is called; nothing that was started and not stopped may have that key.
            extra_env: more for its environment: where the referee is, who it is.
            socket: the referee's Unix socket, to be found in the sandbox too.

        Returns:
            The agent, or why there is none.

        Raises:
            ValueError: the key is taken.
        """
        if key in self._slots:
            raise ValueError(f"{key} has been started")
        tried = self._probes.get(program.tier) or Probe(program.tier, works=False, why="it was not probed")
        try:
            room = Room(cwd=program.cwd, reads=program.reads, hidden=self._hidden, socket=socket)
            argv = command(program.argv, tried, room)
        except IsolationError as error:
            return StartFailure("refused", f"{program.name}: {error}")
        if self._closed:
            return StartFailure("stopped", f"{program.name}: everything has been stopped")
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen())
        running = Running(self._agents, key, program, tried.label)
        slot = self._slots[key] = _Slot(running, argv, {**program.env, **extra_env}, tried)
        slot.task = asyncio.create_task(self._keep(key, slot))
        # Not in the task: one that is stopped before its first step never takes any.
        slot.task.add_done_callback(lambda task: self._forget(key, slot))
        try:
            failure = await asyncio.shield(slot.first)
        except asyncio.CancelledError:
            await self.stop(key)
            raise
        return slot.running if failure is None else failure

    def connected(self, key: str) -> None:
        """Says that the agent of a key said hello; of no consequence where nobody waits for it."""
        if (slot := self._slots.get(key)) is not None and not slot.hello.done():
            slot.hello.set_result(None)

    async def stop(self, key: str) -> None:
        """Ends the process of a key, and waits until it is gone; of no consequence where there is none."""
        slot = self._slots.get(key)
        if slot is None or slot.task is None:
            return
        if not slot.stopping:
            slot.stopping = True
            slot.task.cancel()
        await asyncio.wait([slot.task])

    async def close(self) -> None:
        """Stops everything, for good. The launcher is its owner's to close."""
        self._closed = True
        if self._slots:
            await asyncio.wait([asyncio.ensure_future(self.stop(key)) for key in self._slots])
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait([self._listener])
        if self._scratch is not None:
            # The launcher does it where this is not reached, but it may have been killed.
            await asyncio.to_thread(shutil.rmtree, self._scratch, ignore_errors=True)

    async def _keep(self, key: str, slot: _Slot) -> None:
        restarts = Restarts(slot.running.program.restarts)
        try:
            while True:
                failure = await self._launch(slot)
                if not slot.first.done():
                    slot.first.set_result(failure)
                    if failure is not None:
                        return
                since = self._clock.now()
                gone = await asyncio.shield(slot.exit)
                played_s = 0.0 if failure is not None else self._clock.now() - since
                await self._clear(slot)
                wait_s = restarts.ended(played_s)
                self._on_exit(key, gone, wait_s is not None)
                if wait_s is None:
                    return
                await self._clock.sleep(wait_s)
        finally:
            # It may be here because it was stopped; that happens once.
            slot.stopping = True
            await self._end(slot)
            await self._clear(slot)

    def _forget(self, key: str, slot: _Slot) -> None:
        del self._slots[key]
        if not slot.first.done():
            slot.first.set_result(StartFailure("stopped", f"{slot.running.program.name} was stopped"))

    async def _launch(self, slot: _Slot) -> StartFailure | None:
        """Starts a process in its turn, and waits for its hello; where that does not come, the process is gone."""
        name = slot.running.program.name
        async with self._turns:
            self._spawn(slot)
            limit = asyncio.ensure_future(self._clock.sleep(self._start_limit_s))
            awaited: list[asyncio.Future[Any]] = [slot.hello, slot.exit, limit]
            try:
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            finally:
                limit.cancel()
        if slot.hello.done():
            return None
        in_time = slot.exit.done()
        await self._end(slot)
        gone = slot.exit.result()
        if not gone.started:
            return StartFailure("not_started", f"{name} {gone.words()}")
        if in_time:
            # Where the sandbox could not be made, or what was to run in it is not there, its maker says so.
            none = slot.sandboxed and gone.output.startswith("bwrap: ")
            return StartFailure(
                "not_started" if none else "exited", f"{name} {gone.words()} before it said hello{_printed(gone)}"
            )
        text = f"{name} did not say hello within {self._start_limit_s:g} seconds{_printed(gone)}"
        return StartFailure("no_hello", text)

    def _spawn(self, slot: _Slot) -> None:
        program = slot.running.program
        self._count += 1
        process = f"{slot.running.key}#{self._count}"
        slot.hello = asyncio.get_running_loop().create_future()
        slot.exit = asyncio.get_running_loop().create_future()
        slot.running.process = process
        self._live[process] = slot
        try:
            slot.scratch = self._fresh_folder()
        except OSError as error:
            text = f"{error.strerror}: {error.filename}"
            self._agents.exits.put_nowait(Exit(process, 127, text, started=False))
            return
        cwd = program.cwd or slot.scratch
        self._agents.start(
            process,
            slot.argv,
            environment(slot.given, slot.tried, cwd, slot.scratch),
            str(cwd),
            limits=program.limits,
            sandboxed=slot.sandboxed,
        )

    def _fresh_folder(self) -> Path:
        # Machines tidy up /tmp, and a referee may run for weeks without a start.
        if self._scratch is None or not self._scratch.is_dir():
            self._scratch = Path(tempfile.mkdtemp(prefix="referee-agents-"))
            self._agents.remove_at_end(self._scratch)
        return Path(tempfile.mkdtemp(dir=self._scratch))

    async def _end(self, slot: _Slot) -> None:
        """Ends the process of a slot; of no consequence where there is none."""
        if slot.running.process and not slot.exit.done():
            self._agents.stop(slot.running.process)
            await asyncio.shield(slot.exit)

    async def _clear(self, slot: _Slot) -> None:
        if slot.scratch is not None:
            scratch, slot.scratch = slot.scratch, None
            await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)

    async def _listen(self) -> None:
        while True:
            gone = await self._agents.exits.get()
            if (slot := self._live.pop(gone.name, None)) is not None:
                slot.running._keep(gone)
                slot.exit.set_result(gone)


def _printed(gone: Exit) -> str:
    said = gone.output.strip()[-LAST:]
    return f"; the last it printed:\n{said}" if said else "; it printed nothing"
