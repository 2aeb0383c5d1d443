"""Nothing acknowledged is lost or doubled, and nothing re-dealt, whenever the referee is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from referee_server.journal import unpack

from .kill import EXPORT, SERVICE, Kills, at_failpoint, at_random, drained, export, twice
from .referee import until
from .world import World

SEED = int(os.environ.get("REFEREE_TEST_SEED", "1"))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, SEED)
    yield world
    world.close()


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[World]:
    """A world of short matches, in which every place of the code is reached soon."""
    world = World(tmp_path, SEED, think_ms=5, short=True)
    yield world
    world.close()


def test_kills_at_any_moment_lose_nothing(world: World) -> None:
    kills = Kills()
    for _ in range(8):
        at_random(world, kills, most_s=0.8)
    twice(world, kills)
    world.start()
    assert world.listening()
    found = world.finish()
    assert found.good, found.details()
    assert found.acknowledged > 100
    assert found.resumed >= 8


@pytest.mark.timeout(180)
@pytest.mark.parametrize("half", [0, 1])
def test_kills_at_every_failpoint_lose_nothing(busy: World, half: int) -> None:
    kills = Kills()
    busy.start()
    assert busy.listening()
    busy.at_play()
    busy.kill()
    missed = [name for name in sorted(SERVICE)[half::2] if not at_failpoint(busy, kills, name)]
    assert missed == []
    busy.start()
    assert busy.listening()
    found = busy.finish()
    assert found.good, found.details()
    assert found.acknowledged > 100


def test_a_referee_that_is_told_to_stop_leaves_its_matches_to_the_next_one(busy: World) -> None:
    assert drained(busy) == 0
    busy.start()
    assert busy.listening()
    assert busy.referee.resumed > 0
    found = busy.finish()
    assert found.good, found.details()


def test_an_export_that_is_killed_leaves_no_half_file_under_the_name_of_a_whole_one(
    busy: World, tmp_path: Path
) -> None:
    busy.start()
    assert busy.listening()
    until(lambda: busy.look() and len(busy.over) > 1, "two matches end")
    assert busy.finish().good
    for name in sorted(EXPORT):
        out = tmp_path / name
        done = export(busy.data, out, f"{name}:2:kill")
        assert done.returncode == -signal.SIGKILL
        logs = list(out.glob("*.log"))
        assert len(logs) == 1
        assert unpack(logs[0].read_bytes()).match_id == logs[0].stem
