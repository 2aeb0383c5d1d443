"""Time: every limit at its exact microsecond, and questions that wait with their clock stopped."""

from __future__ import annotations

from typing import Any

import pytest

from referee.v1 import event_pb2, match_pb2
from referee_server.tables.asking import WAIT_CAP_US
from referee_server.tables.lateness import BEAT_US
from tables.kit import MS, Player, Room, S, duel

ACCEPTED = event_pb2.ANSWER_STATUS_ACCEPTED
TIMED_OUT = event_pb2.ANSWER_STATUS_TIMED_OUT
CLOCK = match_pb2.Clock(allowance_ms=100, bank_ms=50)
LIMIT = 150 * MS


async def begun(room: Room, **fields: object) -> tuple[str, Player, Player]:
    """Starts a match in which bert, whose seat leads first, is being asked."""
    anna, bert = await room.connect("anna"), await room.connect("bert")
    match_id = await room.started(duel(clock=CLOCK, **fields), anna, bert)
    return match_id, anna, bert


async def test_a_decision_runs_out_exactly_at_its_deadline(room: Room) -> None:
    match_id, _, _ = await begun(room)
    await room.pass_time(LIMIT - 1)
    assert room.of_log(match_id, "fault_ruled") == []
    await room.pass_time(1)
    [ruled] = room.of_log(match_id, "fault_ruled")
    assert (ruled.kind, ruled.think_us) == (match_pb2.FAULT_KIND_TIMEOUT, LIMIT)


@pytest.mark.parametrize(
    ("before_us", "status"), [(1 * MS, ACCEPTED), (1, ACCEPTED), (0, TIMED_OUT), (-1, TIMED_OUT), (-1 * MS, TIMED_OUT)]
)
async def test_what_counts_is_when_an_answer_was_received(room: Room, before_us: int, status: int) -> None:
    match_id, _, bert = await begun(room)
    room.clock.advance(LIMIT - before_us)
    bert.answer()
    await room.quiet()
    assert [verdict.status for verdict in bert.of("verdict")] == [status]
    assert len(room.of_log(match_id, "fault_ruled")) == (status == TIMED_OUT)
    await room.play_out(match_id)
    assert room.check(match_id).ended


async def test_while_the_loop_was_busy_nobody_ran_out_of_time(room: Room) -> None:
    match_id, _, bert = await begun(room)
    # Neither the timer nor the answer has been seen to before this.
    room.clock.skip(LIMIT + 300 * MS)
    await room.quiet()
    bert.answer()
    await room.quiet()
    assert [verdict.status for verdict in bert.of("verdict")] == [ACCEPTED]
    applied = next(one for one in room.of_log(match_id, "action_applied") if one.seat == 1)
    assert applied.lateness_us == LIMIT + 300 * MS - BEAT_US
    await room.play_out(match_id)
    assert room.check(match_id).ended


async def test_a_timer_that_comes_late_gives_the_agent_what_the_referee_lost(room: Room) -> None:
    match_id, _, _ = await begun(room)
    room.clock.skip(LIMIT + 300 * MS)
    room.clock.advance(0)  # what is overdue is called now, the time limit among it
    assert room.of_log(match_id, "fault_ruled") == []
    await room.pass_time(LIMIT)
    [ruled] = room.of_log(match_id, "fault_ruled")
    assert ruled.think_us == LIMIT


async def test_an_answer_and_a_timer_at_the_same_moment_have_one_outcome(room: Room) -> None:
    match_id, _, bert = await begun(room)
    asked = bert.question
    room.clock.advance(LIMIT)
    bert.answer(question=asked)
    await room.quiet()
    assert bert.of("verdict")[0].status == TIMED_OUT
    applied = [one for one in room.of_log(match_id, "action_applied") if one.seat == 1]
    assert [one.decision_id for one in applied] == list(range(len(applied)))


