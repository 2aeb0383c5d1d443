from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise

from referee.v1 import event_pb2, match_pb2
from referee_server.tables.hall import HallSettings
from tables.kit import MS, Room, S, duel

WAITING = match_pb2.MATCH_STATE_WAITING


async def test_open_seats_go_to_whoever_has_waited_longest(room: Room) -> None:
    for name in ("late", "later"):
        room.register(name)
    players = {}
    for name in ("cleo", "anna", "bert"):
        players[name] = await room.connect(name, takes_open_seats=True)
        await room.pass_time(S)
    match_id = room.hall.matches.create(duel("open", "open"))
    await room.quiet()
    assert [seat.name for seat in room.table(match_id).match.seats] == ["cleo", "anna"]


async def test_after_a_match_an_agent_stands_at_the_end_of_the_queue(room: Room) -> None:
    anna = await room.connect("anna", takes_open_seats=True)
    await room.pass_time(S)
    await room.connect("bert", takes_open_seats=True)
    await room.pass_time(S)
    first = await room.started(duel("open", "bot:first"), anna)
    await room.play_out(first)
    second = room.hall.matches.create(duel("open", "bot:first"))
    await room.quiet()
    assert room.table(second).match.seats[0].name == "bert"


async def test_an_open_seat_is_not_given_to_who_does_not_play_the_game(room: Room) -> None:
    await room.connect("anna", takes_open_seats=True, games=["regicide"])
    await room.connect("bert")
    match_id = room.hall.matches.create(duel("open", "bot:first"))
    await room.quiet()
    assert room.table(match_id).match.filled_us is None


async def test_one_agent_does_not_take_two_seats_of_a_match(room: Room) -> None:
    await room.connect("anna", takes_open_seats=True, max_matches=5)
    match_id = room.hall.matches.create(duel("open", "open"))
    await room.quiet()
    assert [seat.kind for seat in room.table(match_id).match.seats] == [
        match_pb2.SEAT_KIND_AGENT,
        match_pb2.SEAT_KIND_OPEN,
    ]


async def test_an_open_seat_waits_for_who_comes_later(room: Room) -> None:
    match_id = room.hall.matches.create(duel("open", "bot:first"))
    await room.pass_time(1_000 * S)
    anna = await room.connect("anna", takes_open_seats=True)
    assert [offered.match_id for offered in anna.of("match_offered")] == [match_id]


async def test_listings_show_who_took_an_open_seat_before_the_match_starts(room: Room) -> None:
    await room.connect("anna", takes_open_seats=True)
    match_id = room.hall.matches.create(duel("open", "open"))
    await room.quiet()
    row = room.journal.match(match_id)
    assert row is not None
    assert match_pb2.Match.FromString(row.summary).seats[0].name == "anna"


async def test_an_agent_is_offered_no_more_matches_than_it_takes(room: Room) -> None:
    anna, bert = await room.connect("anna", max_matches=2), await room.connect("bert", max_matches=9)
    ids = [room.hall.matches.create(duel()) for _ in range(4)]
    await room.quiet()
    assert [offered.match_id for offered in anna.of("match_offered")] == ids[:2]
    assert [offered.match_id for offered in bert.of("match_offered")] == ids[:2]


async def test_an_agent_that_connects_later_is_offered_no_more_matches_than_it_takes(room: Room) -> None:
    room.register("anna", "bert")
    ids = [room.hall.matches.create(duel()) for _ in range(4)]
    await room.quiet()
    anna = await room.connect("anna")
    assert [offered.match_id for offered in anna.of("match_offered")] == ids[:1]


async def test_matches_beyond_the_agents_number_follow_as_others_end(room: Room) -> None:
    anna, bert = await room.connect("anna"), await room.connect("bert")
    ids = [room.hall.matches.create(duel()) for _ in range(3)]
    await room.quiet()
    for match_id in ids:
        anna.ready(match_id)
        bert.ready(match_id)
        await room.quiet()
        await room.play_out(match_id)
        assert room.check(match_id).match.state == match_pb2.MATCH_STATE_FINISHED


