from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tables.kit import Room


@pytest.fixture
async def room() -> AsyncIterator[Room]:
    """A hall in memory whose clock stands still."""
    made = Room()
    yield made
    await made.close()
