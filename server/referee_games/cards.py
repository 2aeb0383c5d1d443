"""What games with a pack share: suits, card notation, hands as bits, seats in clockwise order.

A card is an integer, a hand a list with one small bit mask a suit. The cards of a mask are looked up, not computed:
`subsets` makes the table, and the legal plays of a hand are one entry of it, or a few entries joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add
from typing import Final

from referee_games.contract import Fact

SUITS: Final = "CDHS"
"""The suits in canonical order."""

NOTHING: Final[tuple[Fact, ...]] = ()
"""What most actions bring about beyond themselves."""


def card_texts(ranks: str) -> tuple[str, ...]:
    """Returns the notation of a pack in canonical order: suits C D H S, in each the ranks as given."""
    return tuple(rank + suit for suit in SUITS for rank in ranks)


def subsets(cards: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Returns, for every bit mask over `cards`, the cards whose bit is set, in the order given.

    Args:
        cards: the cards of one suit; the first has bit 0.
    """
    table: list[tuple[int, ...]] = [()]
    for card in cards:
        # The masks with this card's bit follow the masks without it, in the same order.
        table += [(*held, card) for held in table]
    return tuple(table)


def clockwise(start: int, seats: int) -> tuple[int, ...]:
    """Returns all seats in clockwise order, beginning with `start` (taken modulo the number of seats)."""
    return tuple((start + step) % seats for step in range(seats))


def added(totals: Sequence[int], scores: Sequence[int]) -> tuple[int, ...]:
    """Returns the totals after a deal's scores."""
    return tuple(map(add, totals, scores))
