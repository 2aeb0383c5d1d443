"""What the tests of the client share."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

TOKEN = "0123456789abcdef" * 4


@pytest.fixture(autouse=True)
def _config_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps the credentials of whoever runs the tests out of them."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def play() -> Callable[..., Awaitable[Any]]:
    """`client.play` with waits that a test can afford."""
    from referee_client import client

    async def quick(agent: Any, address: str, **options: Any) -> Any:
        options.setdefault("credential", TOKEN)
        options.setdefault("connect_timeout", 10.0)
        return await client.play(agent, address, backoff=client.Backoff(0.001, 0.01), **options)

    return quick
