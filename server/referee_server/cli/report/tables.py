"""A report for the terminal, as JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from referee_server.cli.report.model import Report
from referee_server.cli.report.series import deal_means
from referee_server.cli.report.sheets import Kind, Sheet, sheets
from referee_server.cli.report.words import for_csv, for_markdown, known, plain
from referee_server.tournament.bias import Effect
from referee_server.tournament.model import Interval, Outcome, Standing
from referee_server.tournament.points import place_points

if TYPE_CHECKING:
    from rich.console import RenderableType


_NOTHING: Final = Interval(0, 0, 0)
_NOBODY: Final = Standing(0, 0, 0, 0, 0, _NOTHING, _NOTHING, 0, 0, {}, 0, {}, 0)


def heading(report: Report) -> str:
    """Returns what is played and how, in one line."""
    return f"{report.game_title}, {report.format}"


def as_rich(report: Report) -> RenderableType:
    """Returns a report for a terminal. Tables are as wide as what is in them: names are to be copied, never cut."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [
        Text(plain(report.name), style="bold"),
        Text(plain(heading(report))),
        Text(plain(report.progress()), style="" if report.finished else "yellow"),
        *(Text(plain(note), style="yellow") for note in report.notes),
    ]
    for sheet in sheets(report):
        parts += [Text(), Text(sheet.title, style="bold")]
        if sheet.rows:
            parts.append(_rich_table(sheet))
        if sheet.caption:
            parts.append(Text(plain(sheet.caption), style="dim"))
    if report.proof():
        parts += [Text(), Text(plain(report.proof()), style="dim")]
    return Group(*parts)


def _rich_table(sheet: Sheet) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in sheet.columns:
        table.add_column(
            Text(plain(column.title)), justify="right" if column.kind is Kind.NUMBER else "left", no_wrap=True
        )
    for row in sheet.rows:
        # As Text, since markup in a name is a name.
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table


def as_markdown(report: Report) -> str:
    """Returns a report as Markdown with tables, as GitHub and most others read them."""
    return "\n".join(_markdown_lines(report)) + "\n"


def _markdown_lines(report: Report) -> Iterator[str]:
    yield f"# {for_markdown(report.name)}"
    yield from ("", for_markdown(heading(report)), "", for_markdown(report.progress()))
    if report.notes:
        yield from ("", *(f"- {for_markdown(note)}" for note in report.notes))
    for sheet in sheets(report):
        yield from ("", f"## {sheet.title}", "")
        if sheet.rows:
            yield _markdown_row(column.title for column in sheet.columns)
            yield "|" + "|".join("---:" if column.kind is Kind.NUMBER else "---" for column in sheet.columns) + "|"
            yield from (_markdown_row(row) for row in sheet.rows)
        if sheet.caption:
            yield from (("",) if sheet.rows else ())
            yield for_markdown(sheet.caption)
    if report.proof():
        yield from ("", for_markdown(report.proof()))


