"""What a report tells of a tournament's log."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from director.kit import SEED, Club, Stand, cup, settle
from referee_games import dealing
from referee_server.cli.report.of_book import report_of


@pytest.fixture
async def club() -> AsyncIterator[Club]:
    stand = Stand()
    made = Club(make=lambda book: stand)
    yield made
    await made.close()


async def test_the_master_secret_is_told_with_the_end_and_not_before(club: Club) -> None:
    tournament_id = await club.tournaments.create(cup("first", "random"))
    club.tournaments.start(tournament_id)
    await settle()
    assert report_of(club.tournaments.book(tournament_id), resamples=0).master == ""
    await club.tournaments.cancel(tournament_id)
    report = report_of(club.tournaments.book(tournament_id), resamples=0)
    assert report.master == SEED
    assert dealing.commitment(tournament_id, bytes.fromhex(report.master)) == report.commitment
