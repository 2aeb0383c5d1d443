"""What all tests share: the flag for golden files, a game that comes from outside, a plain environment."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import hypothesis
import pytest

TINY_GAME = Path(__file__).parent / "tiny_game"
"""Stands for an installed package with a game, module and metadata. Child processes find it by PYTHONPATH."""

# Before any test module is imported, since some list the games while they are collected.
if str(TINY_GAME) not in sys.path:
    sys.path.append(str(TINY_GAME))


# Who starts the tests in the background of a shell has them ignore Ctrl-C, who starts them by `nohup` the end of the
# terminal, and so would every process they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
# As the commands set it for themselves: gRPC's own words on standard error are nobody's business.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# The same examples in every run, so that a failure is the fault of what was changed; `scripts/soak properties` draws
# new ones. A slow machine is no failure: speed is judged by `referee bench`.
_PLAIN = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("fixed", _PLAIN, derandomize=True, database=None)
hypothesis.settings.register_profile("drawn", _PLAIN, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew instead of comparing")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
