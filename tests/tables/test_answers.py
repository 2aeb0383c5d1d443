"""Verdicts: one for every answer, and only the first valid one changes anything."""

from __future__ import annotations

import pytest

from referee.v1 import event_pb2, match_pb2
from referee_server.match.machine import STRAYS_KEPT
from tables.kit import Player, Room, duel

A = event_pb2


async def begun(room: Room, **fields: object) -> tuple[str, Player, Player]:
    anna, bert = await room.connect("anna"), await room.connect("bert")
    return await room.started(duel(options={"deals": 5}, **fields), anna, bert), anna, bert


async def verdicts(room: Room, player: Player) -> list[int]:
    await room.quiet()
    return [verdict.status for verdict in player.of("verdict")]


async def test_the_first_valid_answer_counts(room: Room) -> None:
    match_id, _, bert = await begun(room)
    asked = bert.question
    bert.answer(asked.legal[1])
    bert.answer(asked.legal[0], question=asked)
    bert.answer(asked.legal[1], question=asked)
    assert await verdicts(room, bert) == [
        A.ANSWER_STATUS_ACCEPTED,
        A.ANSWER_STATUS_ALREADY_ANSWERED,
        A.ANSWER_STATUS_REPEATED,
    ]
    assert {verdict.action for verdict in bert.of("verdict")} == {asked.legal[1]}
    assert [one.action for one in room.of_log(match_id, "action_applied")] == [asked.legal[1]]


async def test_of_a_thousand_answers_one_is_accepted(room: Room) -> None:
    match_id, _, bert = await begun(room)
    asked = bert.question
    for number in range(1_000):
        bert.answer(asked.legal[number % 2], question=asked)
    found = await verdicts(room, bert)
    assert len(found) == 1_000
    assert found.count(A.ANSWER_STATUS_ACCEPTED) == 1
    assert len(room.of_log(match_id, "action_applied")) == 1


@pytest.mark.parametrize("number", [1, 2, 100, 2**31 - 1, -1, -(2**31)])
async def test_an_answer_to_no_question_put_so_far_is_a_guess(room: Room, number: int) -> None:
    match_id, _, bert = await begun(room)
    bert.answer(decision_id=number)
    assert await verdicts(room, bert) == [A.ANSWER_STATUS_NOT_OPEN]
    assert room.of_log(match_id, "fault_ruled") == []


async def test_an_answer_before_its_question_is_a_guess(room: Room) -> None:
    match_id, anna, bert = await begun(room)
    asked = bert.question
    anna.answer("2S", question=asked)
    assert await verdicts(room, anna) == [A.ANSWER_STATUS_NOT_OPEN]
    assert room.of_log(match_id, "action_applied") == []


async def test_an_answer_received_before_its_question_was_put_is_a_guess(room: Room) -> None:
    anna, bert = await room.connect("anna"), await room.connect("bert")
    match_id = await room.started(duel())
    await room.pass_time(10)
    anna.ready(match_id)
    bert.ready(match_id)
    await room.quiet()
    bert.answer(at_us=room.clock.now_us() - 1)
    assert await verdicts(room, bert) == [A.ANSWER_STATUS_NOT_OPEN]
    assert room.of_log(match_id, "action_applied") == []


async def test_an_answer_for_another_seat_is_refused_whatever_it_says(room: Room) -> None:
    match_id, anna, bert = await begun(room)
    asked = bert.question
    bert.answer(seat=0)
    anna.answer(question=asked, seat=1)
    bert.answer(question=asked, seat=1)
    assert await verdicts(room, bert) == [A.ANSWER_STATUS_SEAT_MISMATCH, A.ANSWER_STATUS_ACCEPTED]
    assert await verdicts(room, anna) == [A.ANSWER_STATUS_SEAT_MISMATCH]
    assert room.of_log(match_id, "fault_ruled") == []


async def test_stray_answers_are_kept_up_to_a_number_and_counted_beyond(room: Room) -> None:
    match_id, _, bert = await begun(room)
    for _ in range(50):
        bert.answer(decision_id=99)
    await room.quiet()
    room.hall.matches.cancel(match_id, "")
    await room.quiet()
    assert len(room.of_log(match_id, "answer_ignored")) == STRAYS_KEPT
    assert list(room.of_log(match_id, "match_ended")[0].ignored_counts) == [0, 50]
    assert room.check(match_id).ended


async def test_an_illegal_answer_is_ruled_and_the_strike_told(room: Room) -> None:
    match_id, _, bert = await begun(room)
    illegal = next(card for card in ("2S", "3S", "4S") if card not in bert.question.legal)
    bert.answer(illegal)
    await room.quiet()
    verdict = bert.of("verdict")[0]
    assert (verdict.status, verdict.fault, verdict.strike_count) == (
        A.ANSWER_STATUS_FAULTED,
        match_pb2.FAULT_KIND_ILLEGAL,
        1,
    )
    [ruled] = room.of_log(match_id, "fault_ruled")
    assert ruled.raw_answer == illegal.encode()
    assert list(ruled.legal) == list(bert.question.legal)


async def test_where_the_policy_asks_again_the_same_question_stays_open(room: Room) -> None:
    rule = match_pb2.FaultRule(kind=match_pb2.FAULT_KIND_MALFORMED, ask_again_count=1)
    _, _, bert = await begun(room, policy=match_pb2.FaultPolicy(rules=[rule]))
    bert.answer("what?")
    await room.quiet()
    assert len(bert.of("decision")) == 2
    bert.answer()
    assert await verdicts(room, bert) == [A.ANSWER_STATUS_FAULTED, A.ANSWER_STATUS_ACCEPTED]
    assert bert.of("verdict")[0].asked_again
    assert bert.session.open_count == len(bert.unanswered)


async def test_at_the_third_strike_a_house_bot_takes_over_and_answers_are_told_so(room: Room) -> None:
    match_id, anna, bert = await begun(room)
    for _ in range(3):
        while not bert.unanswered:
            anna.answer(question=anna.unanswered[0])
            await room.quiet()
        bert.answer("?", question=bert.unanswered[0])
        await room.quiet()
    assert [one.seat for one in room.of_log(match_id, "seat_replaced")] == [1]
    await room.play_out(match_id)
    assert room.check(match_id).ended
    assert bert.of("match_over")[0].result.official_places == [1, 2]


async def test_the_verdict_comes_before_the_next_question_and_the_end(room: Room) -> None:
    match_id, anna, bert = await begun(room)
    await room.play_out(match_id)
    for player in (anna, bert):
        kinds = [kind for kind in player.kinds() if kind != "match_offered"]
        assert kinds[:-1] == ["decision", "verdict"] * (len(kinds) // 2)
        assert kinds[-1] == "match_over"


async def test_nothing_is_told_when_the_storage_has_failed(room: Room) -> None:
    from referee_server.journal import StorageIOError

    _, anna, bert = await begun(room)
    before = len(anna.got), len(bert.got)

    def full(batch: object) -> None:
        raise StorageIOError("no disk")

    room.journal.commit = full  # type: ignore[method-assign]
    bert.answer()
    await room.quiet()
    assert (len(anna.got), len(bert.got)) == before
    assert room.hall.stopped.is_set()
    assert bert.session.closed is not None
    assert bert.session.closed.name == "STORAGE"