async def test_an_agent_that_is_only_busy_is_no_no_show(room: Room) -> None:
    anna, bert = await room.connect("anna"), await room.connect("bert", max_matches=9)
    clock = match_pb2.Clock(untimed=True)
    first = await room.started(duel(clock=clock), anna, bert)
    second = room.hall.matches.create(duel())
    await room.quiet()
    await room.pass_time(1_000 * S)
    assert room.table(second).match.state == WAITING
    await room.play_out(first)
    anna.ready(second)
    bert.ready(second)
    await room.quiet()
    await room.play_out(second)
    assert room.check(second).match.state == match_pb2.MATCH_STATE_FINISHED


async def test_a_busy_agent_is_not_blamed_for_another_that_does_not_get_ready(room: Room) -> None:
    room.register("anna", "bert", "cleo")
    clock = match_pb2.Clock(connect_ms=300_000)
    first = room.hall.matches.create(duel("bert", "cleo", clock=clock))
    second = room.hall.matches.create(duel("anna", "bert", clock=clock))
    await room.quiet()
    anna = await room.connect("anna")
    assert [offered.match_id for offered in anna.of("match_offered")] == [second]
    bert = await room.connect("bert")
    assert [offered.match_id for offered in bert.of("match_offered")] == [first]
    bert.ready(first)
    await room.pass_time(60 * S - 1)
    assert room.table(second).match.state == WAITING
    await room.pass_time(1)
    [ruled] = room.of_log(second, "fault_ruled")
    assert (ruled.seat, ruled.kind) == (0, match_pb2.FAULT_KIND_START_TIMEOUT)
    assert room.check(second).ended
    assert first in room.hall.matches.running


async def test_matches_whose_agents_wait_for_each_other_begin_one_after_the_other(room: Room) -> None:
    names = ("anna", "bert", "cleo")
    players = [await room.connect(name, takes_open_seats=True) for name in names]
    pairs = [("anna", "bert"), ("bert", "cleo"), ("cleo", "anna"), ("open", "anna"), ("open", "bert"), ("cleo", "open")]
    ids = [room.hall.matches.create(duel(*pair)) for pair in pairs]
    async with asyncio.timeout(5):
        while room.hall.matches.running:
            await room.quiet()
            for player in players:
                for offered in player.of("match_offered"):
                    table = player.session.tables.get(offered.match_id)
                    if table is not None and not table.match.seats[offered.seat].ready:
                        player.ready(offered.match_id)
            await room.quiet()
            running = room.hall.matches.running
            await room.play_out(*[one for one in ids if one in running and room.table(one).match.engine])
    assert {room.check(match_id).match.state for match_id in ids} == {match_pb2.MATCH_STATE_FINISHED}


async def test_who_has_to_come_back_to_a_match_is_waited_for_by_no_other(room: Room) -> None:
    anna, bert = await room.connect("anna"), await room.connect("bert")
    first = room.hall.matches.create(duel())
    await room.quiet()
    anna.ready(first)
    bert.ready(first)
    await room.quiet()
    anna.gone()
    cleo = await room.connect("cleo")
    room.hall.matches.create(duel("anna", "cleo"))
    await room.quiet()
    assert cleo.of("match_offered") == []


async def test_who_is_not_there_in_time_is_a_no_show_at_the_very_limit(room: Room) -> None:
    await room.connect("anna")
    room.register("bert")
    match_id = room.hall.matches.create(duel())
    await room.quiet()
    room.table(match_id)
    for player in room.players:
        player.ready(match_id)
    await room.pass_time(30 * S - 1)
    assert match_id in room.hall.matches.running
    await room.pass_time(1)
    [ruled] = room.of_log(match_id, "fault_ruled")
    assert (ruled.seat, ruled.kind) == (1, match_pb2.FAULT_KIND_NO_SHOW)
    assert room.of_log(match_id, "match_ended")[0].result.reason == match_pb2.END_REASON_NOT_STARTED
    assert list(room.of_log(match_id, "match_ended")[0].result.places) == []


async def test_practice_seats_an_idle_agent_with_house_bots() -> None:
    room = Room(settings=HallSettings(practice=True))
    anna = await room.connect("anna", takes_open_seats=True)
    [offered] = anna.of("match_offered")
    assert Counter(seat.kind for seat in offered.seats)[match_pb2.SEAT_KIND_AGENT] == 1
    assert offered.seats[offered.seat].name == "anna"
    await room.close()


