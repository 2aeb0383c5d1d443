"""Student's t distribution, as far as a paired test needs it."""

from __future__ import annotations

import math

_TINY = 1e-300
_EXACT = 1e-15
_MOST_TERMS = 500


def two_sided(t: float, freedom: int) -> float:
    """Returns how likely a value at least as far from 0 as `t` is, with `freedom` (at least 1) degrees of freedom."""
    if not t:
        return 1.0
    if math.isinf(t):
        return 0.0
    # The regularised incomplete beta function of x, by its continued fraction from the side where it is quick; x and
    # what it lacks to 1 are worked out apart, as near 1 the difference would be lost.
    x, rest = freedom / (freedom + t * t), t * t / (freedom + t * t)
    a, b = freedom / 2, 0.5
    scale = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) - a * math.log1p(t * t / freedom)
    ) * math.sqrt(rest)
    if x < (a + 1) / (a + b + 2):
        return scale * _fraction(x, a, b) / a
    return 1 - scale * _fraction(rest, b, a) / b


def quantile(confidence: float, freedom: int) -> float:
    """Returns how far from 0 the middle `confidence` (above 0, below 1) of the distribution reaches."""
    low, high = 0.0, 1.0
    while two_sided(high, freedom) > 1 - confidence:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if two_sided(middle, freedom) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _fraction(x: float, a: float, b: float) -> float:
    # Lentz's method: numerators of the fraction go in pairs, and each pair multiplies the result by a factor that
    # nears 1.
    upper, lower = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    result = lower
    for m in range(1, _MOST_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            lower = 1 / _away(1 + term * lower)
            upper = _away(1 + term / upper)
            result *= upper * lower
        if abs(upper * lower - 1) < _EXACT:
            break
    return result


def _away(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
