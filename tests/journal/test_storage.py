"""Storage that fails, and damage to what is stored: told by their names, and nothing wrong is ever given."""

from __future__ import annotations

import resource
import threading
from contextlib import closing
from pathlib import Path

import pytest

from referee_server.journal import (
    DamagedLogError,
    EventsAdded,
    LogStored,
    SqliteJournal,
    StorageBusyError,
    StorageCorruptError,
    StorageFullError,
    StorageIOError,
    TruncatedLogError,
    WrongLogError,
    open_read_only,
    pack,
)

from .kit import added, archived, events, final, frames, meddling

# Storage that fails


def test_full_disk_refuses_the_batch_and_recovers_when_there_is_space(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added(), events("a")])
        pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
        journal._db.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StorageFullError):
            journal.commit([events("b"), EventsAdded("m1", (bytes(100_000),))])
        assert journal.read("m1") == [b"a"]
        journal._db.execute("PRAGMA max_page_count = 1000000")
        journal.commit([events("b"), EventsAdded("m1", (bytes(100_000),))])
        assert journal.read("m1") == [b"a", b"b", bytes(100_000)]


def test_lock_of_another_program_is_busy_and_passes(path: Path) -> None:
    with closing(SqliteJournal(path, busy_timeout_ms=1)) as journal, meddling(path) as db:
        journal.commit([added()])
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageBusyError):
            journal.commit([events("a")])
        assert journal.read("m1") == []
        db.execute("ROLLBACK")
        journal.commit([events("a")])
        assert journal.read("m1") == [b"a"]


def test_failed_write_stops_commits_but_not_reading(path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added(), events("a")])
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
        try:
            with pytest.raises(StorageIOError):
                journal.commit([EventsAdded("m1", (bytes(300_000),))])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        with pytest.raises(StorageIOError, match="stopped"):
            journal.commit([events("b")])
        with pytest.raises(StorageIOError, match="stopped"):
            journal.checkpoint()
        assert journal.read("m1") == [b"a"]
    with closing(SqliteJournal(path)) as journal:
        journal.commit([events("b")])
        assert journal.read("m1") == [b"a", b"b"]


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_file_that_is_gone_stops_commits(path: Path, how: str) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added()])
        path.rename(path.with_name("elsewhere"))
        if how == "replaced":
            path.touch()
        with pytest.raises(StorageIOError, match="moved or deleted"):
            journal.commit([events("a")])
        with pytest.raises(StorageIOError, match="stopped"):
            journal.commit([events("a")])


def test_rows_of_another_writer_stop_commits(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal, meddling(path) as db:
        journal.commit([added()])
        db.execute("INSERT INTO events VALUES (1, 1, x'00', x'00')")
        with pytest.raises(StorageCorruptError, match="did not write"):
            journal.commit([events("a")])
        with pytest.raises(StorageCorruptError, match="stopped"):
            journal.commit([events("a")])


def test_interrupted_commit_leaves_nothing_and_the_journal_usable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with closing(SqliteJournal(path)) as journal:
        journal.commit([added()])
        with monkeypatch.context() as patch:
            patch.setattr("referee_server.journal.sqlite_batch.Batch.flush", interrupt)
            with pytest.raises(KeyboardInterrupt):
                journal.commit([events("a")])
        journal.commit([events("b")])
        assert journal.read("m1") == [b"b"]


def test_reader_in_a_thread_never_sees_half_a_batch(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal, closing(open_read_only(path)) as reader:
        journal.commit([added("m1"), added("m2")])
        done = threading.Event()
        uneven: list[tuple[int, int]] = []

        def look() -> None:
            while not done.is_set():
                first, second = (row.event_count for row in reader.matches())
                if first != second:
                    uneven.append((first, second))

        looker = threading.Thread(target=look)
        looker.start()
        for n in range(100):
            journal.commit([events(str(n)), events(str(n), match_id="m2")])
        done.set()
        looker.join()
        assert uneven == []
        assert [row.event_count for row in reader.matches()] == [100, 100]


# Damage to what is stored

DAMAGE = {
    "changed": ("UPDATE events SET event = x'00' WHERE key = 3", 3),
    "check changed": ("UPDATE events SET mark = x'00000000' WHERE key = 3", 3),
    "dropped": ("DELETE FROM events WHERE key = 3", 3),
    "moved to another match": ("UPDATE events SET number = 2 WHERE key = 3", 3),
    "swapped": ("UPDATE events SET key = CASE key WHEN 3 THEN -4 ELSE -3 END WHERE key IN (3, 4)", 3),
}


def damage(path: Path, how: str) -> int:
    statement, place = DAMAGE[how]
    with meddling(path) as db:
        db.execute(statement)
        db.execute("UPDATE events SET key = -key WHERE key < 0")
    return place


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("stage", ["running", "final"])
@pytest.mark.parametrize("opened", ["referee", "reader"])
def test_damaged_event_is_named_and_what_precedes_it_is_given(path: Path, how: str, stage: str, opened: str) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added("m1"), added("m2"), events("a", "b", "c", "d", "e")])
        if stage == "final":
            journal.commit([final()])
    place = damage(path, how)
    with closing(SqliteJournal(path) if opened == "referee" else open_read_only(path)) as journal:
        with pytest.raises(DamagedLogError) as caught:
            journal.read("m1")
        assert caught.value.place == place
        assert journal.read("m1", 0, place - 1) == [b"a", b"b"]
        row = journal.match("m1")
        assert row is not None
        assert row.damaged_at == (place if stage == "running" else 0)


