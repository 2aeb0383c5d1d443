"""The long runs work, shown by short ones. What they are to prove, only the long ones do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crash.referee import ROOT
from match.driver import Event
from referee_server.match import inputs

from . import connections, load, memory, restart, timing, watchers


def test_instant_agents_with_little_time_lose_none(tmp_path: Path) -> None:
    found = load.measure(tmp_path, decisions=5_000, matches=16)
    assert found.decisions >= 5_000
    assert found.losses == 0


def test_matches_in_flight_are_offered_again_soon_after_a_kill(tmp_path: Path) -> None:
    found = restart.measure(tmp_path, matches=30, hold=5)
    assert found.asked_s <= restart.LIMIT_S


def test_watchers_that_never_read_cost_nobody_a_decision(tmp_path: Path) -> None:
    found = watchers.measure(tmp_path, count=30, turns=1, turn_s=1.0)
    assert found.faults == 0
    assert found.rate > 0.2


def test_connections_for_no_good_cost_nobody_a_decision(tmp_path: Path) -> None:
    found = connections.measure(tmp_path, silent=100, resets=1_000)
    assert found.faults == 0
    assert found.decisions > 0


def test_the_cost_of_matches_is_measured_by_pieces(tmp_path: Path) -> None:
    found = memory.measure(tmp_path, pieces=3, piece=10)
    assert len(found.cpu_s) == len(found.rss) == 3


class Telltale(timing.Clocked):
    """Takes longer by up to a millisecond, by where the cards lie."""

    def step(self, given: inputs.Input, *, after: int = 0) -> list[Event]:
        made = super().step(given, after=after)
        if self.times_ns:
            self.times_ns[-1] += sum(place * card for place, card in enumerate(self.packs.get(0, ()))) % 97 * 10_000
        return made


def test_steps_of_two_worlds_that_look_alike_are_held_against_each_other() -> None:
    found = timing.measure(pairs=2, runs=4, seed=1, say=lambda _: None, make=Telltale)
    assert found.steps > 50
    assert found.shift_us > timing.LIMIT_US


@pytest.mark.parametrize(
    "command", ["kill", "load", "watchers", "restart", "frozen", "connections", "memory", "timing"]
)
def test_every_run_can_be_called(command: str) -> None:
    done = subprocess.run(
        [str(ROOT / "scripts" / "soak"), command, "--help"],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
