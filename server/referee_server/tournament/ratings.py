"""Ratings from who met whom: a Plackett-Luce fit over all tables at once, and openskill for the live view.

The model: a table is drawn like lots from a bag, first the winner, then the second and so on; each time a side is drawn
in proportion to exp of its strength, which is the mean of the strengths of those who play for it. A shared place is
the mean over all orders of those who share it, so a draw between two is half a win for each. So that everything is
finite, each entrant has also won and lost against a phantom of strength 0, `prior` times each.

The fit depends on how often each result occurred and on nothing else: tables in another order give the same bits.
Its intervals come from how the tables of whole board sets pull at the strengths, not from single tables.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from referee_server.tournament.intervals import by_board
from referee_server.tournament.model import Interval, Outcome
from referee_server.tournament.points import side_counted

if TYPE_CHECKING:
    from openskill.models import PlackettLuceRating

PRIOR: Final = 1.0
"""How often each entrant has won, and has lost, against the phantom."""
UNIT: Final = 400 / math.log(10)
"""Rating points in one unit of strength: 400 points are odds of ten to one."""
CENTRE: Final = 1500.0
"""The mean of all entrants' ratings."""

# Damped Newton: while no strength moves by more, every step goes upwards, since no curvature of the likelihood
# changes within it by more than (e**t - t - 1) / t**2 at t = 1.5, which is below 1.
_LONGEST_STEP = 0.75
_EXACT = 1e-10
_NEAR = 1e-6  # from here on a step that is not shorter than the last is rounding
_MOST_STEPS = 500  # a few dozen do; no rounding whatever may keep a service busy for ever

Side: TypeAlias = tuple[int, ...]
Order: TypeAlias = tuple[tuple[Side, ...], ...]  # the sides, best first, those that share a place together
Lot: TypeAlias = tuple[Side, ...]  # the sides in the bag
Matrix: TypeAlias = list[list[float]]


class Ranking(NamedTuple):
    """What one table says about strength.

    Attributes:
        sides: who played for each side, by number from 0; the same number may appear more than once.
        places: place of each side, lower being better; equals share one.
    """

    sides: tuple[Side, ...]
    places: tuple[int, ...]


def fit(rankings: Iterable[Ranking], count: int, *, prior: float = PRIOR) -> list[float]:
    """Returns the most likely strengths, as logarithms with mean zero.

    Args:
        rankings: any number of them, in any order.
        count: how many there are to rate; their numbers are 0 to `count` - 1.
        prior: times that each has won, and has lost, against the phantom; above 0, as otherwise one who always wins
            would be infinitely strong. A small one comes as close to the plain likelihood as is wanted.

    Raises:
        ValueError: `prior` is not above 0.
    """
    strengths, _ = _most_likely(Counter(map(_order, rankings)), count, prior)
    return _centred(strengths, count)


def ratings(outcomes: Iterable[Outcome], count: int, *, lowest_wins: bool) -> list[float]:
    """Returns the rating of each entrant, in points around 1500.

    A table is ranked by the points of the deals that count; rulings and substitutes leave ratings alone, and a table
    without any such deal says nothing. House bots that fill seats are rated along, so that who beats a strong one gains
    more, and are then left out.

    Args:
        outcomes: tables in any order; those without a result are passed over.
        count: how many entrants there are.
        lowest_wins: whether the lowest total wins the game.
    """
    orders: Counter[Order] = Counter()
    for outcome in outcomes:
        ranking = ranking_of(outcome, count, lowest_wins)
        if ranking:
            orders[_order(ranking)] += 1
    strengths, _ = _most_likely(orders, _rated(orders, count), PRIOR)
    return [CENTRE + UNIT * strength for strength in _centred(strengths, count)]


def rating_intervals(
    outcomes: Iterable[Outcome], count: int, *, lowest_wins: bool, confidence: float = 0.95
) -> list[Interval]:
    """Returns the ratings with intervals.

    A board set pulls each strength up or down by the sum over its tables of what was won beyond what was expected. The
    spread of these pulls, set by set, divided by the curvature of the likelihood on both sides gives the covariance
    of the strengths (the sandwich estimate, clustered by board set). The bouts against the phantom are sets of their
    own, so that the interval is wide, and not of no width, where hardly anything is known.

    Args:
        outcomes: tables in any order.
        count: how many entrants there are.
        lowest_wins: whether the lowest total wins the game.
        confidence: of each interval, above 0 and below 1.
    """
    sets = []
    for tables in by_board(outcomes):
        found = (ranking_of(outcome, count, lowest_wins) for outcome in tables)
        orders = [_order(ranking) for ranking in found if ranking]
        if orders:
            sets.append(orders)
    total = Counter(order for orders in sets for order in orders)
    strengths, curvature = _most_likely(total, _rated(total, count), PRIOR)
    influence = _centred_rows(_solve(curvature, _identity(len(strengths))), count)
    pulls = {order: _pull(order, strengths) for order in total}
    variances = [0.0] * count
    for orders in sets:
        pull: dict[int, float] = {}
        for order in orders:
            for item, amount in pulls[order].items():
                pull[item] = pull.get(item, 0.0) + amount
        for entrant, row in enumerate(influence):
            moved = 0.0
            for item, amount in pull.items():
                moved += row[item] * amount
            variances[entrant] += moved * moved
    widening = len(sets) / (len(sets) - 1) if len(sets) > 1 else 1.0
    bouts = []
    for strength in strengths:
        win = _logistic(strength)
        bouts.append(PRIOR * ((1 - win) ** 2 + win**2))
    reach = UNIT * NormalDist().inv_cdf((1 + confidence) / 2)
    result = []
    for value, row, variance in zip(_centred(strengths, count), influence, variances, strict=True):
        spread = widening * variance + sum(bout * moved * moved for bout, moved in zip(bouts, row, strict=True))
        half = reach * math.sqrt(spread)
        rating = CENTRE + UNIT * value
        result.append(Interval(rating, rating - half, rating + half))
    return result


