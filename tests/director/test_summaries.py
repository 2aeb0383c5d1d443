"""What lists show of tournaments, and what it costs."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from director.kit import Club, Stand, cup, settle
from referee.v1 import tournament_service_pb2 as pb
from referee_server.journal import MemoryJournal
from referee_server.tournament.book import Book
from referee_server.tournament.cup import Entrant
from referee_server.tournament.summary import summary_of


class Counting(MemoryJournal):
    """A journal that counts how often the log of a tournament is read."""

    reads = 0

    def tournament_log(self, tournament_id: str) -> list[bytes]:
        self.reads += 1
        return super().tournament_log(tournament_id)


@pytest.fixture
def journal() -> Counting:
    return Counting()


@pytest.fixture
async def club(journal: Counting) -> AsyncIterator[Club]:
    made = Club(journal)
    yield made
    await made.close()


def from_log(club: Club, tournament_id: str) -> pb.Tournament:
    return summary_of(Book.read(club.journal.tournament_log(tournament_id)))


def stored(club: Club, tournament_id: str) -> pb.Tournament:
    row = club.journal.tournament(tournament_id)
    assert row is not None
    assert row.summary
    return pb.Tournament.FromString(row.summary)


SWISS = 'kind = "swiss"\nrounds = 3'
KNOCKOUT = 'kind = "knockout"'


@pytest.mark.parametrize("form", ["sets = 2", SWISS, KNOCKOUT])
async def test_after_every_fact_the_summary_is_what_the_log_says(form: str) -> None:
    stand = Stand()
    club = Club(make=lambda book: stand)
    toml = cup("first", "random", "greedy", "first", format=form, running="concurrency = 2")
    tournament_id = await club.tournaments.create(toml)
    seen = [stored(club, tournament_id)]
    director = club.tournaments.start(tournament_id)

    async def look() -> None:
        await settle()
        await club.room.quiet()
        seen.append(stored(club, tournament_id))
        assert seen[-1] == from_log(club, tournament_id) == summary_of(director.book)

    await look()
    await director.go_on()
    await look()
    if form != KNOCKOUT:
        await director.enter(Entrant(name="late", bot="first"))
        await look()
    await director.withdraw(1)
    await look()
    await director.pause()
    await look()
    await director.go_on()
    while stand.open:
        stand.end(stand.open[0])
        await look()
    assert director.book.over
    assert seen[-1].state == pb.TOURNAMENT_STATE_FINISHED
    assert seen[-1].finished_table_count == seen[-1].table_count > 0
    await club.close()


async def test_listing_reads_no_log(club: Club, journal: Counting) -> None:
    ended = (await club.play(cup("first", "random", "greedy"))).tournament_id
    waiting = await club.tournaments.create(cup("first", "random", seed=None))
    journal.reads = 0
    shown = [await club.tournaments.summary(row) for row in club.tournaments.page(0, 10)]
    assert [(one.tournament_id, one.name) for one in shown] == [(waiting, "cup"), (ended, "cup")]
    assert [one.finished_table_count for one in shown] == [0, shown[1].table_count]
    assert journal.reads == 0


async def test_without_a_summary_of_the_whole_log_that_is_read_once(club: Club, journal: Counting) -> None:
    tournament_id = (await club.play(cup("first", "random", "greedy"))).tournament_id
    # As if it had been killed between the last fact and its summary.
    tournament = journal._tournaments[tournament_id]
    object.__setattr__(tournament, "summary_through", tournament.summary_through - 1)
    journal.reads = 0
    for _ in range(3):
        row = club.tournaments.row(tournament_id)
        assert await club.tournaments.summary(row) == summary_of(Book.read(list(tournament.events)))
        await club.room.quiet()
    assert journal.reads == 1


async def test_a_summary_that_is_behind_is_not_shown(club: Club, journal: Counting) -> None:
    tournament_id = await club.tournaments.create(cup("first", "random"))
    director = club.tournaments.start(tournament_id)
    late: list[bytes] = []

    def look() -> None:
        row = journal.tournament(tournament_id)
        assert row is not None
        late.append(row.summary)

    director.on_change = look  # the fact is stored, and its summary on its way
    await club.tournaments.wait(tournament_id)
    assert late
    assert not any(late)
    assert stored(club, tournament_id) == from_log(club, tournament_id)


async def test_what_was_changed_is_in_the_summary(club: Club) -> None:
    toml = cup("first", "random", seed=None)
    tournament_id = await club.tournaments.create(toml)
    await club.tournaments.change(tournament_id, toml + "\n[running]\nconcurrency = 3")
    assert stored(club, tournament_id) == from_log(club, tournament_id)
