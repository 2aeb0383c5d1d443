"""The plots of a report, as SVG to stand in a page whose style gives the colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from referee_server.cli.report import svg
from referee_server.cli.report.model import Report
from referee_server.cli.report.series import Line, advantage_lines, deal_means
from referee_server.cli.report.sheets import dealing_effects, seat_effects
from referee_server.cli.report.words import counted, figure, known, spreads, trimmed
from referee_server.tournament.bias import Effect
from referee_server.tournament.model import Interval

MOST_RATINGS: Final = 40
MOST_LINES: Final = 16
COLOURS: Final = 8
"""So many colours can be told apart; further lines have them again, dashed."""

_WIDE: Final = 940.0
_NAME: Final = 190.0  # room for a name
_LONGEST: Final = _NAME + 50  # room for a name with its points
_ROW: Final = 26.0
_LABEL: Final = 15.0  # lines of labels are so far apart
_FLAT: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a plot of intervals.

    Attributes:
        label: whom or what it is of.
        interval: the figure.
    """

    label: str
    interval: Interval


def ratings(report: Report) -> str:
    """Returns the ratings of those that have played, in the order of the standings; empty if nobody has."""
    lines = [line for line in report.standings if line.played and math.isfinite(line.rating.value)]
    if not lines:
        return ""
    rows = [Row(report.name_of(line.entrant), line.rating) for line in lines[:MOST_RATINGS]]
    title = "Ratings with intervals" + _best(len(rows), len(lines))
    return _intervals("ratings", title, rows, "rating points", None, 0)


def seats(report: Report) -> str:
    """Returns what the seats and the distance from the dealer were worth; empty if nothing is known."""
    return _effects("seats", "Points a deal better than the table's mean, by seat", seat_effects(report))


def dealing(report: Report) -> str:
    """Returns what it was worth to deal each kind of deal; empty if nothing is known."""
    return _effects("dealing", "Points a deal better than the table's mean, by what was dealt", dealing_effects(report))


def _effects(key: str, title: str, effects: Sequence[tuple[str, Effect]]) -> str:
    if not effects:
        return ""
    rows = [Row(label, effect.points) for label, effect in effects]
    return _intervals(key, title, rows, "points of the game a deal, to the right is better", 0.0, 1)


def _best(shown: int, there: int) -> str:
    return f", the best {shown} of {there}" if shown < there else ""


