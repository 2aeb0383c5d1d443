"""What only a journal in a file can do: outlive its process, be taken, be foreign, run full, break."""

from __future__ import annotations

import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from referee_server.journal import (
    DataInUseError,
    Durability,
    EventsAdded,
    ForeignFileError,
    NewerSchemaError,
    OlderSchemaError,
    OpenError,
    SqliteJournal,
    StorageCorruptError,
    open_read_only,
    sqlite_open,
    wal_reset_bug,
)

from .kit import SECRET, added, agent, archived, events, final, meddling

# Opening again


def test_reopened_journal_goes_on_where_it_was(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added("m1", request_id="r"), events("a", "b"), added("m2"), agent()])
        journal.commit([events("x", match_id="m2"), final("m2")])
        before = (journal.matches(), journal.agents())
    with closing(SqliteJournal(path)) as journal:
        assert (journal.matches(), journal.agents()) == before
        assert journal.secret("m1") == SECRET
        journal.commit([events("c"), added("m3")])
        assert journal.read("m1") == [b"a", b"b", b"c"]
        assert [row.number for row in journal.matches()] == [1, 2, 3]


def test_reopened_journal_follows_on(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added(f"m{n}") for n in range(3)])
        for n in range(9):
            journal.commit([events(str(n), match_id=f"m{n % 3}")])
    with closing(SqliteJournal(path)) as journal:
        journal.commit([events("more", match_id="m1"), final("m1")])
        assert journal.read("m1", 1) == [b"4", b"7", b"more"]


@pytest.mark.parametrize("durability", ["process", "power"])
def test_both_durabilities_store(path: Path, durability: Durability) -> None:
    with closing(SqliteJournal(path, durability=durability)) as journal:
        journal.commit([added(), events("a")])
        expected = {"process": 1, "power": 2}[durability]
        assert journal._db.execute("PRAGMA synchronous").fetchone() == (expected,)
    with closing(SqliteJournal(path)) as journal:
        assert journal.read("m1") == [b"a"]


def test_settings_are_those_that_the_reset_fault_and_the_event_loop_ask_for(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        found = {
            name: journal._db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "wal_autocheckpoint", "application_id", "user_version")
        }
        mapped = journal._db.execute("PRAGMA mmap_size").fetchone()
    assert found == {
        "journal_mode": "wal",
        "wal_autocheckpoint": 0,
        "application_id": sqlite_open.APPLICATION_ID,
        "user_version": len(sqlite_open.MIGRATIONS),
    }
    assert mapped in (None, (0,))


def test_files_are_readable_by_their_owner_only(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added()])
        modes = {found.name: stat.S_IMODE(found.stat().st_mode) for found in path.parent.iterdir()}
    assert modes.keys() >= {"journal.db", "journal.db-wal"}
    assert set(modes.values()) == {0o600}


# The table of events


def test_archived_events_leave_the_table_once_no_older_match_needs_it(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added("m1"), added("m2")])
        for n in range(10):
            journal.commit([events(str(n)), events(str(n), match_id="m2")])
        journal.commit([final("m2")])
        journal.commit([archived(journal, "m2")])
        assert journal._db.execute("SELECT count(*) FROM events").fetchone() == (20,)
        journal.commit([final("m1")])
        journal.commit([archived(journal, "m1")])
        assert journal._db.execute("SELECT count(*) FROM events").fetchone() == (0,)
        assert journal.read("m1") == journal.read("m2") == [str(n).encode() for n in range(10)]


def test_keys_of_events_that_are_gone_are_not_given_again(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added("m1"), events("a", "b"), added("m2"), final("m1")])
        journal.commit([archived(journal, "m1")])
    with closing(SqliteJournal(path)) as journal:
        journal.commit([events("y", match_id="m2")])
    with closing(SqliteJournal(path)) as journal:
        assert journal.read("m2") == [b"y"]


