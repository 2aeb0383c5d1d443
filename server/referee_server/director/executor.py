"""The seam between a tournament and whatever plays its tables.

An order says everything that playing a table takes, as plain values that can cross to another process or machine. What
comes back is keyed by the order: tournament, board set, table, attempt. To order a table again is safe: whoever has
played it says what came of it, and whoever plays it goes on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from referee_server.tournament.model import Outcome, Table


class TableKey(NamedTuple):
    """What a table is known by.

    Attributes:
        tournament_id: the tournament.
        board: the board set.
        number: its number in the schedule.
        attempt: from 1; more where the referee failed.
    """

    tournament_id: str
    board: int
    number: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Player:
    """Who is to sit at a seat.

    Attributes:
        entrant: its number; negative for a house bot that fills a seat.
        kind: a house bot, a registered agent that connects by itself, or a program that the executor starts.
        name: the house bot, or name or id of the agent; of a program the entrant's name.
        seed: of a house bot.
    """

    entrant: int
    kind: Literal["bot", "agent", "program"]
    name: str
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Order:
    """A table to be played.

    Attributes:
        key: what it is known by.
        table: the table.
        match_id: id of the match.
        deal_id: id under which its cards are derived.
        secret: what its cards follow from.
        unsealed: whether the host gave that, or what it follows from, himself.
        held_back: whether other tables play the same cards, so that the secret is not revealed with the match's end.
        spec: the match without its seats, a serialised `MatchSpec`.
        players: who sits where, seat 0 first.
        commitment: of the tournament's master secret.
        nonces: of the entrants.
        trust_memory: whether seats may have seen the cards before.
    """

    key: TableKey
    table: Table
    match_id: str
    deal_id: str
    secret: bytes = field(repr=False)
    unsealed: bool
    held_back: bool
    spec: bytes = field(repr=False)
    players: tuple[Player, ...]
    commitment: str
    nonces: tuple[bytes, ...] = field(repr=False)
    trust_memory: bool = False


@dataclass(frozen=True, slots=True)
class Played:
    """What came of an order.

    Attributes:
        key: of the order.
        outcome: what came of the table.
        log: the match's log file, where it was played somewhere else; empty where the tournament's journal has it.
    """

    key: TableKey
    outcome: Outcome
    log: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Offer:
    """A tournament as it is told to those that may add to its shuffle.

    Attributes:
        tournament_id: its id.
        name: its name.
        game: key of the game.
        commitment: of its master secret.
    """

    tournament_id: str
    name: str
    game: str
    commitment: str


class Entry(NamedTuple):
    """What an entrant brings along.

    Attributes:
        isolation: how it is kept apart from the machine; empty for who is not the executor's to start.
        nonce: its share in the cards, 32 bytes or none.
    """

    isolation: str = ""
    nonce: bytes = b""


class ExecutorError(Exception):
    """Tables cannot be played, and it is no entrant's doing; the message says what the host can do."""


class Executor(Protocol):
    """Plays tables."""

    async def prepare(self, players: Sequence[Player], offer: Offer | None) -> tuple[Entry, ...]:
        """Gets ready for these entrants, waiting for those that connect by themselves.

        Args:
            players: the entrants.
            offer: what they are told before they may add to the cards; None where they may not, or have done so.

        Returns:
            What each brings along.

        Raises:
            ExecutorError: an entrant cannot be started as asked.
        """

    def play(self, batch: Sequence[Order]) -> AsyncGenerator[Played, None]:
        """Plays tables of one group at once, and yields what came of each as it ends.

        Raises:
            ExecutorError: the tables cannot be played.
        """

    async def cancel(self, match_ids: Sequence[str]) -> None:
        """Ends tables that are being played, without a result; those that have ended stay as they are.

        What comes of them is yielded where they were ordered.
        """

    async def close(self) -> None:
        """Gives everything back. Tables being played stay as they are, to be gone on with by the same orders."""
