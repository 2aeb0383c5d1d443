"""How `greedy` plays the tricks of Guillotine and chooses contracts (clauses G4 to G6).

Everything is counted in points against oneself. A card is worth playing when what it brings now, the chance that it
takes the trick times what the trick costs, less what it would bring if it were kept, is small. The same estimate of a
kept card, added up over a hand, says what a contract would cost. Contracts in which taking pays need no rules of their
own: there the points are negative, and the same sum looks for the cheapest way to take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from referee_games.bots import domino
from referee_games.contract import Decision
from referee_games.views import GuillotineView

Points = tuple[Mapping[str, int], int]
"""What a taker is charged: by card, and a trick (G6)."""

# By rank order, the suit and the strength of each card.
_PLACE: Final = {
    order: {card: divmod(number, 8) for card, number in numbers.items()} for order, numbers in domino.NUMBER.items()
}
_WHOLE_SUIT: Final = 0xFF
_ENDS: Final = 5  # guillotine: for the first trick and for the last


def _points(king: int = 0, queen: int = 0, spade: int = 0, card: int = 0, trick: int = 0) -> Points:
    charge = {
        text: card + king * (text[0] == "K") + queen * (text[0] == "Q") + spade * (text[1] == "S")
        for text in _PLACE["standard"]
    }
    return charge, trick


# The table of G6, by contract, for guillotine also by `guillotine_unit`.
_CHARGES: Final = {
    "royalty": _points(king=20, queen=10),
    "queens": _points(king=-10, queen=10),
    "spades": _points(king=-10, spade=5),
    "parliament": _points(king=-10, trick=-5),
    "guillotine/card": _points(king=10, queen=10, card=5),
    "guillotine/spade": _points(king=10, queen=10, spade=5),
    "guillotine/trick": _points(king=10, queen=10, trick=5),
}

# How far opponents are taken to play with intent rather than at random.
_INTENT: Final = 0.5
# The chance that a suit is played for a first, second, third … time.
_ROUNDS: Final = (1.0, 0.8, 0.5, 0.25, 0.1, 0.05, 0.0, 0.0)
# What it costs to have the next lead, and each further card in a suit that is to run out: who is void throws off what
# he likes. Both are small beside any score, and decide where scores say nothing.
_NEXT_LEAD: Final = 1.5
_LONG_SUIT: Final = 0.8
# By contract, for guillotine by unit: the estimate of a usual hand, and how much of a hand's distance from it comes
# true (both measured over many deals). The hand is best used for the contract that it saves most in.
_USUAL: Final = {
    "royalty": (45.0, 1.15),
    "queens": (4.9, 0.4),
    "spades": (4.5, 0.5),
    "parliament": (-14.7, 1.05),
    "guillotine/card": (77.6, 1.3),
    "guillotine/spade": (42.8, 1.1),
    "guillotine/trick": (41.2, 1.35),
    "domino": (10.1, 1.2),
}


def choose(decision: Decision) -> str:
    """Returns the action for any decision of Guillotine."""
    view: GuillotineView = decision.view
    if view.phase == "contract":
        return _contract(view, decision.legal)
    if view.phase == "domino":
        return domino.choose(decision)
    return _card(view, decision.legal)


def _contract(view: GuillotineView, legal: Sequence[str]) -> str:
    """Picks the contract that this hand does best in, by comparison with a usual hand."""

    def excess(action: str) -> float:
        contract = action.partition(":")[2]
        usual, weight = _USUAL[_full_name(view, contract)]
        return weight * (estimate(view, contract) - usual)

    return min(legal, key=excess)


def _full_name(view: GuillotineView, contract: str) -> str:
    """Returns the key of a contract in the tables of this module."""
    return f"guillotine/{view.options['guillotine_unit']}" if contract == "guillotine" else contract


def estimate(view: GuillotineView, contract: str) -> float:
    """Returns about how many points a contract would cost the viewer, before any card is played."""
    if contract == "domino":
        return domino.estimate(view.hand, str(view.options["rank_order"]))
    table = _Table(view, contract)
    return sum(table.kept(card) for card in view.hand)


def _card(view: GuillotineView, legal: Sequence[str]) -> str:
    table = _Table(view, view.contract)
    return min(legal, key=table.cost)


class _Table:
    """What can be told from a view about the cards that others hold."""

    __slots__ = (
        "_avoiding",
        "_best",
        "_dump",
        "_hand",
        "_later",
        "_lead",
        "_mean",
        "_next_lead",
        "_on_table",
        "_others",
        "_per_trick",
        "_place",
        "_points",
        "_share",
        "_unseen",
        "_void",
    )

    def __init__(self, view: GuillotineView, contract: str) -> None:
        self._points, self._per_trick = _CHARGES[_full_name(view, contract)]
        order = str(view.options["rank_order"])
        place = self._place = _PLACE[order]

        unseen = [_WHOLE_SUIT] * 4
        hand = [0] * 4
        for card in view.hand:
            suit, strength = place[card]
            hand[suit] |= 1 << strength
            unseen[suit] &= ~(1 << strength)
        void = [[False] * 4 for _ in range(4)]
        played = view.tricks if view.trick is None else (*view.tricks, view.trick)
        for trick in played:
            if not trick.cards:
                continue
            led = place[trick.cards[0]][0]
            seat = trick.leader
            for card in trick.cards:
                suit, strength = place[card]
                unseen[suit] &= ~(1 << strength)
                if suit != led:
                    void[seat & 3][led] = True
                seat += 1
        self._hand = hand
        self._unseen = unseen
        self._void = void
        self._others = tuple((view.seat + step) & 3 for step in (1, 2, 3))
        hidden = sum(mask.bit_count() for mask in unseen) or 1
        self._share = [count / hidden for count in view.hand_counts]

        # The mean charge of an unseen card of each suit, and what somebody who cannot follow may throw in.
        points = self._points
        sums = [0, 0, 0, 0]
        worst = -99
        for card, (suit, strength) in place.items():
            if unseen[suit] >> strength & 1:
                sums[suit] += points[card]
                worst = max(worst, points[card])
        self._mean = [total / (mask.bit_count() or 1) for total, mask in zip(sums, unseen, strict=True)]
        self._dump = (sum(sums) / hidden + worst) / 2

        cards = view.trick.cards if view.trick is not None else ()
        self._later = self._others[: 3 - len(cards)]
        self._lead = place[cards[0]][0] if cards else -1
        self._best = max((place[card][1] for card in cards if place[card][0] == self._lead), default=-1)
        self._on_table = self._per_trick + sum([points[card] for card in cards])
        if contract == "guillotine" and len(view.hand) in (1, 8):
            self._on_table += _ENDS
        self._avoiding = self._per_trick >= 0
        self._next_lead = _NEXT_LEAD if self._avoiding else -_NEXT_LEAD

    def cost(self, card: str) -> float:
        """Returns what playing a card costs in all: in this trick, less what it would have cost if kept."""
        suit, strength = self._place[card]
        cost = _LONG_SUIT * self._hand[suit].bit_count() * self._avoiding - self.kept(card)
        if self._lead < 0 or (suit == self._lead and strength > self._best):
            chance, trick = self._take(suit, strength, self._later, self._on_table + self._points[card])
            cost += chance * (trick + self._next_lead)
        return cost

    def kept(self, card: str) -> float:
        """Returns what a card costs in the tricks to come."""
        suit, strength = self._place[card]
        lower = (self._hand[suit] & ((1 << strength) - 1)).bit_count()
        chance, trick = self._take(suit, strength, self._others, self._per_trick + self._points[card])
        return _ROUNDS[lower] * chance * trick

    def _take(self, suit: int, strength: int, seats: Sequence[int], cost: float) -> tuple[float, float]:
        """Returns the chance that a card takes its trick, and what the trick then costs.

        Args:
            suit: suit of the card, which is the suit led.
            strength: how high it is.
            seats: who plays after it.
            cost: what the trick costs so far.
        """
        unseen = self._unseen[suit]
        lower = (unseen & ((1 << strength) - 1)).bit_count()
        count = unseen.bit_count()
        higher = count - lower
        follows = []
        for seat in seats:
            share = self._share[seat]
            follow = 0.0 if self._void[seat][suit] or not count else 1 - (1 - share) ** count
            follows.append(follow)
            cost += follow * self._mean[suit] + (1 - follow) * self._dump
        if not higher:
            return 1.0, cost
        chance = 1.0
        for seat, follow in zip(seats, follows, strict=True):
            if follow:
                rest = 1 - self._share[seat]
                beats = 1 - rest**higher
                if cost > 0:
                    beats *= rest**lower  # who can duck does
                chance *= 1 - _INTENT * beats - (1 - _INTENT) * follow * higher / count
        return chance, cost
