"""What an agent is told beside its decisions: plain frozen values, no knowledge of the protocol needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from referee_games.contract import Options


@dataclass(frozen=True, slots=True)
class SeatInfo:
    """Who sits at one seat.

    Attributes:
        seat: its number, from 0.
        kind: `agent`, `bot` or `open`.
        name: the name to show.
    """

    seat: int
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A seat in a match.

    Attributes:
        match_id: the match.
        game: key of the game.
        options: its options, defaults included.
        seat: the seat that is offered.
        seats: everybody at the table.
        allowance_ms: time for each decision before the bank is used, in milliseconds; 0 when untimed.
        bank_ms: time for the whole match on top of that, in milliseconds.
        increment_ms: added to the bank after each answer, in milliseconds.
        auto_play: `public` if the referee plays by itself what everybody can tell is forced, else `never`.
        deal_id: id under which the cards are derived; empty in duplicate play.
        commitment: SHA-256 that binds the referee's secret, lower-case hex; empty in duplicate play.
        nonce: the 32 bytes that the agent adds to the shuffle of the match, or in duplicate play to that of the whole
            tournament, for whoever wants to check it afterwards; or none.
        tournament_id: the tournament that it is a table of; empty outside one.
    """

    match_id: str
    game: str
    options: Options
    seat: int
    seats: tuple[SeatInfo, ...] = ()
    allowance_ms: int = 0
    bank_ms: int = 0
    increment_ms: int = 0
    auto_play: str = "public"
    deal_id: str = ""
    commitment: str = ""
    nonce: bytes = b""
    tournament_id: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an answer.

    Attributes:
        match_id: the match.
        number: number of the decision that was answered.
        status: `accepted`, `faulted`, `timed_out`, `already_answered` and so on, as the protocol names it.
        fault: for a faulted answer what it was ruled, such as `illegal` or `malformed`; else empty.
        action: the action on record for the decision; empty while there is none.
        strikes: strikes of the seat so far, for a faulted answer.
        asked_again: whether the same decision is put once more.
    """

    match_id: str
    number: int
    status: str
    fault: str = ""
    action: str = ""
    strikes: int = 0
    asked_again: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """One fact of a match, as the seat sees it.

    Attributes:
        number: its number in the seat's own view, from 1 without gaps.
        match_time_us: microseconds since the match was created, rounded down to 10 ms.
        kind: what happened, such as `cards_dealt`, `action_applied` or `trick_taken`; empty if this version of the
            package does not know it.
        data: the rest by name, as the protocol's `event.proto` describes it; enum values are lower-case words.
    """

    number: int
    match_time_us: int
    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """The end of a match.

    Attributes:
        match_id: the match.
        game: key of the game.
        seat: the agent's seat.
        side: the agent's side: totals and places are by side.
        reason: `completed`, `cancelled`, `not_started`, `referee_fault` or `forfeited`.
        totals: points by side; empty when there is no result.
        places: places by side by the rules of the game, from 1.
        official_places: places by side after rulings: offenders last.
        sides: side of each seat.
        faults: faults by seat.
        substitutes: decisions that the referee or a house bot had to make for an agent, by seat.
        deals: how many deals were played to their end.
        digest: SHA-256 over the whole log, lower-case hex; `referee verify --digest` checks a log against it.
    """

    match_id: str
    game: str
    seat: int
    side: int
    reason: str
    totals: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    official_places: tuple[int, ...] = ()
    sides: tuple[int, ...] = ()
    faults: tuple[int, ...] = ()
    substitutes: tuple[int, ...] = ()
    deals: int = 0
    digest: str = ""


def new_results(matches: int | None) -> deque[Result]:
    """Returns the place for the results of a run; one without an end keeps the newest thousand only."""
    return deque(maxlen=1_000 if matches is None else None)
