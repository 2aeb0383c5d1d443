from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from referee_server.journal import Journal, MemoryJournal, SqliteJournal


@pytest.fixture(params=["memory", "sqlite"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    """An empty journal of each implementation in turn."""
    made: Journal = MemoryJournal() if request.param == "memory" else SqliteJournal(tmp_path / "journal.db")
    yield made
    made.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"
