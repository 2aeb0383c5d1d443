"""Text of others made safe, and figures with no more digits than they deserve."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Final

from referee_server.tournament.model import Interval

UNKNOWN: Final = "\N{EN DASH}"
"""Stands where there is no figure."""

_MARKDOWN: Final = str.maketrans(
    {char: f"\\{char}" for char in "\\`*_{}[]#|~!$@"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
)
_FORMULA_STARTS: Final = frozenset("=+-@\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}"
                                   "\N{FULLWIDTH COMMERCIAL AT}")  # fmt: skip


def plain(text: str) -> str:
    """Returns text of others with everything replaced that is not seen: controls, zero widths, changes of direction.

    A name can then neither drive a terminal nor turn around or hide what stands beside it.
    """
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def for_html(text: str) -> str:
    """Returns text of others for HTML and SVG, in elements and in quoted attributes."""
    return html.escape(plain(text))


def for_markdown(text: str) -> str:
    """Returns text of others for a paragraph or a cell of Markdown."""
    # An address in a name is not to become a link.
    return plain(text).translate(_MARKDOWN).replace("://", "\\://")


def for_csv(text: str) -> str:
    """Returns text of others for a cell of CSV.

    Spreadsheets run what starts like a formula. As is usual such text gets an apostrophe in front, which they take as
    `this is text`; whoever reads the file by program takes it off again, or reads JSON.
    """
    text = plain(text)
    return f"'{text}" if text.lstrip()[:1] in _FORMULA_STARTS and text.strip() else text


def figure(value: float, digits: int = 0) -> str:
    """Returns a figure with so many digits after the point; `UNKNOWN` for what is not a number, and never `-0`."""
    if not math.isfinite(value):
        return UNKNOWN
    return f"{value:z.{digits}f}"


def trimmed(value: float, digits: int = 2) -> str:
    """Returns a figure with at most so many digits after the point."""
    text = figure(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def known(interval: Interval) -> bool:
    """Whether an interval says something: all of it is numbers, and its ends differ."""
    return all(map(math.isfinite, (interval.value, interval.low, interval.high))) and interval.low < interval.high


def spreads(intervals: Sequence[Interval], digits: int = 0) -> list[str]:
    """Returns figures with their intervals, all in one form so that they can be compared.

    That is `1534 ± 21`, or `1534 (1520…1556)` as soon as the two halves of any of them differ in print. A figure whose
    interval says nothing is followed by `± ?`, unless that holds for all of them: then none were asked for.
    """
    if not any(map(known, intervals)):
        return [figure(one.value, digits) for one in intervals]
    halves = [(figure(one.value - one.low, digits), figure(one.high - one.value, digits)) for one in intervals]
    even = all(below == above for one, (below, above) in zip(intervals, halves, strict=True) if known(one))

    def told(one: Interval, half: str) -> str:
        value = figure(one.value, digits)
        if not known(one):
            return value if value == UNKNOWN else f"{value} ± ?"
        return f"{value} ± {half}" if even else f"{value} ({figure(one.low, digits)}…{figure(one.high, digits)})"

    return [told(one, half) for one, (half, _) in zip(intervals, halves, strict=True)]


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun in the right form: `1 table`, `2 tables`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
