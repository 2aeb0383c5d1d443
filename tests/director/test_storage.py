"""Tournaments while the storage is away, and where a table cannot be stored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from director.kit import Club, cup
from referee_server.journal import MemoryJournal, Record, StorageFullError, TournamentNoted
from referee_server.match.verify import parse, verify


class Full(MemoryJournal):
    """A journal on a disk that fills up and has space again."""

    def __init__(self, full: range) -> None:
        super().__init__()
        self.commits = 0
        self.full = full

    def commit(self, batch: Sequence[Record]) -> None:
        self.commits += 1
        if self.commits in self.full:
            raise StorageFullError("no space is left")
        super().commit(batch)


async def test_a_disk_that_is_full_for_a_while_changes_nothing_in_a_tournament() -> None:
    toml = cup("random", "first", "greedy", format="sets = 3")
    undisturbed = Club()
    whole = await undisturbed.play(toml)
    for begin in (5, 12):
        club = Club(Full(range(begin, begin + 2)))
        book = await club.play(toml)
        assert [(outcome.table, outcome.totals) for outcome in book.counted] == [
            (outcome.table, outcome.totals) for outcome in whole.counted
        ]
        assert all(verify(parse(club.journal.read(outcome.match_id))).ended for outcome in book.counted)
        await club.close()
    await undisturbed.close()


class Counting(MemoryJournal):
    """A journal that counts the facts of tournaments."""

    def __init__(self) -> None:
        super().__init__()
        self.noted = 0

    def commit(self, batch: Sequence[Record]) -> None:
        self.noted += sum(isinstance(record, TournamentNoted) for record in batch)
        super().commit(batch)


async def test_no_fact_is_stored_twice_however_many_directors_follow_each_other() -> None:
    journal = Counting()
    toml = cup("random", "first", format="sets = 2")
    first = Club(journal)
    tournament_id = await first.tournaments.create(toml)
    director = first.tournaments.start(tournament_id)
    two = asyncio.Event()
    director.on_change = lambda: two.set() if len(director.book.outcomes) == 2 else None
    await asyncio.wait_for(two.wait(), 10)
    await first.close()
    second = Club(journal)
    second.tournaments.start(tournament_id)
    await asyncio.wait_for(second.tournaments.wait(tournament_id), 10)
    log = journal.tournament_log(tournament_id)
    assert len(log) == journal.noted == len(set(log))
    await second.close()
