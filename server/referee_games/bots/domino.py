"""How `greedy` lays cards in domino (clause G7).

A row grows outwards from the start rank, so every card waits for those between it and the start. Laying a card is
good as far as own cards wait behind it and bad as far as it opens the row for others; a card at the end of a row, or
one with only own cards behind it, opens nothing and can be kept for a turn that has no other. An ace costs no turn at
all if another card can follow it (G7d), so it waits for the turn in which most can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from referee_games.cards import SUITS
from referee_games.contract import Decision
from referee_games.views import GuillotineView

# By rank order (G1), the cards numbered so that those of a suit, eight together, ascend in that order.
NUMBER: Final = {
    order: {rank + suit: 8 * row + strength for row, suit in enumerate(SUITS) for strength, rank in enumerate(ranks)}
    for order, ranks in (("standard", "789TJQKA"), ("french", "789JQKTA"))
}

_FREES: Final = 2.0  # for each own card behind, the less the more cards of others lie between
_OPENS: Final = 1.0  # against a card that lets others go on
_OPENS_MORE: Final = 0.25  # against each further one that may follow it
_HARM: Final = -1.0  # what is worth less than this is not laid while there is another way


def choose(decision: Decision) -> str:
    """Returns the card to lay, `stop` or `pass`."""
    view: GuillotineView = decision.view
    number = NUMBER[str(view.options["rank_order"])]
    if not view.turns:
        return min(decision.legal, key=lambda card: _waiting(view.hand, number, number[card] % 8))
    cards = [text for text in decision.legal if text in number]
    if not cards:
        return decision.legal[0]
    rows = _Rows(view, number)
    worth = {card: rows.worth(card) for card in cards}
    others = [card for card in cards if card[0] != "A"]
    best = max(others or cards, key=worth.__getitem__)
    if decision.legal[-1] == "stop":
        return best if worth[best] >= _HARM or len(cards) == len(view.hand) else "stop"
    if len(others) == len(view.hand) - 1 and len(others) < len(cards):
        return _ace(cards)  # and all the rest after it
    if worth[best] >= _HARM:
        return best
    if decision.legal[-1] == "pass":
        return "pass"
    return _ace(cards) if len(others) < len(cards) else best


def _ace(cards: Sequence[str]) -> str:
    return next(card for card in cards if card[0] == "A")


def estimate(hand: Sequence[str], rank_order: str) -> float:
    """Returns about how many points domino would cost the dealer who holds this hand."""
    number = NUMBER[rank_order]
    return min(_waiting(hand, number, number[card] % 8) for card in hand)


def _waiting(hand: Sequence[str], number: dict[str, int], start: int) -> float:
    """Returns how many cards of others the cards of a hand have to wait for, in all, if a rank starts."""
    held = {number[card] for card in hand}
    wait = 0.0
    for card in held:
        row, strength = card & ~7, card & 7
        step = 1 if strength < start else -1
        between = [row + other not in held for other in range(strength + step, start + step, step)]
        wait += sum(between) if strength != start else 0
    return wait


class _Rows:
    """What lies, what is held and what is still hidden."""

    __slots__ = ("_hand", "_laid", "_number", "_start")

    def __init__(self, view: GuillotineView, number: dict[str, int]) -> None:
        self._number = number
        self._hand = {number[card] for card in view.hand}
        self._laid = {number[turn.card] for turn in view.turns if turn.card}
        self._start = number[view.turns[0].card] & 7

    def worth(self, card: str) -> float:
        """Returns how good it is to lay a card, 0 being a card that changes nothing for anybody."""
        place = self._number[card]
        row, strength = place & ~7, place & 7
        value = 0.0
        if strength >= self._start:
            value += self._behind(range(place + 1, row + 8))
        if strength <= self._start:
            value += self._behind(range(place - 1, row - 1, -1))
        return value

    def _behind(self, places: range) -> float:
        """Returns the good and the harm of the cards that lie behind one, the nearest first."""
        value = 0.0
        hidden = 0
        for place in places:
            if place in self._hand:
                value += _FREES / (1 + hidden)
            elif place not in self._laid:
                value -= _OPENS_MORE if hidden else _OPENS
                hidden += 1
        return value
