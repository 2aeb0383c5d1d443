"""Opening a journal's SQLite file: who may, whether it is ours, how it is laid out, and what its errors mean."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path
from typing import Final, Literal, TypeAlias

from referee_server.journal.errors import (
    DataInUseError,
    DuplicateError,
    ForeignFileError,
    JournalError,
    NewerSchemaError,
    OlderSchemaError,
    OpenError,
    StorageBusyError,
    StorageCorruptError,
    StorageError,
    StorageFullError,
    StorageIOError,
)

Durability: TypeAlias = Literal["process", "power"]

APPLICATION_ID: Final = 0x52_45_46_4A  # "REFJ"

_LEAST_BYTES: Final = 512  # the smallest page, so the smallest database

# Events lie in the order in which they arrived, whatever match they belong to, and without an index: a commit then
# writes to one place, where keeping each match's events together would touch a page for every match (nine times
# slower at fifty matches). A match is found by the range of keys it spans, and the whole front of the table goes once
# every match in it has been archived.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """CREATE TABLE matches (
            number INTEGER PRIMARY KEY,
            match_id TEXT NOT NULL UNIQUE,
            request_id TEXT UNIQUE,
            game TEXT NOT NULL,
            state TEXT NOT NULL,
            create_time_ms INTEGER NOT NULL,
            final INTEGER NOT NULL DEFAULT 0,
            archived INTEGER NOT NULL DEFAULT 0,
            -- Its events have keys above the one and up to the other.
            first_key INTEGER NOT NULL,
            last_key INTEGER NOT NULL DEFAULT 0,
            -- Like last_key, these are right once the match is final; before that the events themselves tell.
            event_count INTEGER NOT NULL DEFAULT 0,
            digest BLOB NOT NULL DEFAULT x'',
            damaged_at INTEGER NOT NULL DEFAULT 0,
            secret BLOB NOT NULL,
            summary BLOB NOT NULL)""",
        "CREATE INDEX matches_by_state ON matches (state)",
        "CREATE INDEX matches_running ON matches (number) WHERE final = 0",
        "CREATE INDEX matches_kept ON matches (number, first_key, last_key) WHERE archived = 0",
        """CREATE TABLE events (
            key INTEGER PRIMARY KEY,
            number INTEGER NOT NULL,
            event BLOB NOT NULL,
            mark BLOB NOT NULL)""",
        "CREATE TABLE logs (number INTEGER PRIMARY KEY, log BLOB NOT NULL)",
        """CREATE TABLE agents (
            number INTEGER PRIMARY KEY,
            agent_id TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            folded_name TEXT NOT NULL UNIQUE,
            credential_hash BLOB NOT NULL UNIQUE,
            create_time_ms INTEGER NOT NULL,
            revoked INTEGER NOT NULL DEFAULT 0)""",
    ),
    (
        """CREATE TABLE tournaments (
            number INTEGER PRIMARY KEY,
            tournament_id TEXT NOT NULL UNIQUE,
            request_id TEXT UNIQUE,
            state TEXT NOT NULL,
            create_time_ms INTEGER NOT NULL,
            secret BLOB NOT NULL)""",
        """CREATE TABLE tournament_events (
            number INTEGER NOT NULL,
            sequence INTEGER NOT NULL,
            event BLOB NOT NULL,
            mark BLOB NOT NULL,
            PRIMARY KEY (number, sequence)) WITHOUT ROWID""",
    ),
    (
        # What lists show, and up to which fact of the log it is right: it counts only while that is the last one.
        "ALTER TABLE tournaments ADD COLUMN summary BLOB NOT NULL DEFAULT x''",
        "ALTER TABLE tournaments ADD COLUMN summary_through INTEGER NOT NULL DEFAULT 0",
    ),
)
"""The statements that lead from each schema to the next. What was released is never changed, only added to."""


def wal_reset_bug(version: str) -> bool:
    """Tells whether a version of SQLite can corrupt a database when two connections write or checkpoint at once.

    Args:
        version: as in `sqlite3.sqlite_version`.
    """
    major, minor, patch = ([int(part) for part in version.split(".")] + [0, 0])[:3]
    if (major, minor, patch) < (3, 7, 0) or (major, minor, patch) >= (3, 51, 3):
        return False
    return not ((minor == 44 and patch >= 6) or (minor == 50 and patch >= 7))


class WriterLock:
    """The right to write: held by one process at a time, and given back by the system however that process ends.

    Args:
        path: the data; the lock is a file beside it, which stays.

    Raises:
        DataInUseError: somebody else holds it.
        OpenError: the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        lock = path.with_name(path.name + ".lock")
        try:
            self._fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise OpenError(f"cannot open {lock}: {error.strerror}") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            if isinstance(error, BlockingIOError):
                raise DataInUseError(f"another referee is running on {path}; stop it, or use other data") from error
            raise OpenError(f"cannot lock {lock}: {error.strerror}") from error

    def release(self) -> None:
        """Gives the right back."""
        os.close(self._fd)


