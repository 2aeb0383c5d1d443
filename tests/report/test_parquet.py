"""Parquet files, read back with what wrote them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from referee_server.cli.output import Failure
from referee_server.cli.report.parquet import write_parquet
from report.world import cup, nobody

duckdb = pytest.importorskip("duckdb")


def read(path: Path, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(":memory:") as database:
        database.read_parquet(str(path)).create("rows")
        rows: list[tuple[Any, ...]] = database.execute(query).fetchall()
        return rows


def test_there_is_a_row_a_table_and_seat_and_a_row_a_deal_and_side(tmp_path: Path) -> None:
    tables, deals = write_parquet(cup(), tmp_path / "new" / "folder")
    assert (tables.name, deals.name) == ("tables.parquet", "deals.parquet")
    assert read(tables, "SELECT count(*), count(DISTINCT match_id) FROM rows") == [(24, 6)]
    assert read(deals, "SELECT count(*), count(DISTINCT kind) FROM rows") == [(5 * 6 * 4, 6)]
    assert sorted(path.name for path in tables.parent.iterdir()) == ["deals.parquet", "tables.parquet"]


def test_the_standings_can_be_computed_from_it(tmp_path: Path) -> None:
    report = cup(tables=12)
    tables, _ = write_parquet(report, tmp_path)
    summed = read(
        tables,
        "SELECT entrant, sum(place_points), sum(total), count(place), sum(time_losses) FROM rows GROUP BY 1 ORDER BY 1",
    )
    assert summed == [
        (line.entrant, pytest.approx(line.place_points), report.game_points(line), line.played, line.time_losses)
        for line in sorted(report.standings, key=lambda line: line.entrant)
    ]


def test_faults_are_a_map_and_no_loss_is_null(tmp_path: Path) -> None:
    tables, deals = write_parquet(cup(), tmp_path)
    assert read(tables, "SELECT faults_by_kind['timeout'], loss, reason FROM rows WHERE faults > 0") == [
        (3, "timeout: replaced", "forfeited")
    ]
    assert read(tables, "SELECT count(loss) FROM rows") == [(1,)]
    assert read(deals, "SELECT count(*) FROM rows WHERE NOT counted") == [(4 * 4,)]


def test_without_a_result_there_is_no_place(tmp_path: Path) -> None:
    tables, _ = write_parquet(cup(), tmp_path)
    assert read(tables, "SELECT count(*), count(place), count(total) FROM rows WHERE reason = 'referee_fault'") == [
        (4, 0, 0)
    ]


def test_names_come_back_as_they_were(tmp_path: Path) -> None:
    name = '\'; DROP TABLE tables; -- "$1" \u202e\n'
    tables, _ = write_parquet(replace(cup(), names=(name, "b", "c", "d"), name=name), tmp_path)
    assert read(tables, "SELECT DISTINCT name, tournament FROM rows WHERE entrant = 0") == [(name, name)]


def test_a_tournament_in_which_nothing_has_ended_has_files_with_all_columns(tmp_path: Path) -> None:
    full, _ = write_parquet(cup(), tmp_path / "full")
    empty, _ = write_parquet(nobody(), tmp_path / "empty")
    assert read(empty, "SELECT count(*) FROM rows") == [(0,)]
    assert read(empty, "DESCRIBE rows") == read(full, "DESCRIBE rows")


def test_files_of_an_earlier_time_are_replaced(tmp_path: Path) -> None:
    write_parquet(cup(tables=12), tmp_path)
    tables, _ = write_parquet(cup(), tmp_path)
    assert read(tables, "SELECT count(*) FROM rows") == [(24,)]


def test_a_folder_with_a_quote_in_its_name_is_a_folder(tmp_path: Path) -> None:
    tables, _ = write_parquet(cup(), tmp_path / "it's; [here]")
    assert tables.exists()


def test_a_folder_that_cannot_be_written_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "tables.part").mkdir()
    with pytest.raises(OSError, match="tables"):
        write_parquet(cup(), tmp_path)


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(Failure, match=r'pip install "referee\[export\]"'):
        write_parquet(cup(), tmp_path)
