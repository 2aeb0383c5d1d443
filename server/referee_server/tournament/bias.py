"""Does it matter where one sits? Points by seat, by place after the dealer, and by what was dealt.

Every figure is in points of the game a deal, against the mean of the table, more being better; only deals that count
are looked at. It says something about the game and the dealing where everybody sat everywhere equally often, as in
self-play and in play in duplicate with all seatings.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from referee_server.tournament.intervals import by_board, means
from referee_server.tournament.model import Interval, Outcome

LEAST_SETS: Final = 6
"""Board sets below which nothing can be said."""

_Key: TypeAlias = tuple[str, int | str]
_SEAT, _DEALER, _KIND = "seat", "dealer", "kind"


class Effect(NamedTuple):
    """How much better than the mean of the table.

    Attributes:
        name: which seat; how many seats after the dealer; or what kind of deal.
        deals: over how many deals.
        sets: over how many board sets.
        points: by how many points a deal, with its interval.
    """

    name: int | str
    deals: int
    sets: int
    points: Interval

    @property
    def fair(self) -> bool:
        """Whether it may be chance: zero lies within the interval, or there are too few sets for one."""
        return self.sets < LEAST_SETS or self.points.low <= 0 <= self.points.high


@dataclass(frozen=True, slots=True)
class Bias:
    """The report.

    Attributes:
        seats: by seat, from 0.
        dealers: by seats after the dealer, from 0, the dealer.
        kinds: by kind of deal, in alphabetical order: how well the dealer of such a deal came off.
    """

    seats: tuple[Effect, ...]
    dealers: tuple[Effect, ...]
    kinds: tuple[Effect, ...]


def bias(
    outcomes: Iterable[Outcome],
    lowest_wins: bool,
    *,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Bias:
    """Returns what the seat, the dealer and the kind of deal were worth.

    Intervals are bootstrapped over board sets. The confidence is that of all intervals of one list together: of
    four fair seats some single 95 % interval misses zero in almost every fifth report. Each is therefore widened to
    1 - (1 - confidence) / (length of the list).

    Args:
        outcomes: tables in any order; those without a result are passed over.
        lowest_wins: whether the lowest total wins the game.
        resamples: how often to draw.
        seed: what the draws follow from.
        confidence: that no interval of a list misses what it is for.
    """
    units = []
    for tables in by_board(outcomes):
        unit: dict[_Key, tuple[float, float]] = {}
        for outcome in tables:
            if outcome.scored:
                _add(unit, outcome, -1 if lowest_wins else 1)
        if unit:
            units.append(unit)
    listed: dict[str, list[_Key]] = {_SEAT: [], _DEALER: [], _KIND: []}
    for key in sorted({key for unit in units for key in unit}):
        listed[key[0]].append(key)
    found = means(
        units,
        resamples=resamples,
        seed=seed,
        confidence=lambda key: 1 - (1 - confidence) / len(listed[key[0]]),
    )
    deals: dict[_Key, float] = {}
    sets: dict[_Key, int] = {}
    for unit in units:
        for key, (_, weight) in unit.items():
            deals[key] = deals.get(key, 0) + weight
            sets[key] = sets.get(key, 0) + 1
    effects = {
        name: tuple(Effect(key[1], int(deals[key]), sets[key], found[key]) for key in keys)
        for name, keys in listed.items()
    }
    return Bias(effects[_SEAT], effects[_DEALER], effects[_KIND])


def _add(unit: dict[_Key, tuple[float, float]], outcome: Outcome, sign: int) -> None:
    seats = len(outcome.sides)
    for deal in outcome.deals:
        if not deal.counted:
            continue
        mean = sum(deal.scores) / len(deal.scores)
        for seat, side in enumerate(outcome.sides):
            ahead = sign * (deal.scores[side] - mean)
            after = (seat - deal.dealer) % seats
            keys: list[_Key] = [(_SEAT, seat), (_DEALER, after)]
            if deal.kind and not after:
                keys.append((_KIND, deal.kind))
            for key in keys:
                amount, weight = unit.get(key, (0.0, 0.0))
                unit[key] = (amount + ahead, weight + 1)
