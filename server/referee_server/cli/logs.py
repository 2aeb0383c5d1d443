"""Logging of the service: structlog, to standard error, for a person or as JSON lines."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

import structlog


def configure(level: str, *, as_json: bool | None = None) -> None:
    """Sets up structlog and the standard library's logging to the same end.

    Args:
        level: `debug`, `info`, `warning` or `error`.
        as_json: whether to write JSON lines; None decides by whether standard error is a terminal.
    """
    as_json = not sys.stderr.isatty() if as_json is None else as_json
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer: Any = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    handler.addFilter(_is_news)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def _is_news(record: logging.LogRecord) -> bool:
    """Leaves out what libraries say of calls that were cancelled at the stop: that is how they end then."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))
