"""Regicide: two to four players, 42 cards, trumps and rank order change hands (clauses R1 to R13 of the rules).

Cards are 0 to 39, the jokers 40 and 41; the other actions follow, so that ascending numbers are the canonical order. A
hand is five masks: ten bits a suit, bit 0 the ace, and two bits for the jokers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from referee_games.cards import NOTHING, SUITS, added, card_texts, clockwise, subsets
from referee_games.contract import (
    CHANCE,
    OVER,
    CardsDealt,
    CardShown,
    DealScored,
    Fact,
    Game,
    Option,
    OptionError,
    Options,
    State,
    TrickTaken,
    rank_places,
)
from referee_games.views import RegicideDeal, RegicideView, Trick

RANKS: Final = "A23456789K"
CARDS: Final = (*card_texts(RANKS), "X1", "X2")

_TRUMPS: Final = tuple(f"trump:{suit}" for suit in SUITS)
TEXTS: Final = (
    *CARDS,
    *("open", "decline"),
    *(f"name:{suit}" for suit in SUITS),
    *(f"discard:{card}" for card in CARDS),
    *("keep", *_TRUMPS, "reverse"),
    *(f"{trump}+reverse" for trump in _TRUMPS),
)
FIRST_JOKER: Final = CARDS.index("X1")
OPEN: Final = TEXTS.index("open")
DECLINE: Final = OPEN + 1
FIRST_NAME: Final = TEXTS.index("name:C")
FIRST_DISCARD: Final = TEXTS.index("discard:AC")
KEEP: Final = TEXTS.index("keep")
FIRST_TRUMP: Final = KEEP + 1
REVERSE: Final = TEXTS.index("reverse")
FIRST_TRUMP_REVERSE: Final = REVERSE + 1

HAND: Final = 9  # cards dealt to each player (R4)
_JOKERS: Final = 4  # their place beside the suits 0 to 3
_NO_SUIT: Final = -1
_MAY_OPEN: Final = (OPEN, DECLINE)
_MUST_OPEN: Final = (OPEN,)
_NAMES: Final = tuple(range(FIRST_NAME, FIRST_NAME + 4))
_HISTORY: Final = 20  # earlier deals that a view tells of

_SUIT: Final = tuple(card // 10 for card in range(42))
_BIT: Final = tuple(1 << card % 10 for card in range(42))
_HELD: Final = (*(subsets(range(10 * suit, 10 * suit + 10)) for suit in range(4)), subsets((40, 41)))
_C, _D, _H, _S, _X = _HELD


def _changes(trump: int, both: bool) -> tuple[int, ...]:
    """Returns what the new king may do while `trump` is trumps (R10)."""
    others = [suit for suit in range(4) if suit != trump]
    combined = [FIRST_TRUMP_REVERSE + suit for suit in others] if both else []
    return (KEEP, *(FIRST_TRUMP + suit for suit in others), REVERSE, *combined)


# By whether both may be changed, then by the trump suit.
_CHANGES: Final = tuple(tuple(_changes(trump, both) for trump in range(4)) for both in (False, True))


def _powers(led: int, trump: int, reverse: bool) -> tuple[int, ...]:
    """Returns the strength of every card in a trick (R3, R9); 0 never takes it."""
    strengths = []
    for card in range(40):
        suit, rank = divmod(card, 10)
        within_suit = 10 - rank if reverse else rank + 1
        strengths.append(within_suit + 10 if suit == trump else within_suit if suit == led else 0)
    return (*strengths, 21, 21)


def _lead(joker: str, reverse: bool, trump: int, led: int) -> tuple[int, bool, tuple[int, ...]]:
    """Returns what a lead settles: the suit to follow, whether a joker may be played by who can, the strengths (R8)."""
    suit = led if led != _JOKERS else trump if joker == "as_trump" else _NO_SUIT
    jokers_follow = joker == "any_time" or (joker == "as_trump" and suit == trump)
    return suit, jokers_follow, _powers(led, trump, reverse)


# By the option `joker`, whether the order is reversed, the trump suit, and the suit led (the jokers being the fifth).
_LEADS: Final = {
    joker: tuple(
        tuple(tuple(_lead(joker, reverse, trump, led) for led in range(5)) for trump in range(4))
        for reverse in (False, True)
    )
    for joker in ("when_void", "any_time", "as_trump")
}


class RegicideState(State):
    """One match of Regicide."""

    __slots__ = (
        "_best", "_deals", "_declined", "_discarded", "_hands", "_jokers_follow", "_king", "_leads", "_opened",
        "_opener", "_options", "_phase", "_pot", "_power", "_reversed", "_seats", "_seen", "_sides", "_size", "_stock",
        "_suit", "_taken", "_totals", "_trick", "_tricks", "_trump", "_winner", "actor", "deal_number", "dealer",
    )  # fmt: skip

    def __init__(self, options: Options, first_dealer: int) -> None:
        self.actor = CHANCE
        self.deal_number = 0
        self.dealer = first_dealer
        self._options = options
        self._sides = _sides(options)
        self._leads = _LEADS[str(options["joker"])]
        self._seats = int(options["players"])
        self._size = HAND if options["stock"] == "exchange" else 42 // self._seats  # tricks in a deal
        self._totals: tuple[int, ...] = (0,) * len(self._sides)
        self._pot = 0
        self._deals: tuple[RegicideDeal, ...] = ()
        self._clear("deal")

    def _clear(self, phase: str) -> None:
        """Takes everything off the table."""
        self._phase = phase
        self._hands = [[0, 0, 0, 0, 0] for _ in range(self._seats)]
        self._stock: tuple[int, ...] = ()
        self._declined = 0
        self._opener = -1
        self._opened = -1
        self._discarded = -1
        self._trump = _NO_SUIT
        self._reversed = False
        self._king = -1  # who took the last trick, and therefore has no right to change after the next (R10)
        self._suit = _NO_SUIT  # what has to be followed
        self._jokers_follow = False  # whether a joker may be played by who can follow
        self._power: tuple[int, ...] = ()  # by card, its strength in the trick being played
        self._best = 0  # the strongest so far
        self._winner = -1  # and whose it is
        self._trick: list[int] = []
        self._tricks: list[tuple[TrickTaken, int, bool]] = []  # with the trump suit and the order of the time
        self._seen: tuple[Trick, ...] = ()  # what views tell of the tricks, kept from one to the next
        self._taken = [0] * self._seats

    def deal(self, pack: Sequence[int]) -> tuple[Fact, ...]:
        """Deals nine cards each (R4); the dealer is asked to open the stock."""
        seats = self._seats
        hands: list[tuple[int, ...]] = [()] * seats
        for step, seat in enumerate(clockwise(self.dealer + 1, seats)):
            hands[seat] = tuple(pack[step : HAND * seats : seats])
            self._pick_up(seat, hands[seat])
        self._stock = tuple(pack[HAND * seats :])
        self._phase = "open"
        self.actor = self.dealer
        return (CardsDealt(tuple(hands), self._stock),)

    def _pick_up(self, seat: int, cards: Sequence[int]) -> None:
        hand = self._hands[seat]
        for card in cards:
            hand[_SUIT[card]] |= _BIT[card]

    def legal(self) -> Sequence[int]:
        """Returns the legal actions of the seat that acts, in canonical order (R5 to R8, R10)."""
        hand = self._hands[self.actor]
        if self._phase == "play":
            suit = self._suit
            if suit >= 0:
                if hand[suit]:
                    cards = _HELD[suit][hand[suit]]
                    return cards + _X[hand[_JOKERS]] if self._jokers_follow else cards
                if self._jokers_follow and hand[_JOKERS] and self._options["joker"] == "as_trump":
                    return _X[hand[_JOKERS]]
            return _C[hand[0]] + _D[hand[1]] + _H[hand[2]] + _S[hand[3]] + _X[hand[_JOKERS]]
        if self._phase == "change":
            return _CHANGES[self._options["change"] == "both"][self._trump]
        if self._phase == "open":
            return _MAY_OPEN if self._declined < self._seats else _MUST_OPEN
        if self._phase == "name":
            return _NAMES
        return tuple(FIRST_DISCARD + card for card in _cards(hand))

    def apply(self, action: int) -> tuple[Fact, ...]:
        """Plays a legal action."""
        if self._phase == "play":
            seat = self.actor
            suit = _SUIT[action]
            self._hands[seat][suit] ^= _BIT[action]
            trick = self._trick
            if not trick:
                self._suit, self._jokers_follow, self._power = self._leads[self._reversed][self._trump][suit]
                self._best = self._power[action]
                self._winner = seat
            elif self._power[action] > self._best:  # of two jokers, equals, the one played first takes the trick
                self._best = self._power[action]
                self._winner = seat
            trick.append(action)
            if len(trick) == self._seats:
                return self._take()
            self.actor = (seat + 1) % self._seats
            return NOTHING
        if self._phase == "change":
            if action >= REVERSE:
                self._reversed = not self._reversed
            if action >= FIRST_TRUMP_REVERSE:
                self._trump = action - FIRST_TRUMP_REVERSE
            elif KEEP < action < REVERSE:
                self._trump = action - FIRST_TRUMP
            self._phase = "play"
            return NOTHING
        if self._phase == "open":
            if action == OPEN:
                return self._open()
            self._declined += 1
            self.actor = (self.actor + 1) % self._seats
            return NOTHING
        if self._phase == "name":
            self._trump = action - FIRST_NAME
            return self._use_stock()
        self._discarded = action - FIRST_DISCARD
        self._hands[self.actor][_SUIT[self._discarded]] ^= _BIT[self._discarded]
        self._begin_play()
        return NOTHING

    def _open(self) -> tuple[Fact, ...]:
        """Turns up the top card of the stock (R5)."""
        self._opener = self.actor
        self._opened = self._stock[0]
        self._stock = self._stock[1:]
        self._pick_up(self._taker(), (self._opened,))
        shown = CardShown(self._opened, self._taker())
        if self._opened >= FIRST_JOKER:
            self._phase = "name"
            return (shown,)
        self._trump = _SUIT[self._opened]
        return (shown, *self._use_stock())

    def _taker(self) -> int:
        """Returns who takes the opened card into his hand (R5)."""
        return self.dealer if self._options["opened_to"] == "dealer" else self._opener

    def _use_stock(self) -> tuple[Fact, ...]:
        """Deals the stock out, or asks the taker of the opened card for his discard (R6)."""
        taker = self._taker()
        if self._options["stock"] == "exchange":
            self._phase = "discard"
            self.actor = taker
            return NOTHING
        # The taker's hand is one card ahead, so that it is full, and is passed, in the last round only.
        seats, stock = self._seats, self._stock
        last_round = (self._size - HAND - 1) * seats
        dealt: list[tuple[int, ...]] = [()] * seats
        for step, seat in enumerate(clockwise(self.dealer + 1, seats)):
            dealt[seat] = stock[step:last_round:seats]
        stock = stock[last_round:]
        for seat in clockwise(self.dealer + 1, seats):
            if seat != taker:
                dealt[seat] += stock[:1]
                stock = stock[1:]
            self._pick_up(seat, dealt[seat])
        self._stock = stock
        self._begin_play()
        return (CardsDealt(tuple(dealt), stock),)

    def _begin_play(self) -> None:
        self._phase = "play"
        self.actor = self.dealer  # R7
        if self._options["first_change"] == "not_leader":
            self._king = self.dealer

    def _take(self) -> tuple[Fact, ...]:
        """Gives a complete trick to its strongest card (R9) and, after the last of a deal, scores it."""
        seat = self._winner
        taken = TrickTaken(seat, tuple(self._trick))
        self._tricks.append((taken, self._trump, self._reversed))
        self._taken[seat] += 1
        if len(self._tricks) == self._size:
            return taken, self._end_deal(self._scores())
        if seat != self._king:
            self._phase = "change"
        self._king = self.actor = seat
        self._trick = []
        self._suit = _NO_SUIT
        return (taken,)

    def _scores(self) -> list[int]:
        """Scores a complete deal and settles the pot (R11, R12)."""
        claims = self._taken
        if self._options["pairs"]:
            count = max if self._options["pair_score"] == "player" else sum
            claims = [count([claims[seat] for seat in side]) for side in self._sides]
        most = max(claims)
        tied = [side for side, claim in enumerate(claims) if claim == most]
        if len(tied) > 1:
            lead = max([self._totals[side] for side in tied])
            tied = [side for side in tied if self._totals[side] == lead]
        scores = [0] * len(claims)
        if len(tied) == 1:
            scores[tied[0]] = most + self._pot
            self._pot = 0
        elif self._options["tie"] == "carry":
            self._pot += most
        else:
            for side in tied:
                scores[side] = most if self._options["tie"] == "each" else most // len(tied)
        return scores

    def _end_deal(self, scores: Sequence[int], *, voided: bool = False) -> DealScored:
        """Books a deal and passes the cards to the next dealer, or ends the match (R4, R13)."""
        deal = RegicideDeal(self.dealer, tuple(self._taken), tuple(scores), self._pot)
        self._totals = added(self._totals, scores)
        self._deals = (*self._deals[1 - _HISTORY :], deal)
        details = {"tricks": list(deal.tricks), "pot": deal.pot}
        scored = DealScored(self.deal_number, deal.dealer, deal.scores, self._totals, details, voided)
        if max(self._totals) >= int(self._options["target"]) or self.deal_number + 1 == self._options["max_deals"]:
            self.actor = OVER
            self._clear("over")
        else:
            self.actor = CHANCE
            self.deal_number += 1
            self.dealer = (self.dealer + 1) % self._seats
            self._clear("deal")
        return scored

    def forced(self) -> bool:
        """Tells whether the table can tell that one action is legal (section Forced actions of the rules).

        That is the dealer's opening after all have declined, and the last card of a hand.
        """
        if self._phase == "play":
            return len(self._tricks) == self._size - 1
        return self._phase == "open" and self._declined == self._seats

    def void_deal(self) -> tuple[Fact, ...]:
        """Cuts the deal in play short; the pot stays as it is."""
        return (self._end_deal([0] * len(self._totals), voided=True),)

    def view(self, viewer: int) -> RegicideView:
        """Returns what a seat, or `PUBLIC`, may see."""
        leader = self._seen[-1].taker if self._seen else self.dealer
        for (taker, cards), trump, reverse in self._tricks[len(self._seen) :]:
            self._seen += (Trick(leader, _texts(cards), taker, SUITS[trump], reverse),)
            leader = taker
        trick = None
        if self._phase in ("play", "change"):
            trick = Trick(leader, _texts(self._trick), -1, SUITS[self._trump], self._reversed)
        own_discard = self._discarded >= 0 and viewer == self._taker()
        return RegicideView(
            seat=viewer,
            options=self._options,
            phase=self._phase,
            deal=self.deal_number,
            dealer=self.dealer,
            opener=self._opener,
            opened=CARDS[self._opened] if self._opened >= 0 else "",
            trump=SUITS[self._trump] if self._trump >= 0 else "",
            reversed=self._reversed,
            hand=_texts(_cards(self._hands[viewer])) if viewer >= 0 else (),
            hand_counts=tuple([sum(map(int.bit_count, hand)) for hand in self._hands]),
            stock_count=len(self._stock),
            discard=CARDS[self._discarded] if own_discard else "",
            trick=trick,
            tricks=self._seen,
            tricks_taken=tuple(self._taken),
            totals=self._totals,
            pot=self._pot,
            deals=self._deals,
        )

    def totals(self) -> tuple[int, ...]:
        """Returns the points of the match so far, by side."""
        return self._totals

    def places(self) -> tuple[int, ...]:
        """Returns the place of each side; the highest total wins (R13)."""
        return rank_places(self._totals, lowest_wins=False)

    def copy(self) -> RegicideState:
        """Returns an independent copy."""
        twin = object.__new__(type(self))
        twin.actor = self.actor
        twin.deal_number = self.deal_number
        twin.dealer = self.dealer
        twin._options = self._options
        twin._sides = self._sides
        twin._leads = self._leads
        twin._seats = self._seats
        twin._size = self._size
        twin._totals = self._totals
        twin._pot = self._pot
        twin._deals = self._deals
        twin._phase = self._phase
        twin._hands = [hand[:] for hand in self._hands]
        twin._stock = self._stock
        twin._declined = self._declined
        twin._opener = self._opener
        twin._opened = self._opened
        twin._discarded = self._discarded
        twin._trump = self._trump
        twin._reversed = self._reversed
        twin._king = self._king
        twin._suit = self._suit
        twin._jokers_follow = self._jokers_follow
        twin._power = self._power
        twin._best = self._best
        twin._winner = self._winner
        twin._trick = self._trick[:]
        twin._tricks = self._tricks[:]
        twin._seen = self._seen
        twin._taken = self._taken[:]
        return twin


def _cards(hand: Sequence[int]) -> tuple[int, ...]:
    """Returns the cards of a hand in canonical order."""
    clubs, diamonds, hearts, spades, jokers = hand
    return _C[clubs] + _D[diamonds] + _H[hearts] + _S[spades] + _X[jokers]


def _texts(cards: Sequence[int]) -> tuple[str, ...]:
    return tuple(map(CARDS.__getitem__, cards))


def _sides(options: Options) -> tuple[tuple[int, ...], ...]:
    """Returns the seats of each side (R2)."""
    if options["pairs"]:
        return ((0, 2), (1, 3))
    return tuple((seat,) for seat in range(int(options["players"])))


class Regicide(Game):
    """Regicide, for two to four players or two pairs (R2)."""

    name: ClassVar[str] = "regicide"
    title: ClassVar[str] = "Regicide"
    options: ClassVar[tuple[Option, ...]] = (
        Option("players", 2, "How many play (R2).", low=2, high=4),
        Option("pairs", False, "Whether seats 0 and 2 play against 1 and 3; with four players only (R2)."),
        Option("opened_to", "opener", "Who takes the opened card (R5).", ("opener", "dealer")),
        Option(
            "stock", "deal_out", "Whether the stock is dealt out or serves one exchange (R6).", ("deal_out", "exchange")
        ),
        Option("joker", "when_void", "How jokers follow (R8).", ("when_void", "any_time", "as_trump")),
        Option("change", "one", "Whether trumps or rank order may change, or both at once (R10).", ("one", "both")),
        Option(
            "first_change",
            "any",
            "Whether the dealer may change after a first trick that he took (R10).",
            ("any", "not_leader"),
        ),
        Option("pair_score", "pair", "Whose tricks count in pairs (R11).", ("pair", "player")),
        Option(
            "tie",
            "carry",
            "What happens to points that nobody has the better claim to (R12).",
            ("carry", "each", "split"),
        ),
        Option("target", 50, "The total that ends the match (R13).", low=1, high=1_000_000),
        Option("max_deals", 500, "After how many deals a match ends in any case (R13).", low=1, high=1_000_000),
    )
    texts: ClassVar[tuple[str, ...]] = TEXTS
    pack: ClassVar[tuple[int, ...]] = tuple(range(42))
    lowest_wins: ClassVar[bool] = False

    def check(self, options: Options) -> None:
        """Refuses pairs without four players, and a way to score pairs without pairs (R2, R11)."""
        if options["pairs"] and options["players"] != 4:
            raise OptionError("pairs", f"option pairs needs players=4, not {options['players']}")
        if options["pair_score"] != "pair" and not options["pairs"]:
            raise OptionError("pair_score", "option pair_score needs pairs=true")

    def seats(self, options: Options) -> int:
        """Returns the number of players (R2)."""
        return int(options["players"])

    def sides(self, options: Options) -> tuple[tuple[int, ...], ...]:
        """Returns one side a seat, or the two pairs (R2)."""
        return _sides(options)

    def start(self, options: Options, first_dealer: int) -> RegicideState:
        """Returns a new match, before its first deal."""
        return RegicideState(options, first_dealer)

    def public_text(self, action: int) -> str:
        """Returns the text of an action as the other seats see it: of a discard not the card (R6)."""
        return "discard" if FIRST_DISCARD <= action < KEEP else self.texts[action]
