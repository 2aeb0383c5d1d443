"""The engines against matches of random legal play that a separate, naive implementation of the rules recorded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .play import referee_again

HOME = Path(__file__).parent.parent / "data" / "vectors"
FOLDERS = [HOME, *(Path(folder) for folder in [os.environ.get("REFEREE_VECTORS", "")] if folder)]


def vectors() -> Iterator[Any]:
    for folder in FOLDERS:
        for path in sorted(folder.glob("*.jsonl")):
            with path.open(encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    yield pytest.param(line, id=f"{path.stem}-{number}")


@pytest.mark.parametrize("line", list(vectors()))
def test_a_vector_is_offered_the_same_choices_and_ends_with_the_same_scores(line: str) -> None:
    referee_again(json.loads(line))
