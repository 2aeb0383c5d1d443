"""The launcher: starts agent processes, keeps what they print, and leaves none behind.

A process that runs gRPC cannot fork reliably, so it starts this program first and talks to it in JSON lines: orders on
standard input, news on standard output. When the input ends, however that came about, everything is ended. What an
agent started itself is found by its process group; and since what loses its parent comes to the launcher, also where it
went into a session of its own.

Orders:

- `{"start": ID, "argv": [...], "env": {...}, "cwd": PATH, "limits": [[RESOURCE, SOFT, HARD], ...], "sandboxed": BOOL}`.
  With limits, even none, a process also cannot gain privileges. A sandboxed one is the program that makes the sandbox.
- `{"stop": ID}`
- `{"output": ID, "since": N}`: asks for what the process printed behind byte N, or only for how much that is: null.
- `{"remove": PATH}`: a folder to be removed when everything has ended.

News: `{"started": ID, "pid": N}`, or `{"failed": ID, "text": TEXT}`; `{"output": ID, "text": TEXT, "total": N}`;
`{"exited": ID, "code": N, "head": BASE64, "tail": BASE64, "lost": N}`. A negative code is the signal that ended it.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

KEEP: Final = 64 * 1024
"""How many bytes of the beginning and of the end of a process's output are kept."""
TERM_GRACE_S: Final = 2.0
"""How long a process may take to end after SIGTERM before its whole group is killed, in seconds."""
END_GRACE_S: Final = 1.0
"""The same when the orders have ended: whoever gave them may have been killed, and nothing is to outlive that long."""
NEWS_GRACE_S: Final = 2.0
"""How long whoever gave the orders may take to read the last news, in seconds."""
MARK: Final = "REFEREE_AGENT"
"""The variable by which the descendants of an agent are told from those of another: launcher's process id and name."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38


def _prctl(option: int, value: int) -> None:
    # Only Linux has it. Elsewhere process groups have to do.
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _prepare(limits: Sequence[tuple[int, int, int]] | None, *, sandboxed: bool) -> Callable[[], None]:
    """Returns what runs in the child before its program does. Safe here: the launcher has one thread."""
    launcher = os.getpid()

    def prepare() -> None:
        for number, soft, hard in limits or ():
            # Nobody but root may raise what he was given himself.
            most = resource.getrlimit(number)[1]
            if most != resource.RLIM_INFINITY:
                soft, hard = min(soft, most), min(hard, most)
            resource.setrlimit(number, (soft, hard))
        # What makes a sandbox may need privileges to do it; it takes them from what runs in there by itself.
        if limits is not None and not sandboxed:
            _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        # Should the launcher be killed, the child is too. It may have been killed before this line.
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != launcher:
            os._exit(1)

    return prepare


def children_of(pid: int) -> list[int]:
    """Returns the living and dead children of a process; none where /proc does not tell."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            # Behind the name, which may hold anything but ends with the last bracket: state, then parent.
            if int(stat.read_bytes().rpartition(b")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def mark_of(pid: int) -> str:
    """Returns the mark in a process's environment; empty when it has none, or took it off."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if line.startswith(MARK.encode() + b"="):
                return line.partition(b"=")[2].decode("utf-8", "replace")
    return ""


class Printed:
    """What a process has printed: the beginning and the end; the middle is counted.

    Attributes:
        head: the first bytes, at most `KEEP`.
        tail: the last bytes that are not in the head, at most `KEEP`.
        lost: the number of bytes between the two.
    """

    def __init__(self, head: bytes = b"", tail: bytes = b"", lost: int = 0) -> None:
        self.head = bytearray(head)
        self.tail = bytearray(tail)
        self.lost = lost

    @property
    def total(self) -> int:
        """How many bytes were printed."""
        return len(self.head) + self.lost + len(self.tail)

    def take(self, data: bytes) -> None:
        """Adds what was just printed."""
        room = KEEP - len(self.head)
        self.head += data[:room]
        self.tail += data[room:] if room > 0 else data
        if len(self.tail) > KEEP:
            self.lost += len(self.tail) - KEEP
            del self.tail[: len(self.tail) - KEEP]

    def text(self) -> str:
        """Returns what is kept, without control characters."""
        return _shown(bytes(self.head)) + (_gap(self.lost) if self.lost else "") + _shown(bytes(self.tail))

    def since(self, mark: int) -> str:
        """Returns the last `KEEP` bytes of what was printed behind a byte, without control characters."""
        printed = max(0, self.total - mark)
        # The tail alone is as long as that once there is a gap, so that no gap falls into it.
        kept = bytes(self.head + self.tail)[-min(printed, KEEP) :] if printed else b""
        return (_gap(printed - len(kept)) if printed > len(kept) else "") + _shown(kept)


def _gap(size: int) -> str:
    return f"\n… {size} bytes left out …\n"


def _shown(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


class _Child:
    def __init__(self, name: str, process: subprocess.Popen[bytes], *, sandboxed: bool) -> None:
        self.name = name
        self.process = process
        self.sandboxed = sandboxed
        self.output = Printed()
        self.kill_at: float | None = None


class Launcher:
    """The loop of the launcher."""

    def __init__(self, orders: int, news: int) -> None:
        self._orders = orders
        self._news = news
        self._selector = selectors.DefaultSelector()
        self._children: dict[str, _Child] = {}
        self._partial = b""
        self._unread = bytearray()
        self._removed_at_end: list[str] = []
        self._ending = False
        self._orphans = False

    def run(self) -> None:
        """Serves until the orders end, then ends everything."""
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        wake_read, wake_write = os.pipe()
        for end in (wake_read, wake_write):
            os.set_blocking(end, False)
        # Whoever gives orders may not read the news meanwhile. Were he waited for, each would wait for the other.
        os.set_blocking(self._news, False)
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
        for path in self._removed_at_end:
            shutil.rmtree(path, ignore_errors=True)
        until = time.monotonic() + NEWS_GRACE_S
        while self._unread and (left := until - time.monotonic()) > 0:
            self._selector.select(left)
            self._write()

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
        for pid in children_of(os.getpid()):
            if pid in known:
                continue
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                mark = mark_of(pid)
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
            elif "remove" in order:
                self._removed_at_end.append(order["remove"])
            elif order.get("output") in self._children:
                self._show(self._children[order["output"]], order["since"])
            elif order.get("stop") in self._children:
                self._stop(self._children[order["stop"]], TERM_GRACE_S)

    def _start(self, order: dict[str, Any]) -> None:
        name = order["start"]
        env = dict(os.environ if order.get("env") is None else order["env"])
        env[MARK] = self._mark(name)
        sandboxed = order.get("sandboxed", False)
        try:
            process = subprocess.Popen(
                order["argv"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=order.get("cwd"),
                start_new_session=True,
                umask=0o077,
                preexec_fn=_prepare(order.get("limits"), sandboxed=sandboxed),
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            why = getattr(error, "strerror", None) or str(error)
            what = getattr(error, "filename", None) or order["argv"][0]
            self._tell({"failed": name, "text": f"{why}: {what}"})
            return
        child = _Child(name, process, sandboxed=sandboxed)
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

    def _show(self, child: _Child, since: int | None) -> None:
        assert child.process.stdout is not None
        # What it printed before it was asked for may still be in the pipe.
        if child.process.stdout in self._selector.get_map():
            with contextlib.suppress(BlockingIOError):
                self._read(child)
        text = "" if since is None else child.output.since(since)
        self._tell({"output": child.name, "text": text, "total": child.output.total})

    def _stop(self, child: _Child, grace_s: float) -> None:
        kill_at = time.monotonic() + grace_s
        if child.kill_at is None:
            _terminate(child)
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
        code = child.process.returncode
        if child.sandboxed and code > 128:
            # The program that made the sandbox tells by a shell's custom which signal ended what was in it.
            code = 128 - code
        head, tail = (base64.b64encode(part).decode() for part in (child.output.head, child.output.tail))
        self._tell({"exited": child.name, "code": code, "head": head, "tail": tail, "lost": child.output.lost})

    def _tell(self, news: dict[str, Any]) -> None:
        self._unread += json.dumps(news).encode() + b"\n"
        self._write()

    def _write(self) -> None:
        try:
            while self._unread:
                del self._unread[: os.write(self._news, self._unread)]
        except BlockingIOError:
            if self._news not in self._selector.get_map():
                self._selector.register(self._news, selectors.EVENT_WRITE, self._write)
            return
        except BrokenPipeError:
            # Nobody is there to hear it any more; the end of the orders is near.
            self._unread.clear()
        if self._news in self._selector.get_map():
            self._selector.unregister(self._news)


def _terminate(child: _Child) -> None:
    """Sends SIGTERM to a process and its group; in a sandbox, to the program in it, so that it can say goodbye."""
    # The launcher's child made the sandbox, the child of that keeps it, and the child of that is the agent.
    inside = [pid for keeper in _begotten(child.process.pid) for pid in _begotten(keeper)] if child.sandboxed else []
    for pid in inside:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)
    if not inside:
        _signal_group(child, signal.SIGTERM)


def _begotten(pid: int) -> list[int]:
    """Returns the children of a process of one thread, without a look at all processes; none where that is not told."""
    try:
        return [int(number) for number in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []


def _signal_group(child: _Child, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.process.pid, number)


if __name__ == "__main__":
    Launcher(sys.stdin.fileno(), sys.stdout.fileno()).run()
