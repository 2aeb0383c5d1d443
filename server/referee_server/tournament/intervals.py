"""Intervals by bootstrap over board sets.

Tables of one board set hold the same cards, and their results hang together: to draw single tables again would
pretend to know more than is known. So the unit is always the board set, drawn with all of its tables. The draws
follow from a seed through SHAKE-256: equal results and equal seeds give equal intervals, everywhere.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from operator import itemgetter, mul
from statistics import NormalDist
from typing import Final, TypeVar

from referee_server.tournament.model import Interval, Outcome
from referee_server.tournament.student import quantile

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

LEAST_SETS: Final = 6
"""Board sets below which there is no interval: so few of them say too little about what others would do."""

_NOTHING = (0.0, 0.0)


def by_board(outcomes: Iterable[Outcome]) -> list[list[Outcome]]:
    """Returns the outcomes board set by board set, each by the number of the table: the order of the schedule."""
    sets: dict[int, list[Outcome]] = {}
    for outcome in sorted(outcomes, key=lambda outcome: outcome.table.number):
        sets.setdefault(outcome.table.board, []).append(outcome)
    return [sets[board] for board in sorted(sets)]


def drawn(units: int, seed: int, resample: int) -> list[int]:
    """Returns which unit each of `units` draws with replacement gives; the same for equal arguments."""
    label = f"bootstrap/{seed}/{resample}".encode()
    words = struct.unpack(f"<{units}I", hashlib.shake_256(label).digest(4 * units))
    # The product's upper half is even but for one part in 2**32 / units, far below what a percentile could show.
    return [word * units >> 32 for word in words]


def percentile(ascending: Sequence[float], share: float) -> float:
    """Returns the value below which a share (0 to 1) of ascending values lies, in between two by straight line."""
    at = share * (len(ascending) - 1)
    low = int(at)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (ascending[high] - ascending[low]) * (at - low)


def bootstrap(
    units: Sequence[T],
    figure: Callable[[Sequence[T]], list[float]],
    *,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> list[Interval]:
    """Returns figures with percentile intervals.

    Args:
        units: what is drawn again as a whole; a unit is everything that belongs to one board set.
        figure: gives the figures of any selection of units, always the same number of finite ones.
        resamples: how many selections to draw; without any, and with fewer than `LEAST_SETS` units, both ends are the
            figure.
        seed: what the draws follow from.
        confidence: how sure it is that the interval holds the figure, above 0 and below 1.
    """
    values = figure(units)
    samples: list[list[float]] = [[] for _ in values]
    if len(units) >= LEAST_SETS:
        for resample in range(resamples):
            for sample, value in zip(
                samples, figure([units[i] for i in drawn(len(units), seed, resample)]), strict=True
            ):
                sample.append(value)
    return [_interval(value, sample, confidence, len(units)) for value, sample in zip(values, samples, strict=True)]


def means(
    units: Sequence[Mapping[K, tuple[float, float]]],
    *,
    fixed: Mapping[K, tuple[float, float]] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    confidence: float | Callable[[K], float] = 0.95,
) -> dict[K, Interval]:
    """Returns, for each key, its sum over its weight with a percentile interval: `bootstrap` made fast for means.

    Args:
        units: by key, what a unit adds to the sum and to the weight; weights are above 0.
        fixed: by key, what is added in every resample as well, such as byes.
        resamples: how many selections to draw.
        seed: what the draws follow from.
        confidence: how sure it is that the interval holds the figure; by key if it is a function.

    Returns:
        By key of the units and of `fixed`, in the order of their first appearance. A key of weight 0 has
        mean 0; one that appears in fewer than `LEAST_SETS` units has both ends at its mean.
    """
    columns: dict[K, tuple[list[int], list[float], list[float]]] = {}
    for number, unit in enumerate(units):
        for key, (amount, weight) in unit.items():
            at, amounts, weights = columns.setdefault(key, ([], [], []))
            at.append(number)
            amounts.append(amount)
            weights.append(weight)
    constant = fixed or {}
    samples: dict[K, list[float]] = {}
    varying = []
    for key, (at, amounts, weights) in columns.items():
        if len(at) >= LEAST_SETS:
            more, heavier = constant.get(key, _NOTHING)
            varying.append((itemgetter(*at), amounts, weights, more, heavier, samples.setdefault(key, [])))
    for resample in range(resamples if varying else 0):
        times = [0] * len(units)
        for unit_drawn in drawn(len(units), seed, resample):
            times[unit_drawn] += 1
        for pick, amounts, weights, more, heavier, sample in varying:
            picked = pick(times)
            weight = sum(map(mul, picked, weights)) + heavier
            if weight:  # else nobody drew it, and the resample says nothing about it
                sample.append((sum(map(mul, picked, amounts)) + more) / weight)
    result = {}
    for key in dict.fromkeys((*columns, *constant)):
        at, amounts, weights = columns.get(key, ([], [], []))
        more, heavier = constant.get(key, _NOTHING)
        weight = sum(weights) + heavier
        value = (sum(amounts) + more) / weight if weight else 0.0
        share = confidence(key) if callable(confidence) else confidence
        result[key] = _interval(value, samples.get(key, []), share, len(at))
    return result


def _interval(value: float, sample: list[float], confidence: float, units: int) -> Interval:
    if not sample:
        return Interval(value, value, value)
    sample.sort()
    tail = _tail(confidence, units)
    return Interval(value, percentile(sample, tail), percentile(sample, 1 - tail))


@cache
def _tail(confidence: float, units: int) -> float:
    """Returns what share of the resamples lies beyond each end.

    Drawn again, n units spread too little by √((n-1)/n), and their tails are too thin; Student's quantile in place of
    the normal one makes up for both (the expanded percentile interval of Hesterberg).
    """
    reach = quantile((1 + confidence) / 2, units - 1) * (units / (units - 1)) ** 0.5
    return NormalDist().cdf(-reach)
