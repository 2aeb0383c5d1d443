"""Entrant against entrant: what came of the tables at which both sat."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from referee_server.tournament.model import Outcome
from referee_server.tournament.points import over, seated, side_counted


class Meeting(NamedTuple):
    """What came of the tables at which one entrant met another as an opponent.

    Attributes:
        tables: how many with a result; partners on one side do not meet.
        share: share of these at which it was placed before the other, a shared place being half; 0.5 without any.
        points: by how many points of the game it was ahead, a table, over the deals that count; 0 without any.
    """

    tables: int = 0
    share: float = 0.5
    points: float = 0.0

    @property
    def lead(self) -> float:
        """How many more tables it was placed before the other than behind."""
        return self.tables * (2 * self.share - 1)


def crosstable(outcomes: Iterable[Outcome], entrants: int, *, lowest_wins: bool) -> list[list[Meeting]]:
    """Returns a row for each entrant with a meeting for each entrant; on the diagonal nobody meets.

    The table is the same for tables in any order.

    Args:
        outcomes: tables in any order; those without a result are passed over.
        entrants: how many entrants there are.
        lowest_wins: whether the lowest total wins the game.
    """
    # Sums of each pair once, the lower number first: tables, twice the places ahead, points, tables with points.
    sums: dict[tuple[int, int], list[float]] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.table.number):
        if not outcome.scored:
            continue
        points = side_counted(outcome, lowest_wins)
        sides = seated(outcome)
        present = sorted(player for player in sides if player >= 0)
        for at, one in enumerate(present):
            for other in present[at + 1 :]:
                if sides[one] == sides[other]:
                    continue
                met = sums.setdefault((one, other), [0, 0.0, 0.0, 0])
                met[0] += 1
                met[1] += _ahead(outcome.places, sides[one], sides[other])
                if points:
                    met[2] += over(points, sides[one]) - over(points, sides[other])
                    met[3] += 1
    table = [[Meeting() for _ in range(entrants)] for _ in range(entrants)]
    for (one, other), (tables, ahead, points_ahead, measured) in sums.items():
        mean = points_ahead / measured if measured else 0.0
        table[one][other] = Meeting(int(tables), ahead / tables, mean)
        table[other][one] = Meeting(int(tables), 1 - ahead / tables, -mean)
    return table


def _ahead(places: tuple[int, ...], mine: tuple[int, ...], theirs: tuple[int, ...]) -> float:
    """Returns the share of the pairings of their sides in which the first is placed before the second."""
    won = sum(
        1.0 if places[one] < places[other] else 0.5 if places[one] == places[other] else 0.0
        for one in mine
        for other in theirs
    )
    return won / (len(mine) * len(theirs))
