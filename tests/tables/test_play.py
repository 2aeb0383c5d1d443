"""A match from its creation to its end, without a network."""

from __future__ import annotations

import pytest

from match.driver import spec_of
from referee.v1 import event_pb2, match_pb2
from referee_server.journal import MemoryJournal, chain, unpack
from tables.kit import GIVEN, Room, duel


async def test_a_match_is_offered_played_and_told_to_be_over(room: Room) -> None:
    anna, bert = await room.connect("anna"), await room.connect("bert")
    match_id = await room.started(duel(), anna, bert)
    await room.play_out(match_id)
    for player in (anna, bert):
        assert player.of("match_offered")[0].match_id == match_id
        assert len(player.of("match_over")) == 1
    assert room.check(match_id).ended


async def test_the_digest_told_with_the_result_is_that_of_the_journal(room: Room) -> None:
    anna, bert = await room.connect("anna"), await room.connect("bert")
    match_id = await room.started(duel(), anna, bert)
    await room.play_out(match_id)
    digest = chain.start(match_id).digest
    for event in room.journal.read(match_id):
        digest = chain.link(digest, event)
    row = room.journal.match(match_id)
    assert row is not None
    assert {anna.of("match_over")[0].result.digest, row.digest} == {digest}


async def test_the_log_of_a_finished_match_is_archived(room: Room) -> None:
    journal = room.journal
    assert isinstance(journal, MemoryJournal)
    match_id = room.hall.matches.create(duel("bot:first", "bot:first"))
    await room.until(lambda: match_id in journal._matches and journal._matches[match_id].log is not None)
    blob = journal._matches[match_id].log
    assert blob is not None
    assert list(unpack(blob).events) == journal.read(match_id)
    assert room.check(match_id).ended


async def test_a_match_of_house_bots_plays_itself(room: Room) -> None:
    match_id = room.hall.matches.create(duel("bot:random", "bot:greedy"))
    await room.until(lambda: match_id not in room.hall.matches.running)
    assert room.check(match_id).match.state == match_pb2.MATCH_STATE_FINISHED


async def test_every_answer_has_its_verdict(room: Room) -> None:
    anna, bert = await room.connect("anna"), await room.connect("bert")
    match_id = await room.started(duel(), anna, bert)
    await room.play_out(match_id)
    for player in (anna, bert):
        assert len(player.of("verdict")) == len(player.of("decision"))
        assert {verdict.status for verdict in player.of("verdict")} == {event_pb2.ANSWER_STATUS_ACCEPTED}


async def test_a_given_secret_gives_the_same_id_and_the_same_cards() -> None:
    ids, dealt = [], []
    for seed in (b"one", b"other"):
        room = Room(seed=seed)
        match_id = room.hall.matches.create(duel("bot:random", "bot:random", given_secret=GIVEN))
        await room.until(lambda room=room, match_id=match_id: match_id not in room.hall.matches.running)  # type: ignore[misc]
        ids.append(match_id)
        dealt.append(room.of_log(match_id, "cards_dealt"))
        assert room.of_log(match_id, "match_created")[0].unsealed
    assert ids[0] == ids[1]
    assert dealt[0] == dealt[1]


async def test_without_a_given_secret_cards_differ() -> None:
    dealt = []
    for seed in (b"one", b"other"):
        room = Room(seed=seed)
        match_id = room.hall.matches.create(duel("bot:random", "bot:random"))
        await room.until(lambda room=room, match_id=match_id: match_id not in room.hall.matches.running)  # type: ignore[misc]
        dealt.append([deal.pack for deal in room.of_log(match_id, "cards_dealt") if deal.pack])
    assert dealt[0] != dealt[1]


@pytest.mark.parametrize("game", ["guillotine", "regicide"])
async def test_the_games_of_the_house_play_to_a_result_that_verifies(room: Room, game: str) -> None:
    options = {"deals_per_dealer": 1} if game == "guillotine" else {"target": 10}
    names = ["anna", "bert", "cleo", "dora"][: 4 if game == "guillotine" else 2]
    players = [await room.connect(name, wants_events=True) for name in names]
    match_id = await room.started(spec_of(game, *names, options=options), *players)
    await room.play_out(match_id)
    assert not room.check(match_id).sealed
    for player in players:
        sequences = [event.sequence for event in player.events(match_id)]
        assert sequences == list(range(1, len(sequences) + 1))
        assert player.kinds()[-1] == "match_over"