def test_final_match_that_nobody_archived_is_read_from_among_the_others(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added("m1"), added("m2")])
        for n in range(6):
            journal.commit([events(str(n), match_id=f"m{n % 2 + 1}")])
        journal.commit([final("m1")])
        journal.commit([events("late", match_id="m2")])
        assert journal.read("m1", 1) == [b"2", b"4"]


# Death of the process

WRITER = """
import sys
from pathlib import Path
from referee_server.journal import AgentAdded, EventsAdded, LogStored, MatchAdded, SqliteJournal, SummaryChanged, pack
journal = SqliteJournal(Path(sys.argv[1]))
number = len(journal.matches(limit=10**6))
while True:
    number += 1
    ids = [f"m{number}-{seat}" for seat in range(3)]
    journal.commit([MatchAdded(i, "g", "", b"s" * 32, b"", 0, "running") for i in ids])
    for n in range(1, 31):
        journal.commit([EventsAdded(i, (b"%d" % n,)) for i in ids])
        print(ids[0], n, flush=True)
        if n % 10 == 0:
            journal.checkpoint()
    journal.commit([SummaryChanged(i, "finished", b"", final=True) for i in ids])
    journal.commit([LogStored(i, pack(i, journal.read(i))) for i in ids[:2]])
"""


def test_kill_at_any_moment_loses_nothing_acknowledged_and_leaves_no_gap(path: Path) -> None:
    for round_ in range(6):
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        acknowledged: dict[str, int] = {}
        for _, line in zip(range(40 + 37 * round_), child.stdout, strict=False):
            match_id, number = line.split()
            acknowledged[match_id] = int(number)
        child.send_signal(signal.SIGKILL)
        for line in child.stdout:
            if line.endswith("\n"):
                match_id, number = line.split()
                acknowledged[match_id] = int(number)
        child.wait()
        child.stdout.close()
        assert acknowledged
        with closing(SqliteJournal(path)) as journal:
            assert journal._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            for row in journal.matches(limit=10**6):
                stored = journal.read(row.match_id)
                assert stored == [b"%d" % n for n in range(1, len(stored) + 1)]
                assert len(stored) == row.event_count
                assert len(stored) >= acknowledged.get(row.match_id, 0)
            assert {row.match_id for row in journal.matches(limit=10**6)} >= acknowledged.keys()


def test_migration_that_was_killed_half_way_is_done_again(path: Path) -> None:
    with meddling(path) as db:
        db.execute("BEGIN IMMEDIATE")
        for statement in sqlite_open.MIGRATIONS[0][:2]:
            db.execute(statement)
        # The connection closes without a commit, as a killed process would.
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added()])


def test_new_migration_is_applied_to_old_data(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added(), events("a")])
    monkeypatch.setattr(sqlite_open, "MIGRATIONS", (*sqlite_open.MIGRATIONS, ("CREATE TABLE later (x)",)))
    with pytest.raises(OlderSchemaError):
        open_read_only(path)
    with closing(SqliteJournal(path)) as journal:
        assert journal.read("m1") == [b"a"]
        assert journal._db.execute("SELECT count(*) FROM later").fetchone() == (0,)


# Who may open it


def test_second_writer_is_refused_and_the_first_goes_on(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        with pytest.raises(DataInUseError, match="another referee"):
            SqliteJournal(path)
        journal.commit([added()])
    with closing(SqliteJournal(path)) as journal:
        assert journal.match("m1") is not None


def test_writer_in_another_process_is_refused(path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from referee_server.journal import *\n"
        "try: SqliteJournal(Path(sys.argv[1]))\n"
        "except DataInUseError: print('in use')"
    )
    with closing(SqliteJournal(path)):
        child = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert child.stdout == "in use\n"


@pytest.mark.parametrize("content", [b"hello, this is text\n" * 100, b"\0" * 4096, b"x"])
def test_other_file_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for open_it in (SqliteJournal, open_read_only):
        with pytest.raises(ForeignFileError):
            open_it(path)
    assert path.read_bytes() == content


def test_database_of_another_program_is_refused_and_left_alone(path: Path) -> None:
    with meddling(path) as db:
        db.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    for open_it in (SqliteJournal, open_read_only):
        with pytest.raises(ForeignFileError):
            open_it(path)
    assert path.read_bytes() == before


def test_newer_schema_is_refused_and_named(path: Path) -> None:
    SqliteJournal(path).close()
    with meddling(path) as db:
        db.execute("PRAGMA user_version = 99")
    for open_it in (SqliteJournal, open_read_only):
        with pytest.raises(NewerSchemaError, match="schema 99") as caught:
            open_it(path)
        assert (caught.value.found, caught.value.known) == (99, len(sqlite_open.MIGRATIONS))


def test_truncated_database_is_corrupt(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added(), EventsAdded("m1", (bytes(1000),) * 50)])
    path.write_bytes(path.read_bytes()[: 4096 * 3])
    with pytest.raises(StorageCorruptError):
        SqliteJournal(path)


