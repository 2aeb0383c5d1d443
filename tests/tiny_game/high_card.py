"""High card, the smallest game there is: two seats, six cards, two each; one trick, and its taker scores a point.

It stands for any game from outside: a module of its own, found by its entry point, with a generic view.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar

from referee_games.contract import (
    CHANCE,
    OVER,
    CardsDealt,
    DealScored,
    Fact,
    Game,
    GenericView,
    Option,
    Options,
    State,
    TrickTaken,
    rank_places,
)


class HighCardState(State):
    """One match of high card."""

    __slots__ = ("_hands", "_length", "_played", "_totals", "actor", "deal_number", "dealer")

    def __init__(self, length: int, dealer: int) -> None:
        self._length = length
        self._hands: tuple[tuple[int, ...], ...] = ((), ())
        self._played: tuple[int, ...] = ()
        self._totals = (0, 0)
        self.actor = CHANCE
        self.deal_number = 0
        self.dealer = dealer

    def deal(self, pack: Sequence[int]) -> tuple[Fact, ...]:
        first, second = tuple(sorted(pack[0:4:2])), tuple(sorted(pack[1:4:2]))
        self._hands = (second, first) if self.dealer == 0 else (first, second)
        self.actor = 1 - self.dealer
        return (CardsDealt(self._hands, tuple(pack[4:])),)

    def legal(self) -> Sequence[int]:
        return self._hands[self.actor]

    def apply(self, action: int) -> tuple[Fact, ...]:
        self._hands = tuple(tuple(card for card in hand if card != action) for hand in self._hands)
        self._played += (action,)
        self.actor = 1 - self.actor
        if len(self._played) < 2:
            return ()
        taker = self.actor if self._played[0] > self._played[1] else 1 - self.actor
        return TrickTaken(taker, self._played), self._end((1 - taker, taker), voided=False)

    def _end(self, scores: tuple[int, int], *, voided: bool) -> DealScored:
        self._totals = (self._totals[0] + scores[0], self._totals[1] + scores[1])
        scored = DealScored(self.deal_number, self.dealer, scores, self._totals, {}, voided)
        self._hands, self._played = ((), ()), ()
        if self.deal_number + 1 == self._length:
            self.actor = OVER
        else:
            self.actor = CHANCE
            self.deal_number += 1
            self.dealer = 1 - self.dealer
        return scored

    def forced(self) -> bool:
        return False

    def void_deal(self) -> tuple[Fact, ...]:
        return (self._end((0, 0), voided=True),)

    def view(self, viewer: int) -> GenericView:
        hand = [HighCard.texts[card] for card in self._hands[viewer]] if viewer >= 0 else []
        played = [HighCard.texts[card] for card in self._played]
        data = {"hand": hand, "played": played, "totals": self._totals}
        text = f"hand {' '.join(hand) or '-'}, played {' '.join(played) or '-'}"
        return GenericView(text, json.dumps(data).encode())

    def totals(self) -> tuple[int, ...]:
        return self._totals

    def places(self) -> tuple[int, ...]:
        return rank_places(self._totals, lowest_wins=False)

    def copy(self) -> HighCardState:
        twin = HighCardState(self._length, self.dealer)
        for name in self.__slots__:
            setattr(twin, name, getattr(self, name))
        return twin


class HighCard(Game):
    """High card, for two."""

    name: ClassVar[str] = "high_card"
    title: ClassVar[str] = "High card"
    options: ClassVar[tuple[Option, ...]] = (Option("deals", 3, "How many deals make a match.", low=1, high=100),)
    texts: ClassVar[tuple[str, ...]] = ("2S", "3S", "4S", "5S", "6S", "7S")
    pack: ClassVar[tuple[int, ...]] = tuple(range(6))
    lowest_wins: ClassVar[bool] = False

    def seats(self, options: Options) -> int:
        return 2

    def sides(self, options: Options) -> tuple[tuple[int, ...], ...]:
        return ((0,), (1,))

    def start(self, options: Options, first_dealer: int) -> HighCardState:
        return HighCardState(int(options["deals"]), first_dealer)
