"""Results as Parquet, for analysis with whatever reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from referee_server.cli.output import fail
from referee_server.cli.report.model import Report
from referee_server.tournament.points import place_points

if TYPE_CHECKING:
    import duckdb

_BATCH: Final = 10_000  # rows handed over at once; bounds the memory that they take as Python values

_TABLES: Final = {
    "tournament": "VARCHAR",
    "game": "VARCHAR",
    "table": "INTEGER",
    "round": "INTEGER",
    "board": "INTEGER",
    "group": "INTEGER",
    "match_id": "VARCHAR",
    "reason": "VARCHAR",
    "seat": "INTEGER",
    "entrant": "INTEGER",
    "name": "VARCHAR",
    "side": "INTEGER",
    "total": "BIGINT",
    "place": "INTEGER",
    "place_points": "DOUBLE",
    "faults": "INTEGER",
    "faults_by_kind": "MAP(VARCHAR, INTEGER)",
    "time_losses": "INTEGER",
    "substituted": "INTEGER",
    "loss": "VARCHAR",
    "digest": "VARCHAR",
}
_DEALS: Final = {
    "tournament": "VARCHAR",
    "game": "VARCHAR",
    "table": "INTEGER",
    "round": "INTEGER",
    "board": "INTEGER",
    "match_id": "VARCHAR",
    "deal": "INTEGER",
    "dealer": "INTEGER",
    "kind": "VARCHAR",
    "counted": "BOOLEAN",
    "side": "INTEGER",
    "entrants": "INTEGER[]",
    "score": "BIGINT",
}


def write_parquet(report: Report, folder: Path) -> list[Path]:
    """Writes the tables and deals of a tournament as Parquet.

    `tables.parquet` has a row a table and seat, `deals.parquet` a row a deal and side. Numbers are as in the journal:
    all from 0 but places, entrants negative for house bots that fill seats. Without a result total, place and place
    points are null, and so is a loss where there was none. Files that are there already are replaced, each at once.

    Args:
        report: the tournament.
        folder: where the files go; made if it is not there.

    Returns:
        The files written.

    Raises:
        Failure: the extra `export` is not installed.
        OSError: the folder cannot be written.
    """
    try:
        import duckdb
    except ImportError:
        fail('Parquet needs the extra "export": pip install "referee[export]"')
    folder.mkdir(parents=True, exist_ok=True)
    # Nothing outside is asked for: what is needed comes with the package.
    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "threads": "1",
    }
    try:
        with duckdb.connect(":memory:", config=settings) as database:
            return [
                _write(database, folder / "tables.parquet", _TABLES, _table_rows(report)),
                _write(database, folder / "deals.parquet", _DEALS, _deal_rows(report)),
            ]
    except duckdb.IOException as error:
        raise OSError(str(error)) from error


def _write(
    database: duckdb.DuckDBPyConnection, path: Path, columns: Mapping[str, str], rows: Iterable[Sequence[object]]
) -> Path:
    fields = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
    database.execute(f"CREATE TABLE {path.stem} ({fields})")
    # Whole columns as parameters: row by row takes a hundred times as long.
    unnested = ", ".join(f"unnest(${number}::{kind}[])" for number, kind in enumerate(columns.values(), 1))
    rows = iter(rows)
    while batch := list(islice(rows, _BATCH)):
        values = [list(column) for column in zip(*batch, strict=True)]
        database.execute(f"INSERT INTO {path.stem} SELECT {unnested}", values)
    part = path.with_suffix(".part")
    try:
        database.table(path.stem).write_parquet(str(part), compression="zstd")
        return part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _table_rows(report: Report) -> Iterator[tuple[object, ...]]:
    for outcome in report.ordered:
        table, points = outcome.table, place_points(outcome)
        for seat, entrant in enumerate(table.seats):
            side, faults = outcome.sides[seat], outcome.faults[seat]
            yield (
                *(report.name, report.game, table.number, table.round, table.board, table.group),
                *(outcome.match_id, outcome.reason, seat, entrant, report.name_of(entrant), side),
                outcome.totals[side] if outcome.scored else None,
                outcome.places[side] if outcome.scored else None,
                points[seat] if points else None,
                sum(faults.values()),
                {"key": list(faults), "value": list(faults.values())},
                faults.get("timeout", 0),
                outcome.substituted[seat],
                outcome.losses[seat] or None,
                outcome.digest.hex(),
            )


def _deal_rows(report: Report) -> Iterator[tuple[object, ...]]:
    for outcome in report.ordered:
        table = outcome.table
        members: dict[int, list[int]] = {}
        for side, entrant in zip(outcome.sides, table.seats, strict=True):
            members.setdefault(side, []).append(entrant)
        for deal in outcome.deals:
            for side, score in enumerate(deal.scores):
                yield (
                    *(report.name, report.game, table.number, table.round, table.board, outcome.match_id),
                    *(deal.deal, deal.dealer, deal.kind, deal.counted, side, members.get(side, []), score),
                )
