"""A report as one page that needs nothing else: no network, no script, no font of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from referee_server.cli.report import plots
from referee_server.cli.report.model import Report
from referee_server.cli.report.sheets import Column, Kind, Sheet, sheets, tables
from referee_server.cli.report.style import STYLE
from referee_server.cli.report.tables import heading
from referee_server.cli.report.words import for_html

MOST_TABLES: Final = 500
"""So many tables are listed; a page with ten thousand opens slowly and nobody reads it."""

_PLOTS: Final[dict[str, Callable[[Report], str]]] = {
    "ratings": plots.ratings,
    "points": plots.points_over_time,
    "seats": lambda report: plots.seats(report) + plots.dealing(report),
    "deals": plots.deals,
}
_ORDER: Final = (
    "standings",
    "comparison",
    "ratings",
    "points",
    "crosstable",
    "seats",
    "deals",
    "faults",
    "losses",
    "said",
)
_TITLES: Final = {"ratings": "Ratings", "points": "Points over time", "deals": "Kinds of deal"}
_CAPTIONS: Final = {
    "ratings": """Where two intervals hardly overlap, the one entrant is most likely the stronger.
An open dot has no interval: too little was played.""",
    "points": """What a side gets on the average is an even share: above it the line climbs, below it falls.
Byes are left out.""",
    "seats": "An interval that misses 0 says that the seat, or the deal, matters; or that luck was unusual.",
    "deals": """Mean points of the game a deal. Blue is better than the others did in that kind, orange worse, the
stronger the further. Deals that were cut short or in which a substitute played are left out.""",
}


def as_html(report: Report) -> str:
    """Returns a report as one self-contained page of HTML.

    It works without a network and with scripts switched off, by light and by dark, on paper, and read aloud.
    """
    return "\n".join(_page(report)) + "\n"


def _page(report: Report) -> Iterator[str]:
    yield "<!DOCTYPE html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    # Whatever a name may have smuggled in, the browser neither runs nor fetches it.
    yield "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield f"<title>{for_html(report.name)}: {for_html(report.game_title)}</title>"
    yield f"<style>\n{STYLE}</style>"
    yield "</head>"
    yield "<body>"
    yield from _top(report)
    yield "<main>"
    shown = {sheet.key: sheet for sheet in sheets(report)}
    for key in _ORDER:
        yield from _section(report, key, shown.get(key))
    yield from _list_of_tables(report)
    yield "</main>"
    yield from _foot(report)
    yield "</body>"
    yield "</html>"


def _top(report: Report) -> Iterator[str]:
    yield "<header>"
    yield f"<h1><bdi>{for_html(report.name)}</bdi></h1>"
    yield f"<p>{for_html(heading(report))}</p>"
    yield f'<p class="{"state" if report.finished else "state open"}" role="status">{for_html(report.progress())}</p>'
    if report.notes:
        yield '<ul class="notes" aria-label="To know before reading">'
        yield from (f"<li>{for_html(note)}</li>" for note in report.notes)
        yield "</ul>"
    yield "</header>"


def _section(report: Report, key: str, sheet: Sheet | None) -> Iterator[str]:
    """Yields the picture and the sheet of that key, as far as there are any."""
    picture = _PLOTS[key](report) if key in _PLOTS else ""
    if not picture and sheet is None:
        return
    yield f'<section id="{key}" aria-labelledby="{key}-h">'
    yield f'<h2 id="{key}-h">{sheet.title if sheet else _TITLES[key]}</h2>'
    if picture:
        yield f'<figure><div class="wide">{picture}</div>'
        yield f"<figcaption>{_CAPTIONS[key]}</figcaption></figure>"
    if sheet and picture:
        yield "<details><summary>The figures</summary>"
        yield from _table(sheet)
        yield "</details>"
    elif sheet:
        yield from _table(sheet)
    yield "</section>"


def _table(sheet: Sheet) -> Iterator[str]:
    if sheet.rows:
        yield f'<div class="wide" role="region" tabindex="0" aria-label="{sheet.title}">'
        yield f'<table class="{sheet.key}">'
        yield "<thead><tr>" + "".join(map(_head, sheet.columns)) + "</tr></thead>"
        yield "<tbody>"
        for row in sheet.rows:
            yield "<tr>" + "".join(map(_cell, sheet.columns, row)) + "</tr>"
        yield "</tbody>"
        yield "</table>"
        yield "</div>"
    if sheet.caption:
        yield f"<p>{for_html(sheet.caption)}</p>"
    meanings = [column for column in sheet.columns if column.meaning]
    if sheet.key == "standings" and meanings:
        yield "<details><summary>What the columns mean</summary><dl>"
        yield from (f"<dt>{for_html(one.title)}</dt><dd>{for_html(one.meaning)}</dd>" for one in meanings)
        yield "</dl></details>"


def _head(column: Column) -> str:
    title = f' title="{for_html(column.meaning)}"' if column.meaning else ""
    return f'<th scope="col" class="{column.kind.value}"{title}>{for_html(column.title)}</th>'


def _cell(column: Column, text: str) -> str:
    if column.kind is Kind.NAME:
        return f'<th scope="row" class="name"><bdi>{for_html(text)}</bdi></th>'
    return f'<td class="{column.kind.value}">{for_html(text)}</td>'


def _list_of_tables(report: Report) -> Iterator[str]:
    if report.outcomes:
        yield '<section id="tables" aria-labelledby="tables-h">'
        yield '<h2 id="tables-h">Tables</h2>'
        yield f"<details><summary>Each table with its result ({len(report.outcomes)})</summary>"
        yield from _table(tables(report, MOST_TABLES))
        yield "</details>"
        yield "</section>"


def _foot(report: Report) -> Iterator[str]:
    yield "<footer>"
    if report.commitment:
        yield (
            "<p>The host was bound to the cards before the first was dealt, by the commitment "
            f"<code>{for_html(report.commitment)}</code>.</p>"
        )
    if report.master:
        yield (
            "<p>The master secret, from which all cards follow and which that commitment binds, was "
            f"<code>{for_html(report.master)}</code>.</p>"
        )
    if report.generated:
        yield f"<p>{for_html(report.generated)}</p>"
    yield "</footer>"
