"""Open seats whose agents go before the start: others get them, and nobody is asked without end."""

from __future__ import annotations

from typing import Any

import pytest

from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import event_pb2, match_pb2
from referee_server.match import inputs
from referee_server.match.errors import RefusedError
from referee_server.tables.rates import LOSSES_BORNE
from tables.fake_clock import FakeClock
from tables.kit import Player, Room, S, duel

BOT = "bot:first"
LEFT = event_pb2.REOPEN_CAUSE_LEFT
LOST = event_pb2.REOPEN_CAUSE_LOST
DECLINED = event_pb2.REOPEN_CAUSE_DECLINED
NOT_READY = event_pb2.REOPEN_CAUSE_NOT_READY
FINISHED = match_pb2.MATCH_STATE_FINISHED


async def waiting(room: Room, *seats: str, **hello: Any) -> tuple[str, Player]:
    """Returns a match whose open seat eve has been offered."""
    eve = await room.connect("eve", takes_open_seats=True, **hello)
    match_id = room.hall.matches.create(duel(*(seats or ("open", BOT))))
    await room.quiet()
    assert eve.of("match_offered")
    return match_id, eve


def causes(room: Room, match_id: str) -> list[event_pb2.ReopenCause.ValueType]:
    return [event.cause for event in room.of_log(match_id, "seat_reopened")]


def takers(room: Room, match_id: str) -> list[str]:
    return [event.seat.name for event in room.of_log(match_id, "seat_filled")]


async def go(room: Room, how: event_pb2.ReopenCause.ValueType, match_id: str, player: Player) -> None:
    if how == LEFT:
        player.leave()
    elif how == DECLINED:
        room.table(match_id).feed(inputs.Decline(0))
    else:
        if how == LOST:
            player.gone()
        await room.pass_time((30 if how == LOST else 60) * S)
    await room.quiet()


@pytest.mark.parametrize("how", [LEFT, LOST, DECLINED, NOT_READY])
async def test_who_waits_gets_the_seat_of_who_goes_and_the_match_is_played(
    room: Room, how: event_pb2.ReopenCause.ValueType
) -> None:
    match_id, eve = await waiting(room)
    ian = await room.connect("ian", takes_open_seats=True)
    assert ian.got == []
    await go(room, how, match_id, eve)
    assert causes(room, match_id) == [how]
    assert takers(room, match_id) == ["eve", "ian"]
    ian.ready(match_id)
    await room.quiet()
    await room.play_out(match_id)
    report = room.check(match_id)
    assert (report.match.state, report.match.seats[0].name) == (FINISHED, "ian")
    assert room.of_log(match_id, "fault_ruled") == []
    assert ian.of("match_over")[0].result.digest


@pytest.mark.parametrize("how", [DECLINED, NOT_READY])
async def test_who_is_still_there_is_told_once_that_the_seat_is_not_its_own_and_is_free_for_others(
    room: Room, how: event_pb2.ReopenCause.ValueType
) -> None:
    match_id, eve = await waiting(room)
    ian = await room.connect("ian", takes_open_seats=True)
    await go(room, how, match_id, eve)
    assert match_id not in eve.session.tables
    other = await room.started(duel("eve", BOT), eve)
    ian.ready(match_id)
    await room.quiet()
    await room.play_out(match_id, other)
    [over] = eve.of("match_over", match_id)
    assert (over.seat, over.result) == (0, match_pb2.MatchResult(reason=match_pb2.END_REASON_NOT_STARTED))
    assert room.check(other).match.state == FINISHED


async def test_who_goes_sees_nothing_more_of_the_match_even_if_it_has_not_read_yet(room: Room) -> None:
    eve = await room.connect("eve", takes_open_seats=True, wants_events=True)
    await eve.stop()
    match_id = room.hall.matches.create(duel("open", BOT))
    await room.quiet()
    ian = await room.connect("ian", takes_open_seats=True)
    await room.pass_time(60 * S)
    ian.ready(match_id)
    await room.quiet()
    await room.play_out(match_id)
    eve.session.finish()
    items = []
    while piece := await eve.session.next_items():
        items += piece
    assert [item.WhichOneof("item") for item in items] == ["match_offered", "match_over"]


async def test_listings_show_the_seat_open_again(room: Room) -> None:
    match_id, eve = await waiting(room)
    eve.leave()
    await room.quiet()
    row = room.journal.match(match_id)
    assert row is not None
    [seat, _] = match_pb2.Match.FromString(row.summary).seats
    assert seat == match_pb2.Seat(seat=0, kind=match_pb2.SEAT_KIND_OPEN)
    assert room.hall.held_seats(match_id, "id-eve") == []