def ranking_of(outcome: Outcome, count: int, lowest_wins: bool) -> Ranking | None:
    """Returns what a table says about strength, or None if no deal of it counts.

    House bot -1 has the number `count`, -2 the next, and so on.
    """
    points = side_counted(outcome, lowest_wins)
    if not points:
        return None
    sides: list[list[int]] = [[] for _ in points]
    for player, side in zip(outcome.table.seats, outcome.sides, strict=True):
        sides[side].append(player if player >= 0 else count - 1 - player)
    # A place need only say who is before whom.
    return Ranking(tuple(map(tuple, sides)), tuple(-point for point in points))


class LiveLine(NamedTuple):
    """One line of the live ratings.

    Attributes:
        entrant: its number.
        tables: how many tables it was rated on.
        mu: strength in the units of openskill, 25 at the start.
        sigma: how uncertain that is, as a standard deviation.
        ordinal: what it is ordered by: `mu` less three times `sigma`, so that who has played little stands low.
    """

    entrant: int
    tables: int
    mu: float
    sigma: float
    ordinal: float


class LiveRatings:
    """Ratings that move with each table, for the eye during a tournament; they depend on the order of the tables.

    Plackett-Luce after Weng and Lin, as openskill has it. Standings use `ratings`.

    Args:
        count: how many entrants there are.
        lowest_wins: whether the lowest total wins the game.
    """

    def __init__(self, count: int, *, lowest_wins: bool) -> None:
        from openskill.models import PlackettLuce  # takes time to import, and only the live view needs it

        self._count = count
        self._lowest_wins = lowest_wins
        self._model = PlackettLuce()
        self._players: dict[int, PlackettLuceRating] = {number: self._model.rating() for number in range(count)}
        self._tables = [0] * count

    def update(self, outcome: Outcome) -> None:
        """Takes a table into account; one without a deal that counts changes nothing."""
        ranking = ranking_of(outcome, self._count, self._lowest_wins)
        if ranking is None:
            return
        for number in {number for side in ranking.sides for number in side}:
            if number < self._count:
                self._tables[number] += 1
            else:
                self._players.setdefault(number, self._model.rating())
        teams = [[self._players[number] for number in side] for side in ranking.sides]
        rated = self._model.rate(teams, ranks=[float(place) for place in ranking.places])
        moved: dict[int, list[PlackettLuceRating]] = {}
        for side, team in zip(ranking.sides, rated, strict=True):
            for number, player in zip(side, team, strict=True):
                moved.setdefault(number, []).append(player)
        for number, players in moved.items():  # more than one where somebody has several seats
            self._players[number] = self._model.rating(
                mu=sum(player.mu for player in players) / len(players),
                sigma=sum(player.sigma for player in players) / len(players),
            )

    def lines(self) -> list[LiveLine]:
        """Returns a line for each entrant, the highest ordinal first."""
        lines = [
            LiveLine(number, tables, player.mu, player.sigma, player.ordinal())
            for number, tables in enumerate(self._tables)
            for player in (self._players[number],)
        ]
        return sorted(lines, key=lambda line: (-line.ordinal, line.entrant))


def _order(ranking: Ranking) -> Order:
    groups: dict[int, list[Side]] = {}
    for side, place in zip(ranking.sides, ranking.places, strict=True):
        groups.setdefault(place, []).append(side if len(side) == 1 else tuple(sorted(side)))
    return tuple(tuple(sorted(groups[place])) for place in sorted(groups))


def _rated(orders: Iterable[Order], count: int) -> int:
    """Returns how many there are to rate, together with the house bots that sat with them."""
    return max(count, *(item + 1 for order in orders for group in order for side in group for item in side), 0)


def _lots(order: Order) -> tuple[list[tuple[Side, float]], list[tuple[Lot, float]]]:
    """Returns how often each side was drawn, and each bag that was drawn from, the mean over orders of equals.

    A bag that holds one side says nothing and is left out on both accounts.
    """
    won: list[tuple[Side, float]] = []
    lots: list[tuple[Lot, float]] = []
    below: tuple[Side, ...] = ()
    for group in reversed(order):
        last_alone = 0.0 if below else 1 / len(group)
        won.extend((side, 1 - last_alone) for side in group)
        for size in range(1 if below else 2, len(group) + 1):
            share = 1 / math.comb(len(group), size)
            lots.extend((tuple(sorted(subset + below)), share) for subset in combinations(group, size))
        below += group
    return won, lots