def test_damage_while_it_runs_is_found_in_reading(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added("m1"), added("m2"), events("a", "b", "c", "d")])
        damage(path, "dropped")
        with pytest.raises(DamagedLogError) as caught:
            journal.read("m1")
        assert caught.value.place == 3


def test_missing_tail_of_a_final_match_is_found(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added(), events("a", "b", "c"), final()])
        with meddling(path) as db:
            db.execute("DELETE FROM events WHERE key = 3")
        with pytest.raises(TruncatedLogError) as caught:
            journal.read("m1")
        assert caught.value.place == 2


def test_final_match_that_was_chained_anew_is_found_by_its_digest(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added(), events("a", "b"), final()])
        with meddling(path) as db:
            for key, (event, check) in enumerate(frames("m1", [b"a", b"forged"]), 1):
                db.execute("UPDATE events SET event = ?, mark = ? WHERE key = ?", (event, check, key))
        assert journal.read("m1", 0, 1) == [b"a"]
        with pytest.raises(DamagedLogError) as caught:
            journal.read("m1")
        assert caught.value.place == 2


async def test_follower_is_given_all_that_is_intact_before_the_damage(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added("m1"), added("m2"), events("a", "b", "c", "d")])
        damage(path, "changed")
        follower = journal.follow("m1")
        assert await anext(follower) == (1, (b"a", b"b"))
        with pytest.raises(DamagedLogError) as caught:
            await anext(follower)
        assert caught.value.place == 3


def test_damaged_match_takes_no_events_and_the_others_go_on(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added("m1"), added("m2"), events("a", "b", "c", "d")])
    damage(path, "changed")
    with closing(SqliteJournal(path)) as journal:
        with pytest.raises(DamagedLogError):
            journal.commit([events("e")])
        journal.commit([events("x", match_id="m2")])
        journal.commit([final("m1", "damaged")])
        row = journal.match("m1")
        assert row is not None
        assert (row.damaged_at, row.event_count, row.final) == (3, 2, True)
        with pytest.raises(WrongLogError):
            journal.commit([LogStored("m1", pack("m1", [b"a", b"b"]))])
        with pytest.raises(DamagedLogError) as caught:
            journal.read("m1")
        assert caught.value.place == 3


def test_damaged_archive_is_found_and_placed(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added(), events("a", "b"), final()])
        journal.commit([archived(journal)])
        with meddling(path) as db:
            blob = bytearray(db.execute("SELECT log FROM logs").fetchone()[0])
            blob[-1] ^= 1
            db.execute("UPDATE logs SET log = ?", (bytes(blob),))
        with pytest.raises(DamagedLogError) as caught:
            journal.read("m1")
        assert caught.value.place == 2


def test_archive_of_another_match_is_found(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added("m1"), events("a"), final("m1"), added("m2"), events("b", match_id="m2"), final("m2")])
        journal.commit([archived(journal, "m1"), archived(journal, "m2")])
        with meddling(path) as db:
            db.execute("UPDATE logs SET log = (SELECT log FROM logs WHERE number = 2) WHERE number = 1")
        with pytest.raises(DamagedLogError):
            journal.read("m1")
