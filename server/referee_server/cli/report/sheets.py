"""The tables of a report as titles, columns and cells of text: terminal, Markdown and HTML show the same ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from referee_server.cli.report.model import Report
from referee_server.cli.report.words import UNKNOWN, counted, figure, spreads, trimmed
from referee_server.tournament.bias import Effect
from referee_server.tournament.model import Outcome

NAMED_TABLES: Final = 5
"""How many tables a cause of loss names."""


class Kind(Enum):
    """What a column holds."""

    NAME = "name"
    """Names of entrants: the head of their lines."""
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        title: its title, as short as can be.
        kind: what it holds.
        meaning: what the title means, where that is not plain.
    """

    title: str
    kind: Kind = Kind.NUMBER
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table to show. Its text may be that of others and is made safe by whoever shows it.

    Attributes:
        key: short name, for links.
        title: its title.
        columns: its columns.
        rows: cells by row, as many as there are columns.
        caption: what has to be known to read it, as whole sentences.
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


SAID: Final = 160
"""How much of what a program printed is shown."""
LEAST_P: Final = 0.001
"""Likelihoods below it are not told apart."""

NAME: Final = Column("name", Kind.NAME)


def sheets(report: Report) -> Iterator[Sheet]:
    """Yields every sheet that has something to say, the standings first, but for the list of all tables."""
    yield standings(report)
    for sheet in (comparison(report), crosstable(report), seats(report), faults(report), losses(report), said(report)):
        if sheet.rows:
            yield sheet


def standings(report: Report) -> Sheet:
    """Returns the standings."""
    lines = report.standings
    shared = Counter(line.rank for line in lines)
    few = "few" if report.lowest_wins else "many"
    columns = {
        Column("rank", meaning="equals share one, marked ="): [
            f"{line.rank}=" if shared[line.rank] > 1 else str(line.rank) for line in lines
        ],
        NAME: [report.name_of(line.entrant) + (" (withdrawn)" if line.withdrawn else "") for line in lines],
        Column("tables", meaning="tables played that have a result"): [str(line.played) for line in lines],
        Column("byes", meaning="rounds without a table"): [str(line.byes) for line in lines],
        Column("place points", meaning="for each table one for every side placed behind, half for one level"): [
            figure(line.place_points, 1) for line in lines
        ],
        Column("a table", meaning="place points a table, with interval"): spreads([line.mean for line in lines], 2),
        Column("rating", meaning="strength in rating points around 1500, with interval"): spreads(
            [line.rating for line in lines]
        ),
        Column("firsts", meaning="tables won, a shared first place in parts"): [trimmed(line.firsts) for line in lines],
        Column("points", meaning=f"points of the game, summed; {few} are good"): [
            str(report.game_points(line)) for line in lines
        ],
        Column("faults", meaning="everything the referee had to rule on, time losses included"): [
            str(sum(line.faults.values())) for line in lines
        ],
        Column("time losses", meaning="answers that came too late"): [str(line.time_losses) for line in lines],
        Column("substituted", meaning="decisions that somebody else had to make"): [
            str(line.substituted) for line in lines
        ],
    }
    shown = [column for column in columns if column.title != "byes" or any(line.byes for line in lines)]
    return Sheet(
        "standings",
        "Standings",
        tuple(shown),
        tuple(zip(*(columns[column] for column in shown), strict=True)),
        "" if lines else "Nobody is in it.",
    )


def crosstable(report: Report) -> Sheet:
    """Returns what each entrant took from each other; columns are numbered as the lines are."""
    order = [line.entrant for line in report.standings if report.crosstable]
    met = any(meeting.tables for row in report.crosstable for meeting in row)

    def cell(mine: int, other: int) -> str:
        meeting = report.crosstable[mine][other]
        if mine == other:
            return "·"
        return f"{trimmed(meeting.share * meeting.tables, 1)}/{meeting.tables}" if meeting.tables else UNKNOWN

    return Sheet(
        "crosstable",
        "Crosstable",
        (
            Column("no"),
            NAME,
            *(Column(str(number), meaning=report.name_of(entrant)) for number, entrant in enumerate(order, 1)),
        ),
        tuple(
            (str(number), report.name_of(mine), *(cell(mine, other) for other in order))
            for number, mine in enumerate(order, 1)
            if met
        ),
        "At how many tables the line was placed before the column, level ones being half, of those where they met.",
    )


def seats(report: Report) -> Sheet:
    """Returns what it was worth to sit in a seat, to deal, and to deal something."""
    effects = [*seat_effects(report), *dealing_effects(report)]
    figures = spreads([effect.points for _, effect in effects], 1)
    return Sheet(
        "seats",
        "Seats and dealers",
        (
            Column("who", Kind.TEXT),
            Column("deals"),
            Column("better by", meaning="points of the game a deal, with interval"),
            Column("fair", Kind.TEXT),
        ),
        tuple(
            (label, str(effect.deals), points, "may be" if effect.fair else "no")
            for (label, effect), points in zip(effects, figures, strict=True)
        ),
        "By how many points of the game a deal whoever it was came off better than the mean of the table. Fair seats "
        "have 0 within the interval. It tells of the game only where all sat everywhere equally often.",
    )