async def test_a_mute_agent_alone_is_asked_ever_more_rarely(room: Room) -> None:
    match_id, eve = await waiting(room)
    offered_at: list[int] = []
    for second in range(600):
        if len(eve.of("match_offered")) > len(offered_at):
            offered_at.append(second)
        await room.pass_time(S)
    # Asked for 60 s, left alone for 10 s, asked for 60 s, left alone for 20 s …
    assert offered_at == [0, 70, 150, 250, 390]
    assert len(room.log(match_id)) == 1 + 3 * 5
    assert len(eve.of("match_over")) == 5


async def test_who_declines_again_and_again_is_asked_ever_more_rarely(room: Room) -> None:
    match_id, eve = await waiting(room)
    for _ in range(70):
        if match_id in eve.session.tables:
            room.table(match_id).feed(inputs.Decline(0))
        await room.pass_time(S)
    assert causes(room, match_id) == [DECLINED] * 3


async def test_a_mute_agent_keeps_nobody_waiting_who_comes_later(room: Room) -> None:
    match_id, _ = await waiting(room)
    await room.pass_time(60 * S)
    assert takers(room, match_id) == ["eve"]
    ian = await room.connect("ian", takes_open_seats=True)
    assert takers(room, match_id) == ["eve", "ian"]
    ian.ready(match_id)
    await room.quiet()
    await room.play_out(match_id)
    assert room.check(match_id).match.state == FINISHED


async def test_who_gave_a_seat_back_stands_behind_those_who_waited_meanwhile(room: Room) -> None:
    await waiting(room)
    ian = await room.connect("ian", takes_open_seats=True, max_matches=1)
    await room.pass_time(60 * S)
    assert len(ian.of("match_offered")) == 1
    await room.connect("lia", takes_open_seats=True)
    await room.pass_time(S)
    second = room.hall.matches.create(duel("open", BOT))
    await room.quiet()
    assert takers(room, second) == ["eve"]
    third = room.hall.matches.create(duel("open", BOT))
    await room.quiet()
    assert takers(room, third) == ["lia"]


async def test_who_comes_back_in_time_keeps_its_seat(room: Room) -> None:
    match_id, eve = await waiting(room)
    eve.gone()
    await room.pass_time(30 * S - 1)
    again = await room.connect("eve", {match_id: 0}, takes_open_seats=True)
    assert again.kinds() == ["match_offered"]
    again.ready(match_id)
    await room.quiet()
    await room.play_out(match_id)
    assert causes(room, match_id) == []
    assert room.check(match_id).match.seats[0].name == "eve"


@pytest.mark.parametrize("played", [False, True])
async def test_who_comes_back_too_late_is_told_that_the_seat_is_not_its_own(room: Room, *, played: bool) -> None:
    match_id, eve = await waiting(room)
    ian = await room.connect("ian", takes_open_seats=True)
    eve.gone()
    await room.pass_time(30 * S)
    ian.ready(match_id)
    await room.quiet()
    if played:
        await room.play_out(match_id)
    again = await room.connect("eve", {match_id: 2}, takes_open_seats=True)
    [over] = again.got
    assert over.match_over.match_id == match_id
    assert over.match_over.result == match_pb2.MatchResult(reason=match_pb2.END_REASON_NOT_STARTED)


async def test_who_left_and_is_back_gets_the_seat_again_when_nobody_else_comes(room: Room) -> None:
    match_id, eve = await waiting(room)
    eve.leave()
    await room.quiet()
    again = await room.connect("eve", takes_open_seats=True, wants_events=True)
    await room.pass_time(10 * S - 1)
    assert again.of("match_offered") == []
    await room.pass_time(1)
    again.ready(match_id)
    await room.quiet()
    await room.play_out(match_id)
    assert room.check(match_id).match.state == FINISHED
    assert [event.sequence for event in again.events(match_id)][:3] == [1, 2, 3]


async def test_who_comes_and_goes_all_the_time_has_its_seat_for_so_long_and_no_longer(room: Room) -> None:
    eve = await room.connect("eve", takes_open_seats=True)
    match_id = room.hall.matches.create(duel("open", "open"))
    await room.quiet()
    for _ in range(LOSSES_BORNE):
        eve.gone()
        eve = await room.connect("eve")
    assert causes(room, match_id) == []
    eve.gone()
    await room.quiet()
    assert causes(room, match_id) == [LEFT]


async def test_nobody_waits_for_who_is_shut_out(room: Room) -> None:
    match_id, eve = await waiting(room)
    eve.gone()
    await room.quiet()
    room.hall.shut_out("id-eve", RefusedError(reason_pb.ERROR_REASON_CREDENTIAL_REVOKED, ""))
    await room.quiet()
    assert causes(room, match_id) == [LEFT]


async def test_a_seat_taken_before_all_were_is_open_again_too(room: Room) -> None:
    eve = await room.connect("eve", takes_open_seats=True)
    match_id = room.hall.matches.create(duel("open", "open"))
    await room.quiet()
    assert takers(room, match_id) == ["eve"]
    eve.gone()
    await room.pass_time(30 * S)
    assert causes(room, match_id) == [LOST]
    players = [await room.connect(name, takes_open_seats=True) for name in ("ian", "lia")]
    for player in players:
        player.ready(match_id)
    await room.quiet()
    await room.play_out(match_id)
    assert [seat.name for seat in room.check(match_id).match.seats] == ["ian", "lia"]


