"""What a seat sees of the two games, as plain frozen values with cards in text notation.

`seat` is the viewer, or `PUBLIC` (-1), who holds no hand. The deal in play is shown in full, earlier deals as scores.
Hands are in canonical order; everything else is in the order it happened.
"""

from __future__ import annotations

from dataclasses import dataclass

from referee_games.contract import Options


@dataclass(frozen=True, slots=True)
class Trick:
    """One trick, complete or being played.

    Attributes:
        leader: the seat that led, or leads, to it.
        cards: its cards in the order played, clockwise from the leader.
        taker: the seat that took it; -1 while it is being played.
        trump: the trump suit in force, one of C D H S; empty in games without trumps.
        reversed: whether the rank order was reversed.
    """

    leader: int
    cards: tuple[str, ...]
    taker: int = -1
    trump: str = ""
    reversed: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn's card in domino.

    Attributes:
        seat: who had the turn.
        card: the card laid; empty for a pass. A `stop` after an ace is not listed: the turn just moves on.
    """

    seat: int
    card: str


@dataclass(frozen=True, slots=True)
class GuillotineDeal:
    """An earlier deal of Guillotine.

    Attributes:
        dealer: the seat that dealt it.
        contract: its contract; empty if the deal was voided before one was announced.
        scores: points by seat.
    """

    dealer: int
    contract: str
    scores: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GuillotineView:
    """What one viewer sees of a match of Guillotine.

    Attributes:
        seat: the viewer's seat, or -1.
        options: every option of the match.
        phase: `deal` (before its cards are dealt), `contract`, `tricks`, `domino` or `over`.
        deal: number of the deal in play, from 0; once the match is over, of the last.
        dealer: the seat that deals it, or dealt it.
        contract: the contract in force; empty until announced.
        hand: the viewer's cards.
        hand_counts: how many cards each seat holds.
        trick: the trick being played (its cards may be none yet); None outside trick play.
        tricks: the complete tricks of this deal.
        turns: in domino, the turns of this deal; the first card's rank is the start rank.
        totals: points of the match so far, by seat.
        deals: the earlier deals.
    """

    seat: int
    options: Options
    phase: str
    deal: int
    dealer: int
    contract: str
    hand: tuple[str, ...]
    hand_counts: tuple[int, ...]
    trick: Trick | None
    tricks: tuple[Trick, ...]
    turns: tuple[Turn, ...]
    totals: tuple[int, ...]
    deals: tuple[GuillotineDeal, ...]


@dataclass(frozen=True, slots=True)
class RegicideDeal:
    """An earlier deal of Regicide.

    Attributes:
        dealer: the seat that dealt it.
        tricks: tricks taken, by seat.
        scores: points by side.
        pot: the pot after the deal.
    """

    dealer: int
    tricks: tuple[int, ...]
    scores: tuple[int, ...]
    pot: int


@dataclass(frozen=True, slots=True)
class RegicideView:
    """What one viewer sees of a match of Regicide.

    Attributes:
        seat: the viewer's seat, or -1.
        options: every option of the match.
        phase: `deal` (before its cards are dealt), `open` (the top card of the stock), `name` (a trump suit, after a
            joker was opened), `discard`, `change` (trumps or rank order, before a lead), `play` or `over`.
        deal: number of the deal in play, from 0; once the match is over, of the last.
        dealer: the seat that deals it, or dealt it.
        opener: the seat that opened the top card; -1 until then.
        opened: the card that was opened; empty until then.
        trump: the trump suit in force, one of C D H S; empty until there is one.
        reversed: whether the rank order is reversed.
        hand: the viewer's cards.
        hand_counts: how many cards each seat holds.
        stock_count: how many cards of the stock lie face down.
        discard: the card the viewer himself discarded; empty for everybody else.
        trick: the trick being played (its cards may be none yet); None before the first lead is due.
        tricks: the complete tricks of this deal.
        tricks_taken: tricks of this deal, by seat.
        totals: points of the match so far, by side.
        pot: points that wait for the next scorer.
        deals: the earlier deals, the latest twenty at most.
    """

    seat: int
    options: Options
    phase: str
    deal: int
    dealer: int
    opener: int
    opened: str
    trump: str
    reversed: bool
    hand: tuple[str, ...]
    hand_counts: tuple[int, ...]
    stock_count: int
    discard: str
    trick: Trick | None
    tricks: tuple[Trick, ...]
    tricks_taken: tuple[int, ...]
    totals: tuple[int, ...]
    pot: int
    deals: tuple[RegicideDeal, ...]