def seat_effects(report: Report) -> list[tuple[str, Effect]]:
    """Returns what the seats were worth, and how far they were from the dealer, with a label each."""
    if report.bias is None:
        return []
    return [
        *((f"seat {effect.name}", effect) for effect in report.bias.seats),
        *((f"{effect.name} after the dealer" if effect.name else "dealer", effect) for effect in report.bias.dealers),
    ]


def dealing_effects(report: Report) -> list[tuple[str, Effect]]:
    """Returns what it was worth to deal each kind of deal, with a label each."""
    return [(f"dealer of {effect.name}", effect) for effect in report.bias.kinds] if report.bias else []


def comparison(report: Report) -> Sheet:
    """Returns two entrants held against each other; without rows where that was not asked for."""
    duel = report.comparison
    columns = (
        NAME,
        Column("against", Kind.NAME),
        Column("board sets"),
        Column("ahead by"),
        Column("p", meaning="how likely so great a difference is between equals"),
    )
    if duel is None:
        return Sheet("comparison", "Comparison", columns, ())
    unit = "place points a table" if duel.by == "place" else "points a deal"
    row = (
        report.name_of(duel.first),
        report.name_of(duel.second),
        str(duel.found.sets),
        f"{spreads([duel.found.difference], 2)[0]} {unit}",
        figure(duel.found.p, 3) if duel.found.p >= LEAST_P else f"< {LEAST_P}",
    )
    return Sheet("comparison", "Comparison", columns, (row,), f"{duel.verdict}." if duel.verdict else "")


def faults(report: Report) -> Sheet:
    """Returns the faults by kind, of those that committed any."""
    kinds = sorted({kind for line in report.standings for kind, times in line.faults.items() if times})
    return Sheet(
        "faults",
        "Faults by kind",
        (NAME, *(Column(kind) for kind in kinds)),
        tuple(
            (report.name_of(line.entrant), *(str(line.faults.get(kind, 0)) for kind in kinds))
            for line in report.standings
            if any(line.faults.values())
        ),
        "What the referee had to rule on. By themselves faults cost nothing; what they led to is under causes of loss.",
    )


def losses(report: Report) -> Sheet:
    """Returns why entrants were ruled last or did not start, and where."""
    where: dict[tuple[int, str], list[int]] = defaultdict(list)
    for outcome in report.ordered:
        for entrant, cause in zip(outcome.table.seats, outcome.losses, strict=True):
            if cause:
                where[entrant, cause].append(outcome.table.number)

    def named(tables: list[int]) -> str:
        more = f" and {len(tables) - NAMED_TABLES} more" if len(tables) > NAMED_TABLES else ""
        return ", ".join(map(str, tables[:NAMED_TABLES])) + more

    return Sheet(
        "losses",
        "Causes of loss",
        (NAME, Column("cause", Kind.TEXT), Column("times"), Column("at tables", Kind.TEXT)),
        tuple(
            (report.name_of(line.entrant), cause, str(times), named(where[line.entrant, cause]))
            for line in report.standings
            for cause, times in sorted(line.losses.items(), key=lambda item: (-item[1], item[0]))
        ),
        "Why somebody was ruled last, or did not start, whatever the cards said.",
    )


def said(report: Report) -> Sheet:
    """Returns what there is to say of programs that failed, the last of each entrant."""
    last: dict[int, tuple[int, str]] = {}
    for outcome in report.ordered:
        for entrant, text in zip(outcome.table.seats, outcome.said, strict=False):
            if text:
                last[entrant] = outcome.table.number, " ".join(text.split())
    return Sheet(
        "said",
        "Programs that failed",
        (NAME, Column("at table"), Column("the last of it", Kind.TEXT)),
        tuple((report.name_of(entrant), str(number), text[-SAID:]) for entrant, (number, text) in sorted(last.items())),
        "Why a program did not start, or the last that it printed. Whole outputs are in the data folder.",
    )


def tables(report: Report, most: int) -> Sheet:
    """Returns the tables that have ended, the last `most` of them."""
    ended = report.ordered
    shown = ended[-most:]
    left_out = len(ended) - len(shown)
    return Sheet(
        "tables",
        "Tables",
        (
            Column("table"),
            Column("round"),
            Column("board", meaning="tables of one board hold the same cards"),
            Column("result", Kind.TEXT, "by place: who, and the points of the game"),
            Column("match", Kind.TEXT),
        ),
        tuple(
            (
                str(outcome.table.number),
                str(outcome.table.round + 1),
                str(outcome.table.board),
                result(report, outcome),
                outcome.match_id,
            )
            for outcome in shown
        ),
        f"The last {len(shown)} of {counted(len(ended), 'table')}; JSON and Parquet have them all." if left_out else "",
    )


def result(report: Report, outcome: Outcome) -> str:
    """Returns what came of a table in one line, the best side first."""
    if not outcome.scored:
        return outcome.reason.replace("_", " ")
    members: dict[int, list[str]] = defaultdict(list)
    for side, entrant in zip(outcome.sides, outcome.table.seats, strict=True):
        members[side].append(report.name_of(entrant))
    by_place = sorted(range(len(outcome.places)), key=lambda side: outcome.places[side])
    told = ", ".join(f"{outcome.places[side]}. {' + '.join(members[side])} {outcome.totals[side]}" for side in by_place)
    return told if outcome.reason == "completed" else f"{told} ({outcome.reason})"
