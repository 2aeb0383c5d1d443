"""Tables played by another process, with a journal of its own: the seam, and that nothing assumes one disk."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

import pytest

from director.kit import Club, cup
from referee_server.cli.verify_cup import verify_tournaments
from referee_server.director.executor import Entry, ExecutorError, Offer, Order, Played, Player
from referee_server.director.local import LocalExecutor
from referee_server.journal import pack
from referee_server.match.verify import parse, verify
from referee_server.tournament.table import lines_of


class Elsewhere:
    """An executor whose tables are played in another hall; what goes there and back goes as bytes."""

    def __init__(self) -> None:
        self.club = Club()
        self.orders = 0
        self.spoil = b""
        self._local = LocalExecutor(self.club.hall)

    async def prepare(self, players: Sequence[Player], offer: Offer | None) -> tuple[Entry, ...]:
        return await self._local.prepare(players, offer)

    async def play(self, batch: Sequence[Order]) -> AsyncGenerator[Played, None]:
        self.orders += len(batch)
        async for played in self._local.play(pickle.loads(pickle.dumps(tuple(batch)))):
            match_id = played.outcome.match_id
            log = self.spoil or pack(match_id, self.club.journal.read(match_id))
            yield pickle.loads(pickle.dumps(replace(played, log=log)))

    async def cancel(self, match_ids: Sequence[str]) -> None:
        await self._local.cancel(match_ids)

    async def close(self) -> None:
        await self._local.close()


@pytest.mark.parametrize("mode", ["none", "rotation"])
async def test_it_ends_like_one_that_was_played_here_and_all_of_it_verifies(mode: str) -> None:
    toml = cup("random", "first", "greedy", format="sets = 2", duplicate=f'mode = "{mode}"')
    here, elsewhere = Club(), Elsewhere()
    there = Club(make=lambda book: elsewhere)
    mine, theirs = await here.play(toml), await there.play(toml)
    assert lines_of(theirs) == lines_of(mine)
    assert [outcome.match_id for outcome in theirs.counted] == [outcome.match_id for outcome in mine.counted]
    for outcome in theirs.counted:
        report = verify(parse(there.journal.read(outcome.match_id)))
        assert report.ended
        assert not report.sealed
    (row,) = verify_tournaments(there.journal)
    assert row["outcome"] == "verified"
    for club in (here, there, elsewhere.club):
        await club.close()


async def test_the_journal_of_the_tournament_keeps_every_log() -> None:
    elsewhere = Elsewhere()
    there = Club(make=lambda book: elsewhere)
    book = await there.play(cup("random", "first"))
    kept = {row.match_id: row.final for row in there.journal.matches()}
    assert kept == dict.fromkeys((outcome.match_id for outcome in book.counted), True)
    await there.close()
    await elsewhere.club.close()


async def test_a_result_that_comes_twice_or_late_counts_once() -> None:
    elsewhere = Elsewhere()
    there = Club(make=lambda book: elsewhere)
    toml = cup("random", "first", "greedy")
    tournament_id = await there.tournaments.create(toml)
    director = there.tournaments.start(tournament_id)
    two = asyncio.Event()
    director.on_change = lambda: two.set() if len(director.book.outcomes) >= 2 else None
    await asyncio.wait_for(two.wait(), 10)
    await there.tournaments.close()
    # The next director orders again what it has no result of; the other side has played some of it already.
    later = Club(there.journal, make=lambda book: elsewhere)
    elsewhere._local = LocalExecutor(elsewhere.club.hall)
    later.tournaments.start(tournament_id)
    await asyncio.wait_for(later.tournaments.wait(tournament_id), 10)
    book = later.tournaments.book(tournament_id)
    assert len(book.counted) == len({outcome.match_id for outcome in book.counted}) == 6
    assert len(elsewhere.club.journal.matches()) == 6
    (row,) = verify_tournaments(there.journal)
    assert row["outcome"] == "verified"
    for club in (there, later, elsewhere.club):
        await club.close()


async def test_a_log_that_is_not_that_of_the_table_stops_the_run_in_words() -> None:
    elsewhere = Elsewhere()
    other = Club()
    book = await other.play(cup("first", "random", seed="ab" * 32))
    match_id = book.counted[0].match_id
    elsewhere.spoil = pack(match_id, other.journal.read(match_id))
    there = Club(make=lambda book: elsewhere)
    tournament_id = await there.tournaments.create(cup("random", "first"))
    there.tournaments.start(tournament_id)
    with pytest.raises(ExecutorError, match="came the log of another one"):
        await asyncio.wait_for(there.tournaments.wait(tournament_id), 10)
    assert there.tournaments.book(tournament_id).outcomes == {}
    for club in (other, there, elsewhere.club):
        await club.close()