def _most_likely(orders: Mapping[Order, int], count: int, prior: float) -> tuple[list[float], Matrix]:
    """Returns the strengths at the peak of the likelihood, and its curvature there."""
    if not prior > 0:
        raise ValueError(f"a prior is above 0, not {prior}")
    won = [0.0] * count
    bags: dict[Lot, float] = {}
    for order in sorted(orders):  # sorted, so that sums of fractions come out the same in the last bit
        times = orders[order]
        wins, lots = _lots(order)
        for side, share in wins:
            for item in side:
                won[item] += times * share / len(side)
        for lot, share in lots:
            bags[lot] = bags.get(lot, 0.0) + times * share
    strengths = [0.0] * count
    last = math.inf
    for _ in range(_MOST_STEPS):
        slope, curvature = _shape(strengths, won, bags, prior)
        step = [row[0] for row in _solve(curvature, [[amount] for amount in slope])]
        longest = max(map(abs, step), default=0.0)
        shortened = min(1.0, _LONGEST_STEP / longest) if longest else 1.0
        strengths = [strength + shortened * move for strength, move in zip(strengths, step, strict=True)]
        if longest < _EXACT or _NEAR > longest >= last:
            break
        last = longest
    return strengths, _shape(strengths, won, bags, prior)[1]


def _shape(
    strengths: list[float], won: list[float], bags: Mapping[Lot, float], prior: float
) -> tuple[list[float], Matrix]:
    """Returns slope and (negative) curvature of the logarithm of the likelihood."""
    slope = list(won)
    curvature = [[0.0] * len(strengths) for _ in strengths]
    for item, strength in enumerate(strengths):
        win = _logistic(strength)
        slope[item] += prior * (1 - 2 * win)
        curvature[item][item] += 2 * prior * win * (1 - win)
    for lot, weight in bags.items():
        expected: dict[int, float] = {}
        for side, chance in zip(lot, _chances(lot, strengths), strict=True):
            part = weight * chance / len(side)
            for item in side:
                expected[item] = expected.get(item, 0.0) + part
                row = curvature[item]
                for partner in side:
                    row[partner] += part / len(side)
        for item, amount in expected.items():
            slope[item] -= amount
            row = curvature[item]
            for other, other_amount in expected.items():
                row[other] -= amount * other_amount / weight
    return slope, curvature


def _pull(order: Order, strengths: list[float]) -> dict[int, float]:
    """Returns by item what one table adds to the slope: won less expected."""
    wins, lots = _lots(order)
    pull: dict[int, float] = {}
    for side, share in wins:
        for item in side:
            pull[item] = pull.get(item, 0.0) + share / len(side)
    for lot, share in lots:
        for side, chance in zip(lot, _chances(lot, strengths), strict=True):
            for item in side:
                pull[item] -= share * chance / len(side)
    return pull


def _chances(lot: Lot, strengths: list[float]) -> list[float]:
    levels = [
        strengths[side[0]] if len(side) == 1 else sum(strengths[item] for item in side) / len(side) for side in lot
    ]
    highest = max(levels)  # so that no exp overflows
    weights = [math.exp(level - highest) for level in levels]
    total = sum(weights)
    return [weight / total for weight in weights]


def _logistic(strength: float) -> float:
    odds = math.exp(-abs(strength))
    return (1 if strength > 0 else odds) / (1 + odds)


def _solve(matrix: Matrix, right: Matrix) -> Matrix:
    """Returns the solution X of `matrix` X = `right`; the matrix is positive definite, which needs no pivots."""
    size = len(matrix)
    rows = [[*line, *more] for line, more in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = rows[column]
        for row in range(column + 1, size):
            factor = rows[row][column] / pivot[column]
            if factor:
                rows[row] = [a - factor * b for a, b in zip(rows[row], pivot, strict=True)]
    for column in reversed(range(size)):
        scale = rows[column][column]
        solved = [value / scale for value in rows[column][size:]]
        rows[column][size:] = solved
        for row in range(column):
            factor = rows[row][column]
            if factor:
                rows[row][size:] = [a - factor * b for a, b in zip(rows[row][size:], solved, strict=True)]
    return [row[size:] for row in rows]


def _identity(size: int) -> Matrix:
    return [[float(row == column) for column in range(size)] for row in range(size)]


def _centred(strengths: Sequence[float], count: int) -> list[float]:
    """Returns the strengths of the first `count`, less their mean."""
    mean = math.fsum(strengths[:count]) / count if count else 0.0
    return [strength - mean for strength in strengths[:count]]


def _centred_rows(rows: Matrix, count: int) -> Matrix:
    mean = [sum(column) / count for column in zip(*rows[:count], strict=True)]
    return [[value - level for value, level in zip(row, mean, strict=True)] for row in rows[:count]]
