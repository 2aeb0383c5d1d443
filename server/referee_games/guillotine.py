"""Guillotine: four players, 32 cards, six contracts a dealer, lowest total wins (clauses G1 to G8 of the rules).

Cards are 0 to 31, contracts 32 to 37, then `stop` and `pass`, so that ascending numbers are the canonical order. A
hand is four masks of eight bits, one a suit, bit 0 the seven.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from referee_games.cards import NOTHING, SUITS, added, card_texts, clockwise, subsets
from referee_games.contract import (
    CHANCE,
    OVER,
    CardsDealt,
    DealScored,
    Fact,
    Game,
    Option,
    Options,
    State,
    TrickTaken,
    rank_places,
)
from referee_games.views import GuillotineDeal, GuillotineView, Trick, Turn

RANKS: Final = "789TJQKA"
CONTRACTS: Final = ("royalty", "queens", "spades", "parliament", "guillotine", "domino")

FIRST_CONTRACT: Final = 32
DOMINO: Final = 37
STOP: Final = 38
PASS: Final = 39
TEXTS: Final = (*card_texts(RANKS), *(f"contract:{name}" for name in CONTRACTS), "stop", "pass")

_ACE: Final = 7  # its bit in a suit's mask
_BIT: Final = tuple(1 << card % 8 for card in range(32))
_HELD: Final = tuple(subsets(range(8 * suit, 8 * suit + 8)) for suit in range(4))
_CLUBS, _DIAMONDS, _HEARTS, _SPADES = _HELD
_PASS_ONLY: Final = (PASS,)

# By `rank_order` (G1), what depends on it: who beats whom, and who lies beside whom.
_ORDERS: Final = {"standard": RANKS, "french": "789JQKTA"}
# By the suit led, then by card: 0 for another suit, which never takes the trick, else the higher the stronger.
_POWER: Final = {
    name: tuple(
        tuple(1 + ranks.index(RANKS[card % 8]) if card // 8 == led else 0 for card in range(32)) for led in range(4)
    )
    for name, ranks in _ORDERS.items()
}
# By the bit of a rank: the mask of the ranks one below and one above it.
_NEIGHBOURS: Final = {
    name: tuple(
        sum(1 << bit for bit in range(8) if abs(ranks.index(RANKS[bit]) - ranks.index(rank)) == 1) for rank in RANKS
    )
    for name, ranks in _ORDERS.items()
}


def _values(king: int = 0, queen: int = 0, spade: int = 0, card: int = 0) -> tuple[int, ...]:
    """Returns the points against the taker of each card, all entries that apply added up (G6)."""
    return tuple(
        card + king * (rank == "K") + queen * (rank == "Q") + spade * (suit == "S") for suit in SUITS for rank in RANKS
    )


# The table of G6: by contract and, for guillotine, by `guillotine_unit`; points a card, and points a trick.
_WORTH: Final = {
    "royalty": (_values(king=20, queen=10), 0),
    "queens": (_values(king=-10, queen=10), 0),
    "spades": (_values(king=-10, spade=5), 0),
    "parliament": (_values(king=-10), -5),
    "guillotine/card": (_values(king=10, queen=10, card=5), 0),
    "guillotine/spade": (_values(king=10, queen=10, spade=5), 0),
    "guillotine/trick": (_values(king=10, queen=10), 5),
}
_FIRST_AND_LAST_TRICK: Final = 5
_OUT_FIRST: Final = -30
_OUT_SECOND: Final = -10


class GuillotineState(State):
    """One match of Guillotine."""

    __slots__ = (
        "_bonus", "_contract", "_deals", "_free_pass", "_hands", "_layable", "_led", "_neighbours", "_options", "_out",
        "_passes", "_phase", "_power", "_seen_tricks", "_seen_turns", "_totals", "_trick", "_tricks", "_turns",
        "_undealt", "actor", "deal_number", "dealer",
    )  # fmt: skip

    def __init__(self, options: Options, first_dealer: int) -> None:
        self.actor = CHANCE
        self.deal_number = 0
        self.dealer = first_dealer
        self._options = options
        self._power = _POWER[str(options["rank_order"])]
        self._neighbours = _NEIGHBOURS[str(options["rank_order"])]
        self._free_pass = options["domino_pass"] == "free"
        self._totals: tuple[int, ...] = (0, 0, 0, 0)
        self._deals: tuple[GuillotineDeal, ...] = ()
        self._undealt = [tuple(range(FIRST_CONTRACT, DOMINO + 1))] * 4  # by seat, contracts it has still to deal
        self._clear("deal")

    def _clear(self, phase: str) -> None:
        """Takes everything off the table."""
        self._phase = phase
        self._contract = ""
        self._hands = [[0, 0, 0, 0] for _ in range(4)]
        self._led = -1  # suit of the trick being played
        self._trick: list[int] = []
        self._tricks: list[TrickTaken] = []
        self._turns: list[tuple[int, int]] = []  # domino: seat and card, or PASS
        self._layable: list[int] = []  # domino: by suit, the mask of ranks that could be laid by whoever held them
        self._bonus = False  # domino: an ace was laid in this turn (G7d)
        self._passes = 0  # domino: how many passed since a card was laid (G7c)
        self._out: list[int] = []  # domino: who has no cards left, in that order
        self._seen_tricks: tuple[Trick, ...] = ()  # what views tell of the tricks and turns, kept from one to the next
        self._seen_turns: tuple[Turn, ...] = ()

    def deal(self, pack: Sequence[int]) -> tuple[Fact, ...]:
        """Deals eight cards each (G4); the dealer is to announce a contract."""
        hands: list[tuple[int, ...]] = [()] * 4
        for step, seat in enumerate(clockwise(self.dealer + 1, 4)):
            hands[seat] = tuple(pack[step::4])
        # The bit of card n is bit n of a 32-bit number: its four bytes are the masks of the four suits.
        self._hands = [list(sum([1 << card for card in hand]).to_bytes(4, "little")) for hand in hands]
        self._phase = "contract"
        self.actor = self.dealer
        return (CardsDealt(tuple(hands), ()),)

    def legal(self) -> Sequence[int]:
        """Returns the legal actions of the seat that acts, in canonical order (G4, G5, G7)."""
        hand = self._hands[self.actor]
        if self._phase == "tricks":
            led = self._led
            if led >= 0 and hand[led]:
                return _HELD[led][hand[led]]
            return _CLUBS[hand[0]] + _DIAMONDS[hand[1]] + _HEARTS[hand[2]] + _SPADES[hand[3]]
        if self._phase == "contract":
            return self._undealt[self.actor]
        row = self._layable
        cards = _CLUBS[hand[0] & row[0]] + _DIAMONDS[hand[1] & row[1]]
        cards += _HEARTS[hand[2] & row[2]] + _SPADES[hand[3] & row[3]]
        if self._bonus:
            return (*cards, STOP)
        if not cards:
            return _PASS_ONLY
        if self._free_pass and self._turns and self._passes < 3 - len(self._out):
            return cards + _PASS_ONLY
        return cards

    def apply(self, action: int) -> tuple[Fact, ...]:
        """Plays a legal action."""
        if self._phase == "tricks":
            seat = self.actor
            suit = action >> 3
            self._hands[seat][suit] ^= _BIT[action]
            trick = self._trick
            trick.append(action)
            if len(trick) == 4:
                return self._take()
            if self._led < 0:
                self._led = suit
            self.actor = (seat + 1) & 3
            return NOTHING
        if self._phase == "domino":
            return self._turn(action)
        self._contract = CONTRACTS[action - FIRST_CONTRACT]
        self._undealt[self.actor] = tuple(other for other in self._undealt[self.actor] if other != action)
        if action == DOMINO:
            self._phase = "domino"
            self._layable = [0xFF] * 4  # the dealer starts with any card (G7a)
        else:
            self._phase = "tricks"
        return NOTHING

    def _take(self) -> tuple[Fact, ...]:
        """Gives a complete trick to the highest card of the suit led (G5) and, after the eighth, scores the deal."""
        power = self._power[self._led]
        lead, second, third, fourth = cards = tuple(self._trick)
        strengths = (power[lead], power[second], power[third], power[fourth])
        leader = self.actor + 1
        taken = TrickTaken((leader + strengths.index(max(strengths))) & 3, cards)
        self._tricks.append(taken)
        if len(self._tricks) == 8:
            return taken, self._end_deal(self._trick_scores())
        self._trick = []
        self._led = -1
        self.actor = taken.seat
        return (taken,)

    def _trick_scores(self) -> list[int]:
        """Scores a deal of eight tricks by the table of G6."""
        contract = self._contract
        if contract == "guillotine":
            contract = f"guillotine/{self._options['guillotine_unit']}"
        values, per_trick = _WORTH[contract]
        scores = [0] * 4
        for seat, (lead, second, third, fourth) in self._tricks:
            scores[seat] += per_trick + values[lead] + values[second] + values[third] + values[fourth]
        if self._contract == "guillotine":
            scores[self._tricks[0].seat] += _FIRST_AND_LAST_TRICK
            scores[self._tricks[-1].seat] += _FIRST_AND_LAST_TRICK
        return scores

    def _turn(self, action: int) -> tuple[Fact, ...]:
        """Lays a card in domino, passes, or stops after an ace (G7)."""
        seat = self.actor
        if action == PASS:
            self._turns.append((seat, PASS))
            self._passes += 1
        elif action != STOP:
            suit, rank = divmod(action, 8)
            hand = self._hands[seat]
            hand[suit] ^= _BIT[action]
            opening = not self._turns
            if opening:
                self._layable = [_BIT[action]] * 4
            self._layable[suit] |= self._neighbours[rank]
            self._turns.append((seat, action))
            self._passes = 0
            if not any(hand):
                self._out.append(seat)
                if len(self._out) == 2:
                    scores = [0] * 4
                    scores[self._out[0]] = _OUT_FIRST
                    scores[seat] = _OUT_SECOND
                    return (self._end_deal(scores),)
            elif self._bonus or (rank == _ACE and not opening):
                self._bonus = True
                return NOTHING
        self._bonus = False
        seat = (seat + 1) & 3
        while seat in self._out:
            seat = (seat + 1) & 3
        self.actor = seat
        return NOTHING

    def _end_deal(self, scores: Sequence[int], *, voided: bool = False) -> DealScored:
        """Books a deal and passes the cards to the next dealer, or ends the match (G3, G8)."""
        deal = GuillotineDeal(self.dealer, self._contract, tuple(scores))
        self._totals = added(self._totals, scores)
        self._deals = (*self._deals, deal)
        details = {"contract": deal.contract}
        scored = DealScored(self.deal_number, deal.dealer, deal.scores, self._totals, details, voided)
        if len(self._deals) == 4 * int(self._options["deals_per_dealer"]):
            self.actor = OVER
            self._clear("over")
        else:
            self.actor = CHANCE
            self.deal_number += 1
            self.dealer = (self.dealer + 1) & 3
            self._clear("deal")
        return scored

    def forced(self) -> bool:
        """Tells whether the table can tell that one action is legal (section Forced actions of the rules).

        That is a dealer's last contract, the last card of a hand in a trick, and in domino, where passing is not free
        and the turn no bonus, a pass and the last card.
        """
        if self._phase == "tricks":
            return len(self._tricks) == 7
        if self._phase == "domino":
            if self._bonus or self._free_pass:
                return False
            return self._count(self.actor) == 1 or self.legal() is _PASS_ONLY
        return self._phase == "contract" and len(self._undealt[self.actor]) == 1

    def void_deal(self) -> tuple[Fact, ...]:
        """Cuts the deal in play short; a contract that was announced counts as dealt."""
        return (self._end_deal((0, 0, 0, 0), voided=True),)

    def view(self, viewer: int) -> GuillotineView:
        """Returns what a seat, or `PUBLIC`, may see."""
        for taker, cards in self._tricks[len(self._seen_tricks) :]:
            leader = self._seen_tricks[-1].taker if self._seen_tricks else self.dealer
            self._seen_tricks += (Trick(leader, _texts(cards), taker),)
        for seat, card in self._turns[len(self._seen_turns) :]:
            self._seen_turns += (Turn(seat, "" if card == PASS else TEXTS[card]),)
        trick = None
        if self._phase == "tricks":
            trick = Trick((self.actor - len(self._trick)) & 3, _texts(self._trick))
        hand: list[int] = []
        if viewer >= 0:
            for held, mask in zip(_HELD, self._hands[viewer], strict=True):
                hand += held[mask]
        return GuillotineView(
            seat=viewer,
            options=self._options,
            phase=self._phase,
            deal=self.deal_number,
            dealer=self.dealer,
            contract=self._contract,
            hand=_texts(hand),
            hand_counts=tuple(map(self._count, range(4))),
            trick=trick,
            tricks=self._seen_tricks,
            turns=self._seen_turns,
            totals=self._totals,
            deals=self._deals,
        )

    def _count(self, seat: int) -> int:
        return sum(map(int.bit_count, self._hands[seat]))

    def totals(self) -> tuple[int, ...]:
        """Returns the points of the match so far, by seat."""
        return self._totals

    def places(self) -> tuple[int, ...]:
        """Returns the place of each seat; the lowest total wins (G8)."""
        return rank_places(self._totals, lowest_wins=True)

    def copy(self) -> GuillotineState:
        """Returns an independent copy."""
        twin = object.__new__(type(self))
        twin.actor = self.actor
        twin.deal_number = self.deal_number
        twin.dealer = self.dealer
        twin._options = self._options
        twin._power = self._power
        twin._neighbours = self._neighbours
        twin._free_pass = self._free_pass
        twin._totals = self._totals
        twin._deals = self._deals
        twin._undealt = self._undealt[:]
        twin._phase = self._phase
        twin._contract = self._contract
        twin._hands = [hand[:] for hand in self._hands]
        twin._led = self._led
        twin._trick = self._trick[:]
        twin._tricks = self._tricks[:]
        twin._turns = self._turns[:]
        twin._layable = self._layable[:]
        twin._bonus = self._bonus
        twin._passes = self._passes
        twin._out = self._out[:]
        twin._seen_tricks = self._seen_tricks
        twin._seen_turns = self._seen_turns
        return twin


def _texts(cards: Sequence[int]) -> tuple[str, ...]:
    return tuple(map(TEXTS.__getitem__, cards))


class Guillotine(Game):
    """Guillotine, for exactly four players (G2)."""

    name: ClassVar[str] = "guillotine"
    title: ClassVar[str] = "Guillotine"
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "rank_order",
            "standard",
            "The order of the ranks: standard has the ten below the jack (G1).",
            ("standard", "french"),
        ),
        Option("deals_per_dealer", 6, "How many deals each player deals (G4).", low=1, high=6),
        Option("guillotine_unit", "card", "What earns 5 points in guillotine (G6).", ("card", "spade", "trick")),
        Option(
            "domino_pass",
            "forced",
            "When a player may pass in domino: only if he must, or freely (G7c).",
            ("forced", "free"),
        ),
    )
    texts: ClassVar[tuple[str, ...]] = TEXTS
    pack: ClassVar[tuple[int, ...]] = tuple(range(32))
    lowest_wins: ClassVar[bool] = True

    def seats(self, options: Options) -> int:
        """Returns four, whatever the options (G2)."""
        del options
        return 4

    def sides(self, options: Options) -> tuple[tuple[int, ...], ...]:
        """Returns one side a seat: each plays for himself (G2)."""
        del options
        return ((0,), (1,), (2,), (3,))

    def start(self, options: Options, first_dealer: int) -> GuillotineState:
        """Returns a new match, before its first deal."""
        return GuillotineState(options, first_dealer)