def test_refused_opening_gives_the_right_to_write_back(path: Path) -> None:
    path.write_bytes(b"hello, this is text\n" * 100)
    with pytest.raises(ForeignFileError):
        SqliteJournal(path)
    path.unlink()
    SqliteJournal(path).close()


def test_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OpenError, match="cannot open"):
        SqliteJournal(tmp_path / "nowhere" / "journal.db")
    with pytest.raises(OpenError, match="there is no"):
        open_read_only(tmp_path / "journal.db")


# Reading beside a referee


def test_reader_sees_what_is_committed_while_the_referee_runs(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal, closing(open_read_only(path)) as reader:
        journal.commit([added("m1"), added("m2"), events("a")])
        journal.commit([events("x", match_id="m2"), events("b"), agent()])
        assert reader.read("m1") == [b"a", b"b"]
        assert (reader.matches(), reader.running()) == (journal.matches(), journal.running())
        assert reader.agents() == journal.agents()
        journal.commit([final("m1")])
        journal.commit([archived(journal)])
        assert reader.read("m1", 1) == [b"b"]
        assert reader.matches() == journal.matches()


def test_reader_can_do_without_a_referee(path: Path) -> None:
    with closing(SqliteJournal(path)) as journal:
        journal.commit([added(), events("a")])
    with closing(open_read_only(path)) as reader:
        assert reader.read("m1") == [b"a"]
    with closing(SqliteJournal(path)) as journal:
        assert journal.read("m1") == [b"a"]


def test_reader_between_a_killed_referee_and_the_next_loses_nothing(path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for _ in range(5):
        child.stdout.readline()
    child.kill()
    child.wait()
    child.stdout.close()
    with closing(open_read_only(path)) as reader:
        seen = reader.read("m1-0")
    assert len(seen) >= 5
    with closing(SqliteJournal(path)) as journal:
        assert journal.read("m1-0") == seen


def test_reader_cannot_write(path: Path) -> None:
    SqliteJournal(path).close()
    with closing(open_read_only(path)) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._db.execute("DELETE FROM matches")


# The known fault of SQLite


@pytest.mark.parametrize(
    ("version", "has_it"),
    [
        ("3.6.23", False),
        ("3.7.0", True),
        ("3.40.1", True),
        ("3.44.5", True),
        ("3.44.6", False),
        ("3.45.0", True),
        ("3.50.6", True),
        ("3.50.7", False),
        ("3.51.2", True),
        ("3.51.3", False),
        ("3.52", False),
        ("4.0.0", False),
    ],
)
def test_versions_with_the_reset_fault_are_known(version: str, has_it: bool) -> None:
    assert wal_reset_bug(version) is has_it


@pytest.mark.parametrize(("version", "warnings"), [("3.40.1", 1), ("3.51.3", 0)])
def test_host_is_warned_of_the_reset_fault(
    path: Path, monkeypatch: pytest.MonkeyPatch, version: str, warnings: int
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version", version)
    told: list[str] = []
    SqliteJournal(path, warn=told.append).close()
    assert len(told) == warnings
