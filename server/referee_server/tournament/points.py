"""What a table is worth to those who sat at it: place points, points of the game, first places.

Everything here is of one table and by seat or by side. Places are the official ones, after rulings; points of the
game are as played, with their sign turned where the lowest total wins, so that more is better everywhere above this
module.
"""

from __future__ import annotations

from referee_server.tournament.model import Outcome


def side_points(places: tuple[int, ...]) -> tuple[float, ...]:
    """Returns by side how many other sides it was placed before, each shared place counting half.

    Over all sides they add up to the same number, however the places fell.
    """
    return tuple(
        sum(1.0 if place < other else 0.5 for other in places if other >= place) - 0.5  # itself it meets as an equal
        for place in places
    )


def place_points(outcome: Outcome) -> tuple[float, ...]:
    """Returns the place points by seat, those of its side; empty without a result."""
    if not outcome.scored:
        return ()
    points = side_points(outcome.places)
    return tuple(points[side] for side in outcome.sides)


def side_firsts(places: tuple[int, ...]) -> tuple[float, ...]:
    """Returns by side its part of the first place: 1 for a winner, 1/n each for n that share it, else 0."""
    best = min(places)
    part = 1 / places.count(best)
    return tuple(part if place == best else 0.0 for place in places)


def game_points(outcome: Outcome, lowest_wins: bool) -> tuple[int, ...]:
    """Returns by seat the total of its side, turned so that more is better; empty without a result."""
    if not outcome.scored:
        return ()
    sign = -1 if lowest_wins else 1
    return tuple(sign * outcome.totals[side] for side in outcome.sides)


def counted_deals(outcome: Outcome) -> int:
    """Returns how many deals of the table say something about those who sat there; 0 without a result."""
    return sum(deal.counted for deal in outcome.deals) if outcome.scored else 0


def side_counted(outcome: Outcome, lowest_wins: bool) -> tuple[int, ...]:
    """Returns by side the points of the deals that count, more being better; empty if there are none or no result."""
    if not outcome.scored:
        return ()
    sign = -1 if lowest_wins else 1
    return tuple(sign * sum(scores) for scores in zip(*(d.scores for d in outcome.deals if d.counted), strict=True))


def counted_points(outcome: Outcome, lowest_wins: bool) -> tuple[int, ...]:
    """Returns by seat the points of its side over the deals that count, more being better.

    A deal counts unless it was cut short or a substitute played in it. Empty if no deal counts, or without a result.
    """
    points = side_counted(outcome, lowest_wins)
    return tuple(points[side] for side in outcome.sides) if points else ()


def seated(outcome: Outcome) -> dict[int, tuple[int, ...]]:
    """Returns which sides everybody at the table played for, each side once, in the order of the seats.

    Usually that is one side. Where one entrant plays several sides, as in self-play, what the table was worth to it
    is the mean over them, so that a table is a table for everybody.
    """
    sides: dict[int, tuple[int, ...]] = {}
    for player, side in zip(outcome.table.seats, outcome.sides, strict=True):
        known = sides.get(player)
        if known is None:
            sides[player] = (side,)
        elif side not in known:
            sides[player] = (*known, side)
    return sides


def over(values: tuple[float, ...], sides: tuple[int, ...]) -> float:
    """Returns the mean of some sides' values."""
    if len(sides) == 1:
        return values[sides[0]]
    return sum(values[side] for side in sides) / len(sides)
