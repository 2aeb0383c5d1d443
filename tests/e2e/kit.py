"""What the end-to-end tests are made of: the real command line, a real service, real agents, and who is still alive."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REFEREE = [sys.executable, "-m", "referee_server.entry"]
MARK = "REFEREE_TEST_MARK"
"""A variable that everything a test starts inherits: what is still alive with it has been left behind."""
PATIENCE_S = 60.0
"""How long to wait for an event that is sure to come, on a busy machine."""

BOTS4 = ("--seat", "greedy", "--seat", "first", "--seat", "random:3", "--seat", "stride")
SEED = "5e" * 32


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


class Process:
    """A child whose output is read all the time, line by line, so that a test can wait for a word."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], **options: Any) -> None:
        self.argv = list(argv)
        self.lines: list[str] = []
        self._fresh: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.popen = subprocess.Popen(
            self.argv,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            **options,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self.lines.append(line.rstrip("\n"))
            self._fresh.put(line.rstrip("\n"))
        self._fresh.put(None)

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, word: str) -> str:
        """Returns the next line not yet looked at that holds a word."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                line = self._fresh.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"{self.argv} did not say {word!r}:\n{self.output}") from None
            if line is None:
                raise AssertionError(f"{self.argv} ended without saying {word!r}:\n{self.output}")
            if word in line:
                return line

    def wait(self) -> int:
        code = self.popen.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.popen.send_signal(number)
        return self.wait()

    def close(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        self._reader.join(PATIENCE_S)
        if self.popen.stdout is not None:
            self.popen.stdout.close()


class Service(Process):
    """A running `referee serve`."""

    address: str

    def __init__(self, home: Home, data: Path, *options: str, listen: str = "127.0.0.1:0") -> None:
        super().__init__([*REFEREE, "serve", "--listen", listen, "--data", str(data), *options], home.env)
        self.data = data

    def listening(self) -> Service:
        """Waits for its word that it listens."""
        said = json.loads(self.wait_for('"event": "listening"'))
        self.address = said["address"]
        self.resumed = said["resumed"]
        return self


class Home:
    """One test's corner: a folder, an environment, and everything that was started there."""

    def __init__(self, path: Path, mark: str) -> None:
        self.path = path
        self.data = path / "data"
        self.mark = mark
        self.env = {
            **os.environ,
            MARK: mark,
            "XDG_CONFIG_HOME": str(path / "config"),
            "REFEREE_DATA": str(self.data),
            "PYTHONUNBUFFERED": "1",
        }
        self.started: list[Process] = []

    def run(self, *args: object, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Done:
        """Runs a command to its end."""
        done = subprocess.run(
            [*REFEREE, *map(str, args)],
            env=dict(env or self.env),
            cwd=cwd or self.path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def ok(self, *args: object, cwd: Path | None = None) -> Done:
        """Runs a command that has to succeed."""
        done = self.run(*args, cwd=cwd)
        assert done.code == 0, done
        return done

    def start(self, *args: object, env: Mapping[str, str] | None = None) -> Process:
        """Starts a command."""
        return self.spawn([*REFEREE, *map(str, args)], env=env)

    def spawn(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> Process:
        """Starts any program."""
        process = Process(argv, env or self.env, cwd=self.path)
        self.started.append(process)
        return process

    def serve(self, *options: str, data: Path | None = None, listen: str = "127.0.0.1:0") -> Service:
        """Starts a service and waits until it listens."""
        service = Service(self, data or self.data, *options, listen=listen)
        self.started.append(service)
        return service.listening()

    def agent(self, bot: str, address: str, name: str = "", *more: str) -> Process:
        """Starts a house bot as a process of its own."""
        return self.start("agent", bot, "--connect", address, "--name", name or bot, *more)

    def alive(self) -> list[int]:
        """Returns what is alive of all that was started here, at whatever remove."""
        found = []
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                ours = f"{MARK}={self.mark}".encode() in environ.read_bytes().split(b"\0")
            except OSError:
                continue
            if ours:
                found.append(int(environ.parent.name))
        return found

    def close(self) -> None:
        for process in reversed(self.started):
            process.close()
        for pid in self.alive():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def until(condition: Callable[[], Any], seconds: float = PATIENCE_S, what: str = "") -> Any:
    """Waits for something that can only be asked for; returns it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or condition}"
        time.sleep(0.01)
    return found
