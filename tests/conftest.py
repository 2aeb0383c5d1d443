"""What all tests share: the flag for golden files, and a game that comes from outside."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TINY_GAME = Path(__file__).parent / "tiny_game"
"""Stands for an installed package with a game, module and metadata. Child processes find it by PYTHONPATH."""

# Before any test module is imported, since some list the games while they are collected.
if str(TINY_GAME) not in sys.path:
    sys.path.append(str(TINY_GAME))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew instead of comparing")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
