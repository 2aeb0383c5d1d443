"""What the referee runs on: which versions of Python and of the libraries fit, and what is said of those that do not.

This much has to be readable by Pythons that are too old, too.
"""

from __future__ import annotations

import re
import sys

PYTHON = (3, 11)
"""The oldest Python."""
PROTOBUF = ((6, 31, 1), (8,))
"""The oldest protobuf, and the first that is too new: the generated code asks for no more and no less."""
GRPCIO = (1, 76)
"""The oldest grpcio."""
SQLITE = (3, 31)
"""The oldest SQLite. It knows PRAGMA trusted_schema, which older ones pass over in silence, and all else that is used:
tables without rowid (3.8.2), partial indexes (3.8.0), journals with a write-ahead log that are only read (3.22.0)."""
COMPILED = "upb"
"""The protobuf back end that is written in C. The one in Python is slow, and goes wrong with deep nesting."""


def misfits(python: str, protobuf: str | None, backend: str | None, grpcio: str | None, sqlite: str) -> list[str]:
    """Returns a line for each thing that does not fit, none where all is well.

    Args:
        python: its version; like all versions as its owner writes it, `3.12.0rc1` for example.
        protobuf: version of protobuf; None where nobody can tell.
        backend: what protobuf's parser is made of; None where nobody can tell.
        grpcio: version of grpcio; None where nobody can tell.
        sqlite: version of SQLite.
    """
    lines = []
    if _numbers(python) < PYTHON:
        lines.append(f"Python {python} is too old; the referee needs {_dotted(PYTHON)} or newer")
    oldest, too_new = PROTOBUF
    if protobuf is not None and not oldest <= _numbers(protobuf) < too_new:
        wanted = f"protobuf>={_dotted(oldest)},<{_dotted(too_new)}"
        lines.append(f"protobuf {protobuf} does not fit; pip install '{wanted}'")
    if backend is not None and backend != COMPILED:
        lines.append(
            f"protobuf runs without its compiled parser ({backend} instead of {COMPILED}); unset "
            "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION, or install a protobuf that was built for this Python"
        )
    if grpcio is not None and _numbers(grpcio) < GRPCIO:
        lines.append(f"grpcio {grpcio} is too old; pip install 'grpcio>={_dotted(GRPCIO)}'")
    if _numbers(sqlite) < SQLITE:
        lines.append(f"SQLite {sqlite} is too old; use a Python that was built with {_dotted(SQLITE)} or newer")
    return lines


def misfits_here() -> list[str]:
    """Returns what does not fit where this runs."""
    import sqlite3

    python = _dotted(tuple(sys.version_info[:3]))
    return misfits(python, _version("protobuf"), _backend(), _version("grpcio"), sqlite3.sqlite_version)


def _version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _backend() -> str | None:
    try:
        import google.protobuf  # noqa: F401  whether it is there at all
    except ImportError:
        return None
    try:
        from google.protobuf.internal import api_implementation

        return api_implementation.Type()
    except (ImportError, ValueError):
        return "nothing"


def _numbers(version: str) -> tuple[int, ...]:
    """Returns the numbers a version begins with."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in found.group().split(".")) if found else ()


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
