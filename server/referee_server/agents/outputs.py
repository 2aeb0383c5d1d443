"""Where the output of agents is kept, by match and seat."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

FOLDER: Final = "outputs"
"""The folder of outputs in the data folder."""
_ID: Final = re.compile(r"[a-z2-7]{26}")


def store_output(data: Path, match_id: str, seat: int, text: str) -> Path:
    """Writes what an agent printed during a match to a file that only the service's user can read.

    An earlier output of the same seat in the same match is replaced. The name is made of ids alone, never of anything
    that an agent or its author chose.

    Args:
        data: the referee's data folder.
        match_id: the match, 26 characters a-z 2-7.
        seat: the seat, 0 to 99.
        text: the output, without control characters.

    Returns:
        The file.

    Raises:
        ValueError: match or seat are none.
        OSError: it cannot be written.
    """
    if not _ID.fullmatch(match_id) or not 0 <= seat <= 99:
        raise ValueError(f"no output is kept for match {match_id!r}, seat {seat}")
    folder = data / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{match_id}-{seat}.txt"
    fresh = path.with_suffix(".new")
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(file, "w", encoding="utf-8", errors="replace") as stream:
        stream.write(text)
    fresh.replace(path)
    return path
