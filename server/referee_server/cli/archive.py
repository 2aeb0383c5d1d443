"""What is done with matches that are on record: list, replay, export."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

from referee.v1 import event_pb2, match_pb2
from referee_server import failpoints
from referee_server.cli.output import ExitCode, fail, print_rows
from referee_server.cli.sources import Source, all_matches, open_journal, source_of, sources
from referee_server.cli.telling import event_line, painter
from referee_server.journal import LogError as DamageError
from referee_server.journal import MatchRow, pack
from referee_server.match.record import record
from referee_server.match.transcript import transcript
from referee_server.match.verify import LogError, parse

_EXTENSION: Final = ".log"


def list_matches(data: str, *, as_json: bool) -> None:
    """Prints the matches of a data folder, the newest first."""
    with open_journal(data) as journal:
        rows = [_listed(row) for row in all_matches(journal)]
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
        source = source_of(what, data)
        events = parse(source.events)
        deals = sum(bool(event.cards_dealt.pack) for event in events)
        if deal is not None and deal >= deals:
            fail(f"{source.name} has {deals} deals so far; the first is --deal 0")
        for line in transcript(events, deal):
            print(paint(line))
    except (LogError, DamageError, ValueError) as error:
        fail(f"{what}: {error}", ExitCode.CHECK_FAILED)


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
    with sources(what, data, everything=everything, files=False) as logs:
        for name, find in logs:
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
