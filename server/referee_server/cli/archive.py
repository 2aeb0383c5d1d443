"""What is done with matches that are on record: list, replay, verify, export."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

from referee.v1 import event_pb2, match_pb2
from referee_server import failpoints
from referee_server.cli.data import DataFolder
from referee_server.cli.output import ExitCode, Failure, fail, print_json, print_rows
from referee_server.cli.telling import event_line, painter
from referee_server.cli.verify_cup import verify_tournaments
from referee_server.journal import JournalReader, MatchRow, StorageError, pack, unpack
from referee_server.journal import LogError as DamageError
from referee_server.journal.errors import NewerLogError
from referee_server.match.record import record
from referee_server.match.transcript import transcript
from referee_server.match.verify import LogError, Report, parse, verify
from referee_server.tables.revealing import is_digest

_PAGE: Final = 500
_MATCH_ID: Final = re.compile(r"[a-z2-7]{26}")
_EXTENSION: Final = ".log"


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


def list_matches(data: str, *, as_json: bool) -> None:
    """Prints the matches of a data folder, the newest first."""
    with _journal(data) as journal:
        rows = [_listed(row) for row in _all(journal)]
    columns = {
        "match": "match",
        "game": "game",
        "state": "state",
        "seats": "seats",
        "totals": "totals",
        "places": "places",
        "created": "created",
    }
    print_rows(rows, columns, as_json=as_json, empty=f"no matches in {data} yet")


def _listed(row: MatchRow) -> dict[str, Any]:
    match = match_pb2.Match.FromString(row.summary)
    return {
        "match": row.match_id,
        "game": row.game,
        "state": row.state.lower(),
        "seats": [seat.name or "open" for seat in match.seats],
        "totals": list(match.result.totals),
        "places": list(match.result.official_places),
        "created": datetime.fromtimestamp(row.create_time_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S"),
        "label": match.label,
        "events": row.event_count,
        "digest": row.digest.hex() if row.final else "",
    }


def replay_match(what: str, deal: int | None, data: str) -> None:
    """Prints a match as people read it.

    Raises:
        Failure: there is no such match or file, its log is damaged, or it has no such deal.
    """
    paint = painter()
    try:
        source = _source(what, data)
        events = parse(source.events)
        deals = sum(bool(event.cards_dealt.pack) for event in events)
        if deal is not None and deal >= deals:
            fail(f"{source.name} has {deals} deals so far; the first is --deal 0")
        for line in transcript(events, deal):
            print(paint(line))
    except (LogError, DamageError, ValueError) as error:
        fail(f"{what}: {error}", ExitCode.CHECK_FAILED)


def verify_logs(what: Sequence[str], data: str, *, everything: bool, digest: str | None, as_json: bool) -> None:
    """Verifies logs and prints a line on each.

    Raises:
        Failure: wrong usage; or, after all were looked at, CHECK_FAILED when one does not hold.
    """
    if everything == bool(what):
        fail("name logs or matches, or say --all")
    if digest is not None and (len(what) != 1 or not re.fullmatch("[0-9a-fA-F]{64}", digest)):
        fail("--digest is 64 hex digits, and checks one log")
    rows = [_verified(name, find, digest) for name, find in _sources(what, data, everything=everything)]
    if everything:
        with _journal(data) as journal:
            rows += verify_tournaments(journal)
    if as_json:
        for row in rows:
            print_json(row)
    else:
        for row in rows:
            print(f"{row['outcome']:9} {row['log']}  {row['message']}")
    bad = [row for row in rows if row["outcome"] in ("refuted", "newer")]
    missing = [row for row in rows if row["outcome"] == "missing"]
    if bad:
        first = bad[0]
        raise Failure(
            f"{len(bad)} of {len(rows)} logs cannot be confirmed; first: {first['log']}: {first['message']}",
            ExitCode.CHECK_FAILED,
        )
    if missing:
        raise Failure(missing[0]["message"], ExitCode.NOT_FOUND)
    if not rows:
        print("no match has ended yet; nothing to verify")


def _verified(name: str, find: Callable[[], Source], digest: str | None) -> dict[str, Any]:
    row: dict[str, Any] = {"log": name, "outcome": "refuted", "event": 0, "message": "", "digest": ""}
    try:
        source = find()
        row["digest"] = source.digest.hex()
        if digest is not None and not is_digest(bytes.fromhex(digest), source.match_id, source.events):
            row |= {"event": len(source.events), "message": f"its digest is another one: {source.digest.hex()}"}
            return row
        report = verify_source(source)
    except NewerLogError as error:
        return row | {"outcome": "newer", "message": str(error)}
    except DamageError as error:
        return row | {"event": error.place, "message": str(error)}
    except LogError as error:
        outcome = "newer" if error.newer else "refuted"
        return row | {"outcome": outcome, "event": error.sequence, "message": str(error)}
    except Failure as failure:
        if failure.code is not ExitCode.NOT_FOUND:
            raise
        # The others are still to be looked at.
        return row | {"outcome": "missing", "message": failure.message}
    return row | {"outcome": "sealed" if report.sealed else "verified", "message": _found(source, report)}


def verify_source(source: Source) -> Report:
    """Verifies one match.

    Raises:
        LogError: naming the first event that does not hold.
    """
    report = verify(parse(source.events))
    if report.match.match_id != source.match_id:
        raise LogError(1, f"it is of match {report.match.match_id}, not {source.match_id}")
    return report


def _found(source: Source, report: Report) -> str:
    match = report.match
    text = f"{match.game.name}, {len(source.events)} events, {match.deal_count} deals"
    if not report.ended:
        text += ", not ended"
    if report.sealed:
        text += "; SEALED: the cards can be checked once the secret is out"
    if match.created.unsealed:
        text += "; UNSEALED: the host gave the secret"
    return text


def export_matches(what: Sequence[str], data: str, *, everything: bool, form: str, out: str | None) -> None:
    """Writes matches out.

    Raises:
        Failure: there is no such match, one is damaged, or the output cannot be written. With `everything`, what is
            damaged is left out and named, and the rest is written.
    """
    if everything == bool(what):
        fail("name matches, or say --all")
    found = []
    damaged = []
    for name, find in _sources(what, data, everything=everything, files=False):
        try:
            found.append(find())
        except DamageError as error:
            damaged.append(f"{name}: {error}")
            if not everything:
                fail(damaged[0], ExitCode.CHECK_FAILED)
    try:
        if form == "log":
            _export_logs(found, out, everything=everything)
        else:
            with _writer(out) as file:
                for source in found:
                    _write_lines(source, form, file, everything=everything)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        fail(f"cannot write {error.filename or out}: {error.strerror}", ExitCode.STORAGE)
    if damaged:
        fail(f"left out {len(damaged)} damaged matches; first: {damaged[0]}", ExitCode.CHECK_FAILED)


def _export_logs(found: Sequence[Source], out: str | None, *, everything: bool) -> None:
    many = everything or len(found) != 1
    if out == "-":
        if many:
            fail("one log goes to standard output; name a folder for several")
        sys.stdout.buffer.write(pack(found[0].match_id, found[0].events))
        return
    folder = Path(out or ".") if many or (out is not None and Path(out).is_dir()) else None
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    for source in found:
        # The file's name is an id that we made; nothing a user typed becomes part of a path.
        path = folder / f"{source.match_id}{_EXTENSION}" if folder else Path(out or f"{source.match_id}{_EXTENSION}")
        _put(path, pack(source.match_id, source.events))
        print(f"wrote {path}", file=sys.stderr)


def _put(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all: whoever finds it under its name finds all of it."""
    failpoints.hit("export.file")
    if path.exists() and not path.is_file():  # a pipe or a device takes the bytes themselves
        path.write_bytes(data)
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        failpoints.hit("export.rename")
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _write_lines(source: Source, form: str, file: TextIO, *, everything: bool) -> None:
    import json

    try:
        events = parse(source.events)
        if form == "record":
            if everything and not _has_result(events):
                print(f"left out {source.match_id}: it has no result", file=sys.stderr)
                return
            file.write(json.dumps(record(events), ensure_ascii=False, separators=(",", ":")) + "\n")
            return
        for event in events:
            file.write(event_line(source.match_id, event) + "\n")
    except (LogError, ValueError) as error:
        fail(f"{source.name}: {error}", ExitCode.CHECK_FAILED)


