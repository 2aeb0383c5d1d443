"""The Berger tables: every two entrants once, by the circle method."""

from __future__ import annotations


def berger_round(entrants: int, number: int) -> list[tuple[int, int]]:
    """Returns the pairs of one round as the published tables give them; who is named first has seat 0.

    Args:
        entrants: how many; an odd field plays by the table of one more, whose last number stands for the bye.
        number: the round, from 0 to `entrants` - 2 (for an odd field - 1).
    """
    size = entrants + entrants % 2
    last, circle = size - 1, size - 1
    # The last number stays; the others move on by half the circle a round, which makes the colours alternate.
    start = number * (size // 2) % circle
    pairs = [(start, last) if number % 2 == 0 else (last, start)]
    pairs += [((start + i) % circle, (start - i) % circle) for i in range(1, size // 2)]
    return [pair for pair in pairs if max(pair) < entrants]


def berger_rounds(entrants: int) -> int:
    """Returns how many rounds the table has."""
    return entrants - 1 + entrants % 2
