"""Matches of programs that the referee starts stand still after a restart until the programs are there."""

from __future__ import annotations

from referee.v1 import event_pb2, match_pb2
from referee_server.tables import creation
from tables.kit import Room, S, duel
from tables.test_resume import restarted

CLOCK = match_pb2.Clock(allowance_ms=200, bank_ms=0, connect_ms=30_000, reconnect_grace_ms=30_000)
ONE = "one"


def create(room: Room, *isolation: str) -> None:
    room.register("anna", "bert")
    table = event_pb2.TournamentTable(
        tournament_id="cup", commitment="ab" * 32, board=1, isolation=isolation or ("process", "process")
    )
    origin = creation.Origin(ONE, ONE, bytes(32), tournament=table)
    room.hall.matches.create_table(duel(clock=CLOCK, options={"deals": 4}), origin)


async def begun(room: Room, *isolation: str) -> None:
    """Has the match begun, with a question to bert."""
    anna, bert = await room.connect("anna"), await room.connect("bert")
    create(room, *isolation)
    await room.quiet()
    anna.ready(ONE)
    bert.ready(ONE)
    await room.quiet()
    assert bert.question


async def after_a_restart(room: Room) -> Room:
    again = restarted(room)
    assert again.hall.matches.resume_all() == 1
    await again.quiet()
    return again


async def test_however_long_the_programs_take_no_time_runs(room: Room) -> None:
    await begun(room)
    again = await after_a_restart(room)
    before = again.log(ONE)
    await again.pass_time(1_000 * S)
    await again.connect("anna")
    await again.pass_time(1_000 * S)
    await again.connect("bert")
    assert again.log(ONE) == before
    again.hall.matches.wake(ONE)
    await again.quiet()
    await again.play_out(ONE)
    assert again.of_log(ONE, "fault_ruled") == again.of_log(ONE, "seat_replaced") == []
    assert again.of_log(ONE, "match_ended")[0].result.reason == match_pb2.END_REASON_COMPLETED
    assert again.check(ONE).ended


async def test_nobody_is_asked_before_and_all_of_the_allowance_is_left_then(room: Room) -> None:
    await begun(room)
    again = await after_a_restart(room)
    anna, bert = await again.connect("anna"), await again.connect("bert")
    assert anna.got == bert.got == []
    await again.pass_time(S)
    again.hall.matches.wake(ONE)
    await again.quiet()
    assert anna.kinds() == ["match_offered"]
    assert bert.kinds() == ["match_offered", "decision"]
    assert bert.question.allowance_us == CLOCK.allowance_ms * 1_000


async def test_who_does_not_come_all_the_same_has_the_grace_from_then_on(room: Room) -> None:
    await begun(room)
    again = await after_a_restart(room)
    await again.connect("anna")
    await again.pass_time(1_000 * S)
    again.hall.matches.wake(ONE)
    await again.quiet()
    await again.pass_time(30 * S - 1)
    assert again.of_log(ONE, "seat_replaced") == []
    await again.pass_time(1)
    assert [one.seat for one in again.of_log(ONE, "seat_replaced")] == [1]


async def test_a_match_that_had_not_begun_is_offered_once_it_is_woken(room: Room) -> None:
    create(room)
    await room.quiet()
    again = await after_a_restart(room)
    await again.pass_time(1_000 * S)
    anna, bert = await again.connect("anna"), await again.connect("bert")
    assert anna.got == bert.got == []
    again.hall.matches.wake(ONE)
    await again.quiet()
    assert (anna.kinds(), bert.kinds()) == (["match_offered"], ["match_offered"])


async def test_a_program_that_ends_before_it_has_come_is_not_ruled_on(room: Room) -> None:
    await begun(room)
    again = await after_a_restart(room)
    again.hall.crashed("id-anna")
    await again.quiet()
    assert again.of_log(ONE, "fault_ruled") == []
    again.hall.matches.wake(ONE)
    await again.quiet()
    again.hall.crashed("id-anna")
    await again.quiet()
    assert [ruled.kind for ruled in again.of_log(ONE, "fault_ruled")] == [match_pb2.FAULT_KIND_CRASH]


async def test_it_can_be_cancelled_while_it_stands_still(room: Room) -> None:
    await begun(room)
    again = await after_a_restart(room)
    await again.connect("anna")
    again.hall.matches.cancel(ONE, "")
    await again.quiet()
    assert again.hall.matches.running == {}
    again.hall.matches.wake(ONE)
    assert again.check(ONE).ended


async def test_it_stands_still_again_after_one_more_restart(room: Room) -> None:
    await begun(room)
    again = await after_a_restart(await after_a_restart(room))
    assert again.of_log(ONE, "match_resumed") == []
    again.hall.matches.wake(ONE)
    await again.quiet()
    assert len(again.of_log(ONE, "match_resumed")) == 1


async def test_a_match_without_programs_goes_on_at_once(room: Room) -> None:
    await begun(room, "", "")
    again = await after_a_restart(room)
    assert len(again.of_log(ONE, "match_resumed")) == 1


async def test_a_match_that_is_played_is_not_woken(room: Room) -> None:
    await begun(room)
    room.hall.matches.wake(ONE)
    await room.quiet()
    assert room.of_log(ONE, "match_resumed") == []
