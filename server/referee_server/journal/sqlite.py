"""The journal in a SQLite file: the default, for one referee and any number of readers beside it.

There is one connection that writes, and it alone checkpoints; a fault in many versions of SQLite makes that a rule
(see `wal_reset_bug`). A commit costs some ten microseconds under durability "process", so it can be done in the event
loop; under "power" it waits for the disk and belongs in a thread.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

from referee_server import failpoints
from referee_server.journal.errors import (
    JournalError,
    StorageBusyError,
    StorageError,
    StorageFullError,
    StorageIOError,
)
from referee_server.journal.follow import Cursor, Followers
from referee_server.journal.model import Record
from referee_server.journal.sqlite_batch import Batch, State
from referee_server.journal.sqlite_open import (
    Durability,
    WriterLock,
    connect_reader,
    connect_writer,
    storage_error,
    wal_reset_bug,
)
from referee_server.journal.sqlite_read import SqliteReader, Standing


def open_read_only(path: Path) -> SqliteReader:
    """Opens data for reading beside a referee that may be running on it.

    Raises:
        OpenError: there is no such file, it is something else, or of another release.
        StorageError: the storage failed.
    """
    return SqliteReader(connect_reader(path), path)


class SqliteJournal(SqliteReader):
    """Implements `Journal` in a SQLite file.

    Args:
        path: the file; it is made, readable by its owner only, when there is none. Its folder must exist.
        durability: what a commit survives: "process" any end of the process, "power" a power cut as well.
        busy_timeout_ms: how long a commit waits, and blocks, when another program holds a lock on the file.
        warn: is told, in one sentence each, what the host should know about this installation.

    Raises:
        DataInUseError: another referee has it open.
        OpenError: it is something else than a journal, or of a newer release, or cannot be made.
        StorageError: the storage failed.
    """

    def __init__(
        self,
        path: Path,
        *,
        durability: Durability = "process",
        busy_timeout_ms: int = 200,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        if warn is not None and wal_reset_bug(sqlite3.sqlite_version):
            warn(
                f"SQLite {sqlite3.sqlite_version} can damage a database that two programs write to at once"
                " (fixed in 3.51.3): let nothing but the referee write to its data"
            )
        self._writer_lock = WriterLock(path)
        try:
            super().__init__(connect_writer(path, durability, busy_timeout_ms), path, snapshots=False)
        except BaseException:
            self._writer_lock.release()
            raise
        self._stopped: StorageError | None = None
        self._followers = Followers(self)
        self._state = State()
        self._name = str(path.absolute())
        try:
            self._identity = self._file_identity()
            self._remember()
        except BaseException:
            self.close()
            raise

    def commit(self, batch: Sequence[Record]) -> None:
        """See `Journal.commit`."""
        if not batch:
            return
        with self._session():
            self._check_writable()
            db = self._db
            written = Batch(db, self._state)
            committing = False
            try:
                failpoints.hit("begin.before")
                db.execute("BEGIN IMMEDIATE")
                for record in batch:
                    written.write(record)
                written.flush()
                failpoints.hit("insert.after")
                committing = True
                failpoints.hit("journal.commit.before")
                db.execute("COMMIT")
                failpoints.hit("journal.commit.after")
            except BaseException as error:
                self._undo(error, committing=committing)
                if isinstance(error, sqlite3.Error):
                    raise storage_error(error, self._path) from error
                raise
            written.accept()
        self._followers.wake(written.standings)

    def follow(self, match_id: str, after: int = 0) -> AsyncGenerator[tuple[int, tuple[bytes, ...]], None]:
        """See `Journal.follow`."""
        return self._followers.follow(match_id, after)

    def advance(self, cursor: Cursor, limit: int) -> tuple[list[bytes], bool]:
        """See `follow.Source`."""
        with self._session():
            standing = self._standing(cursor.match_id)
            events, digest, damage = self._walk(cursor.match_id, standing, cursor.after, limit, cursor.digest)
        if damage is not None and not events:
            raise damage
        cursor.after += len(events)
        # Asked to start behind the last event, the walk saw fewer events than the cursor stands for.
        cursor.digest = digest if cursor.after <= standing.head.events else None
        return events, damage is None and standing.final and cursor.after >= standing.head.events

    def checkpoint(self) -> int:
        """See `Journal.checkpoint`."""
        with self._session():
            self._check_writable()
            try:
                failpoints.hit("checkpoint.before")
                _, pages, moved = self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            except sqlite3.Error as error:
                self._undo(error, committing=True)
                raise storage_error(error, self._path) from error
            failpoints.hit("checkpoint.after")
            return max(0, int(pages) - int(moved))

    def close(self) -> None:
        """See `JournalReader.close`."""
        if not self._closed:
            super().close()
            self._writer_lock.release()
            self._followers.wake_all()

    def _remember(self) -> None:
        """Reads what a commit needs to know, and checks the matches that are to be played on."""
        state = self._state
        state.last_number = self._query("SELECT coalesce(max(number), 0) FROM matches")[0][0]
        kept = self._query("SELECT number, first_key, last_key FROM matches WHERE archived = 0 ORDER BY number")
        state.kept = {number: first_key for number, first_key, _ in kept}
        # Events that are gone must not have their keys given to others, as long as a match spans them.
        least, last = self._query("SELECT min(key), max(key) FROM events")[0]
        state.last_key = max(last or 0, *(max(first_key, last_key) for _, first_key, last_key in kept), 0)
        state.swept = least - 1 if least is not None else state.last_key
        live = self._query("SELECT number, match_id, first_key FROM matches WHERE final = 0")
        standings = super()._live(live)
        state.standings = {match_id: standings[number] for number, match_id, _ in live}

    def _standing(self, match_id: str) -> Standing:
        return self._state.standings.get(match_id) or super()._standing(match_id)

    def _live(self, matches: Sequence[tuple[int, str, int]]) -> dict[int, Standing]:
        return {number: self._state.standings[match_id] for number, match_id, _ in matches}

    def _undo(self, error: BaseException, *, committing: bool) -> None:
        """Takes an unfinished transaction back, and stops the journal unless it is certain that all is as before."""
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error as second:
            self._stop(storage_error(second, self._path))
        if isinstance(error, sqlite3.Error):
            meaning = storage_error(error, self._path)
            if isinstance(meaning, StorageError) and not isinstance(meaning, StorageFullError | StorageBusyError):
                self._stop(meaning)
        elif committing:  # interrupted just then: whether it was committed is not known
            self._stop(StorageError("interrupted during a commit"))

    def _stop(self, reason: JournalError) -> None:
        if self._stopped is None:
            self._stopped = reason if isinstance(reason, StorageError) else StorageError(str(reason))

    def _check_writable(self) -> None:
        if self._stopped is None and self._file_identity() != self._identity:
            self._stopped = StorageIOError(f"{self._path} was moved or deleted while in use")
        if self._stopped is not None:
            raise type(self._stopped)(f"the journal stopped: {self._stopped}")

    def _file_identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._name)  # noqa: PTH116 - on the way of every commit, and Path is slower
        except OSError:
            return None
        return found.st_dev, found.st_ino