def _markdown_row(cells: Iterator[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(map(for_markdown, cells)) + " |"


def as_csv(report: Report) -> str:
    """Returns the standings as CSV: one line an entrant, UTF-8, a header, figures in full.

    Text that a spreadsheet would run as a formula has an apostrophe in front; see `for_csv`. Ends of an interval about
    which nothing can be said are empty. Causes of loss are told with how often they were, joined by semicolons.
    """
    kinds = sorted({kind for line in report.standings for kind in line.faults})
    out = io.StringIO()
    # The columns are there even where nobody is.
    writer = csv.DictWriter(out, list(_csv_row(report, _NOBODY, kinds)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(_csv_row(report, line, kinds) for line in report.standings)
    return out.getvalue()


def _csv_row(report: Report, line: Standing, kinds: list[str]) -> dict[str, object]:
    causes = "; ".join(f"{cause} ({times})" for cause, times in sorted(line.losses.items()))
    return {
        "rank": line.rank,
        "entrant": line.entrant,
        "name": for_csv(report.name_of(line.entrant)),
        "tables": line.played,
        "byes": line.byes,
        "place_points": _number(line.place_points),
        **_ends("mean", line.mean),
        **_ends("rating", line.rating),
        "firsts": _number(line.firsts),
        "points": report.game_points(line),
        "faults": sum(line.faults.values()),
        **{for_csv(f"faults_{kind}"): line.faults.get(kind, 0) for kind in kinds},
        "time_losses": line.time_losses,
        "losses": for_csv(causes),
        "substituted": line.substituted,
        "withdrawn": "yes" if line.withdrawn else "no",
    }


def as_json(report: Report) -> str:
    """Returns everything as one JSON object, an item of its lists a line.

    Figures have at most six digits after the point; what is not a number is null. Names are as they were given;
    characters that are not seen are written as escapes.
    """
    text = "{\n" + ",\n".join(f"  {json.dumps(key)}: {_laid_out(value)}" for key, value in _content(report).items())
    # Beside the line ends above nothing invisible can stand outside of a string.
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text) + "\n}\n"


def _laid_out(value: object) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"    {_dumped(item)}" for item in value) + "\n  ]"
    return _dumped(value)


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _content(report: Report) -> dict[str, Any]:
    duel = report.comparison
    return {
        "name": report.name,
        "game": report.game,
        "game_title": report.game_title,
        "format": report.format,
        "state": report.state,
        "notes": list(report.notes),
        "tables_total": report.tables_total,
        "tables_ended": len(report.outcomes),
        "tables_scored": report.scored,
        "lowest_wins": report.lowest_wins,
        "commitment": report.commitment,
        "master_secret": report.master,
        "generated": report.generated,
        "standings": [_standing(report, line) for line in report.standings],
        "crosstable": [
            {
                "entrant": mine,
                "opponent": other,
                "tables": meeting.tables,
                "share": _number(meeting.share),
                "points_ahead": _number(meeting.points),
            }
            for mine, row in enumerate(report.crosstable)
            for other, meeting in enumerate(row)
            if meeting.tables
        ],
        "seats": _effects("seat", report.bias.seats if report.bias else ()),
        "dealers": _effects("after_dealer", report.bias.dealers if report.bias else ()),
        "dealing": _effects("kind", report.bias.kinds if report.bias else ()),
        "comparison": duel
        and {
            "first": duel.first,
            "second": duel.second,
            "by": duel.by,
            "sets": duel.found.sets,
            "difference": _interval(duel.found.difference),
            "p": _number(duel.found.p),
            "verdict": duel.verdict,
        },
        "deals": [
            {"kind": kind, "entrant": entrant, "deals": mean.deals, "points": _number(mean.mean)}
            for kind, by_entrant in deal_means(report).items()
            for entrant, mean in by_entrant.items()
        ],
        "tables": [_table(report, outcome) for outcome in report.ordered],
    }


def _standing(report: Report, line: Standing) -> dict[str, Any]:
    return {
        "rank": line.rank,
        "entrant": line.entrant,
        "name": report.name_of(line.entrant),
        "tables": line.played,
        "byes": line.byes,
        "place_points": _number(line.place_points),
        "mean": _interval(line.mean),
        "rating": _interval(line.rating),
        "firsts": _number(line.firsts),
        "points": report.game_points(line),
        "faults": _sorted(line.faults),
        "time_losses": line.time_losses,
        "losses": _sorted(line.losses),
        "substituted": line.substituted,
        "withdrawn": line.withdrawn,
    }


def _effects(key: str, effects: Sequence[Effect]) -> list[dict[str, Any]]:
    return [
        {key: effect.name, "deals": effect.deals, "sets": effect.sets, "better_by": _interval(effect.points)}
        for effect in effects
    ]


def _table(report: Report, outcome: Outcome) -> dict[str, Any]:
    points = place_points(outcome)
    return {
        "table": outcome.table.number,
        "round": outcome.table.round,
        "board": outcome.table.board,
        "group": outcome.table.group,
        "match_id": outcome.match_id,
        "reason": outcome.reason,
        "digest": outcome.digest.hex(),
        "totals": list(outcome.totals),
        "places": list(outcome.places),
        "seats": [
            {
                "entrant": entrant,
                "name": report.name_of(entrant),
                "side": outcome.sides[seat],
                "place_points": points[seat] if points else None,
                "faults": _sorted(outcome.faults[seat]),
                "substituted": outcome.substituted[seat],
                "loss": outcome.losses[seat],
                "said": outcome.said[seat] if outcome.said else "",
            }
            for seat, entrant in enumerate(outcome.table.seats)
        ],
    }


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _number(value: float) -> float | None:
    return round(value, 6) + 0.0 if math.isfinite(value) else None


def _interval(interval: Interval) -> dict[str, float | None]:
    return dict(zip(("value", "low", "high"), map(_number, (interval.value, interval.low, interval.high)), strict=True))


def _ends(name: str, interval: Interval) -> dict[str, float | None]:
    low, high = (interval.low, interval.high) if known(interval) else (math.nan, math.nan)
    return {name: _number(interval.value), f"{name}_low": _number(low), f"{name}_high": _number(high)}
