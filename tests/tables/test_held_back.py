"""Tables of one board set: their cards are the same, and nobody learns so before the last of them has ended."""

from __future__ import annotations

import pytest

from referee.v1 import event_pb2, match_pb2
from referee_games import dealing
from referee_server.match.verify import verify
from referee_server.match.views import ALL, Projector
from referee_server.tables import creation, revealing
from tables.fake_clock import FakeClock
from tables.kit import Room, duel

SECRET = bytes(range(32))
NONCES = [b"\1" * 32, b"", b"\3" * 32]
FOUR = {"deals": 4}


def origin(match_id: str, *, held_back: bool = True) -> creation.Origin:
    return creation.Origin(
        match_id,
        "set-1" if held_back else match_id,
        SECRET,
        tournament=event_pb2.TournamentTable(
            tournament_id="cup", commitment="ab" * 32, held_back=held_back, board=1, nonces=NONCES
        ),
    )


async def played(room: Room, *match_ids: str) -> None:
    for match_id in match_ids:
        room.hall.matches.create_table(duel("bot:first", "bot:first", options=FOUR), origin(match_id))
    await room.until(lambda: not room.hall.matches.running)


def packs(room: Room, match_id: str) -> list[bytes]:
    return [dealt.pack for dealt in room.of_log(match_id, "cards_dealt")]


async def test_two_tables_of_a_set_hold_the_same_cards_which_follow_from_set_and_entrants(room: Room) -> None:
    await played(room, "one", "two")
    assert packs(room, "one") == packs(room, "two")
    seed = dealing.match_seed("set-1", SECRET, NONCES)
    table = room.log("one")
    pack = room.check("one").match.game.pack
    assert packs(room, "one")[3] == bytes(dealing.deal_pack(seed, 3, pack))
    assert table[0].match_created.nonces_taken is False


async def test_until_it_is_revealed_a_log_has_no_secret_and_verifies_as_sealed(room: Room) -> None:
    await played(room, "one")
    report = room.check("one")
    assert report.sealed
    assert report.ended
    row = room.journal.match("one")
    assert row is not None
    assert not row.final
    assert row.state == "FINISHED"


async def test_once_revealed_it_verifies_whole_and_takes_no_more(room: Room) -> None:
    await played(room, "one")
    room.hall.matches.reveal("one")
    await room.quiet()
    room.hall.matches.reveal("one")
    await room.quiet()
    report = room.check("one")
    assert not report.sealed
    assert [revealed.deal_id for revealed in room.of_log("one", "secret_revealed")] == ["set-1"]
    row = room.journal.match("one")
    assert row is not None
    assert row.final


async def test_nothing_is_revealed_of_a_match_that_still_runs(room: Room) -> None:
    anna, bert = await room.connect("anna"), await room.connect("bert")
    room.hall.matches.create_table(duel(), origin("one"))
    await room.quiet()
    anna.ready("one")
    bert.ready("one")
    await room.quiet()
    room.hall.matches.reveal("one")
    await room.quiet()
    assert room.of_log("one", "secret_revealed") == []


async def test_the_digest_given_out_at_the_end_still_proves_the_log_after_the_secret_was_added(room: Room) -> None:
    await played(room, "one")
    row = room.journal.match("one")
    assert row is not None
    room.hall.matches.reveal("one")
    await room.quiet()
    records = room.journal.read("one")
    assert revealing.is_digest(row.digest, "one", records)
    after = room.journal.match("one")
    assert after is not None
    assert revealing.is_digest(after.digest, "one", records)
    assert not revealing.is_digest(row.digest, "one", [*records[:-2], records[-1]])


@pytest.mark.parametrize("audience", [-1, 0, 1])
async def test_no_view_but_the_hosts_tells_which_set_it_is(room: Room, audience: int) -> None:
    await played(room, "one")
    room.hall.matches.reveal("one")
    await room.quiet()
    log = room.log("one")
    game = room.check("one").match.game
    seen = Projector(audience, game).see(log[:-1])
    text = b"".join(event.SerializeToString() for event in seen)
    assert b"set-1" not in text
    assert log[0].match_created.commitment.encode() not in text
    assert NONCES[0] not in text
    assert seen[0].match_created.tournament.tournament_id == "cup"
    assert b"set-1" in b"".join(event.SerializeToString() for event in Projector(ALL, game).see(log))


async def test_an_agent_is_offered_a_held_back_match_without_deal_id_or_commitment(room: Room) -> None:
    anna, _ = await room.connect("anna"), await room.connect("bert")
    room.hall.matches.create_table(duel(), origin("one"))
    await room.quiet()
    offered = anna.of("match_offered")[0]
    assert (offered.deal_id, offered.commitment, offered.nonces_taken) == ("", "", False)


async def test_a_table_outside_of_sets_reveals_its_secret_at_its_end(room: Room) -> None:
    room.hall.matches.create_table(duel("bot:first", "bot:first"), origin("one", held_back=False))
    await room.until(lambda: not room.hall.matches.running)
    assert len(room.of_log("one", "secret_revealed")) == 1
    assert not room.check("one").sealed


async def test_a_second_order_for_the_same_table_changes_nothing(room: Room) -> None:
    await played(room, "one")
    before = room.journal.read("one")
    room.hall.matches.create_table(duel("bot:first", "bot:first", options=FOUR), origin("one"))
    await room.quiet()
    assert room.journal.read("one") == before


async def test_a_held_back_match_that_has_ended_is_not_taken_up_at_the_next_start(room: Room) -> None:
    await played(room, "one")
    again = Room(room.journal, FakeClock(5))
    assert again.hall.matches.resume_all() == 0
    await again.quiet()
    again.hall.matches.reveal("one")
    await again.quiet()
    assert not again.check("one").sealed


async def test_an_agent_that_missed_the_end_is_told_of_it_while_it_is_held_back(room: Room) -> None:
    anna, bert = await room.connect("anna"), await room.connect("bert")
    room.hall.matches.create_table(duel(options=FOUR), origin("one"))
    await room.quiet()
    for player in (anna, bert):
        player.ready("one")
    await room.quiet()
    await room.play_out("one")
    bert.gone()
    back = await room.connect("bert", positions={"one": 0})
    over = back.of("match_over")
    assert [message.match_id for message in over] == ["one"]
    row = room.journal.match("one")
    assert row is not None
    assert over[0].result.digest == row.digest


async def test_a_revealed_secret_that_is_not_the_committed_one_is_found(room: Room) -> None:
    await played(room, "one")
    room.hall.matches.reveal("one")
    await room.quiet()
    log = room.log("one")
    log[-1].secret_revealed.secret = bytes(32)
    with pytest.raises(Exception, match="not the one that was committed to"):
        verify(log)


async def test_lists_say_that_it_is_held_back_until_it_is_revealed(room: Room) -> None:
    await played(room, "one")
    summaries = []
    for _ in range(2):
        row = room.journal.match("one")
        assert row is not None
        summaries.append(match_pb2.Match.FromString(row.summary))
        room.hall.matches.reveal("one")
        await room.quiet()
    assert [summary.held_back for summary in summaries] == [True, False]
    assert summaries[0].tournament_id == "cup"
