"""How `greedy` plays Regicide (clauses R3 to R12).

Everything is counted in tricks. A card is worth playing when the chance that it takes this trick, times what the trick
is worth, exceeds the chance that it would take a later one. So small cards lose, the cheapest sufficient card takes,
and trumps and jokers are kept for what they take elsewhere. The chances of a whole hand, added up under each trump
suit and rank order, tell what to name, what to change and what to discard.
"""

from __future__ import annotations

from typing import Final

from referee_games.cards import SUITS
from referee_games.contract import Decision
from referee_games.regicide import RANKS
from referee_games.views import RegicideView

_JOKERS: Final = 4  # their place beside the suits 0 to 3
_PLACE: Final = {
    **{rank + suit: (index, number) for index, suit in enumerate(SUITS) for number, rank in enumerate(RANKS)},
    "X1": (_JOKERS, 0),
    "X2": (_JOKERS, 1),
}
_WHOLE: Final = (0x3FF, 0x3FF, 0x3FF, 0x3FF, 0x3)

_RIGHT: Final = 0.3  # what the right to change is worth (R10), in tricks
_LEAD: Final = 0.1  # what the next lead is worth, in tricks
_WILLING: Final = 0.9  # how likely a player who can take a trick does
_PRESSURE: Final = 0.6  # how likely a stronger card, wherever it is, spoils a weaker one in later tricks
_UPHEAVAL: Final = 0.15  # how likely the rank order is another by the time a card is kept for
_PARTNER: Final = 0.3  # how likely a partner who plays later takes a trick that is still to be taken
_SHORT: Final = 0.04  # a suit that is soon used up can be trumped: worth so much a card that it is still long
_JOKER: Final = 0.95  # the chance of a joker to take a trick


def choose(decision: Decision) -> str:
    """Returns the action for any decision of Regicide."""
    view: RegicideView = decision.view
    if view.phase == "open":
        return _open(view)
    table = _Table(view)
    if view.phase == "play":
        return max(decision.legal, key=table.gain)
    if view.phase == "discard":
        return min(decision.legal, key=lambda action: table.keep(action.partition(":")[2]))
    return max(decision.legal, key=lambda action: table.outlook(*_after(action, view)))


def _open(view: RegicideView) -> str:
    """Opens if the card, a sure trump, comes to the own side (R5)."""
    taker = view.seat if view.options["opened_to"] == "opener" else view.dealer
    return "open" if taker == view.seat or _partner(view) == taker else "decline"


def _partner(view: RegicideView) -> int:
    """Returns the seat of the partner, or -1."""
    return (view.seat + 2) % 4 if view.options["pairs"] else -1


def _after(action: str, view: RegicideView) -> tuple[int, bool]:
    """Returns trump suit and order once a suit is named (R5) or the new king has changed what he likes (R10)."""
    trump = SUITS.find(view.trump) if view.trump else -1
    kind, _, rest = action.partition(":")
    if rest:
        trump = SUITS.index(rest[0])
    return trump, view.reversed ^ (kind == "reverse" or rest.endswith("+reverse"))


