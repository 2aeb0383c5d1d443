"""Rounds in which nobody meets twice, or everybody equally often, where algebra gives them.

Known designs: finite affine spaces (9 in threes, 16 in fours, …), Kirkman's fifteen schoolgirls, whist tournaments, and
the slopes of a grid for any other field that fills its tables.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Final

from referee_server.tournament.formats.berger import berger_round, berger_rounds

Design = Callable[[int], list[tuple[int, ...]]]
"""Gives the groups of a round, from 0."""

# Kirkman: points 0 to 6, 7 to 13 and 14; both sevens turn by one a round, 14 stays.
_KIRKMAN: Final = ((0, 1, 3), (2, 7, 9), (4, 12, 13), (5, 8, 11), (6, 10, 14))
# Whist: the first round of a tournament of so many players; all but the last number turn by one a round. Differences of
# partners (members 0 and 2, 1 and 3) are each number once, those of opponents each number twice.
_WHIST: Final = {
    4: ((3, 1, 0, 2),),
    8: ((7, 1, 0, 3), (2, 4, 6, 5)),
    12: ((11, 1, 0, 3), (2, 6, 9, 7), (4, 5, 10, 8)),
    16: ((15, 1, 0, 2), (3, 9, 6, 11), (4, 8, 13, 12), (5, 7, 10, 14)),
    20: ((19, 1, 0, 2), (3, 9, 5, 15), (4, 12, 14, 17), (6, 10, 18, 13), (7, 8, 11, 16)),
}
# The field with four elements: 2 is a root of x² + x + 1; its sum is exclusive or.
_TIMES_4: Final = ((0, 0, 0, 0), (0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2))


def design(entrants: int, seats: int, pairs: bool, rounds: int) -> tuple[int, Design] | None:
    """Returns the design that gives so many rounds their groups, and after how many rounds it starts again.

    Args:
        entrants: how many play, each in every round, but for an odd field in twos and for whist of one more than a
            multiple of four, where each sits out once in turn.
        seats: seats of a table.
        pairs: whether members 0 and 2 are partners.
        rounds: how many rounds are wanted. A grid that runs out of slopes before is no help.
    """
    if pairs:
        return _whist(entrants)
    if seats == 2:
        return berger_rounds(entrants), lambda k: [tuple(pair) for pair in berger_round(entrants, k)]
    if entrants == 15 and seats == 3:
        return 7, _kirkman
    if entrants == seats:
        return 1, lambda _: [tuple(range(entrants))]
    return _affine(entrants, seats) or _grid(entrants, seats, rounds)


def _turned(blocks: tuple[tuple[int, ...], ...], k: int, circle: int) -> list[tuple[int, ...]]:
    return [tuple(point if point == circle else (point + k) % circle for point in block) for block in blocks]


def _whist(entrants: int) -> tuple[int, Design] | None:
    if entrants in _WHIST:
        return entrants - 1, lambda k: _turned(_WHIST[entrants], k, entrants - 1)
    if entrants % 4 == 1 and _is_prime(entrants):
        # Powers of a primitive root: the fourth roots of one and their multiples, partners being opposite numbers.
        quarter = (entrants - 1) // 4
        root = next(g for g in range(2, entrants) if _order(g, entrants) == entrants - 1)
        blocks = tuple(tuple(pow(root, i + j * quarter, entrants) for j in range(4)) for i in range(quarter))
        return entrants, lambda k: [tuple((point + k) % entrants for point in block) for block in blocks]
    return None


def _kirkman(k: int) -> list[tuple[int, ...]]:
    return [
        tuple(point if point == 14 else (point + k) % 7 if point < 7 else 7 + (point + k) % 7 for point in block)
        for block in _KIRKMAN
    ]


def _affine(entrants: int, q: int) -> tuple[int, Design] | None:
    """Lines of an affine space: a round is all lines of one direction."""
    dimension = next((d for d in range(2, 14) if q**d == entrants), 0)
    if not dimension or q not in (3, 4, 5):
        return None

    def number(point: tuple[int, ...]) -> int:
        return sum(x * q**i for i, x in enumerate(point))

    def step(point: tuple[int, ...], times: int, way: tuple[int, ...]) -> tuple[int, ...]:
        if q == 4:
            return tuple(x ^ _TIMES_4[times][w] for x, w in zip(point, way, strict=True))
        return tuple((x + times * w) % q for x, w in zip(point, way, strict=True))

    points = list(product(range(q), repeat=dimension))
    # One vector for each direction: the first coordinate that is not 0 is 1.
    ways = [way for way in points if next((x for x in way if x), 0) == 1]

    def lines(k: int) -> list[tuple[int, ...]]:
        way = ways[k]
        fixed = next(i for i, x in enumerate(way) if x)
        starts = [point for point in points if not point[fixed]]
        return [tuple(number(step(point, times, way)) for times in range(q)) for point in starts]

    return len(ways), lines


def _grid(entrants: int, seats: int, rounds: int) -> tuple[int, Design] | None:
    """As many columns as seats: a group takes one of each, so many rows further down a column as is the round."""
    rows, left = divmod(entrants, seats)
    # Two rounds share no two entrants if no multiple of their difference by a column's number is a whole turn.
    slopes = rows if _is_prime(rows) and rows >= seats else -(-rows // (seats - 1))
    if left or rounds > slopes:
        return None
    return slopes, lambda k: [
        tuple(column * rows + (row + column * k) % rows for column in range(seats)) for row in range(rows)
    ]


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


def _order(g: int, p: int) -> int:
    power, order = g, 1
    while power != 1:
        power, order = power * g % p, order + 1
    return order
