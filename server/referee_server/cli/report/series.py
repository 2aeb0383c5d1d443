"""Figures drawn from the tables one by one: place points as they add up, and deals by their kind."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from referee_server.cli.report.model import Report
from referee_server.tournament.points import over, seated, side_points

MOST_POINTS: Final = 200
"""How many points of a line are kept: more than that cannot be told apart on a page."""


@dataclass(frozen=True, slots=True)
class Line:
    """Place points of one entrant as they added up.

    Attributes:
        entrant: its number.
        points: pairs of tables played and place points above an even share, from (0, 0), the last one exact.
    """

    entrant: int
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class DealMean:
    """How an entrant did in one kind of deal.

    Attributes:
        deals: how many deals count.
        mean: points of the game a deal.
    """

    deals: int
    mean: float


def advantage_lines(report: Report, most: int = MOST_POINTS) -> dict[int, Line]:
    """Returns each entrant's place points above an even share, table by table, thinned to at most `most` points.

    An even share is what a side gets on the average. What is left of the sum after it is taken off shows who
    pulls ahead; the sums themselves would all climb alike.
    """
    sums: dict[int, list[float]] = {entrant: [0.0] for entrant in range(len(report.names))}
    for outcome in report.ordered:
        if outcome.scored:
            points = side_points(outcome.places)
            even = sum(points) / len(points)
            for entrant, sides in seated(outcome).items():
                if entrant >= 0:
                    line = sums.setdefault(entrant, [0.0])
                    line.append(line[-1] + over(points, sides) - even)
    return {
        entrant: Line(entrant, tuple((index, line[index]) for index in _kept(len(line), most)))
        for entrant, line in sums.items()
        if len(line) > 1
    }


def _kept(length: int, most: int) -> list[int]:
    """Returns evenly spaced indices, the first and the last among them."""
    if length <= most:
        return list(range(length))
    return [round(step * (length - 1) / (most - 1)) for step in range(most)]


def deal_means(report: Report) -> dict[str, dict[int, DealMean]]:
    """Returns how each entrant did in each kind of deal, by kind; of those that count."""
    points: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for outcome in report.ordered:
        for deal in outcome.deals:
            if deal.counted:
                for entrant, sides in seated(outcome).items():
                    if entrant >= 0:
                        points[deal.kind][entrant].append(over(deal.scores, sides))
    return {
        kind: {entrant: DealMean(len(scores), sum(scores) / len(scores)) for entrant, scores in sorted(by.items())}
        for kind, by in sorted(points.items())
    }
