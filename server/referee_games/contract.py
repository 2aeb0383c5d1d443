"""What a game has to answer: who acts, what is legal, what follows, what each seat sees, what the result is.

A *game* is a value without state (`Game`); a match of it is a mutable `State`. Inside, cards and actions are small
integers, numbered so that ascending order is the canonical order of the rules; their text notation lives at the edge
(`Game.texts`). Chance is a player: whenever cards must be dealt, `State.actor` is `CHANCE` and the caller hands in a
shuffled pack. Nothing in a game reads a clock, a file or a random generator, so equal calls give equal states.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeAlias

CHANCE = -1
"""Value of `State.actor` while a pack has to be dealt."""
OVER = -2
"""Value of `State.actor` once the match has a result."""
PUBLIC = -1
"""The viewer that holds no seat: sees what is open to all."""

OptionValue: TypeAlias = "str | int | bool"
Options: TypeAlias = Mapping[str, OptionValue]


class OptionError(ValueError):
    """An option of a game is unknown, out of range, or senseless beside the others.

    Attributes:
        name: the option at fault.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a game.

    Attributes:
        name: its key, in lower case.
        default: the value in force when the host says nothing.
        choices: the values a text option can have; empty for the other kinds.
        low: the least value of a number, inclusive.
        high: the greatest value of a number, inclusive.
        doc: one sentence on what it changes, with the clause of the rules.
    """

    name: str
    default: OptionValue
    doc: str
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0

    def parse(self, value: object) -> OptionValue:
        """Returns `value` (of this option's type, or text as typed on a command line) checked against the range.

        Raises:
            OptionError: the value is of another type or out of range.
        """
        if isinstance(self.default, bool):
            if isinstance(value, bool):
                return value
            if value in ("true", "false"):
                return value == "true"
            raise OptionError(self.name, f"option {self.name} is true or false, not {shown(value)}")
        if isinstance(self.default, int):
            number = value
            if isinstance(value, str) and len(value) <= 12 and value.isascii() and value.removeprefix("-").isdigit():
                number = int(value)
            if not isinstance(number, int) or isinstance(number, bool) or not self.low <= number <= self.high:
                message = f"option {self.name} is a whole number from {self.low} to {self.high}, not {shown(value)}"
                raise OptionError(self.name, message)
            return number
        if not isinstance(value, str) or value not in self.choices:
            raise OptionError(self.name, f"option {self.name} is one of {', '.join(self.choices)}, not {shown(value)}")
        return value


def shown(value: object) -> str:
    """Returns foreign text in a form that is safe to print: ASCII, quoted, at most 40 characters of it."""
    text = ascii(value)
    return text if len(text) <= 42 else text[:40] + "…"


# Facts: what an action or a deal brought about, beyond the action itself. Frozen, complete, in the past tense.


class CardsDealt(NamedTuple):
    """Cards went from the pack into hands.

    Attributes:
        hands: by seat, the cards that were added, in the order dealt. Each is its owner's secret.
        stock: the cards that stay face down, the top one first. Nobody's to see.
    """

    hands: tuple[tuple[int, ...], ...]
    stock: tuple[int, ...]


class CardShown(NamedTuple):
    """A card was turned up before everybody and went into a hand.

    Attributes:
        card: the card.
        seat: whose hand it went into.
    """

    card: int
    seat: int


class TrickTaken(NamedTuple):
    """A trick was completed and taken.

    Attributes:
        seat: who took it.
        cards: its cards in the order played.
    """

    seat: int
    cards: tuple[int, ...]


class DealScored(NamedTuple):
    """A deal ended.

    Attributes:
        deal: its number, from 0.
        dealer: the seat that dealt it.
        scores: points of this deal by side.
        totals: points of the match so far, this deal included, by side.
        details: what else the game tells of a deal, as JSON-able values: `contract`, `tricks`, `pot` and the like.
        voided: whether the deal was cut short and scored nothing.
    """

    deal: int
    dealer: int
    scores: tuple[int, ...]
    totals: tuple[int, ...]
    details: Mapping[str, Any]
    voided: bool = False


Fact: TypeAlias = CardsDealt | CardShown | TrickTaken | DealScored


@dataclass(frozen=True, slots=True)
class GenericView:
    """The view of a game that brings no typed view of its own.

    Attributes:
        text: the view as people read it.
        data: the view as programs read it, in a form the game documents.
    """

    text: str
    data: bytes = b""


class State(ABC):
    """One match of one game, from before the first deal to the result.

    Laws, checked for every registered game by the conformance kit:
    `legal()` is never empty while a seat acts, ascending and without repeats; `apply` takes any of it and nothing
    else is ever passed to it; a state and its `copy` never influence each other; the view of a seat does not depend
    on what that seat cannot know; every match ends.
    """

    __slots__ = ()

    actor: int
    """The seat that acts, or `CHANCE`, or `OVER`."""
    deal_number: int
    """Number of the deal in play, from 0; while `actor` is `CHANCE`, of the deal about to be dealt; once `OVER`, of the
    last."""
    dealer: int
    """The seat that deals it, or dealt it."""

    @abstractmethod
    def deal(self, pack: Sequence[int]) -> tuple[Fact, ...]:
        """Deals a shuffled pack. To be called when `actor` is `CHANCE`, with every card of `Game.pack` once."""

    @abstractmethod
    def legal(self) -> Sequence[int]:
        """Returns the legal actions of the seat that acts, in canonical order."""

    @abstractmethod
    def apply(self, action: int) -> tuple[Fact, ...]:
        """Plays one of the legal actions and returns what it brought about. Does not check legality again."""

    @abstractmethod
    def forced(self) -> bool:
        """Tells whether everybody at the table can tell that the seat that acts has one legal action only."""

    @abstractmethod
    def void_deal(self) -> tuple[Fact, ...]:
        """Cuts the deal in play short: it scores nothing and counts as dealt. To be called while a seat acts."""

    @abstractmethod
    def view(self, viewer: int) -> Any:
        """Returns what a seat, or `PUBLIC`, may see: the deal in play in full, earlier deals as scores."""

    @abstractmethod
    def totals(self) -> tuple[int, ...]:
        """Returns the points of the match so far, by side."""

    @abstractmethod
    def places(self) -> tuple[int, ...]:
        """Returns the place of each side by the totals, from 1; equal totals share a place (1, 2, 2, 4)."""

    @abstractmethod
    def copy(self) -> State:
        """Returns an independent copy."""


class Game(ABC):
    """A game: its name, cards, options and notation, and the way to start a match."""

    name: ClassVar[str]
    """Key of the game, in lower case."""
    title: ClassVar[str]
    """Name of the game as people write it."""
    options: ClassVar[tuple[Option, ...]]
    """Every option, in the order of the rules."""
    texts: ClassVar[tuple[str, ...]]
    """The text of every action, indexed by its number. Cards come first, in canonical order."""
    pack: ClassVar[tuple[int, ...]]
    """The cards, in canonical order."""
    lowest_wins: ClassVar[bool]
    """Whether the lowest total wins."""

    @abstractmethod
    def seats(self, options: Options) -> int:
        """Returns the number of seats."""

    @abstractmethod
    def sides(self, options: Options) -> tuple[tuple[int, ...], ...]:
        """Returns the seats of each side; results are by side."""

    @abstractmethod
    def start(self, options: Options, first_dealer: int) -> State:
        """Returns a new match. `options` come from `configure`; `first_dealer` is a seat."""

    def check(self, options: Options) -> None:
        """Refuses senseless combinations of options.

        Raises:
            OptionError: naming one of the options at fault.
        """
        del options

    def configure(self, given: Mapping[str, object]) -> dict[str, OptionValue]:
        """Returns a value for every option: those given, checked, and the defaults.

        Args:
            given: values of their own type, or text as typed on a command line.

        Raises:
            OptionError: an unknown option, a value out of range, or a senseless combination.
        """
        known = {option.name: option for option in self.options}
        for name in given:
            if name not in known:
                raise OptionError(name, f"{self.name} has no option {shown(name)}; it has {', '.join(known) or 'none'}")
        full = {name: option.parse(given.get(name, option.default)) for name, option in known.items()}
        self.check(full)
        return full

    def public_text(self, action: int) -> str:
        """Returns the text of an action as the other seats see it; shorter where part of it is its owner's secret."""
        return self.texts[action]

    def number(self, text: str) -> int | None:
        """Returns the number of an action given as text, or None if this game has no such action."""
        return self._numbers.get(text)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {text: number for number, text in enumerate(self.texts)}


def rank_places(totals: Sequence[int], *, lowest_wins: bool) -> tuple[int, ...]:
    """Returns competition places for totals: equal totals share a place and the next is skipped (1, 2, 2, 4)."""
    if lowest_wins:
        return tuple(1 + sum(other < mine for other in totals) for mine in totals)
    return tuple(1 + sum(other > mine for other in totals) for mine in totals)


@dataclass(frozen=True, slots=True)
class Decision:
    """A question to one seat.

    Attributes:
        match_id: the match.
        game: key of the game.
        seat: the seat that is asked.
        number: number of the decision, dense per match and seat, from 0.
        view: everything the seat may see; a stateless bot needs nothing else. Its type belongs to the game.
        legal: the legal actions, as text, in canonical order.
        allowance_us: time this decision may take before the bank is used, in microseconds; 0 when untimed.
        bank_us: what is left of the time bank of the match, in microseconds.
        last_think_us: what the seat's last decision was charged, in microseconds.
        last_transit_us: what of it was credited to the way to the agent and back, in microseconds.
        last_lateness_us: by how much the referee itself was late then, in microseconds.
    """

    match_id: str
    game: str
    seat: int
    number: int
    view: Any
    legal: tuple[str, ...]
    allowance_us: int = 0
    bank_us: int = 0
    last_think_us: int = 0
    last_transit_us: int = 0
    last_lateness_us: int = 0
