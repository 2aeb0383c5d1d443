"""Outcomes made by hand, and whole tournaments drawn from known strengths."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from referee_games.contract import rank_places
from referee_server.tournament.model import DealOutcome, Outcome, Table

Faults = Mapping[int, Mapping[str, int]]

PAIRS = (0, 1, 0, 1)
"""The sides where opposite seats play together."""


def outcome(
    number: int,
    seats: Sequence[int],
    totals: Sequence[int] = (),
    *,
    board: int | None = None,
    sides: Sequence[int] | None = None,
    places: Sequence[int] | None = None,
    lowest_wins: bool = False,
    reason: str = "completed",
    faults: Faults | None = None,
    losses: Mapping[int, str] | None = None,
    substituted: Mapping[int, int] | None = None,
    deals: Sequence[DealOutcome] | None = None,
) -> Outcome:
    """What came of a table: one deal that gave the totals, unless said otherwise; without totals, no result."""
    every = range(len(seats))
    if places is None:
        places = rank_places(totals, lowest_wins=lowest_wins)
    if deals is None:
        deals = [DealOutcome(0, 0, tuple(totals))] if totals else []
    return Outcome(
        table=Table(number, 0, number if board is None else board, 0, tuple(seats)),
        match_id=f"m{number}",
        reason=reason,
        sides=tuple(every) if sides is None else tuple(sides),
        totals=tuple(totals),
        places=tuple(places),
        faults=tuple((faults or {}).get(seat, {}) for seat in every),
        substituted=tuple((substituted or {}).get(seat, 0) for seat in every),
        losses=tuple((losses or {}).get(seat, "") for seat in every),
        deals=tuple(deals),
    )


def tournament(
    strengths: Sequence[float], boards: int, tables: int, *, seats: int = 4, luck: float = 0.0, seed: int = 0
) -> list[Outcome]:
    """Tables in board sets of `tables`, in which the same entrants meet.

    Who has the highest of strength plus luck plus Gumbel noise wins, which without luck is the very Plackett-Luce
    model. Luck is normal with deviation `luck`, the same at all tables of a set for each entrant.
    """
    draw = random.Random(seed)
    found: list[Outcome] = []
    for board in range(boards):
        group = draw.sample(range(len(strengths)), seats)
        lucky = {entrant: draw.gauss(0, luck) for entrant in group}
        for _ in range(tables):
            draw.shuffle(group)
            totals = [
                round(1e6 * (strengths[entrant] + lucky[entrant] - math.log(-math.log(draw.random()))))
                for entrant in group
            ]
            found.append(outcome(len(found), group, totals, board=board))
    return found
