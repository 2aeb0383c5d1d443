"""The standings: one line an entrant, in an order that holds in the middle of a tournament as well as at its end.

The rule, in full (`docs/results.md` has it for hosts): who was eliminated later stands before; who left stands behind
those who stayed; then place points a table, byes included; then, among those still equal, direct comparison; then
points of the game a table; first places a table; fewer faults a table; and whoever is equal in all of it shares the
rank.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from referee_server.tournament.crosstable import Meeting, crosstable
from referee_server.tournament.intervals import by_board, means
from referee_server.tournament.model import Interval, Outcome, Standing
from referee_server.tournament.points import over, seated, side_firsts, side_points
from referee_server.tournament.ratings import rating_intervals, ratings

NO_BLAME = "referee_fault"
"""How a match ends whose faults and losses are nobody's."""
TIME_LOSS = "timeout"
"""The kind of fault that is a loss on time."""

_Key: TypeAlias = tuple[float, ...]


class _Line:
    """Sums over the tables of one entrant."""

    __slots__ = ("faults", "firsts", "losses", "place_points", "played", "points", "substituted")

    def __init__(self) -> None:
        self.played = 0
        self.place_points = 0.0
        self.points = 0.0
        self.firsts = 0.0
        self.faults: Counter[str] = Counter()
        self.losses: Counter[str] = Counter()
        self.substituted = 0


def standings(
    outcomes: Iterable[Outcome],
    entrants: int,
    *,
    lowest_wins: bool,
    byes: Mapping[int, int] | None = None,
    bye_points: float = 0.0,
    bye_tables: int = 1,
    withdrawn: Collection[int] = (),
    eliminated: Mapping[int, int] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> list[Standing]:
    """Returns the standings, best first; equals in the order of their numbers.

    Args:
        outcomes: tables in any order. Those without a result leave points alone, but the faults in them count; only a
            fault of the referee blames nobody.
        entrants: how many there are.
        lowest_wins: whether the lowest total wins the game.
        byes: by entrant, in how many rounds it had no table.
        bye_points: place points that a bye gives for each of the tables it stands for.
        bye_tables: how many tables a bye stands for: as many as the others play in a round.
        withdrawn: who left.
        eliminated: in a knock-out, the round in which somebody was eliminated; who still plays is not in it.
        resamples: how often to draw for the intervals of means. With 0 there are no intervals, neither of means nor of
            ratings: both ends are the figure. That is for the live view.
        seed: what the draws follow from.
        confidence: of each interval, above 0 and below 1.
    """
    sets = by_board(outcomes)
    played = [outcome for tables in sets for outcome in tables]
    byes = byes or {}
    lines = [_Line() for _ in range(entrants)]
    units = [_add_set(lines, tables, -1 if lowest_wins else 1) for tables in sets]
    spared = {entrant: times * bye_tables for entrant, times in byes.items() if times}
    mean = means(
        units,
        fixed={entrant: (tables * bye_points, float(tables)) for entrant, tables in spared.items()},
        resamples=resamples,
        seed=seed,
        confidence=confidence,
    )
    if resamples:
        rating = rating_intervals(played, entrants, lowest_wins=lowest_wins, confidence=confidence)
    else:
        rating = [Interval(value, value, value) for value in ratings(played, entrants, lowest_wins=lowest_wins)]
    nothing = Interval(0.0, 0.0, 0.0)
    group = _groups(entrants, eliminated or {}, withdrawn)
    # Who has neither played nor had a bye stands behind whoever has, even without a point.
    first = [(*group[entrant], -mean[entrant].value if entrant in mean else math.inf) for entrant in range(entrants)]
    keys = _ordered(first, lines, crosstable(played, entrants, lowest_wins=lowest_wins))
    ranks = _ranks(keys)
    standing = []
    for entrant in sorted(range(entrants), key=lambda entrant: (ranks[entrant], entrant)):
        line = lines[entrant]
        standing.append(
            Standing(
                entrant=entrant,
                rank=ranks[entrant],
                played=line.played,
                place_points=line.place_points + spared.get(entrant, 0) * bye_points,
                points=round(line.points),
                mean=mean.get(entrant, nothing),
                rating=rating[entrant],
                byes=byes.get(entrant, 0),
                firsts=line.firsts,
                faults=dict(sorted(line.faults.items())),
                time_losses=line.faults[TIME_LOSS],
                losses=dict(sorted(line.losses.items())),
                substituted=line.substituted,
                withdrawn=entrant in withdrawn,
            )
        )
    return standing


def _add_set(lines: Sequence[_Line], tables: Sequence[Outcome], sign: int) -> dict[int, tuple[float, float]]:
    """Adds the tables of a board set to the lines; returns by entrant its place points in the set and its tables."""
    unit: dict[int, tuple[float, float]] = {}
    for outcome in tables:
        if outcome.reason != NO_BLAME:
            _add_blame(lines, outcome)
        if not outcome.scored:
            continue
        places = side_points(outcome.places)
        firsts = side_firsts(outcome.places)
        for player, sides in seated(outcome).items():
            if player < 0:
                continue
            line = lines[player]
            worth = over(places, sides)
            line.played += 1
            line.place_points += worth
            line.points += sign * over(outcome.totals, sides)
            line.firsts += sum(firsts[side] for side in sides)
            amount, weight = unit.get(player, (0.0, 0.0))
            unit[player] = (amount + worth, weight + 1)
    return unit


def _add_blame(lines: Sequence[_Line], outcome: Outcome) -> None:
    for seat, player in enumerate(outcome.table.seats):
        if player < 0:
            continue
        line = lines[player]
        if outcome.faults[seat]:
            line.faults.update(outcome.faults[seat])
        if outcome.losses[seat]:
            line.losses[outcome.losses[seat]] += 1
        line.substituted += outcome.substituted[seat]


def _groups(entrants: int, eliminated: Mapping[int, int], withdrawn: Collection[int]) -> list[_Key]:
    return [
        (-eliminated[entrant], 0.0) if entrant in eliminated else (-math.inf, float(entrant in withdrawn))
        for entrant in range(entrants)
    ]


def _ordered(first: Sequence[_Key], lines: Sequence[_Line], table: Sequence[Sequence[Meeting]]) -> list[_Key]:
    """Returns by entrant the whole key of its rank, lowest first: the first part with all tie-breaks behind it."""
    together: dict[_Key, list[int]] = {}
    for entrant, key in enumerate(first):
        together.setdefault(key, []).append(entrant)
    keys = []
    for entrant, (key, line) in enumerate(zip(first, lines, strict=True)):
        rivals = [rival for rival in together[key] if rival != entrant]
        tables = line.played or 1
        keys.append(
            (
                *key,
                -_direct(table[entrant], rivals),
                -line.points / tables,
                -line.firsts / tables,
                sum(line.faults.values()) / tables,
            )
        )
    return keys


def _direct(row: Sequence[Meeting], rivals: Sequence[int]) -> float:
    """Returns the share of meetings with these rivals won, a shared place being half; half without any meeting."""
    met = sum(row[rival].tables for rival in rivals)
    # The lead is a whole number of tables where everybody plays one side, so that equals are equal in the last bit.
    return 0.5 + sum(row[rival].lead for rival in rivals) / met / 2 if met else 0.5


def _ranks(keys: Sequence[_Key]) -> list[int]:
    rank: dict[_Key, int] = {}
    for at, key in enumerate(sorted(keys), 1):
        rank.setdefault(key, at)
    return [rank[key] for key in keys]
