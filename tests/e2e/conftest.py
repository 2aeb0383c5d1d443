"""What the end-to-end tests share."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from .kit import BOTS4, Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A corner of its own for each test; nothing that was started there outlives it."""
    home = Home(tmp_path, uuid.uuid4().hex)
    yield home
    home.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A corner that the tests of a module share, for those that only read."""
    home = Home(tmp_path_factory.mktemp("shared"), uuid.uuid4().hex)
    yield home
    home.close()


@pytest.fixture(scope="module")
def played(shared: Home) -> Home:
    """A data folder with three matches of Guillotine, of one deal a dealer, and one of Regicide; nobody serves it."""
    service = shared.serve()
    shared.ok("match", "guillotine", *BOTS4, "--matches", 3, "--option", "deals_per_dealer=1", "--label", "three")
    shared.ok("match", "regicide", "--seat", "greedy", "--seat", "first", "--option", "target=10")
    assert service.stop() == 0
    return shared
