"""The words of a tournament: tables to play, what came of them, the lines of the standings.

Entrants are numbered from 0 in the order of the tournament's file. House bots that only fill seats are not entrants;
they have the numbers -1, -2, … in the order in which the file names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Table(NamedTuple):
    """One match of the schedule.

    Attributes:
        number: its place in the schedule, from 0, without gaps.
        round: its round, from 0.
        board: number of the board set that it plays, from 0. Tables of one board set hold the same cards; where play
            is not in duplicate every table has a board set of its own.
        group: which entrants meet, numbered within the round from 0; tables of one group differ in the seating.
        seats: who sits where, seat 0 first: numbers of entrants, negative for house bots that fill seats.
    """

    number: int
    round: int
    board: int
    group: int
    seats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DealOutcome:
    """What came of one deal.

    Attributes:
        deal: its number, from 0.
        dealer: the seat that dealt it.
        scores: its points, by side.
        kind: what kind of deal it was, such as the contract; empty where the game has one kind only.
        counted: whether it says something about the entrants: not cut short, and no substitute played in it.
    """

    deal: int
    dealer: int
    scores: tuple[int, ...]
    kind: str = ""
    counted: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a table.

    Attributes:
        table: the table.
        match_id: the match that was played.
        reason: how it ended: `completed`, `forfeited`, `not_started`, `cancelled` or `referee_fault`. Only the first
            two have totals and places.
        sides: the side of each seat.
        totals: points of the game by side; empty without a result.
        places: places by side after rulings, offenders last; empty without a result.
        faults: by seat, how many faults of each kind, such as `timeout` or `illegal`.
        substituted: by seat, how many decisions somebody else had to make for it.
        losses: by seat, why it was ruled last or did not start, such as `timeout: replaced`; empty for none.
        deals: its deals in order.
        digest: digest of its log when it ended, by which a log file can be checked.
        said: by seat, what there is to say of a program that failed: why it did not start, or the last it printed.
    """

    table: Table
    match_id: str
    reason: str
    sides: tuple[int, ...]
    totals: tuple[int, ...]
    places: tuple[int, ...]
    faults: tuple[Mapping[str, int], ...]
    substituted: tuple[int, ...]
    losses: tuple[str, ...]
    deals: tuple[DealOutcome, ...] = field(repr=False)
    digest: bytes = b""
    said: tuple[str, ...] = ()

    @property
    def scored(self) -> bool:
        """Whether it has a result."""
        return bool(self.places)


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with the interval that holds it with a stated confidence; both ends equal where nothing can be said.

    Attributes:
        value: the figure.
        low: lower end.
        high: upper end.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Standing:
    """One line of the standings.

    Attributes:
        entrant: its number.
        rank: from 1; equals share one.
        played: how many of its tables have a result.
        place_points: sum over its tables of how many sides it was placed before, a shared place counting half for each
            of those that share it; a bye as stated by the format.
        points: points of the game, summed; negative totals where the lowest wins, so that more is better.
        mean: place points a table, byes counting as the tables that they stand for; the standings are ordered by it.
        rating: its rating with interval, in rating points around 1500.
        byes: how often it had no table to play in a round.
        firsts: how many tables it won, a shared first place counting in parts.
        faults: faults of each kind.
        time_losses: faults of the kind `timeout`.
        losses: why it was ruled last or did not start, with the number of times.
        substituted: how many decisions somebody else had to make for it.
        withdrawn: whether it left the tournament.
    """

    entrant: int
    rank: int
    played: int
    place_points: float
    points: int
    mean: Interval
    rating: Interval
    byes: int
    firsts: float
    faults: Mapping[str, int]
    time_losses: int
    losses: Mapping[str, int]
    substituted: int
    withdrawn: bool = False
