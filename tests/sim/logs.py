"""The referee's log lines, looked at instead of printed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

_OURS = ("match_failed", "call_failed", "telling_failed")
"""What the referee says when it is itself at fault."""


@contextmanager
def captured(
    look: Callable[[str], None],
    fail: Callable[[str], None],
    expected: Container[str],
    muted: Callable[[], bool],
) -> Iterator[None]:
    """Hands the text of every log line to `look`, and calls `fail` for one that tells of a fault of the referee's.

    What it says of matches in `expected` is no surprise, and nothing counts while it is muted.
    """

    def take(logger: object, method: str, line: MutableMapping[str, Any]) -> str:
        if not muted():
            look(" ".join(f"{key}={value}" for key, value in line.items()))
            if (line["event"] in _OURS or method == "exception") and line.get("match_id") not in expected:
                import traceback

                fail(f"the referee says {line['event']}: {traceback.format_exc(limit=-9)}")
        raise structlog.DropEvent

    kept = structlog.get_config()
    structlog.configure(processors=[structlog.contextvars.merge_contextvars, take], cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**kept)