def _has_result(events: Sequence[event_pb2.MatchEvent]) -> bool:
    return any(bool(event.match_ended.result.totals) for event in events[-2:])


@contextmanager
def _writer(out: str | None) -> Iterator[TextIO]:
    if out is None or out == "-":
        yield sys.stdout
        return
    with Path(out).open("w", encoding="utf-8") as file:
        yield file


# Where matches come from.


@contextmanager
def _journal(data: str) -> Iterator[JournalReader]:
    with closing(DataFolder(data).read()) as journal:
        try:
            yield journal
        except StorageError as error:
            fail(f"{data}: {error}", ExitCode.STORAGE)


def _all(journal: JournalReader) -> Iterator[MatchRow]:
    after = 0
    while rows := journal.matches(after_number=after, limit=_PAGE, newest_first=True):
        yield from rows
        after = rows[-1].number


def _sources(
    what: Sequence[str], data: str, *, everything: bool, files: bool = True
) -> Iterator[tuple[str, Callable[[], Source]]]:
    """Yields what to call each log, and how to get it; getting it may raise that it is damaged."""
    if everything:
        with _journal(data) as journal:
            for row in _all(journal):
                if row.final:
                    yield row.match_id, lambda row=row: _stored(journal, row)  # type: ignore[misc]
        return
    for name in what:
        yield name, lambda name=name: _source(name, data, files=files)  # type: ignore[misc]


def _source(name: str, data: str, *, files: bool = True) -> Source:
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
    with _journal(data) as journal:
        row = journal.match(name) if len(name) <= 64 else None
        if row is None:
            fail(f"no match {name[:64]!r} in {data}; `referee matches` lists them", ExitCode.NOT_FOUND)
        return _stored(journal, row)


def _stored(journal: JournalReader, row: MatchRow) -> Source:
    try:
        return Source(row.match_id, row.match_id, journal.read(row.match_id), row.digest)
    except StorageError as error:
        fail(f"{row.match_id}: {error}", ExitCode.STORAGE)
