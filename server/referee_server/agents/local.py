"""Local agent processes, as the service sees them. Make it before gRPC is in use: it forks."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from referee_server.agents.launcher import Printed, mark_of
from referee_server.agents.limits import Limits

_KILL_S: Final = 5.0
"""How long the launcher may take to end everything before it is killed itself, in seconds."""


_CAUSES: Final = {
    signal.SIGXCPU: "it used more processor time than its limit",
    signal.SIGXFSZ: "it wrote a file larger than its limit",
}


@dataclass(frozen=True, slots=True)
class Exit:
    """A process has ended.

    Attributes:
        name: the process, as it was started.
        code: its exit code; negative for the signal that ended it, 127 when it could not be started.
        output: the beginning and the end of what it printed, without control characters; why it could not be started.
        printed: the same, as bytes.
        started: whether there was a process at all.
    """

    name: str
    code: int
    output: str
    printed: Printed = field(default_factory=Printed, compare=False, repr=False)
    started: bool = field(default=True, compare=False)

    def words(self) -> str:
        """Returns in a few words how it ended."""
        if not self.started:
            return f"could not be started: {self.output}"
        if self.code >= 0:
            return f"ended with exit code {self.code}"
        try:
            number = signal.Signals(-self.code)
        except ValueError:
            return f"was ended by signal {-self.code}"
        cause = f": {_CAUSES[number]}" if number in _CAUSES else ""
        return f"was ended by {number.name}{cause}"


class LocalAgents:
    """Starts and stops agent processes through the launcher.

    Attributes:
        exits: processes that have ended, in that order.
        pids: process ids of those that run, by name; each leads a group of its own.
    """

    def __init__(self) -> None:
        """Starts the launcher."""
        self.exits: asyncio.Queue[Exit] = asyncio.Queue()
        self.pids: dict[str, int] = {}
        self._live: set[str] = set()
        self._asked: dict[str, list[asyncio.Future[tuple[str, int] | None]]] = {}
        self._closing = False
        self._gone = False
        self._reader: asyncio.Task[None] | None = None
        self._process = subprocess.Popen(
            # -I would lose the path of an uninstalled checkout; the file is run as a program of its own.
            [sys.executable, "-m", "referee_server.agents.launcher"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def start(
        self,
        name: str,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        *,
        limits: Limits | None = None,
        sandboxed: bool = False,
    ) -> None:
        """Starts a process; how it ends comes through `exits`.

        Args:
            name: what it is called from now on; nothing that runs may have that name.
            argv: the program and its arguments.
            env: its whole environment; None for that of this process.
            cwd: where it runs; None for the folder of this process.
            limits: what it may use; with them it cannot gain privileges either.
            sandboxed: whether `argv` is a program that makes a sandbox, and the agent what runs in it.

        Raises:
            ValueError: a process of that name is running.
        """
        if name in self._live:
            raise ValueError(f"{name} is running")
        if self._gone:
            text = "the launcher was killed; restart the service to start agents again"
            self.exits.put_nowait(Exit(name, 127, text, started=False))
            return
        self._live.add(name)
        order: dict[str, Any] = {"start": name, "argv": list(argv), "cwd": cwd, "sandboxed": sandboxed}
        order["env"] = dict(os.environ if env is None else env)
        order["limits"] = None if limits is None else limits.resources()
        self._order(order)

    def remove_at_end(self, folder: Path) -> None:
        """Has a folder removed when every process has ended, also where this process does not live to do it."""
        self._order({"remove": str(folder)})

    async def output(self, name: str, since: int | None) -> tuple[str, int] | None:
        """Asks what a process has printed.

        Args:
            name: the process.
            since: how many bytes to leave out; None to learn the number only.

        Returns:
            The last 64 KiB of what it printed behind those, without control characters, and how many bytes it has
            printed in all; None when it has ended.
        """
        if name not in self._live:
            return None
        answer: asyncio.Future[tuple[str, int] | None] = asyncio.get_running_loop().create_future()
        self._asked.setdefault(name, []).append(answer)
        self._order({"output": name, "since": since})
        return await answer

    def stop(self, name: str) -> None:
        """Ends a process: SIGTERM, then SIGKILL to its group."""
        self._order({"stop": name})

    def _order(self, order: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        if self._reader is None:
            self._reader = asyncio.ensure_future(self._read())
        # A launcher that has been killed is noticed by its reader, which reports every process as ended.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        reader = asyncio.StreamReader(limit=1 << 20)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self._process.stdout)
        try:
            while line := await reader.readline():
                self._hear(json.loads(line))
        finally:
            transport.close()
        self._gone = True
        if not self._closing:
            self._kill_left()
        for name in sorted(self._live):
            self._ended(Exit(name, -signal.SIGKILL, "the launcher was killed, and with it this process"))

    def _hear(self, news: dict[str, Any]) -> None:
        if "started" in news:
            self.pids[news["started"]] = news["pid"]
        elif "output" in news:
            # The launcher answers in the order of the questions. Who asked may be gone; the answer is still his.
            answer = self._asked[news["output"]].pop(0)
            if not answer.done():
                answer.set_result((news["text"], news["total"]))
        elif "failed" in news:
            self._ended(Exit(news["failed"], 127, news["text"], started=False))
        elif "exited" in news:
            head, tail = base64.b64decode(news["head"]), base64.b64decode(news["tail"])
            printed = Printed(head, tail, news["lost"])
            self._ended(Exit(news["exited"], news["code"], printed.text(), printed))

    def _ended(self, gone: Exit) -> None:
        self._live.discard(gone.name)
        self.pids.pop(gone.name, None)
        for answer in self._asked.pop(gone.name, ()):
            if not answer.done():
                answer.set_result(None)
        self.exits.put_nowait(gone)

    def _kill_left(self) -> None:
        """Kills what agents had started when their launcher was killed; the agents died with it."""
        ours = f"{self._process.pid}:"
        for folder in Path("/proc").glob("[0-9]*"):
            if mark_of(int(folder.name)).startswith(ours):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(folder.name), signal.SIGKILL)

    def kill(self) -> None:
        """Ends every process and the launcher, where `close` was not reached and no loop runs any more."""
        if self._process.poll() is None:
            self._end_orders()
            try:
                self._process.wait(_KILL_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _end_orders(self) -> None:
        assert self._process.stdin is not None
        self._closing = True
        # Closing flushes, and that fails when the launcher is gone.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    async def close(self) -> None:
        """Ends every process and the launcher."""
        self._end_orders()
        if self._reader is not None:
            await self._reader
        await asyncio.to_thread(self._process.wait)
        if self._process.stdout is not None:
            self._process.stdout.close()