class _Table:
    """What can be told from a view about the cards that others hold."""

    __slots__ = (
        "_any_time",
        "_as_trump",
        "_best",
        "_best_seat",
        "_hand",
        "_later",
        "_led",
        "_opponents",
        "_partner",
        "_partner_later",
        "_reversed",
        "_share",
        "_stake",
        "_trump",
        "_unseen",
        "_view",
        "_void",
    )

    def __init__(self, view: RegicideView) -> None:
        self._view = view
        self._trump = SUITS.find(view.trump) if view.trump else -1
        self._reversed = view.reversed
        self._any_time = view.options["joker"] == "any_time"
        self._as_trump = view.options["joker"] == "as_trump"
        self._partner = _partner(view)
        seats = len(view.hand_counts)
        after = [(view.seat + step) % seats for step in range(1, seats)]
        self._opponents = [seat for seat in after if seat != self._partner]
        self._count(view, seats)

        trick = view.trick.cards if view.trick is not None else ()
        later = after[: seats - 1 - len(trick)]
        self._partner_later = self._partner in later
        self._later = [seat for seat in later if seat != self._partner]
        self._led = self._asked(_PLACE[trick[0]][0], self._trump) if trick else -1
        self._best = (-1, -1)
        self._best_seat = -1
        for step, card in enumerate(trick):
            if step == 0 or self._beats(_PLACE[card], self._best):
                self._best = _PLACE[card]
                self._best_seat = (view.trick.leader + step) % seats if view.trick is not None else -1

        # Besides the trick there is the lead, and the right to change (R10): to gain it, and to keep others from it.
        king = view.tricks[-1].taker if view.tricks else -1
        if not view.tricks and view.options["first_change"] == "not_leader":
            king = view.dealer
        last = len(view.hand) == 1
        rights = 0 if last else (king != view.seat) + any(seat != king for seat in self._opponents)
        self._stake = 1 + _LEAD + _RIGHT * rights

    def _count(self, view: RegicideView, seats: int) -> None:
        """Finds what is unseen, and who is known to be void of what."""
        unseen = list(_WHOLE)
        hand = [0] * 5
        for card in view.hand:
            suit, rank = _PLACE[card]
            hand[suit] |= 1 << rank
            unseen[suit] ^= 1 << rank
        if view.discard:
            suit, rank = _PLACE[view.discard]
            unseen[suit] ^= 1 << rank
        void = [[False] * 5 for _ in range(seats)]
        for trick in view.tricks if view.trick is None else (*view.tricks, view.trick):
            seat = trick.leader
            asked = -1
            for card in trick.cards:
                suit, rank = _PLACE[card]
                unseen[suit] &= ~(1 << rank)
                if asked < 0:
                    asked = self._asked(suit, SUITS.find(trick.trump))
                elif asked < _JOKERS and suit not in (asked, _JOKERS):
                    void[seat][asked] = True
                seat = (seat + 1) % seats
        self._hand = hand
        self._unseen = unseen
        self._void = void
        hidden = sum([mask.bit_count() for mask in unseen]) or 1
        self._share = [min(1.0, count / hidden) for count in view.hand_counts]

    def _asked(self, suit: int, trump: int) -> int:
        """Returns the suit that has to be followed; that of a joker is none, `_JOKERS`, or trumps (R8)."""
        return trump if suit == _JOKERS and self._as_trump else suit

    def _beats(self, card: tuple[int, int], best: tuple[int, int]) -> bool:
        """Tells whether a card played after the best one so far takes the trick from it (R9)."""
        suit, rank = card
        if best[0] == _JOKERS:
            return False
        if suit == best[0]:
            return (rank < best[1]) if self._reversed else (rank > best[1])
        return suit in (_JOKERS, self._trump)

    def gain(self, text: str) -> float:
        """Returns what playing a card brings: a share of this trick, less what the card would take if kept."""
        card = _PLACE[text]
        leading = self._best_seat < 0
        if leading or self._beats(card, self._best):
            led = self._asked(card[0], self._trump) if leading else self._led
            chance = self._stands(card, led)
        elif self._best_seat == self._partner:
            chance = self._stands(self._best, self._led)
        else:
            chance = 0.0
        if self._partner_later:
            chance += (1 - chance) * _PARTNER
        return chance * self._stake - self.keep(text)

    def _higher(self, suit: int, rank: int, reverse: bool) -> int:
        """Returns how many unseen cards of a suit are higher than a rank."""
        unseen = self._unseen[suit]
        return (unseen & ((1 << rank) - 1) if reverse else unseen >> (rank + 1)).bit_count()

    def _stands(self, card: tuple[int, int], led: int) -> float:
        """Returns the chance that nobody who plays later takes the trick from a card."""
        suit, rank = card
        if suit == _JOKERS:
            return 1.0
        trump = self._trump
        jokers = self._unseen[_JOKERS].bit_count()
        higher = self._higher(suit, rank, self._reversed)
        count = self._unseen[led].bit_count() if led < 4 else 0
        over = jokers + (higher if suit == trump else self._unseen[trump].bit_count())
        chance = 1.0
        for seat in self._later:
            rest = 1 - self._share[seat]
            void = 1.0 if led >= 4 or self._void[seat][led] else rest**count
            beaten = void * (1 - rest**over)
            if suit == led and not self._void[seat][led]:
                beaten += 1 - rest**higher
            if jokers and (self._any_time or (self._as_trump and led == trump)):
                beaten = 1 - (1 - beaten) * rest**jokers
            chance *= 1 - _WILLING * min(1.0, beaten)
        return chance

    def keep(self, text: str) -> float:
        """Returns the chance that a card takes a later trick, changes of order and short suits allowed for."""
        suit, rank = _PLACE[text]
        now = self._promise(suit, rank, self._trump, self._reversed)
        if suit == _JOKERS:
            return now
        value = (1 - _UPHEAVAL) * now + _UPHEAVAL * self._promise(suit, rank, self._trump, not self._reversed)
        if suit != self._trump:
            value += _SHORT * self._hand[suit].bit_count()
        return value

    def outlook(self, trump: int, reverse: bool) -> float:
        """Returns how many tricks the hand promises under a trump suit and an order."""
        return sum([self._promise(*_PLACE[card], trump, reverse) for card in self._view.hand])

    def _promise(self, suit: int, rank: int, trump: int, reverse: bool) -> float:
        """Returns the chance that a card of the hand takes a later trick under a trump suit and an order."""
        if suit == _JOKERS:
            return _JOKER
        own = self._hand[suit]
        above = (own & ((1 << rank) - 1) if reverse else own >> (rank + 1)).bit_count()
        # Own higher cards draw out those of others before this one's turn comes.
        higher = max(0, self._higher(suit, rank, reverse) - above)
        count = self._unseen[suit].bit_count()
        over = self._unseen[_JOKERS].bit_count()
        if suit != trump and trump >= 0:
            over += self._unseen[trump].bit_count()
        count = max(0, count - above * len(self._opponents))
        chance = 1.0
        for seat in self._opponents:
            share = self._share[seat]
            chance *= (1 - share * _PRESSURE) ** higher
            chance *= 1 - _PRESSURE * (1 - share) ** count * (1 - (1 - share) ** over)
        return chance
