"""How the deals of each game are told: what `transcript` leaves to the game.

A teller takes the events of one deal in order and gives lines back. It may hold a line back until it is complete (a
trick, a round), and gives up what it holds when it is asked to `rest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from referee.v1 import event_pb2
from referee_games.contract import Game

LABEL: Final = 12
"""Width of the column with what a line is about."""
HIDDEN: Final = "?"
"""A card that who is told does not see."""
_CELL: Final = 9
_SUBSTITUTES: Final = (event_pb2.ACTION_SOURCE_SUBSTITUTE, event_pb2.ACTION_SOURCE_SUBSTITUTE_BOT)

Lines: TypeAlias = list[str]


def row(label: str, text: str) -> str:
    """Returns a line with a label."""
    return f"  {label:{LABEL}}{text}".rstrip()


class Teller:
    """Tells a deal of any game: its cards, then one action a line.

    Args:
        game: the game.
        names: what the seats are called.
        dealer: the seat that deals.
    """

    legend = "! was played for the seat by the referee"

    def __init__(self, game: Game, names: Sequence[str], dealer: int) -> None:
        self._game = game
        self._names = names
        self._dealer = dealer
        self._hands: list[list[str]] = [[] for _ in names]
        self._begun = False

    def dealt(self, event: event_pb2.CardsDealt) -> Lines:
        """Tells what was dealt: the hands as they are now, and the stock."""
        for hand in event.hands:
            self._hands[hand.seat] += hand.cards or [HIDDEN] * hand.count
        lines = self._held("dealt out" if self._begun else "hands")
        self._begun = True
        if event.stock:
            lines += [row("stock" if number == 0 else "", part) for number, part in enumerate(_wrapped(event.stock))]
        elif event.stock_count:
            lines.append(row("stock", f"{event.stock_count} hidden"))
        return lines

    def applied(self, event: event_pb2.ActionApplied) -> Lines:
        """Tells an action."""
        return [row("", f"{self._names[event.seat]}  {_marked(event.action, event)}")]

    def shown(self, event: event_pb2.CardShown) -> Lines:
        """Tells of a card that was turned up."""
        self._hands[event.seat].append(event.card)
        return [row("turned up", f"{event.card}, taken by {self._names[event.seat]}")]

    def taken(self, event: event_pb2.TrickTaken) -> Lines:
        """Tells of a trick that is complete."""
        return [row("", f"{' '.join(event.cards)}  -> {self._names[event.seat]}")]

    def settle(self) -> Lines:
        """Gives up the line it holds if that is complete, because something else is to be told after it."""
        return []

    def rest(self) -> Lines:
        """Gives up the line it holds, complete or not."""
        return []

    def _suit(self, card: str) -> str:
        return ""

    def _held(self, label: str) -> Lines:
        """Tells all hands, a column a suit; of a hand that is hidden, how many cards it has."""
        rank = {text: number for number, text in enumerate(self._game.texts)}
        seen = [sorted(filter(HIDDEN.__ne__, hand), key=lambda card: rank.get(card, 0)) for hand in self._hands]
        hidden = [hand.count(HIDDEN) for hand in self._hands]
        suits = list(dict.fromkeys(self._suit(self._game.texts[card]) for card in self._game.pack))
        parts = [[" ".join(card for card in hand if self._suit(card) == suit) for suit in suits] for hand in seen]
        # What is seen of a hidden hand is no hand, and has no columns.
        whole = [part for part, count in zip(parts, hidden, strict=True) if not count]
        widths = [max((len(part[column]) for part in whole), default=0) for column in range(len(suits))]
        told = [
            "   ".join(map(str.ljust, parts[seat], widths)) if not count else " ".join([*seen[seat], f"{count} hidden"])
            for seat, count in enumerate(hidden)
        ]
        longest = max(len(name) for name in self._names)
        return [
            row(label if seat == 0 else "", f"{self._names[seat]:{longest}}   {cards}")
            for seat, cards in enumerate(told)
        ]


def _wrapped(cards: Sequence[str], size: int = 24) -> list[str]:
    return [" ".join(cards[start : start + size]) for start in range(0, len(cards), size)]


def _marked(text: str, event: event_pb2.ActionApplied) -> str:
    return f"{text}!" if event.source in _SUBSTITUTES else text


def _cells(cells: Sequence[str]) -> str:
    return "".join(cell.ljust(_CELL) for cell in cells)


class _Tricks(Teller):
    """What the two games share: hands in suits, and a trick a line."""

    legend = "* takes the trick   ! was played for the seat by the referee"

    def __init__(self, game: Game, names: Sequence[str], dealer: int) -> None:
        super().__init__(game, names, dealer)
        self._leader = dealer
        self._cards: list[str] = []
        self._count = 0

    def _suit(self, card: str) -> str:
        return "X" if card.startswith("X") else card[1]

    def _play(self, event: event_pb2.ActionApplied) -> None:
        if not self._cards:
            self._leader = event.seat
        self._cards.append(_marked(event.action, event))

    def _trick(self, taker: int | None, note: str = "") -> str:
        """Returns the line of the trick that lies on the table, and clears it away."""
        self._count += 1
        seats = len(self._names)
        cells = []
        for place, card in enumerate(self._cards):
            seat = (self._leader + place) % seats
            cells.append(f"{seat} {card}{'*' if seat == taker else ''}")
        self._cards = []
        cells += [""] * (seats - len(cells))
        end = f"-> {self._names[taker]}" if taker is not None else "(not completed)"
        return row(f"trick {self._count:2}", f"{note}{_cells(cells)}{end}")

    def taken(self, event: event_pb2.TrickTaken) -> Lines:
        """Tells the trick, each card with its seat."""
        return [self._trick(event.seat)]

    def rest(self) -> Lines:
        """Gives up the trick."""
        return [self._trick(None)] if self._cards else []


class GuillotineTeller(_Tricks):
    """Tells a deal of Guillotine: tricks, or the rounds of domino."""

    def __init__(self, game: Game, names: Sequence[str], dealer: int) -> None:
        super().__init__(game, names, dealer)
        self._domino = False
        self._turns: list[tuple[int, list[str]]] = []  # of this round: places after the dealer, and what was laid

    def applied(self, event: event_pb2.ActionApplied) -> Lines:
        """Tells the contract; a card waits for its trick or its round."""
        if event.action.startswith("contract:"):
            contract = event.action.removeprefix("contract:")
            self._domino = contract == "domino"
            return [row("contract", _marked(contract, event))]
        if not self._domino:
            self._play(event)
            return []
        place = (event.seat - self._dealer) % len(self._names)
        lines: Lines = []
        if self._turns and place < self._turns[-1][0]:
            lines = self.rest()
        if not self._turns or place != self._turns[-1][0]:
            self._turns.append((place, []))
        self._turns[-1][1].append(_marked(event.action, event))
        return lines

    def rest(self) -> Lines:
        """Gives up the round, or the trick."""
        if not self._turns:
            return super().rest()
        cells = [""] * len(self._names)
        for place, laid in self._turns:
            cells[place] = f"{(self._dealer + place) % len(self._names)} {' '.join(laid)}"
        self._turns = []
        self._count += 1
        return [row(f"round {self._count:2}", _cells([cell + "   " if len(cell) >= _CELL else cell for cell in cells]))]


class RegicideTeller(_Tricks):
    """Tells a deal of Regicide: the opening, and the tricks with trumps and order in force."""

    def __init__(self, game: Game, names: Sequence[str], dealer: int) -> None:
        super().__init__(game, names, dealer)
        self._opening: list[str] = []
        self._trump = ""
        self._reversed = False
        self._king = -1  # who took the last trick
        self._last = ""  # the line of the last trick, to which what the new king does is added

    def applied(self, event: event_pb2.ActionApplied) -> Lines:
        """Tells what the new king does behind his trick; a card waits for its trick."""
        word, _, rest = event.action.partition(":")
        match word:
            case "open" | "decline":
                self._opening.append(_marked(f"{self._names[event.seat]} {word}s", event))
                return []
            case "name":
                self._trump = rest
                self._opening.append(_marked(f"{self._names[event.seat]} names {rest} trumps", event))
                return self.rest()
            case "discard":
                self._discard(event.seat, rest)
                card = rest or "a card"
                return [row("discard", f"{self._names[event.seat]} {_marked(card, event)}"), *self._held("hands")]
            case "keep" | "trump" | "reverse":
                return self._change(event)
            case _:
                lines = [] if self._cards else self.rest()
                self._play(event)
                return lines

    def _discard(self, seat: int, card: str) -> None:
        if card:
            self._hands[seat].remove(card)
        else:  # nobody knows any more whether a card that was turned up is still there
            self._hands[seat] = [HIDDEN] * (len(self._hands[seat]) - 1)

    def _change(self, event: event_pb2.ActionApplied) -> Lines:
        told = []
        if event.action.startswith("trump:"):
            self._trump = event.action[6]
            told.append(f"makes {self._trump} trumps")
        if event.action.endswith("reverse"):
            self._reversed = not self._reversed
            told.append("reverses the ranks" if self._reversed else "puts the ranks back in order")
        text = _marked(" and ".join(told) or "keeps", event)
        if not self._last:
            return [row("new king", f"{self._names[event.seat]} {text}")]
        self._last += f", {text}"
        return self.rest()

    def shown(self, event: event_pb2.CardShown) -> Lines:
        """Tells the opening, unless its joker still waits for a suit."""
        self._hands[event.seat].append(event.card)
        self._opening.append(f"{event.card} goes to {self._names[event.seat]}")
        if event.card.startswith("X"):
            return []
        self._trump = event.card[1]
        self._opening.append(f"{self._trump} is trumps")
        return self.rest()

    def taken(self, event: event_pb2.TrickTaken) -> Lines:
        """Tells the trick; that of a new king is held back until it is known what he does."""
        order = f"{self._trump} reversed" if self._reversed else self._trump
        line = self._trick(event.seat, f"{order:13}")
        if event.seat == self._king:
            return [line]
        self._king, self._last = event.seat, line
        return []

    def settle(self) -> Lines:
        """Gives up a complete trick."""
        return self.rest() if self._last else []

    def rest(self) -> Lines:
        """Gives up the opening and the trick."""
        lines = [row("opening", ", ".join(self._opening))] if self._opening else []
        lines += [self._last] if self._last else super().rest()
        self._opening, self._last = [], ""
        return lines


TELLERS: Final[dict[str, type[Teller]]] = {
    "guillotine": GuillotineTeller,
    "regicide": RegicideTeller,
}
"""By game; any other is told by `Teller` itself."""
