"""Storage that fails under a running referee: nothing is acknowledged that is not stored, and nobody pays for it."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import grpc
import pytest

from referee.v1 import match_pb2

from .audit import audit
from .referee import Referee, reason_of, until
from .world import World

SPEC = match_pb2.MatchSpec(game="regicide", seats=[match_pb2.SeatSpec(bot="first"), match_pb2.SeatSpec(bot="first")])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, 1, think_ms=5, short=True)
    yield world
    world.close()


@pytest.fixture
def referee(tmp_path: Path) -> Iterator[Referee]:
    """A referee without agents."""
    referee = Referee(tmp_path / "data")
    yield referee
    referee.close()


def refused_creation(world: World) -> tuple[str, str]:
    with world.referee.host() as host, pytest.raises(grpc.RpcError) as refused:
        host.create(SPEC)
    return reason_of(refused.value)


class TestFull:
    @pytest.fixture
    def full(self, world: World) -> World:
        """A world at play whose disk has just filled up, and will have space again in some three seconds."""
        world.start("begin.before:150-152:full")
        assert world.listening()
        assert world.referee.wait_for("storage_away")
        return world

    def test_what_cannot_be_stored_is_refused_as_such(self, full: World) -> None:
        assert refused_creation(full) == ("UNAVAILABLE", "STORAGE")

    def test_health_says_so_until_space_is_there_again(self, full: World) -> None:
        with full.referee.host() as host:
            assert not host.serving()
            assert full.referee.wait_for("storage_back")
            until(host.serving, "health says that it serves")

    def test_whatever_anybody_was_told_is_stored_then_and_there(self, full: World) -> None:
        full.look()
        found = audit(full.data / "journal.db", full.tail.entries, full.created, all_ended=False)
        assert found.good, found.details()
        assert found.acknowledged > 0

    def test_matches_go_on_when_space_is_there_again_and_nobody_pays(self, full: World) -> None:
        assert full.referee.wait_for("storage_back")
        full.at_play()
        found = full.finish()
        assert found.good, found.details()
        assert found.acknowledged > 100

    def test_a_referee_without_space_stops_in_good_order(self, world: World) -> None:
        world.start("begin.before:150-:full")
        assert world.listening()
        assert world.referee.wait_for("storage_away")
        code = world.referee.stop()
        assert "Traceback" not in world.referee.text
        assert code == 74
        world.start()
        assert world.listening()
        found = world.finish()
        assert found.good, found.details()


class TestBroken:
    def test_a_write_that_fails_stops_the_referee_and_nothing_told_before_is_lost(self, world: World) -> None:
        world.start("begin.before:150:io")
        assert world.listening()
        assert world.referee.wait() == 74
        assert "Traceback (most recent call last):\n" not in world.referee.text + "\n"
        world.start()
        assert world.listening()
        found = world.finish()
        assert found.good, found.details()

    def test_a_file_that_may_not_grow_stops_the_referee(self, world: World) -> None:
        world.start()
        assert world.listening()
        world.at_play()
        wal = world.data / "journal.db-wal"
        # The kernel refuses the next write behind this place, which SQLite takes for an error of the disk.
        _, hard = resource.prlimit(world.referee.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(world.referee.pid, resource.RLIMIT_FSIZE, (wal.stat().st_size + 8_192, hard))
        assert world.referee.wait() == 74
        world.start()
        assert world.listening()
        found = world.finish()
        assert found.good, found.details()

    @pytest.mark.parametrize("how", ["deleted", "renamed", "replaced"])
    def test_a_database_that_is_gone_is_noticed_by_an_idle_referee_too(self, referee: Referee, how: str) -> None:
        assert referee.listening()
        database = referee.data / "journal.db"
        if how == "deleted":
            database.unlink()
        elif how == "renamed":
            database.rename(referee.data / "elsewhere.db")
        else:
            copy = referee.data / "copy.db"
            shutil.copyfile(database, copy)
            copy.replace(database)
        gone = time.monotonic()
        assert referee.wait_for("storage_failed")
        assert time.monotonic() - gone < 1.5
        assert referee.wait() == 74


class TestLocked:
    def test_a_lock_held_by_another_program_is_waited_for(self, world: World) -> None:
        world.start()
        assert world.listening()
        world.at_play()
        with closing(sqlite3.connect(world.data / "journal.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert world.referee.wait_for("storage_away")
            assert refused_creation(world) == ("UNAVAILABLE", "STORAGE")
            other.execute("ROLLBACK")
        assert world.referee.wait_for("storage_back")
        found = world.finish()
        assert found.good, found.details()


class TestDamaged:
    def test_a_damaged_match_is_left_alone_and_the_others_go_on(self, world: World) -> None:
        world.start()
        assert world.listening()
        until(lambda: len(world.created) >= 8, "eight matches are at play")
        world.at_play()
        world.kill()
        world.in_flight = 0
        with closing(sqlite3.connect(world.data / "journal.db")) as db:
            (number, match_id), *others = db.execute("SELECT number, match_id FROM matches WHERE final = 0").fetchall()
            key, event = db.execute("SELECT max(key), event FROM events WHERE number = ?", (number,)).fetchone()
            db.execute("UPDATE events SET event = ? WHERE key = ?", (event[:-1] + bytes([event[-1] ^ 1]), key))
            db.commit()
        world.start()
        assert world.listening()
        assert world.referee.resumed == len(others)
        with world.referee.host() as host:
            with pytest.raises(grpc.RpcError) as refused:
                list(host.watch(match_id, 10))
            assert reason_of(refused.value) == ("DATA_LOSS", "LOG_DAMAGED")

            def running() -> list[str]:
                return [match.match_id for match in host.list() if not match.result.totals]

            until(lambda: running() == [match_id], "the others end", 60)
        assert world.referee.stop() == 0
        with closing(sqlite3.connect(world.data / "journal.db")) as db:
            assert db.execute("SELECT count(*) FROM events WHERE number = ?", (number,)).fetchone()[0] > 0

    def test_a_match_that_cannot_be_rebuilt_does_not_keep_the_others_away(self, world: World) -> None:
        world.start()
        assert world.listening()
        until(lambda: len(world.created) >= 8, "eight matches are at play")
        world.at_play()
        world.kill()
        before = len(world.created) - len(world.over)
        world.start("start.resume:2:raise")
        assert world.listening()
        assert world.referee.resumed >= before - 1
        assert "match_not_resumed" in world.referee.text
        assert "Traceback" in world.referee.text

    def test_a_database_of_garbage_is_refused_and_left_as_it_is(self, referee: Referee) -> None:
        assert referee.listening()
        assert referee.stop() == 0
        database = referee.data / "journal.db"
        garbage = b"\xa5" * 20_000
        database.write_bytes(garbage)
        second = Referee(referee.data)
        try:
            assert second.wait() in (73, 74)
            assert second.text.count("\n") <= 1, second.text
            assert "journal.db" in second.text
        finally:
            second.close()
        assert database.read_bytes() == garbage

    def test_a_database_with_a_damaged_page_is_refused_and_left_as_it_is(self, world: World) -> None:
        world.start()
        assert world.listening()
        world.at_play()
        assert world.referee.stop() == 0
        database = world.data / "journal.db"
        content = bytearray(database.read_bytes())
        content[4096:] = b"\x5a" * (len(content) - 4096)
        database.write_bytes(content)
        world.start()
        assert not world.listening()
        assert world.referee.wait() in (73, 74)
        assert "Traceback" not in world.referee.text
        assert database.read_bytes() == bytes(content)


class TestTaken:
    def test_a_second_referee_on_the_same_data_is_refused(self, referee: Referee) -> None:
        assert referee.listening()
        second = Referee(referee.data)
        try:
            assert second.wait() == 75
        finally:
            second.close()

    def test_a_port_that_is_taken_is_named(self, referee: Referee, tmp_path: Path) -> None:
        assert referee.listening()
        second = Referee(tmp_path / "other", referee.address)
        try:
            assert second.wait() == 75
            assert referee.address in second.text
        finally:
            second.close()