async def test_a_busy_named_agent_is_not_blamed_while_a_seat_goes_to_another(room: Room) -> None:
    anna = await room.connect("anna", max_matches=2)
    untimed = match_pb2.Clock(untimed=True)
    first = await room.started(duel("anna", BOT, clock=untimed), anna)
    match_id, _ = await waiting(room, "anna", "open")
    again = Room(room.journal, FakeClock(5_000 * S))
    again.hall.matches.resume_all()
    anna = await again.connect("anna", max_matches=1)
    ian = await again.connect("ian", takes_open_seats=True)
    await again.pass_time(30 * S)
    assert (causes(again, match_id), again.of_log(match_id, "fault_ruled")) == ([LOST], [])
    await again.play_out(first)
    for player in (anna, ian):
        player.ready(match_id)
    await again.quiet()
    await again.play_out(match_id)
    assert [seat.name for seat in again.check(match_id).match.seats] == ["anna", "ian"]


async def test_after_a_restart_a_taken_seat_has_the_time_to_come_and_then_goes_to_another(room: Room) -> None:
    match_id, _ = await waiting(room)
    again = Room(room.journal, FakeClock(5_000 * S))
    assert again.hall.matches.resume_all() == 1
    ian = await again.connect("ian", takes_open_seats=True)
    await again.pass_time(30 * S - 1)
    assert takers(again, match_id) == ["eve"]
    await again.pass_time(1)
    assert (causes(again, match_id), takers(again, match_id)) == ([LOST], ["eve", "ian"])
    ian.ready(match_id)
    await again.quiet()
    await again.play_out(match_id)
    assert again.check(match_id).match.state == FINISHED


async def test_after_a_restart_who_comes_back_in_time_plays(room: Room) -> None:
    match_id, _ = await waiting(room)
    again = Room(room.journal, FakeClock(5_000 * S))
    again.hall.matches.resume_all()
    await again.pass_time(29 * S)
    eve = await again.connect("eve", {match_id: 0})
    eve.ready(match_id)
    await again.quiet()
    await again.play_out(match_id)
    assert again.check(match_id).match.seats[0].name == "eve"


async def test_a_rest_outlives_a_restart(room: Room) -> None:
    match_id, eve = await waiting(room)
    eve.leave()
    await room.quiet()
    again = Room(room.journal, FakeClock(5_000 * S))
    again.hall.matches.resume_all()
    await again.quiet()
    eve = await again.connect("eve", takes_open_seats=True)
    await again.pass_time(10 * S - 1)
    assert eve.of("match_offered") == []
    await again.pass_time(1)
    assert eve.of("match_offered", match_id)


async def test_while_the_referee_drains_a_seat_is_given_back_and_nobody_is_asked(room: Room) -> None:
    match_id, eve = await waiting(room)
    ian = await room.connect("ian", takes_open_seats=True)
    room.hall.draining = True
    eve.leave()
    await room.pass_time(100 * S)
    assert (causes(room, match_id), ian.got) == ([LEFT], [])
    again = Room(room.journal, FakeClock(5_000 * S))
    again.hall.matches.resume_all()
    ian = await again.connect("ian", takes_open_seats=True)
    ian.ready(match_id)
    await again.quiet()
    await again.play_out(match_id)
    assert again.check(match_id).match.state == FINISHED


async def test_while_the_referee_drains_nobodys_time_to_come_back_runs_out(room: Room) -> None:
    match_id, eve = await waiting(room)
    room.hall.draining = True
    eve.gone()
    await room.pass_time(100 * S)
    assert causes(room, match_id) == []


async def test_what_the_referee_owes_a_named_agent_it_still_owes_when_a_seat_has_gone_to_another(room: Room) -> None:
    await room.connect("anna")
    match_id, _ = await waiting(room, "open", "anna")
    room.hall.meter.add(20 * S)
    ian = await room.connect("ian", takes_open_seats=True)
    room.table(match_id).feed(inputs.Decline(0))
    await room.quiet()
    ian.ready(match_id)
    await room.pass_time(80 * S - 1)
    assert room.of_log(match_id, "fault_ruled") == []
    await room.pass_time(1)
    assert [ruled.seat for ruled in room.of_log(match_id, "fault_ruled")] == [1]


async def test_nobody_is_owed_what_the_referee_lost_while_it_waited_for_somebody_to_take_a_seat(room: Room) -> None:
    match_id = room.hall.matches.create(duel("open", "open"))
    await room.quiet()
    room.hall.meter.add(1_000 * S)
    eve = await room.connect("eve", takes_open_seats=True)
    eve.gone()
    await room.pass_time(30 * S)
    assert causes(room, match_id) == [LOST]
