"""Local agent processes, as the service sees them. Make it before gRPC is in use: it forks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_KILL_S: Final = 5.0
"""How long the launcher may take to end everything before it is killed itself, in seconds."""


@dataclass(frozen=True, slots=True)
class Exit:
    """A process has ended.

    Attributes:
        name: the process, as it was started.
        code: its exit code; negative for the signal that ended it, 127 when it could not be started.
        output: the beginning and the end of what it printed, without control characters.
    """

    name: str
    code: int
    output: str


class LocalAgents:
    """Starts and stops agent processes through the launcher.

    Attributes:
        exits: processes that have ended, in that order.
        pids: process ids, by name; each leads a group of its own.
    """

    def __init__(self) -> None:
        """Starts the launcher."""
        self.exits: asyncio.Queue[Exit] = asyncio.Queue()
        self.pids: dict[str, int] = {}
        self._live: set[str] = set()
        self._reader: asyncio.Task[None] | None = None
        self._process = subprocess.Popen(
            # -I would lose the path of an uninstalled checkout; the file is run as a program of its own.
            [sys.executable, "-m", "referee_server.agents.launcher"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def start(
        self, name: str, argv: Sequence[str], env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> None:
        """Starts a process; how it ends comes through `exits`."""
        self._live.add(name)
        self._order({"start": name, "argv": list(argv), "env": dict(os.environ if env is None else env), "cwd": cwd})

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
                news = json.loads(line)
                if "started" in news:
                    self.pids[news["started"]] = news["pid"]
                elif "exited" in news:
                    self._live.discard(news["exited"])
                    self.exits.put_nowait(Exit(news["exited"], news["code"], news["output"]))
        finally:
            transport.close()
        for name in sorted(self._live):
            self.exits.put_nowait(Exit(name, -signal.SIGKILL, "the launcher was killed, and with it this process"))
        self._live.clear()

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
