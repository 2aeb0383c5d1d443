"""Is A better than B? A paired test over board sets, and a test that says when to stop.

What is compared is always the difference within one board set, where both met the same cards: A's mean over its
tables of the set less B's. Sets in which only one of them sat say nothing and are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Literal, TypeAlias

from referee_server.tournament.intervals import by_board
from referee_server.tournament.model import Interval, Outcome
from referee_server.tournament.points import counted_deals, over, seated, side_counted, side_points
from referee_server.tournament.student import quantile, two_sided

By: TypeAlias = Literal["place", "points"]
"""What is compared: place points a table (official places), or points of the game a deal (deals that count only)."""
Verdict: TypeAlias = Literal["better", "not better"]

PAIR_SCORES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Scores of a pair of games, from two losses to two wins."""
LEAST_SETS: Final = 20
"""Board sets before a verdict: fewer say too little about how much differences spread."""

_NORMAL_ELO = math.sqrt(2) * math.log(10) / 800  # standard deviations of a pair in one point of normalised Elo


@dataclass(frozen=True, slots=True)
class Comparison:
    """A against B over the board sets in which both sat.

    Attributes:
        sets: how many there are.
        difference: mean over them of A's mean less B's, more being better for A, with its interval.
        p: how likely a difference at least as far from 0 were between equals, from 0 to 1; 1 with fewer than two sets.
    """

    sets: int
    difference: Interval
    p: float


def compare(
    outcomes: Iterable[Outcome], a: int, b: int, *, by: By, lowest_wins: bool, confidence: float = 0.95
) -> Comparison:
    """Compares two players by a paired t test over board sets.

    Args:
        outcomes: tables in any order; those without a result are passed over.
        a: number of an entrant, or of a house bot.
        b: another one.
        by: what to compare.
        lowest_wins: whether the lowest total wins the game.
        confidence: of the interval.
    """
    found = (difference(tables, a, b, by=by, lowest_wins=lowest_wins) for tables in by_board(outcomes))
    return paired([value for value in found if value is not None], confidence)


def paired(differences: Sequence[float], confidence: float = 0.95) -> Comparison:
    """Returns the paired t test over differences, one a board set.

    The likelihood is never given as less than that of so many signs all agreeing: two sets that happen to give the
    same difference spread not at all, and yet prove little.
    """
    sets = len(differences)
    if not sets:
        return Comparison(0, Interval(0.0, 0.0, 0.0), 1.0)
    mean = math.fsum(differences) / sets
    if sets == 1:
        return Comparison(1, Interval(mean, mean, mean), 1.0)
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in differences) / (sets - 1) / sets)
    t = mean / error if error else math.inf if mean else 0.0
    p = max(two_sided(t, sets - 1), 2.0 ** (1 - sets))
    reach = quantile(confidence, sets - 1) * error
    return Comparison(sets, Interval(mean, mean - reach, mean + reach), p)


def difference(tables: Iterable[Outcome], a: int, b: int, *, by: By, lowest_wins: bool) -> float | None:
    """Returns A's mean less B's over the tables of one board set; None if either has none there that says anything."""
    sums = {a: 0.0, b: 0.0}
    weights = {a: 0, b: 0}
    for outcome in tables:
        if not outcome.scored:
            continue
        deals = 1 if by == "place" else counted_deals(outcome)
        if not deals:
            continue
        points = side_points(outcome.places) if by == "place" else side_counted(outcome, lowest_wins)
        sides = seated(outcome)
        for player in sums:
            if player in sides:
                sums[player] += over(points, sides[player])
                weights[player] += deals
    if not (weights[a] and weights[b]):
        return None
    return sums[a] / weights[a] - sums[b] / weights[b]


