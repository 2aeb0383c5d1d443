"""Who leaves in the middle of a round, in fields that are odd before or after: points come from tables and byes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from director.kit import Club, Stand, cup, settle
from referee_server.tournament.table import lines_of

SWISS = 'kind = "swiss"\nrounds = 4'
LONG = "rounds = 150"
"""A round robin is paired some 500 tables ahead; whoever leaves at its start is out of the last of these rounds."""
TABLES_A_GROUP = 2
"""Each two play a board set in both seatings."""


@pytest.fixture
async def stand() -> Stand:
    return Stand()


@pytest.fixture
async def club(stand: Stand) -> AsyncIterator[Club]:
    made = Club(make=lambda book: stand)
    yield made
    await made.close()


@pytest.mark.parametrize("form", [SWISS, LONG], ids=["swiss", "round robin"])
@pytest.mark.parametrize("entrants", [4, 5])
@pytest.mark.parametrize("leaving", [0, 3])
async def test_the_points_of_the_standings_are_those_that_tables_and_byes_gave(
    club: Club, stand: Stand, form: str, entrants: int, leaving: int
) -> None:
    tournament_id = await club.tournaments.create(cup(*["first"] * entrants, format=form))
    director = club.tournaments.start(tournament_id)
    await settle()
    stand.end(stand.open[0])
    await settle()
    assert any(leaving in stand.orders[number].table.seats for number in stand.open)
    tables = director.book.scheduler.tables
    paired = max(table.round for table in tables)
    await director.withdraw(leaving)
    async with asyncio.timeout(60):
        while not director.book.over:
            for number in stand.open:
                stand.end(number)
            await settle()

    lines = lines_of(director.book, resamples=0)
    rounds = range(1 + max(table.round for table in tables))
    there = {number: entrants - (number > paired) for number in rounds}
    seated = {number: {one for table in tables if table.round == number for one in table.seats} for number in rounds}
    assert paired < rounds[-1]
    byes = sum(line.byes for line in lines)
    assert byes == sum(there[number] - len(seated[number]) for number in rounds) > 0
    # At a table for two there is a point; a bye is worth half of those that a group shares out to each.
    given = len(director.book.counted) + byes * TABLES_A_GROUP / 2
    assert sum(line.place_points for line in lines) == given