def connect_writer(path: Path, durability: Durability, busy_timeout_ms: int) -> sqlite3.Connection:
    """Opens the data for writing, makes it when there is none, and brings it to the newest schema.

    Raises:
        OpenError: of the kind that fits.
        StorageError: the storage failed.
    """
    try:
        # The file holds secrets, so it is made with these rights rather than given them afterwards; SQLite's files
        # beside it inherit them.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise OpenError(f"cannot open {path}: {error.strerror}") from error
    db = _connect(path, "rw", busy_timeout_ms)
    try:
        # Before anything is written to it, and before it is switched to WAL: the file may not be ours.
        _migrate(db, path)
        if db.execute("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":
            raise StorageError(f"{path} is on a file system without support for a write-ahead log")
        db.execute(f"PRAGMA synchronous={'FULL' if durability == 'power' else 'NORMAL'}")
        if durability == "power":
            db.execute("PRAGMA fullfsync=ON")  # where fsync alone does not reach the disk
        db.execute("PRAGMA wal_autocheckpoint=0")  # it would stall whichever commit happens to trigger it
    except BaseException as error:
        db.close()
        if isinstance(error, sqlite3.Error):
            raise storage_error(error, path) from error
        raise
    return db


def connect_reader(path: Path) -> sqlite3.Connection:
    """Opens data that exists, for reading only.

    Raises:
        OpenError: of the kind that fits.
        StorageError: the storage failed.
    """
    if not path.is_file():
        raise OpenError(f"there is no {path}")
    db = _connect(path, "ro", busy_timeout_ms=1000)
    try:
        found = _schema_of(db, path)
        if found < len(MIGRATIONS):
            raise OlderSchemaError(
                f"{path} is not laid out for this release yet; start a referee on it once",
                found=found,
                known=len(MIGRATIONS),
            )
    except BaseException as error:
        db.close()
        if isinstance(error, sqlite3.Error):
            raise storage_error(error, path) from error
        raise
    return db


def _connect(path: Path, mode: str, busy_timeout_ms: int) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=busy_timeout_ms / 1000,
        )
    except sqlite3.Error as error:
        raise storage_error(error, path) from error
    db.execute("PRAGMA mmap_size=0")  # a mapped file that shrinks or fails kills the process
    db.execute("PRAGMA trusted_schema=OFF")
    return db


def _schema_of(db: sqlite3.Connection, path: Path) -> int:
    """Returns the number of the file's schema, 0 for a file without content."""
    try:
        application_id = db.execute("PRAGMA application_id").fetchone()[0]
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_NOTADB:
            raise ForeignFileError(f"{path} is not a referee's journal") from error
        raise
    if application_id == 0 and tables == 0:
        if 0 < path.stat().st_size < _LEAST_BYTES:  # too short for SQLite to look at, and it would be overwritten
            raise ForeignFileError(f"{path} is not a referee's journal")
        return 0
    if application_id != APPLICATION_ID:
        raise ForeignFileError(f"{path} is a database, but not a referee's journal")
    found = int(db.execute("PRAGMA user_version").fetchone()[0])
    known = len(MIGRATIONS)
    if found > known:
        raise NewerSchemaError(
            f"{path} was written by a newer release (schema {found}; this one knows up to {known})",
            found=found,
            known=known,
        )
    return found


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    """Brings the schema up to date, each step in a transaction of its own, so that a kill leaves one or the other."""
    for number in range(_schema_of(db, path), len(MIGRATIONS)):
        db.execute("BEGIN IMMEDIATE")
        for statement in MIGRATIONS[number]:
            db.execute(statement)
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        db.execute(f"PRAGMA user_version={number + 1}")
        db.execute("COMMIT")


def storage_error(error: sqlite3.Error, path: Path) -> JournalError:
    """Returns what an error of SQLite means here."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code in (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY):
        table, _, column = str(error).rpartition(": ")[2].partition(".")
        if table in ("matches", "agents", "tournaments") and column != "number":
            return DuplicateError(column)
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StorageFullError(f"no space is left for {path}")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StorageBusyError(f"another program holds a lock on {path}")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StorageCorruptError(f"{path} is damaged: {error}")
        case sqlite3.SQLITE_CONSTRAINT:
            # The numbers come from this process alone: somebody else must have written.
            return StorageCorruptError(f"{path} holds rows that this referee did not write: {error}")
        case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return StorageIOError(f"cannot read or write {path}: {error}")
    return StorageError(f"{path}: {error}")
