"""`referee standings`: the results of a tournament in a data folder, in whatever form they are wanted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from referee.v1 import tournament_service_pb2 as pb
from referee_server.cli.data import DataFolder
from referee_server.cli.output import ExitCode, Failure, fail, print_rich
from referee_server.cli.report.html import as_html
from referee_server.cli.report.model import Report
from referee_server.cli.report.of_book import report_of
from referee_server.cli.report.parquet import write_parquet
from referee_server.cli.report.tables import as_csv, as_json, as_markdown, as_rich
from referee_server.journal import JournalReader, TournamentRow
from referee_server.journal.errors import DamagedLogError
from referee_server.match.names import fold_name
from referee_server.tournament.book import Book, BookError

_T = TypeVar("_T")

_WRITE: Final[dict[str, Callable[[Report], str]]] = {
    "json": as_json,
    "csv": as_csv,
    "markdown": as_markdown,
    "html": as_html,
}


def show_standings(what: str | None, data: str, *, form: str, out: str | None) -> None:
    """Prints or writes the results of a tournament; without a name, of the newest.

    Raises:
        Failure: there is none, its log is damaged, or the file cannot be written.
    """
    journal = DataFolder(data).read()
    try:
        report = report_of(find_book(journal, what, data))
    finally:
        journal.close()
    if form == "parquet":
        for path in _written(lambda: write_parquet(report, Path(out or "."))):
            print(path)
    elif form == "text" and out is None:
        print_rich(as_rich(report))
    else:
        text = _WRITE.get(form, as_markdown)(report)
        if out is None:
            sys.stdout.write(text)
        else:
            _written(lambda: Path(out).write_text(text, encoding="utf-8"))
            print(out)


def find_book(journal: JournalReader, what: str | None, data: str) -> Book:
    """Returns the tournament of that name or id, or the newest.

    Raises:
        Failure: there is none, or its log is damaged.
    """
    rows = journal.tournaments()
    try:
        if what is None and rows:
            return Book.read(journal.tournament_log(rows[-1].tournament_id))
        for row in reversed(rows):
            if what is not None and (row.tournament_id == what or fold_name(name_of(journal, row)) == fold_name(what)):
                return Book.read(journal.tournament_log(row.tournament_id))
    except (DamagedLogError, BookError) as error:
        fail(f"the log of the tournament does not hold: {error}", ExitCode.CHECK_FAILED)
    which = "no such tournament" if what else "no tournament"
    raise Failure(f"there is {which} in {data}", ExitCode.NOT_FOUND)


def name_of(journal: JournalReader, row: TournamentRow) -> str:
    """Returns the name of a tournament.

    Raises:
        DamagedLogError: there is no summary, and its log is damaged.
        BookError: there is no summary, and this version cannot follow its log.
    """
    if row.summary:
        return pb.Tournament.FromString(row.summary).name
    return Book.read(journal.tournament_log(row.tournament_id)).cup.name


def _written(write: Callable[[], _T]) -> _T:
    try:
        return write()
    except OSError as error:
        fail(f"{error.filename} cannot be written: {error.strerror}", ExitCode.STORAGE)
