"""Where logs come from: the journal of a data folder, or files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from referee_server.cli.data import DataFolder
from referee_server.cli.output import ExitCode, fail
from referee_server.journal import JournalReader, MatchRow, StorageError, unpack

_PAGE: Final = 500
_MATCH_ID: Final = re.compile(r"[a-z2-7]{26}")


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of one match, wherever they came from.

    Attributes:
        name: what to call it in messages: the match id, or the file.
        match_id: the match.
        events: its events.
        digest: digest of the last of them.
    """

    name: str
    match_id: str
    events: Sequence[bytes]
    digest: bytes


@contextmanager
def open_journal(data: str) -> Iterator[JournalReader]:
    """Opens the journal of a data folder for reading.

    Raises:
        Failure: there is none, or the storage failed meanwhile.
    """
    with closing(DataFolder(data).read()) as journal:
        try:
            yield journal
        except StorageError as error:
            fail(f"{data}: {error}", ExitCode.STORAGE)


def all_matches(journal: JournalReader) -> Iterator[MatchRow]:
    """Yields all matches, the newest first."""
    after = 0
    while rows := journal.matches(after_number=after, limit=_PAGE, newest_first=True):
        yield from rows
        after = rows[-1].number


@contextmanager
def sources(
    what: Sequence[str], data: str, *, everything: bool, files: bool = True
) -> Iterator[Iterator[tuple[str, Callable[[], Source]]]]:
    """Gives what to call each log, and how to get it as long as the context lasts; that may raise that it is damaged.

    Args:
        what: ids of matches and, with `files`, log files.
        data: the data folder.
        everything: whether every match that has ended is wanted instead.
        files: whether names may be those of files.
    """
    if not everything:
        yield ((name, partial(source_of, name, data, files=files)) for name in what)
        return
    with open_journal(data) as journal:
        yield ((row.match_id, partial(stored, journal, row)) for row in all_matches(journal) if row.final)


def source_of(name: str, data: str, *, files: bool = True) -> Source:
    """Returns a match by its id in the data folder, or from a log file.

    Raises:
        Failure: there is neither.
        DamageError: it is damaged.
    """
    if files and not (_MATCH_ID.fullmatch(name) and not Path(name).exists()):
        try:
            content = Path(name).read_bytes()
        except OSError as error:
            fail(f"no log file {name[:200]!r} ({error.strerror}), and that is no match id", ExitCode.NOT_FOUND)
        log = unpack(content)
        return Source(name, log.match_id, log.events, log.digest)
    with open_journal(data) as journal:
        row = journal.match(name) if len(name) <= 64 else None
        if row is None:
            fail(f"no match {name[:64]!r} in {data}; `referee matches` lists them", ExitCode.NOT_FOUND)
        return stored(journal, row)


def stored(journal: JournalReader, row: MatchRow) -> Source:
    """Returns a match of a journal.

    Raises:
        Failure: the storage failed.
        DamageError: it is damaged.
    """
    try:
        return Source(row.match_id, row.match_id, journal.read(row.match_id), row.digest)
    except StorageError as error:
        fail(f"{row.match_id}: {error}", ExitCode.STORAGE)