def _intervals(key: str, title: str, rows: Sequence[Row], axis: str, middle: float | None, digits: int) -> str:
    """Returns figures as dots with whiskers, one below the other, each with its figure in words at the right."""
    told = spreads([row.interval for row in rows], digits)
    left = svg.room((row.label for row in rows), _NAME) + 14
    right = _WIDE - svg.room(told) - 14
    bottom = 8 + _ROW * len(rows)
    ends = [end for row in rows for end in (row.interval.value, *_whisker(row.interval))]
    low, high = _padded([*ends, middle] if middle is not None else ends)

    def across(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    parts = [
        part
        for tick, text in _tick_texts(low, high)
        for part in (
            svg.line(across(tick), 4, across(tick), bottom, "grid"),
            svg.words(across(tick), bottom + 16, text, "tick", anchor="middle"),
        )
    ]
    if middle is not None:
        parts.append(svg.line(across(middle), 4, across(middle), bottom, "zero"))
    for number, (row, text) in enumerate(zip(rows, told, strict=True)):
        y = 8 + _ROW * (number + 0.5)
        parts.append(svg.words(left - 10, y + 4, row.label, anchor="end", most=_NAME))
        whisker = _whisker(row.interval)
        if whisker:
            start, end = map(across, whisker)
            parts.append(svg.line(start, y, end, y, "whisker"))
            parts += [svg.line(x, y - 4, x, y + 4, "whisker") for x in (start, end)]
        parts.append(svg.dot(across(row.interval.value), y, "dot" if whisker else "dot open"))
        parts.append(svg.words(_WIDE, y + 4, text, "value", anchor="end"))
    parts.append(svg.words((left + right) / 2, bottom + 34, axis, "axis", anchor="middle"))
    said = "; ".join(f"{row.label}: {text}" for row, text in zip(rows, told, strict=True))
    return svg.picture(key, title, f"{said}.", (_WIDE, bottom + 42), parts)


def _whisker(interval: Interval) -> tuple[float, ...]:
    return (interval.low, interval.high) if known(interval) else ()


def _padded(values: Sequence[float]) -> tuple[float, float]:
    """Returns a range that holds all values with a little air, and is not empty."""
    low, high = min(values), max(values)
    air = (high - low) * 0.04 if high - low > _FLAT else max(abs(high) * 0.05, 0.5)
    return low - air, high + air


def _tick_texts(low: float, high: float, about: int = 6) -> list[tuple[float, str]]:
    """Returns ticks with their texts, which have as many digits as it takes to tell them apart."""
    places = svg.ticks(low, high, about)
    step = places[1] - places[0] if len(places) > 1 else 1.0
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [(place, figure(place, digits)) for place in places]


def points_over_time(report: Report) -> str:
    """Returns place points above an even share over the tables played, a line an entrant; empty without results."""
    known_lines = advantage_lines(report)
    lines = [known_lines[line.entrant] for line in report.standings if line.entrant in known_lines]
    shown = lines[:MOST_LINES]
    if not shown:
        return ""
    names = [report.name_of(one.entrant) for one in shown]
    labels = [f"{figure_signed(one.points[-1][1])}  {name}" for one, name in zip(shown, names, strict=True)]
    high_plot = max(280.0, _LABEL * (len(shown) + 1))
    left, right, top = 48.0, _WIDE - svg.room(labels, _LONGEST) - 34, 10.0
    bottom = top + high_plot
    last = max(one.points[-1][0] for one in shown)
    low, high = _padded([y for one in shown for _, y in one.points])

    def at(point: tuple[int, float]) -> tuple[float, float]:
        return left + point[0] / last * (right - left), bottom - (point[1] - low) / (high - low) * high_plot

    parts = []
    for tick, text in _tick_texts(low, high):
        y = at((0, tick))[1]
        parts.append(svg.line(left, y, right, y, "zero" if abs(tick) < _FLAT else "grid"))
        parts.append(svg.words(left - 8, y + 4, text, "tick", anchor="end"))
    parts += [
        svg.words(at((int(tick), 0))[0], bottom + 18, str(int(tick)), "tick", anchor="middle")
        for tick in svg.ticks(0, last, 8)
        if tick == int(tick)
    ]
    # The best last, so that it lies on top.
    for number, one in reversed(list(enumerate(shown))):
        parts.append(svg.path(map(at, one.points), f"series {_look(number)}"))
    parts += _end_labels(shown, labels, [at(one.points[-1]) for one in shown], right, (top, bottom))
    parts.append(svg.words((left + right) / 2, bottom + 38, "tables played", "axis", anchor="middle"))
    title = "Place points above an even share, table by table" + _best(len(shown), len(lines))
    said = "; ".join(
        f"{name}: {figure_signed(one.points[-1][1])} after {counted(one.points[-1][0], 'table')}"
        for name, one in zip(names, shown, strict=True)
    )
    return svg.picture("points", title, f"{said}.", (_WIDE, bottom + 44), parts)


def _end_labels(
    lines: Sequence[Line],
    labels: Sequence[str],
    ends: Sequence[tuple[float, float]],
    right: float,
    rows: tuple[float, float],
) -> list[str]:
    """Returns a label for the end of each line, moved apart where the ends are close, and threads from end to label."""
    order = sorted(range(len(lines)), key=lambda number: ends[number][1])
    places = svg.spaced([ends[number][1] for number in order], _LABEL, rows[0] + 6, rows[1] - 6)
    parts = []
    for number, y in zip(order, places, strict=True):
        x_end, y_end = ends[number]
        bends = [(x_end, y_end), (right + 4, y_end), (right + 16, y), (right + 22, y)]
        parts.append(svg.path(bends, f"thread {_look(number)}"))
        parts.append(svg.dot(x_end, y_end, f"end {_look(number)}", 3))
        parts.append(svg.words(right + 27, y + 4, labels[number], most=_LONGEST))
    return parts


def _look(number: int) -> str:
    return f"c{number % COLOURS}" + (" dashed" if number % (2 * COLOURS) >= COLOURS else "")


def figure_signed(value: float) -> str:
    """Returns a figure with its sign, and no more digits than it needs."""
    text = trimmed(value, 1)
    return text if text in ("0", "-0") or value < 0 else f"+{text}"


def deals(report: Report) -> str:
    """Returns points a deal by entrant and kind of deal, good tinted apart from bad; empty with one kind only."""
    means = deal_means(report)
    kinds = list(means)
    entrants = [line.entrant for line in report.standings if any(line.entrant in by for by in means.values())]
    shown = entrants[:MOST_LINES]
    if len(kinds) < 2 or not shown:
        return ""
    names = [report.name_of(entrant) for entrant in shown]
    left = svg.room(names, _NAME) + 14
    cell = min(110.0, (_WIDE - left) / len(kinds))
    top = 26.0
    parts = [
        svg.words(left + cell * (number + 0.5), top - 9, kind, "axis", anchor="middle", most=cell - 6)
        for number, kind in enumerate(kinds)
    ]
    for row, (entrant, name) in enumerate(zip(shown, names, strict=True)):
        y = top + _ROW * row
        parts.append(svg.words(left - 10, y + _ROW / 2 + 4, name, anchor="end", most=_NAME))
        for number, kind in enumerate(kinds):
            if entrant not in means[kind]:
                continue
            mean = means[kind][entrant].mean
            everybody = [one.mean for one in means[kind].values()]
            ahead = sum(everybody) / len(everybody) - mean
            reach = max(everybody) - min(everybody)
            look = "good" if (ahead > 0) == report.lowest_wins else "bad"
            tint = 0.75 * abs(ahead) / reach if reach > _FLAT else 0.0
            x = left + cell * number
            parts.append(svg.box(x + 1, y + 1, cell - 2, _ROW - 2, f"cell {look}", tint))
            parts.append(svg.words(x + cell / 2, y + _ROW / 2 + 4, figure(mean, 1), "value", anchor="middle"))
    title = "Points a deal, by kind of deal" + _best(len(shown), len(entrants))
    said = "; ".join(
        f"{name}: "
        + ", ".join(f"{kind} {figure(means[kind][entrant].mean, 1)}" for kind in kinds if entrant in means[kind])
        for entrant, name in zip(shown, names, strict=True)
    )
    return svg.picture("deals", title, f"{said}.", (left + cell * len(kinds), top + _ROW * len(shown) + 4), parts)
