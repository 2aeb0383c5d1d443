"""A few words of SVG: enough for plots, with every text made safe on its way in."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from typing import Final

from referee_server.cli.report.words import for_html

_EM: Final = 12.5  # size of the letters of labels, in units of the plot
_WIDE: Final = frozenset("MWmw@%")
_NARROW: Final = frozenset("iljftrI.,:;'|!()[]- ")


def span(text: str) -> float:
    """Returns about how long a label is, in units of the plot; rather too long than too short."""
    return sum(map(_em, text)) * _EM


def _em(char: str) -> float:
    if unicodedata.combining(char):
        return 0.0
    if char in _WIDE or unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if char in _NARROW:
        return 0.4
    return 0.73 if char.isupper() or not char.isascii() else 0.6


def shortened(text: str, most: float) -> str:
    """Returns a text of at most `most` units, its middle left out: what tells names apart is often at their ends."""
    if span(text) <= most:
        return text
    kept = len(text)
    while kept > 1 and span(shown := f"{text[: kept - kept // 3]}…{text[len(text) - kept // 3 :]}") > most:
        kept -= 1
    return shown


def picture(key: str, title: str, told: str, size: tuple[float, float], parts: Iterable[str]) -> str:
    """Returns a whole picture.

    Args:
        key: short name, unlike that of any other picture of the page.
        title: what is to be seen.
        told: the same in words, for those who do not see it.
        size: width and height.
        parts: what is in it.
    """
    wide, high = map(math.ceil, size)
    named = f'role="img" aria-labelledby="{key}-title {key}-told"'
    return "\n".join(
        (
            f'<svg viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" {named}>',
            f'<title id="{key}-title">{for_html(title)}</title>',
            f'<desc id="{key}-told">{for_html(told)}</desc>',
            *parts,
            "</svg>",
        )
    )


def line(x1: float, y1: float, x2: float, y2: float, look: str) -> str:
    """Returns a straight line; `look` is its class."""
    return f'<line class="{look}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def path(points: Iterable[tuple[float, float]], look: str) -> str:
    """Returns a line through points."""
    return f'<polyline class="{look}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def dot(x: float, y: float, look: str, radius: float = 4.5) -> str:
    """Returns a dot."""
    return f'<circle class="{look}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}"/>'


def box(x: float, y: float, wide: float, high: float, look: str, opacity: float = 1) -> str:
    """Returns a filled box."""
    return (
        f'<rect class="{look}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" '
        f'fill-opacity="{opacity:.2f}"/>'
    )


def words(x: float, y: float, text: str, look: str = "label", *, anchor: str = "start", most: float = math.inf) -> str:
    """Returns text with its baseline at y.

    Args:
        x: where it starts, ends or has its middle, as `anchor` says.
        y: its baseline.
        text: the text; that of others too.
        look: its class.
        anchor: `start`, `end` or `middle`.
        most: at most how many units of the plot are shown; what is cut off can be read by pointing at it.
    """
    shown = shortened(text, most)
    whole = f"<title>{for_html(text)}</title>" if shown != text else ""
    return f'<text class="{look}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{whole}{for_html(shown)}</text>'


def room(texts: Iterable[str], most: float = math.inf) -> float:
    """Returns how wide a strip for labels, none longer than `most`, has to be."""
    return max((min(span(text), most) for text in texts), default=0.0)


def ticks(low: float, high: float, about: int = 6) -> list[float]:
    """Returns round figures, evenly spaced, that lie in a range; about so many, and the ends if the range is empty."""
    raw = (high - low) / about
    if not raw > 1e-12 * max(abs(low), abs(high), 1e-200):
        return [low]  # no width, or none that could be told
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def spaced(wanted: list[float], least: float, low: float, high: float) -> list[float]:
    """Returns places for labels, as near as can be to those wanted, in the same order and no closer than `least`.

    Args:
        wanted: where they belong, ascending.
        least: how far apart they have to be.
        low: the first may not be before this.
        high: the last may not be after this, if there is room for all.
    """
    places: list[float] = []
    for place in wanted:
        places.append(max(place, places[-1] + least if places else low))
    limit = high
    for index in range(len(places) - 1, -1, -1):
        places[index] = max(min(places[index], limit), low + index * least)
        limit = places[index] - least
    return places