class Sequential:
    """Tests "A is better than B" set by set and says when there is enough.

    A generalised sequential probability ratio test of the mean difference, measured in the differences' own deviation:
    `none` (A is no better) against `effect` (A is better by that much). If A is no better, "better" comes out in at
    most about `alpha` of all tests, however long they run; if A is better by `effect`, "not better" in at most about
    `beta`. The verdict stands once it is there, whatever is taken afterwards.

    Args:
        alpha: accepted share of false "better"; 0.05 for "better with 95 %".
        beta: accepted share of false "not better".
        none: effect under which A counts as no better, in standard deviations of a set's difference.
        effect: effect that is to be found, above `none`; half of it takes four times as many sets.
        least: sets before a verdict, at least 2.

    Raises:
        ValueError: an argument is out of its range.
    """

    def __init__(
        self,
        *,
        alpha: float = 0.05,
        beta: float = 0.05,
        none: float = 0.0,
        effect: float = 0.2,
        least: int = LEAST_SETS,
    ) -> None:
        if not (0 < alpha < 0.5 and 0 < beta < 0.5):
            raise ValueError(f"accepted shares of errors are above 0 and below 0.5, not {alpha} and {beta}")
        if not none < effect:
            raise ValueError(f"the effect to be found is above {none}, not {effect}")
        if least < 2:
            raise ValueError(f"a verdict takes at least 2 sets, not {least}")
        self.low = math.log(beta / (1 - alpha))
        self.high = math.log((1 - beta) / alpha)
        self.verdict: Verdict | None = None
        self.sets = 0
        self._none, self._effect, self._least = none, effect, least
        self._mean = 0.0
        self._squares = 0.0
        self._cubes = 0.0

    def take(self, difference: float) -> Verdict | None:
        """Takes the difference of the next board set, in the order of the schedule, and returns the verdict so far."""
        if self.verdict is None:
            self.sets += 1
            off = difference - self._mean
            part = off / self.sets
            last = self.sets - 1
            self._mean += part
            self._cubes += off * part * part * last * (last - 1) - 3 * part * self._squares
            self._squares += off * part * last
            if self.sets >= self._least:
                if self.ratio >= self.high:
                    self.verdict = "better"
                elif self.ratio <= self.low:
                    self.verdict = "not better"
        return self.verdict

    @property
    def ratio(self) -> float:
        """The logarithm of the likelihood ratio so far; a verdict falls where it leaves `low` to `high`."""
        if not self.sets:
            return 0.0
        deviation = math.sqrt(self._squares / self.sets)
        if not deviation:
            return _log_ratio(self.sets, _far(self._mean), self._none, self._effect)
        # Who is mostly a little ahead and sometimes far behind looks better than he is while those sets are few: mean
        # and deviation err together. Hall's cubic correction of t for skewness makes up for that; unlike Johnson's,
        # which stops a term earlier, it keeps the order of effects, large ones too.
        size = self._mean / deviation
        skewness = self._cubes / self.sets / deviation**3
        bent = skewness * size / 3
        size = size * (1 + bent + bent * bent / 3) + skewness / (6 * self.sets)
        return _log_ratio(self.sets, size, self._none, self._effect)


def pentanomial_llr(counts: Sequence[float], low: float, high: float) -> float:
    """Returns the logarithm of the likelihood ratio of two strengths, from pairs of games between two players.

    Args:
        counts: how many pairs scored 0, ¼, ½, ¾ and 1.
        low: the one strength in normalised Elo.
        high: the other, above it.
    """
    pairs, mean, deviation = _moments(counts)
    size = (mean - 0.5) / deviation if deviation else _far(mean - 0.5)
    return _log_ratio(pairs, size, low * _NORMAL_ELO, high * _NORMAL_ELO)


def normalized_elo(counts: Sequence[float], confidence: float = 0.95) -> Interval:
    """Returns the normalised Elo of pairs of games with its interval.

    Where all pairs scored the same there is no deviation to measure by; pairs that were not seen then count a
    thousandth each, so that the figure is finite. Without any pair it is 0.

    Args:
        counts: how many pairs scored 0, ¼, ½, ¾ and 1.
        confidence: of the interval.
    """
    pairs, mean, deviation = _moments(counts)
    if not pairs:
        return Interval(0.0, 0.0, 0.0)
    if not deviation:
        pairs, mean, deviation = _moments([count or 1e-3 for count in counts])
    value = (mean - 0.5) / deviation / _NORMAL_ELO
    reach = NormalDist().inv_cdf((1 + confidence) / 2) / math.sqrt(pairs) / _NORMAL_ELO
    return Interval(value, value - reach, value + reach)


def _moments(counts: Sequence[float]) -> tuple[float, float, float]:
    """Returns number, mean and standard deviation of the scores of pairs."""
    pairs = sum(counts)
    if not pairs:
        return 0.0, 0.5, 0.0
    mean = sum(count * score for count, score in zip(counts, PAIR_SCORES, strict=True)) / pairs
    squares = sum(count * (score - mean) ** 2 for count, score in zip(counts, PAIR_SCORES, strict=True))
    return pairs, mean, math.sqrt(squares / pairs)


def _far(mean: float) -> float:
    """Returns the effect of a mean that never varied."""
    return math.copysign(math.inf, mean) if mean else 0.0


def _log_ratio(count: float, size: float, low: float, high: float) -> float:
    """Returns the logarithm of the likelihood ratio of two effects, where `size` was found; all in deviations."""
    # Far beyond both effects each is as unlikely as the other and the ratio falls again: whoever won every set would be
    # tested for ever. The farthest that speaks for either side is therefore as far as it goes.
    half = (high - low) / 2
    peak = math.sqrt(1 + half * half)
    off = min(peak, max(-peak, size - (low + high) / 2))
    return count / 2 * math.log((1 + (off + half) ** 2) / (1 + (off - half) ** 2))
