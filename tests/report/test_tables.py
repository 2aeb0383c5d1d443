"""What the terminal, JSON, CSV and Markdown say of a tournament. `pytest --update-golden` writes the files anew."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from referee_server.cli.report.model import Report
from referee_server.cli.report.tables import as_csv, as_json, as_markdown, as_rich
from referee_server.cli.report.words import spreads
from referee_server.tournament.model import Interval
from report.world import cup, duel, nobody, played, table_of

GOLDEN = Path(__file__).parent.parent / "golden"
FORMULAS = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", " =1", "\N{FULLWIDTH EQUALS SIGN}1"]
HOSTILE = "[red]x[/red] `a` | <b>&\x1b[31m\u202eevil\u200b\n\x9b2J\N{CARRIAGE RETURN}"


def as_text(report: Report) -> str:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=400, color_system=None).print(as_rich(report))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


FORMS: dict[str, Callable[[Report], str]] = {"txt": as_text, "csv": as_csv, "md": as_markdown, "json": as_json}


def renamed(report: Report, name: str) -> Report:
    return replace(report, names=(name, *report.names[1:]))


def csv_rows(report: Report) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv(report))))


@pytest.mark.parametrize("form", FORMS)
def test_a_tournament_of_four_reads_as_it_did(form: str, update_golden: bool) -> None:
    text = FORMS[form](cup(tables=9))
    path = GOLDEN / f"report.{form}"
    if update_golden:
        path.write_text(text, encoding="utf-8")
    assert text.splitlines() == path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("form", FORMS)
def test_a_tournament_without_a_single_result_has_a_report_and_no_figure_that_is_none(form: str) -> None:
    text = FORMS[form](nobody())
    assert "nan" not in text.lower()
    assert "greedy" in text


@pytest.mark.parametrize("form", FORMS)
def test_a_tournament_with_no_entrant_at_all_has_a_report(form: str) -> None:
    report = replace(nobody(), names=(), standings=(), tables_total=0)
    assert FORMS[form](report)


@pytest.mark.parametrize("form", ["txt", "md"])
@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("finished", "Finished. 6 of 8 tables have ended"),
        ("running", "Not finished: it is still running. 6 of 8 tables have ended"),
        ("paused", "Not finished: it is paused. 6 of 8"),
        ("cancelled", "Not finished: it was cancelled. 6 of 8"),
        ("stopped early: greedy is ahead.", "Stopped early: greedy is ahead. 6 of 8"),
    ],
)
def test_how_far_it_is_stands_before_the_figures(form: str, state: str, said: str) -> None:
    text = FORMS[form](replace(cup(), state=state, tables_total=8))
    assert said in text
    assert text.index(said) < text.index("Standings")


@pytest.mark.parametrize("form", ["txt", "md"])
def test_notes_stand_before_the_figures(form: str) -> None:
    text = FORMS[form](replace(cup(), notes=("UNSEALED, the host gave the seed.",)))
    assert text.index("UNSEALED, the host gave the seed.") < text.index("Standings")


@pytest.mark.parametrize("form", FORMS)
def test_no_text_of_others_brings_in_a_character_that_is_not_seen(form: str) -> None:
    report = replace(renamed(cup(), HOSTILE), name=HOSTILE, notes=(HOSTILE,), state=HOSTILE, format=HOSTILE)
    assert [char for char in FORMS[form](report) if not char.isprintable() and char != "\n"] == []


def test_markup_in_a_name_is_a_name_on_the_terminal() -> None:
    assert "[red]x[/red] `a` | <b>&" in as_text(renamed(cup(), HOSTILE))


def test_a_name_cannot_break_out_of_its_cell_in_markdown() -> None:
    lines = as_markdown(renamed(cup(), HOSTILE)).splitlines()
    line = next(line for line in lines if "evil" in line)
    assert r"\[red\]x\[/red\] \`a\` \| &lt;b&gt;&amp;" in line
    columns = next(line for line in lines if line.startswith("| rank")).count("|")
    assert line.replace(r"\|", "").count("|") == columns


@pytest.mark.parametrize("name", FORMULAS)
def test_a_name_that_a_spreadsheet_would_run_has_an_apostrophe_in_front_in_csv(name: str) -> None:
    assert f"'{name}" in [row["name"] for row in csv_rows(renamed(cup(), name))]


@pytest.mark.parametrize("name", ["greedy", "a=b", "'quoted'", 'say "hi", now', "", " "])
def test_other_names_are_in_csv_as_they_are(name: str) -> None:
    assert name in [row["name"] for row in csv_rows(renamed(cup(), name))]


def test_negative_figures_stay_figures_in_csv() -> None:
    report = cup()
    low = replace(report, standings=tuple(replace(line, points=120) for line in report.standings))
    assert {row["points"] for row in csv_rows(low)} == {"-120"}


def test_csv_has_its_columns_even_where_nobody_is() -> None:
    full, empty = as_csv(cup()), as_csv(replace(nobody(), standings=()))
    assert set(empty.strip().split(",")) <= set(full.splitlines()[0].split(","))
    assert len(empty.splitlines()) == 1


def test_faults_and_time_losses_are_columns_apart_from_the_points() -> None:
    slow = next(row for row in csv_rows(cup()) if row["name"] == "slow|poke")
    assert (slow["faults"], slow["faults_timeout"], slow["time_losses"], slow["substituted"]) == ("3", "3", "3", "17")
    assert slow["losses"] == "timeout: replaced (1)"


def test_each_cause_of_loss_is_listed_with_its_tables() -> None:
    section = as_markdown(cup()).split("## Causes of loss")[1]
    assert r"| slow\|poke | timeout: replaced | 1 | 1 |" in section


def test_equals_are_marked_as_sharing_their_rank() -> None:
    report = cup()
    lines = tuple(replace(line, rank=rank) for line, rank in zip(report.standings, (1, 2, 2, 4), strict=True))
    tied = replace(report, standings=lines)
    ranks = [line.split()[0] for line in as_text(tied).split("Standings")[1].splitlines()[2:6]]
    assert ranks == ["1", "2=", "2=", "4"]
    assert [row["rank"] for row in csv_rows(tied)] == ["1", "2", "2", "4"]


def test_json_gives_names_back_as_they_were_given() -> None:
    assert HOSTILE in [line["name"] for line in json.loads(as_json(renamed(cup(), HOSTILE)))["standings"]]


def test_json_has_every_table_in_order_with_who_sat_where() -> None:
    report = cup()
    tables = json.loads(as_json(report))["tables"]
    assert [table["table"] for table in tables] == list(range(6))
    assert [[seat["entrant"] for seat in table["seats"]] for table in tables] == [
        list(outcome.table.seats) for outcome in report.ordered
    ]
    assert tables[-1]["places"] == []
    assert {seat["place_points"] for seat in tables[-1]["seats"]} == {None}


def test_what_is_not_a_number_is_null_in_json_and_a_dash_on_the_terminal() -> None:
    report = cup()
    unknown = Interval(float("nan"), float("nan"), float("inf"))
    broken = replace(report, standings=tuple(replace(line, rating=unknown) for line in report.standings))

    def refuse(name: str) -> Any:
        raise AssertionError(name)

    standings = json.loads(as_json(broken), parse_constant=refuse)["standings"]
    assert standings[0]["rating"] == {"value": None, "low": None, "high": None}
    assert "\N{EN DASH}" in as_text(broken)


def test_a_comparison_comes_right_after_the_standings() -> None:
    report = cup()
    text = as_text(replace(report, comparison=duel(report.outcomes, "greedy is ahead beyond doubt")))
    assert text.index("Standings") < text.index("greedy is ahead beyond doubt.") < text.index("Crosstable")
    assert re.search(r"greedy +random +5 +\d\.\d\d ± \d\.\d\d place points a table", text)


def test_byes_have_a_column_only_where_there_were_any() -> None:
    report = cup()
    with_bye = replace(report, standings=(replace(report.standings[0], byes=1), *report.standings[1:]))
    assert "byes" not in as_text(report)
    assert "byes" in as_text(with_bye)


def test_who_left_is_marked_so() -> None:
    report = cup()
    left = replace(report, standings=(*report.standings[:-1], replace(report.standings[-1], withdrawn=True)))
    assert f"{report.name_of(report.standings[-1].entrant)} (withdrawn)" in as_text(left)


def test_house_bots_go_by_their_own_names() -> None:
    table = table_of(random.Random(1), 0, 2)
    report = replace(cup(), names=("one", "two"), outcomes=(played(random.Random(1), table, 2),), standings=())
    seats = json.loads(as_json(report))["tables"][0]["seats"]
    assert [seat["name"] for seat in seats] == ["one", "two", "house one", "house two"]


@pytest.mark.parametrize(
    ("intervals", "said"),
    [
        ([Interval(1534.2, 1513.1, 1555.3)], ["1534 ± 21"]),
        ([Interval(1534, 1520, 1556)], ["1534 (1520…1556)"]),
        ([Interval(1534, 1513, 1555), Interval(1400, 1390, 1420)], ["1534 (1513…1555)", "1400 (1390…1420)"]),
        ([Interval(1500, 1500, 1500), Interval(-0.2, -1.2, 0.8)], ["1500 ± ?", "0 ± 1"]),
        ([Interval(float("nan"), 0, 1)], ["\N{EN DASH}"]),
        ([Interval(1500, 1500, 1500), Interval(1400, 1400, 1400)], ["1500", "1400"]),
        ([], []),
    ],
)
def test_figures_of_a_column_have_their_intervals_in_one_form(intervals: list[Interval], said: list[str]) -> None:
    assert spreads(intervals) == said


@pytest.mark.parametrize("form", ["txt", "md", "json"])
def test_the_master_secret_stands_beside_the_commitment_once_there_is_one(form: str) -> None:
    ended = cup()
    assert ended.master in FORMS[form](ended)
    assert "master secret" not in FORMS[form](replace(ended, master=""))
