"""Failpoints: places at which a test makes the referee fail, to prove what it promises about failing.

The environment variable REFEREE_FAILPOINTS says where and how: `NAME:WHEN:ACTION`, several separated by commas. WHEN
counts how often the place was reached, from 1: `3`, `3-5`, or `3-` for ever from then on. ACTION is one of

- `kill`: the process kills itself, as `kill -9` would;
- `raise`: a `FailpointError`;
- `sleep=S`: the thread sleeps S seconds, and with it the event loop if that is the one;
- `io`: an `OSError` with EIO;
- `full`: what SQLite raises when no space is left.

Whatever a failpoint does it says on standard error first, in one line. Without the variable `hit` is a function that
does nothing, so code calls it through the module: `failpoints.hit("commit.before")`.
"""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

VARIABLE: Final = "REFEREE_FAILPOINTS"

NAMES: Final = frozenset(
    {
        # An answer on its way in, and what it brings about on its way out.
        "read.after",
        "parse.after",
        "decide.before",
        "decide.after",
        "commit.before",
        "begin.before",
        "insert.after",
        "journal.commit.before",
        "journal.commit.after",
        "commit.after",
        "tell.before",
        "tell.after",
        "write.before",
        "write.after",
        # The life of a match.
        "match.create",
        "match.created",
        "match.seal",
        "match.reveal",
        "match.over",
        "archive.before",
        "archive.after",
        # The rest.
        "agent.register",
        "agent.attach",
        "checkpoint.before",
        "checkpoint.after",
        "start.mark",
        "start.token",
        "start.open",
        "start.resume",
        "start.resumed",
        "stop.drain",
        "stop.close",
        "export.file",
        "export.rename",
    }
)
"""All places there are."""


class FailpointError(RuntimeError):
    """A failpoint was told to raise."""


@dataclass(frozen=True, slots=True)
class _Point:
    first: int
    last: int | None
    action: str
    seconds: float = 0.0


def _parse_one(text: str) -> tuple[str, _Point]:
    name, when, action = text.strip().split(":")
    if name not in NAMES:
        raise ValueError(f"there is no failpoint {name!r}")
    first, dash, last = when.partition("-")
    kind, _, value = action.partition("=")
    if kind not in _ACTIONS or bool(value) != (kind == "sleep"):
        raise ValueError(f"a failpoint cannot {action!r}")
    numbers = int(first), int(last) if last else None if dash else int(first)
    return name, _Point(*numbers, kind, float(value or 0))


def parse(text: str) -> dict[str, _Point]:
    """Returns what the variable's text asks for, by name.

    Raises:
        ValueError: it is not of that form, or names a place that does not exist.
    """
    return dict(_parse_one(part) for part in text.split(",") if part.strip())


class Failpoints:
    """Counts how often each place is reached, and fails where it was told to.

    Attributes:
        counts: how often each place was reached.
    """

    def __init__(self, points: Mapping[str, _Point]) -> None:
        self._points = points
        self._lock = threading.Lock()
        self.counts: dict[str, int] = {}

    def hit(self, name: str) -> None:
        """Takes note that a place is reached, and does there what it was told to."""
        with self._lock:
            count = self.counts[name] = self.counts.get(name, 0) + 1
        point = self._points.get(name)
        if point is None or count < point.first or (point.last is not None and count > point.last):
            return
        os.write(
            sys.__stderr__.fileno() if sys.__stderr__ else 2, f"failpoint {name} {count} {point.action}\n".encode()
        )
        _ACTIONS[point.action](point)


def _kill(point: _Point) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raise(point: _Point) -> None:
    raise FailpointError("a failpoint was told to raise")


def _sleep(point: _Point) -> None:
    time.sleep(point.seconds)


def _io(point: _Point) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def _full(point: _Point) -> None:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    raise error


_ACTIONS: Final[Mapping[str, Callable[[_Point], None]]] = {
    "kill": _kill,
    "raise": _raise,
    "sleep": _sleep,
    "io": _io,
    "full": _full,
}


def _nothing(name: str) -> None:
    """Is what `hit` does while nobody asked for a failure."""


hit: Callable[[str], None] = _nothing
"""To be called at each place, with its name."""

if os.environ.get(VARIABLE):
    hit = Failpoints(parse(os.environ[VARIABLE])).hit
