"""Agents that come back: the same question, the true clock, the events they missed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import event_pb2, match_pb2
from referee_server.match.errors import RefusedError
from referee_server.tables.hall import HallSettings
from referee_server.tables.rates import STREAMS_BURST
from tables.kit import MS, Player, Room, S, duel

CLOCK = match_pb2.Clock(allowance_ms=1_000, bank_ms=1_000, reconnect_grace_ms=600_000)


async def begun(room: Room, **hello: Any) -> tuple[str, Player, Player]:
    anna, bert = await room.connect("anna"), await room.connect("bert", **hello)
    match_id = await room.started(duel(clock=CLOCK, options={"deals": 10}), anna, bert)
    return match_id, anna, bert


def numbers(events: list[event_pb2.MatchEvent]) -> list[int]:
    return [event.sequence for event in events]


async def test_who_comes_back_is_asked_the_same_question_again(room: Room) -> None:
    _, _, bert = await begun(room)
    before = bert.question
    bert.gone()
    again = await room.connect("bert")
    assert again.kinds() == ["match_offered", "decision"]
    after = again.question
    assert (after.decision_id, after.legal, after.generic) == (before.decision_id, before.legal, before.generic)


async def test_who_comes_back_finds_the_clock_where_it_is(room: Room) -> None:
    match_id, _, bert = await begun(room)
    bert.gone()
    await room.pass_time(1_200 * MS)
    again = await room.connect("bert")
    assert (again.question.allowance_us, again.question.bank_us) == (0, 800 * MS)
    await room.pass_time(800 * MS - 1)
    assert room.of_log(match_id, "fault_ruled") == []
    await room.pass_time(1)
    assert [ruled.kind for ruled in room.of_log(match_id, "fault_ruled")] == [match_pb2.FAULT_KIND_TIMEOUT]


async def test_a_question_put_while_its_agent_was_away_is_there_when_it_is_back(room: Room) -> None:
    _, anna, bert = await begun(room)
    anna.gone()
    bert.answer()
    await room.quiet()
    await room.pass_time(300 * MS)
    again = await room.connect("anna")
    assert again.question.allowance_us == 700 * MS


async def test_an_answer_before_the_loss_counts(room: Room) -> None:
    match_id, _, bert = await begun(room)
    bert.answer()
    bert.gone()
    again = await room.connect("bert")
    assert "decision" not in again.kinds()
    assert [one.source for one in room.of_log(match_id, "action_applied")] == [event_pb2.ACTION_SOURCE_AGENT]


async def test_repeating_an_answer_after_coming_back_tells_what_became_of_it(room: Room) -> None:
    _, _, bert = await begun(room)
    asked = bert.question
    bert.answer()
    bert.gone()
    again = await room.connect("bert")
    again.answer(question=asked)
    await room.quiet()
    [verdict] = again.of("verdict")
    assert (verdict.status, verdict.action) == (event_pb2.ANSWER_STATUS_REPEATED, asked.legal[0])


async def test_the_newer_stream_wins(room: Room) -> None:
    match_id, _, old = await begun(room)
    new = await room.connect("bert")
    assert old.session.closed is not None
    assert old.session.closed.reason == reason_pb.ERROR_REASON_SUPERSEDED
    assert new.question == old.question
    assert room.hall.presence.session_of("id-bert") is new.session
    old.gone()  # its handler ends only now
    await room.quiet()
    assert room.hall.presence.session_of("id-bert") is new.session
    await room.play_out(match_id)
    assert room.check(match_id).ended


async def test_a_stream_that_is_overtaken_while_it_comes_in_is_ended(room: Room) -> None:
    room.hall.matches.create(duel("bot:first", "bot:first"))  # so that coming in has to wait for a commit

    first, second = await asyncio.gather(room.connect("anna"), room.connect("anna"))
    assert first.session.closed is not None
    assert second.session.closed is None
    assert room.hall.presence.session_of("id-anna") is second.session


async def test_a_reconnect_in_the_middle_of_a_commit_hands_the_question_over_once(room: Room) -> None:
    _, anna, bert = await begun(room)

    coming = asyncio.ensure_future(room.connect("anna", max_open_decisions=1))
    bert.answer()  # anna's question is put while she comes in
    again = await coming
    assert len(again.of("decision")) == 1
    assert again.session.open_count == 1
    again.answer()
    await room.quiet()
    assert again.session.open_count == len(again.unanswered)
    assert anna.of("decision") == []


async def test_missed_events_are_sent_from_the_position_on(room: Room) -> None:
    match_id, anna, bert = await begun(room, wants_events=True)
    known = len(bert.events(match_id))
    bert.answer()
    bert.gone()
    await room.quiet()
    anna.answer()
    await room.quiet()
    again = await room.connect("bert", {match_id: known}, wants_events=True)
    await room.play_out(match_id)
    assert numbers(again.events(match_id))[0] == known + 1
    told = bert.events(match_id)[:known] + again.events(match_id)
    assert numbers(told) == list(range(1, len(told) + 1))
    assert told[-1].HasField("secret_revealed")


async def test_without_a_position_all_events_are_sent_from_the_beginning(room: Room) -> None:
    match_id, _, bert = await begun(room, wants_events=True)
    bert.gone()
    again = await room.connect("bert", wants_events=True)
    await room.play_out(match_id)
    events = again.events(match_id)
    assert numbers(events) == list(range(1, len(events) + 1))


@pytest.mark.parametrize("power", [False, True], ids=["process", "power"])
async def test_reconnecting_again_and_again_doubles_and_loses_no_event(power: bool) -> None:
    room = Room(settings=HallSettings(durable_power=power))
    match_id, anna, bert = await begun(room, wants_events=True)
    told = bert.events(match_id)
    players = [bert]
    for _ in range(6):
        # Answers and comings cross, so that commits are under way while streams come in.
        if anna.unanswered:
            anna.answer()
        bert = await room.connect("bert", {match_id: len(told)}, wants_events=True)
        if bert.unanswered:
            bert.answer()
        await room.quiet()
        players.append(bert)
        told += bert.events(match_id)
    rest = len(bert.events(match_id))
    await room.play_out(match_id)
    told += bert.events(match_id)[rest:]
    assert numbers(told) == list(range(1, len(told) + 1))
    assert told[-1].HasField("secret_revealed")
    await room.close()


async def test_a_position_beyond_the_end_is_refused_in_words_and_the_events_follow(room: Room) -> None:
    match_id, _, bert = await begun(room)
    bert.gone()
    again = await room.connect("bert", {match_id: 10_000}, wants_events=True)
    [rejected] = again.of("rejected")
    assert (rejected.reason, rejected.match_id) == (reason_pb.ERROR_REASON_POSITION_BEYOND_END, match_id)
    assert numbers(again.events(match_id))[0] == 1


async def test_who_missed_the_end_of_a_match_is_told_of_it(room: Room) -> None:
    match_id, anna, bert = await begun(room)
    bert.gone()
    room.hall.matches.cancel(match_id, "")
    await room.quiet()
    again = await room.connect("bert", {match_id: 0, "nosuchmatch": 3})
    row = room.journal.match(match_id)
    assert row is not None
    [over] = again.of("match_over", match_id)
    assert (over.match_id, over.seat, over.result.digest) == (match_id, 1, row.digest)
    assert anna.of("match_over")[0].result.digest == over.result.digest
    assert [time.seat for time in over.result.seat_times] == [1]


async def test_who_has_a_match_in_mind_that_is_not_its_own_is_told_the_same_of_any_whether_there_is_one_or_not(
    room: Room,
) -> None:
    ended = room.hall.matches.create(duel("bot:first", "bot:first"))
    await room.until(lambda: ended not in room.hall.matches.running)
    running, _, _ = await begun(room)
    waiting = room.hall.matches.create(duel("open", "open"))
    await room.quiet()
    eve = await room.connect("eve", dict.fromkeys((ended, running, waiting, "nosuchmatch"), 1))
    told = {over.match_id: over for over in eve.of("match_over")}
    assert len(eve.got) == len(told) == 4
    for over in told.values():
        over.ClearField("match_id")
        assert over == pb.MatchOver(result=match_pb2.MatchResult(reason=match_pb2.END_REASON_NOT_STARTED))


async def test_leave_is_goodbye_and_a_lost_stream_is_not(room: Room) -> None:
    match_id, anna, bert = await begun(room)
    bert.gone()
    await room.pass_time(10)
    assert room.of_log(match_id, "seat_replaced") == []
    anna.leave()
    await room.pass_time(10)
    assert [one.seat for one in room.of_log(match_id, "seat_replaced")] == [0]


async def test_who_left_is_not_offered_anything(room: Room) -> None:
    anna = await room.connect("anna")
    anna.leave()
    room.hall.matches.create(duel("anna", "bot:first"))
    await room.pass_time(S)
    assert anna.of("match_offered") == []


async def test_reconnecting_to_a_match_on_offer_offers_it_again_without_more_time(room: Room) -> None:
    anna = await room.connect("anna")
    match_id = room.hall.matches.create(duel("anna", "bot:first"))
    await room.quiet()
    await room.pass_time(59 * S)
    anna.gone()
    again = await room.connect("anna")
    assert [offered.match_id for offered in again.of("match_offered")] == [match_id]
    await room.pass_time(S)
    assert [ruled.kind for ruled in room.of_log(match_id, "fault_ruled")] == [match_pb2.FAULT_KIND_START_TIMEOUT]


async def test_events_wait_in_the_journal_for_a_reader_that_is_slow(room: Room) -> None:
    match_id, _, bert = await begun(room)
    bert.gone()
    again = await room.connect("bert")
    await again.stop()  # reads nothing from here on
    third = await room.connect("bert", wants_events=True)
    assert third.session.closed is None
    await room.play_out(match_id)
    assert numbers(third.events(match_id)) == list(range(1, len(third.events(match_id)) + 1))


async def test_who_keeps_losing_its_stream_is_taken_for_a_flood(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each loss costs two events, and the log of a match has a greatest length."""
    monkeypatch.setattr("referee_server.tables.table.LOSSES_BORNE", 3)
    match_id, _, bert = await begun(room)
    for _ in range(4):
        assert room.of_log(match_id, "fault_ruled") == []
        bert.gone()
        bert = await room.connect("bert")
    assert [ruled.kind for ruled in room.of_log(match_id, "fault_ruled")] == [match_pb2.FAULT_KIND_FLOOD]
    losses = len(room.of_log(match_id, "seat_disconnected"))
    bert.gone()
    await room.connect("bert")
    assert len(room.of_log(match_id, "seat_disconnected")) == losses, "who is replaced is not followed any more"


async def test_streams_begun_all_the_time_are_refused(room: Room) -> None:
    await begun(room)
    agent_id = "0" * 20
    for _ in range(STREAMS_BURST):
        room.hall.presence.check_stream(agent_id)
    with pytest.raises(RefusedError) as refused:
        room.hall.presence.check_stream(agent_id)
    assert refused.value.reason == reason_pb.ERROR_REASON_RATE
    room.hall.presence.check_stream("1" * 20)
    await room.pass_time(S)
    room.hall.presence.check_stream(agent_id)
