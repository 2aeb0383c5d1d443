"""Text of others made safe, and figures with no more digits than they deserve."""

from __future__ import annotations

import html
import math
import unicodedata
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


def width(text: str) -> int:
    """Returns how many columns a text takes where all letters are equally wide."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def shortened(text: str, columns: int) -> str:
    """Returns a text of at most so many columns, with an ellipsis for what was cut off."""
    if width(text) <= columns:
        return text
    while width(text) > columns - 1:
        text = text[:-1]
    return text.rstrip() + "…"


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
    """Whether an interval says something: its ends are numbers and differ."""
    return math.isfinite(interval.low) and math.isfinite(interval.high) and interval.low < interval.high


def spread(interval: Interval, digits: int = 0) -> str:
    """Returns a figure with its interval: `1534 ± 21`, or `1534 (1520…1556)` where the two halves differ in print."""
    value = figure(interval.value, digits)
    if not known(interval):
        return value if value == UNKNOWN else f"{value} ± ?"
    below, above = (figure(half, digits) for half in (interval.value - interval.low, interval.high - interval.value))
    if below == above:
        return f"{value} ± {below}"
    return f"{value} ({figure(interval.low, digits)}…{figure(interval.high, digits)})"


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun in the right form: `1 table`, `2 tables`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
