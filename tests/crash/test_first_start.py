"""A referee that is killed at its very first start: the next one finds nothing in its way."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from .referee import Referee


@pytest.mark.parametrize("place", ["start.mark", "start.token", "start.open"])
def test_the_next_start_goes_well(tmp_path: Path, place: str) -> None:
    first = Referee(tmp_path / "data", failpoints=f"{place}:1:kill")
    try:
        assert first.wait() == -signal.SIGKILL
    finally:
        first.close()
    second = Referee(tmp_path / "data")
    try:
        assert second.listening(), second.text
        assert len(second.token) == 64
    finally:
        second.close()
