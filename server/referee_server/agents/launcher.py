"""The launcher: starts agent processes, keeps what they print, and leaves none behind.

A process that runs gRPC cannot fork reliably, so it starts this program first and talks to it in JSON lines: orders on
standard input, news on standard output. When the input ends, however that came about, everything is ended. What an
agent started itself is found by its process group; and since what loses its parent comes to the launcher, also where it
went into a session of its own.

Orders: `{"start": ID, "argv": [...], "env": {...}, "cwd": PATH}`, `{"stop": ID}`. News: `{"started": ID, "pid": N}`,
`{"exited": ID, "code": N, "output": TEXT, "lost": BYTES}`, where a negative code is the signal that ended it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

KEEP: Final = 64 * 1024
"""How many bytes of the beginning and of the end of a process's output are kept."""
TERM_GRACE_S: Final = 2.0
"""How long a process may take to end after SIGTERM before its whole group is killed, in seconds."""
END_GRACE_S: Final = 1.0
"""The same when the orders have ended: whoever gave them may have been killed, and nothing is to outlive that long."""
MARK: Final = "REFEREE_AGENT"
"""The variable by which the descendants of an agent are told from those of another: launcher's process id and name."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


def _prctl(option: int, value: int) -> None:
    # Only Linux has it. Elsewhere process groups have to do.
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_with_launcher() -> None:
    """Runs in the child: should the launcher be killed, the child is too. Safe here, the launcher has one thread."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _children_of(pid: int) -> list[int]:
    """Returns the living and dead children of a process; none where /proc does not tell."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            # Behind the name, which may hold anything but ends with the last bracket: state, then parent.
            if int(stat.read_bytes().rpartition(b")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def _mark_of(pid: int) -> str:
    """Returns the mark in a process's environment; empty when it has none, or took it off."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if line.startswith(MARK.encode() + b"="):
                return line.partition(b"=")[2].decode("utf-8", "replace")
    return ""


class _Output:
    """The beginning and the end of what a process prints; the middle is counted."""

    def __init__(self) -> None:
        self.head = bytearray()
        self.tail = bytearray()
        self.lost = 0

    def take(self, data: bytes) -> None:
        room = KEEP - len(self.head)
        self.head += data[:room]
        self.tail += data[room:] if room > 0 else data
        if len(self.tail) > KEEP:
            self.lost += len(self.tail) - KEEP
            del self.tail[: len(self.tail) - KEEP]

    def text(self) -> str:
        gap = f"\n… {self.lost} bytes left out …\n" if self.lost else ""
        text = self.head.decode("utf-8", "replace") + gap + self.tail.decode("utf-8", "replace")
        return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


class _Child:
    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.process = process
        self.output = _Output()
        self.kill_at: float | None = None