async def test_chatter_moves_no_deadline(room: Room) -> None:
    match_id, anna, bert = await begun(room)
    for _ in range(10):
        room.clock.advance(LIMIT // 10 - 1)
        bert.answer(decision_id=77)
        anna.answer(question=bert.question)
        await room.quiet()
    assert room.of_log(match_id, "fault_ruled") == []
    await room.pass_time(10)
    assert len(room.of_log(match_id, "fault_ruled")) == 1


async def test_the_question_says_how_much_time_is_left(room: Room) -> None:
    _, _, bert = await begun(room)
    assert (bert.question.allowance_us, bert.question.bank_us) == (100 * MS, 50 * MS)


async def test_the_bank_is_used_when_the_allowance_is_gone(room: Room) -> None:
    _, _, bert = await begun(room, options={"deals": 5})
    await room.pass_time(120 * MS)
    bert.answer()
    await room.quiet()
    anna = room.players[0]
    while len(bert.of("decision")) < 2:
        anna.answer()
        await room.quiet()
    assert bert.question.bank_us == 30 * MS
    assert bert.question.last.think_us == 120 * MS


async def test_an_untimed_decision_runs_out_only_at_the_liveness_limit(room: Room) -> None:
    anna, bert = await room.connect("anna"), await room.connect("bert")
    match_id = await room.started(duel(clock=match_pb2.Clock(untimed=True, liveness_ms=900_000)), anna, bert)
    await room.pass_time(900 * S - 1)
    assert room.of_log(match_id, "fault_ruled") == []
    await room.pass_time(1)
    assert len(room.of_log(match_id, "fault_ruled")) == 1


# No more open decisions than the agent takes.


async def crowd(room: Room, count: int, **hello: Any) -> tuple[Player, list[Player], list[str]]:
    """Lets bert play so many matches at once, each against somebody else, and be asked first in all of them."""
    bert = await room.connect("bert", max_matches=count, **hello)
    others, ids = [], []
    for number in range(count):
        other = await room.connect(f"anna{number}")
        others.append(other)
        ids.append(await room.started(duel(f"anna{number}", "bert", clock=CLOCK), other, bert))
    return bert, others, ids


async def test_no_more_questions_are_open_than_the_agent_takes(room: Room) -> None:
    bert, _, ids = await crowd(room, 5, max_open_decisions=2)
    assert [asked.match_id for asked in bert.of("decision")] == ids[:2]


async def test_by_default_as_many_questions_are_open_as_there_are_matches(room: Room) -> None:
    bert, _, ids = await crowd(room, 5)
    assert [asked.match_id for asked in bert.of("decision")] == ids


async def test_waiting_questions_are_put_in_the_order_they_came(room: Room) -> None:
    bert, _, ids = await crowd(room, 5, max_open_decisions=1)
    for number in range(5):
        assert bert.question.match_id == ids[number]
        bert.answer()
        await room.quiet()


async def test_a_question_waits_with_its_clock_stopped_and_the_wait_is_on_record(room: Room) -> None:
    bert, _, ids = await crowd(room, 2, max_open_decisions=1)
    await room.pass_time(LIMIT - 1)
    bert.answer()
    await room.quiet()
    assert bert.question.match_id == ids[1]
    assert bert.question.allowance_us == 100 * MS
    await room.pass_time(LIMIT - 1)
    bert.answer()
    await room.quiet()
    assert room.of_log(ids[1], "decision_offered")[0].wait_us == LIMIT - 1
    assert [verdict.status for verdict in bert.of("verdict")] == [ACCEPTED, ACCEPTED]


async def test_a_question_that_has_waited_long_enough_is_put_all_the_same(room: Room) -> None:
    bert = await room.connect("bert", max_matches=2, max_open_decisions=1)
    anna, cleo = await room.connect("anna"), await room.connect("cleo")
    await room.started(duel("anna", "bert", clock=match_pb2.Clock(untimed=True)), anna, bert)
    second = await room.started(duel("cleo", "bert"), cleo, bert)
    await room.pass_time(WAIT_CAP_US - 1)
    assert len(bert.of("decision")) == 1
    await room.pass_time(1)
    assert bert.question.match_id == second
    assert room.of_log(second, "decision_offered")[0].wait_us == WAIT_CAP_US


async def test_a_question_put_at_the_cap_takes_nobodys_turn_afterwards(room: Room) -> None:
    bert = await room.connect("bert", max_matches=4, max_open_decisions=1)
    others = [await room.connect(name) for name in ("anna", "cleo", "dora", "emil")]
    untimed = match_pb2.Clock(untimed=True)
    specs = [(duel(other.session.name, "bert", clock=untimed), other) for other in others]
    ids = [await room.started(spec, other, bert) for spec, other in specs[:2]]
    await room.pass_time(WAIT_CAP_US)
    ids += [await room.started(spec, other, bert) for spec, other in specs[2:]]
    assert len(bert.of("decision")) == 2
    for _ in range(2):
        bert.answer(question=bert.unanswered[0])
    await room.quiet()
    assert bert.question.match_id == ids[2]
    bert.answer()
    await room.quiet()
    assert bert.question.match_id == ids[3]


async def test_a_match_that_ends_while_its_question_waits_gives_its_turn_on(room: Room) -> None:
    bert, _, ids = await crowd(room, 3, max_open_decisions=1)
    room.hall.matches.cancel(ids[1], "")
    await room.quiet()
    bert.answer()
    await room.quiet()
    assert bert.question.match_id == ids[2]


async def test_cancelling_the_match_whose_question_is_open_frees_its_place(room: Room) -> None:
    bert, _, ids = await crowd(room, 2, max_open_decisions=1)
    room.hall.matches.cancel(ids[0], "")
    await room.quiet()
    assert bert.question.match_id == ids[1]


async def test_a_timeout_frees_the_place_of_its_question(room: Room) -> None:
    bert, _, ids = await crowd(room, 2, max_open_decisions=1)
    await room.pass_time(LIMIT)
    assert bert.question.match_id == ids[1]


async def test_a_second_question_of_one_match_stands_behind_those_that_wait(room: Room) -> None:
    bert, others, ids = await crowd(room, 2, max_open_decisions=1)
    bert.answer()  # the second match's question is put; the first goes on
    await room.quiet()
    while others[0].unanswered:
        others[0].answer()
        await room.quiet()
    assert bert.question.match_id == ids[1]
    bert.answer()
    await room.quiet()
    assert bert.question.match_id == ids[0]


async def test_many_matches_with_one_open_question_all_come_to_their_end(room: Room) -> None:
    bert, _, ids = await crowd(room, 12, max_open_decisions=1)
    await room.play_out(*ids, think_us=1)
    for match_id in ids:
        report = room.check(match_id)
        assert report.match.result is not None
        assert list(report.match.result.fault_counts) == [0, 0]
    assert bert.session.open_count == 0
    assert not bert.session.waiting
