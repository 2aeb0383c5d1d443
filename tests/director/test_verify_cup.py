"""A tournament's results are those of its matches, or it is said where they are not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from director.kit import Club, cup
from referee.v1 import tournament_pb2 as pb
from referee_server.cli.verify_cup import verify_tournaments
from referee_server.journal import MemoryJournal


@pytest.fixture
async def club() -> AsyncIterator[Club]:
    made = Club()
    yield made
    await made.close()


def row_of(club: Club) -> dict[str, Any]:
    (row,) = verify_tournaments(club.journal)
    return row


def tamper(club: Club, change: Callable[[list[pb.TournamentEvent]], object]) -> None:
    """Changes the log of the only tournament, as who writes a new one could."""
    assert isinstance(club.journal, MemoryJournal)
    (tournament,) = club.journal._tournaments.values()
    events = [pb.TournamentEvent.FromString(event) for event in tournament.events]
    change(events)
    object.__setattr__(tournament, "events", tuple(event.SerializeToString() for event in events))


def table(events: list[pb.TournamentEvent], number: int) -> pb.TableEnded:
    return next(
        event.table_ended for event in events if event.HasField("table_ended") and event.table_ended.table == number
    )


def better_place(events: list[pb.TournamentEvent]) -> None:
    table(events, 1).places[:] = [1, 1]


def other_match(events: list[pb.TournamentEvent]) -> None:
    table(events, 1).match_id = table(events, 2).match_id


def other_master(events: list[pb.TournamentEvent]) -> None:
    events[-1].tournament_ended.master_secret = bytes(32)


def a_fault_less(events: list[pb.TournamentEvent]) -> None:
    table(events, 0).faults[0].counts.add(kind=3, count=1)  # a timeout


def other_seats(events: list[pb.TournamentEvent]) -> None:
    ended = table(events, 0)
    ended.entrants[:] = reversed(ended.entrants)


def a_fact_less(events: list[pb.TournamentEvent]) -> None:
    del events[3]


async def test_a_tournament_that_was_played_verifies(club: Club) -> None:
    await club.play(cup("first", "random", "greedy"))
    row = row_of(club)
    assert row["outcome"] == "verified"
    assert row["message"] == "tournament cup, 6 tables; UNSEALED: the host gave the seed"


async def test_one_that_is_not_over_is_sealed(club: Club) -> None:
    await club.tournaments.create(cup("first", "random", seed=None))
    assert row_of(club)["outcome"] == "sealed"


@pytest.mark.parametrize("mode", ["none", "rotation"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (better_place, "table 1: the result on record is not that of match"),
        (other_match, "table 1: "),
        (other_master, "the master secret is not the one that was committed to"),
        (a_fault_less, "table 0: the result on record"),
        (other_seats, "table 0 is not one that was to be played"),
        (a_fact_less, "fact 5: it does not follow"),
    ],
)
async def test_what_was_changed_is_found_and_named(
    club: Club, change: Callable[[list[pb.TournamentEvent]], object], said: str, mode: str
) -> None:
    await club.play(cup("first", "random", "greedy", duplicate=f'mode = "{mode}"', format="sets = 2"))
    tamper(club, change)
    row = row_of(club)
    assert row["outcome"] == "refuted"
    assert said in row["message"]