class Launcher:
    """The loop of the launcher."""

    def __init__(self, orders: int, news: int) -> None:
        self._orders = orders
        self._news = news
        self._selector = selectors.DefaultSelector()
        self._children: dict[str, _Child] = {}
        self._partial = b""
        self._ending = False
        self._orphans = False

    def run(self) -> None:
        """Serves until the orders end, then ends everything."""
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        wake_read, wake_write = os.pipe()
        for end in (wake_read, wake_write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake_write)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        # Ctrl-C in a terminal reaches the whole foreground group; who gives the orders decides what ends.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda number, frame: setattr(self, "_ending", True))
        self._selector.register(wake_read, selectors.EVENT_READ, lambda: self._wake(wake_read))
        self._selector.register(self._orders, selectors.EVENT_READ, self._take_orders)
        while not self._ending:
            self._turn()
        for child in self._children.values():
            self._stop(child, END_GRACE_S)
        while self._children or self._orphans:
            self._turn()

    def _turn(self) -> None:
        times = [child.kill_at for child in self._children.values() if child.kill_at is not None]
        timeout = max(0.0, min(times) - time.monotonic()) if times else None
        if self._orphans:
            timeout = 0.0
        for key, _ in self._selector.select(timeout):
            act: Callable[[], object] = key.data
            with contextlib.suppress(BlockingIOError):
                act()
        for child in list(self._children.values()):
            if child.kill_at is not None and time.monotonic() >= child.kill_at:
                _signal_group(child, signal.SIGKILL)
            # Looked at, not taken away yet: while it is there nothing else can have the number of its group.
            if os.waitid(os.P_PID, child.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                self._bury(child)
        if self._orphans:
            self._sweep()

    def _wake(self, pipe: int) -> None:
        os.read(pipe, 4096)
        self._orphans = True

    def _sweep(self) -> None:
        """Kills what agents that have ended left behind; what those still there have put aside is let be."""
        known = {child.process.pid for child in self._children.values()}
        marks = {self._mark(name) for name in self._children}
        self._orphans = False
        for pid in _children_of(os.getpid()):
            if pid in known:
                continue
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                mark = _mark_of(pid)
                if mark in marks or (marks and not mark):
                    continue
                try:
                    os.kill(pid, signal.SIGKILL)
                except PermissionError:
                    continue
                os.waitpid(pid, 0)
            # Its own children come to us now.
            self._orphans = True

    def _mark(self, name: str) -> str:
        return f"{os.getpid()}:{name}"

    def _take_orders(self) -> None:
        data = os.read(self._orders, 65536)
        if not data:
            self._ending = True
            self._selector.unregister(self._orders)
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if "start" in order:
                self._start(order)
            elif order.get("stop") in self._children:
                self._stop(self._children[order["stop"]], TERM_GRACE_S)

    def _start(self, order: dict[str, Any]) -> None:
        name = order["start"]
        env = dict(os.environ if order.get("env") is None else order["env"])
        env[MARK] = self._mark(name)
        try:
            process = subprocess.Popen(
                order["argv"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=order.get("cwd"),
                start_new_session=True,
                preexec_fn=_die_with_launcher,
            )
        except OSError as error:
            self._tell({"exited": name, "code": 127, "output": f"{error.strerror}: {order['argv'][0]}", "lost": 0})
            return
        child = _Child(name, process)
        self._children[name] = child
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        self._selector.register(process.stdout, selectors.EVENT_READ, lambda: self._read(child))
        self._tell({"started": name, "pid": process.pid})

    def _read(self, child: _Child) -> None:
        assert child.process.stdout is not None
        data = os.read(child.process.stdout.fileno(), 65536)
        if data:
            child.output.take(data)
        else:
            self._selector.unregister(child.process.stdout)

    def _stop(self, child: _Child, grace_s: float) -> None:
        kill_at = time.monotonic() + grace_s
        if child.kill_at is None:
            _signal_group(child, signal.SIGTERM)
            child.kill_at = kill_at
        child.kill_at = min(child.kill_at, kill_at)

    def _bury(self, child: _Child) -> None:
        # What it started and left behind goes with it.
        _signal_group(child, signal.SIGKILL)
        child.process.wait()
        self._orphans = True
        assert child.process.stdout is not None
        with contextlib.suppress(BlockingIOError, KeyError):
            while data := os.read(child.process.stdout.fileno(), 65536):
                child.output.take(data)
        with contextlib.suppress(KeyError):
            self._selector.unregister(child.process.stdout)
        child.process.stdout.close()
        del self._children[child.name]
        output = child.output
        self._tell(
            {"exited": child.name, "code": child.process.returncode, "output": output.text(), "lost": output.lost}
        )

    def _tell(self, news: dict[str, Any]) -> None:
        data = json.dumps(news).encode() + b"\n"
        # Nobody may be there to hear it any more; then the end of the orders is near.
        with contextlib.suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._news, data) :]


def _signal_group(child: _Child, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.process.pid, number)


if __name__ == "__main__":
    Launcher(sys.stdin.fileno(), sys.stdout.fileno()).run()