async def test_practice_leaves_alone_whom_a_match_waits_for() -> None:
    room = Room(settings=HallSettings(practice=True))
    anna, bert = await room.connect("anna"), await room.connect("bert")
    first = await room.started(duel(clock=match_pb2.Clock(untimed=True)), anna, bert)
    room.register("cleo")
    second = room.hall.matches.create(duel("anna", "cleo"))
    cleo = await room.connect("cleo", takes_open_seats=True)
    assert cleo.of("match_offered") == []
    await room.play_out(first)
    assert [offered.match_id for offered in cleo.of("match_offered")] == [second]
    await room.close()


async def test_practice_goes_on_with_another_game_after_each_match() -> None:
    room = Room(settings=HallSettings(practice=True))
    anna = await room.connect("anna", takes_open_seats=True, games=["guillotine", "high_card"])
    for number in range(3):
        anna.ready(anna.of("match_offered")[number].match_id)
        await room.quiet()
        await room.play_out(anna.of("match_offered")[number].match_id)
        await room.until(lambda number=number: len(anna.of("match_offered")) == number + 2)  # type: ignore[misc]
    games = [offered.game for offered in anna.of("match_offered")]
    assert set(games) == {"guillotine", "high_card"}
    assert all(one != other for one, other in pairwise(games))
    await room.close()


async def test_practice_leaves_alone_who_takes_no_open_seats() -> None:
    room = Room(settings=HallSettings(practice=True))
    anna = await room.connect("anna")
    assert anna.of("match_offered") == []
    await room.close()


async def test_practice_is_for_nobody_whose_credential_was_just_revoked() -> None:
    room = Room(settings=HallSettings(practice=True))
    room.register("anna")
    from referee_server.journal import AgentRevoked

    room.journal.commit([AgentRevoked("id-anna")])
    anna = await room.connect("anna", takes_open_seats=True)
    assert anna.of("match_offered") == []
    await room.close()


async def test_a_declined_match_never_starts(room: Room) -> None:
    anna = await room.connect("anna")
    await room.connect("bert")
    match_id = room.hall.matches.create(duel())
    await room.quiet()
    anna.leave()
    await room.quiet()
    assert room.of_log(match_id, "match_ended")[0].result.reason == match_pb2.END_REASON_NOT_STARTED
    assert room.of_log(match_id, "fault_ruled")[0].seat == 0


async def test_a_cancelled_match_ends_without_a_result_and_shows_its_secret(room: Room) -> None:
    anna, bert = await room.connect("anna"), await room.connect("bert")
    match_id = await room.started(duel(), anna, bert)
    room.hall.matches.cancel(match_id, "it rains")
    await room.quiet()
    [ended] = room.of_log(match_id, "match_ended")
    assert (ended.result.reason, ended.note) == (match_pb2.END_REASON_CANCELLED, "it rains")
    assert room.log(match_id)[-1].HasField("secret_revealed")
    assert anna.of("match_over")[0].result.reason == match_pb2.END_REASON_CANCELLED
    assert room.check(match_id).ended


async def test_a_house_bot_that_takes_over_plays_to_the_end(room: Room) -> None:
    anna, bert = await room.connect("anna"), await room.connect("bert")
    match_id = await room.started(duel(options={"deals": 5}), anna, bert)
    anna.leave()
    await room.quiet()
    await room.play_out(match_id)
    report = room.check(match_id)
    result = report.match.result
    assert result is not None
    assert result.reason == match_pb2.END_REASON_COMPLETED
    assert list(result.official_places) == [2, 1]
    assert bert.of("match_over")[0].result.official_places == [2, 1]
    sources = {applied.source for applied in room.of_log(match_id, "action_applied") if applied.seat == 0}
    assert sources == {event_pb2.ACTION_SOURCE_BOT}


async def test_a_lost_agent_is_replaced_when_its_grace_is_over_and_not_before(room: Room) -> None:
    anna, bert = await room.connect("anna"), await room.connect("bert")
    clock = match_pb2.Clock(allowance_ms=86_400_000, reconnect_grace_ms=500)
    match_id = await room.started(duel(clock=clock), anna, bert)
    anna.gone()
    await room.pass_time(500 * MS - 1)
    assert room.of_log(match_id, "seat_replaced") == []
    await room.pass_time(1)
    assert [replaced.seat for replaced in room.of_log(match_id, "seat_replaced")] == [0]
