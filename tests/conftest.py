"""What all tests share: the flag for golden files, a game that comes from outside, a plain environment."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

TINY_GAME = Path(__file__).parent / "tiny_game"
"""Stands for an installed package with a game, module and metadata. Child processes find it by PYTHONPATH."""

# Before any test module is imported, since some list the games while they are collected.
if str(TINY_GAME) not in sys.path:
    sys.path.append(str(TINY_GAME))


# Who starts the tests in the background of a shell has them ignore Ctrl-C, and so would every process they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# As the commands set it for themselves: gRPC's own words on standard error are nobody's business.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew instead of comparing")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
