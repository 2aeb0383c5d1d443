"""Tournaments played in a hall: their matches, their cards, and what goes on record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from director.kit import Club, cup, settle
from referee.v1 import match_pb2
from referee_games import dealing
from referee_server.director.executor import ExecutorError
from referee_server.match.verify import parse, verify
from referee_server.tournament.book import Book
from referee_server.tournament.table import lines_of


@pytest.fixture
async def club() -> AsyncIterator[Club]:
    made = Club()
    yield made
    await made.close()


def packs(club: Club, match_id: str) -> list[bytes]:
    events = parse(club.journal.read(match_id))
    return [event.cards_dealt.pack for event in events if event.WhichOneof("payload") == "cards_dealt"]


async def test_every_table_of_a_set_holds_the_same_cards_and_every_log_verifies(club: Club) -> None:
    book = await club.play(cup("first", "random", "greedy", format="sets = 2"))
    boards: dict[int, set[tuple[bytes, ...]]] = {}
    for outcome in book.counted:
        boards.setdefault(outcome.table.board, set()).add(tuple(packs(club, outcome.match_id)))
        report = verify(parse(club.journal.read(outcome.match_id)))
        assert report.ended
        assert not report.sealed
    assert all(len(cards) == 1 for cards in boards.values())
    assert len(set.union(*boards.values())) == len(boards) == 6


async def test_outside_of_duplicate_every_table_has_cards_of_its_own(club: Club) -> None:
    book = await club.play(cup("first", "random", "greedy", duplicate='mode = "none"', format="sets = 2"))
    assert len({tuple(packs(club, outcome.match_id)) for outcome in book.counted}) == len(book.counted) == 6


async def test_the_secrets_of_all_sets_follow_from_the_master_that_was_committed_to(club: Club) -> None:
    book = await club.play(cup("first", "random", format="sets = 3"))
    assert book.ended is not None
    master = book.ended.master_secret
    assert dealing.commitment(book.tournament_id, master) == book.created.commitment
    for outcome in book.counted:
        events = parse(club.journal.read(outcome.match_id))
        deal_id = events[0].match_created.deal_id
        assert events[-1].secret_revealed.secret == dealing.set_secret(master, deal_id)


async def test_equal_seeds_give_equal_tournaments_and_others_others(club: Club) -> None:
    toml = cup("random", "random", "greedy", format="sets = 3")
    first = await club.play(toml)
    other = Club()
    again = await other.play(toml)
    different = await other.play(cup("random", "random", "greedy", format="sets = 3", seed="ab" * 32))
    assert again.counted == first.counted
    assert lines_of(again) == lines_of(first)
    assert {outcome.match_id for outcome in different.counted} & {
        outcome.match_id for outcome in first.counted
    } == set()
    await other.close()


async def test_logs_say_which_tournament_they_belong_to_and_that_the_seed_was_given(club: Club) -> None:
    book = await club.play(cup("first", "random", duplicate="trust_memory = true"))
    created = parse(club.journal.read(book.counted[0].match_id, limit=1))[0].match_created
    assert created.unsealed
    assert created.tournament.tournament_id == book.tournament_id
    assert created.tournament.commitment == book.created.commitment
    assert created.tournament.trust_memory


async def test_a_tournament_without_a_seed_is_sealed(club: Club) -> None:
    book = await club.play(cup("first", "random", seed=None))
    assert not book.created.unsealed
    assert not parse(club.journal.read(book.counted[0].match_id, limit=1))[0].match_created.unsealed


async def test_while_a_table_of_a_set_is_to_come_none_of_its_secrets_is_out(club: Club) -> None:
    tournament_id = await club.tournaments.create(cup("first", "random", running="concurrency = 1"))
    director = club.tournaments.start(tournament_id)
    sealed = []

    def look() -> None:
        for outcome in director.book.outcomes.values():
            row = club.journal.match(outcome.match_id)
            assert row is not None
            sealed.append((len(director.book.outcomes), row.final))

    director.on_change = look
    await club.tournaments.wait(tournament_id)
    assert (1, False) in sealed
    assert all(final for count, final in sealed if count == 2 and final)
    ends = [club.journal.match(outcome.match_id) for outcome in director.book.counted]
    assert all(row is not None and row.final for row in ends)


async def test_a_remote_entrant_is_waited_for_and_plays_as_itself(club: Club) -> None:
    toml = cup("first", duplicate='mode = "none"', extra='[[entrant]]\nname = "far"\nremote = "anna"')
    tournament_id = await club.tournaments.create(toml)
    director = club.tournaments.start(tournament_id)
    await settle()
    assert director.book.state == "WAITING"
    anna = await club.room.connect("anna")
    await settle()
    assert director.book.state == "RUNNING"
    match_id = next(iter(club.hall.matches.running))
    anna.ready(match_id)
    await club.room.quiet()
    await club.room.play_out(match_id)
    await asyncio.wait_for(club.tournaments.wait(tournament_id), 10)
    row = club.journal.match(match_id)
    assert row is not None
    seats = match_pb2.Match.FromString(row.summary).seats
    assert [seat.name for seat in seats if seat.agent_id] == ["anna"]


async def test_a_tournament_can_be_cancelled_while_it_waits_for_its_entrants(club: Club) -> None:
    toml = cup("first", duplicate='mode = "none"', extra='[[entrant]]\nname = "far"\nremote = "anna"')
    tournament_id = await club.tournaments.create(toml)
    club.tournaments.start(tournament_id)
    await settle()
    await asyncio.wait_for(club.tournaments.cancel(tournament_id), 10)
    assert club.tournaments.book(tournament_id).state == "CANCELLED"


async def test_a_service_that_starts_no_programs_says_so(club: Club) -> None:
    tournament_id = await club.tournaments.create(cup("first", extra='[[entrant]]\nname = "p"\ncommand = ["./p"]'))
    club.tournaments.start(tournament_id)
    with pytest.raises(ExecutorError, match="starts no programs"):
        await club.tournaments.wait(tournament_id)


async def test_tables_at_play_when_the_referee_was_killed_are_gone_on_with(club: Club) -> None:
    toml = cup("first", duplicate='mode = "none"', extra='[[entrant]]\nname = "far"\nremote = "anna"')
    tournament_id = await club.tournaments.create(toml)
    club.tournaments.start(tournament_id)
    anna = await club.room.connect("anna")
    await settle()
    match_id = next(iter(club.hall.matches.running))
    anna.ready(match_id)
    await club.room.quiet()
    again = Club(club.journal)
    again.hall.matches.resume_all()
    again.tournaments.resume_all()
    await again.room.quiet()
    await again.room.connect("anna")
    await again.room.play_out(match_id)
    await asyncio.wait_for(again.tournaments.wait(tournament_id), 10)
    book = again.tournaments.book(tournament_id)
    assert [outcome.match_id for outcome in book.counted] == [match_id]
    assert verify(parse(again.journal.read(match_id))).ended
    await again.close()


async def test_a_match_that_was_stored_but_not_yet_in_the_tournaments_log_is_not_played_twice(club: Club) -> None:
    toml = cup("first", "random", "greedy")
    whole = Club()
    complete = await whole.play(toml)
    log = whole.journal.tournament_log(complete.tournament_id)
    # As if it had been killed after the matches ended, and before that was noted.
    short = log[:4]
    assert Book.read(short).state == "RUNNING"
    before = {row.match_id: row.event_count for row in whole.journal.matches()}
    tournament = whole.journal._tournaments[complete.tournament_id]  # type: ignore[attr-defined]
    object.__setattr__(tournament, "events", tuple(short))
    object.__setattr__(tournament.row, "state", "RUNNING")
    again = Club(whole.journal)
    again.tournaments.resume_all()
    await asyncio.wait_for(again.tournaments.wait(complete.tournament_id), 10)
    assert again.tournaments.book(complete.tournament_id).counted == complete.counted
    assert {row.match_id: row.event_count for row in again.journal.matches()} == before
    await again.close()
    await whole.close()


@pytest.mark.parametrize("mode", ["none", "rotation", "once"])
@pytest.mark.parametrize("kind", ["round_robin", "swiss", "knockout", "gauntlet", "ladder"])
async def test_every_format_is_played_to_its_end_and_its_points_add_up(club: Club, kind: str, mode: str) -> None:
    rounds = "rounds = 3" if kind == "ladder" else ""
    toml = cup(*["random"] * 5, format=f'kind = "{kind}"\n{rounds}', duplicate=f'mode = "{mode}"')
    book = await club.play(toml)
    assert book.state == "FINISHED"
    assert len(book.counted) == len(book.scheduler.tables) >= 4
    lines = lines_of(book, resamples=0)
    byes = sum(line.byes for line in lines)
    worth = {"swiss": 0.5, "ladder": 0.5}.get(kind, 0.0) * (2 if mode == "rotation" else 1)
    # A table of two gives one place point, a bye as many as its format says.
    assert sum(line.place_points for line in lines) == len(book.counted) + byes * worth
    assert sum(line.played for line in lines) == 2 * len(book.counted)
