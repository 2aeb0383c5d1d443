"""A seat that was open is open again when its agent goes before the start; seats of named agents are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from match.driver import SECRET, Driver, Event, of_kind, spec_of
from referee.v1 import event_pb2, match_pb2
from referee_games import dealing
from referee_server.match import inputs
from referee_server.match.inputs import NotNowError
from referee_server.match.machine import Machine
from referee_server.match.record import record
from referee_server.match.state import REST_US
from referee_server.match.transcript import transcript
from referee_server.match.verify import LogError, replay, verify
from referee_server.match.views import PUBLIC, Projector

CLOCK = match_pb2.Clock(connect_ms=30, ready_ms=60, reconnect_grace_ms=20)
LEFT = event_pb2.REOPEN_CAUSE_LEFT
LOST = event_pb2.REOPEN_CAUSE_LOST
DECLINED = event_pb2.REOPEN_CAUSE_DECLINED
NOT_READY = event_pb2.REOPEN_CAUSE_NOT_READY


def waiting(*seats: str, policy: match_pb2.FaultPolicy | None = None) -> Driver:
    options = {"max_deals": 1, "players": len(seats)}
    return Driver(spec_of("regicide", *seats, options=options, clock=CLOCK, policy=policy))


def take(driver: Driver, seat: int, name: str, *, after: int = 5) -> None:
    driver.step(inputs.Fill(seat, f"id-{name}", name), after=after)


def taken(*, ready: bool = False) -> Driver:
    """Returns a match of anna, who is ready, in which eve has the open seat and has been asked whether she is."""
    driver = waiting("anna", "open")
    take(driver, 1, "eve")
    for seat in (0, 1):
        driver.step(inputs.OfferSeat(seat))
    driver.step(inputs.Ready(1 if ready else 0, b"\7" * 32))
    return driver


def reopened(driver: Driver) -> list[tuple[int, event_pb2.ReopenCause.ValueType]]:
    return [(event.seat, event.cause) for event in of_kind(driver.events, "seat_reopened")]


def goes_and_is_not_back(driver: Driver) -> None:
    driver.step(inputs.Lose(1), after=5)
    driver.tick()


def is_lost_in_a_restart(driver: Driver) -> None:
    driver.step(inputs.Resume(1_700_000_000, 0), after=5)
    driver.step(inputs.Regain(0))
    driver.tick()


DEPARTURES: dict[str, tuple[Callable[[Driver], object], event_pb2.ReopenCause.ValueType]] = {
    "says goodbye": (lambda driver: driver.step(inputs.Lose(1, left=True)), LEFT),
    "is lost and may not come back": (
        lambda driver: (driver.step(inputs.Lose(1)), driver.step(inputs.Lose(1, left=True))),
        LEFT,
    ),
    "is lost": (goes_and_is_not_back, LOST),
    "is lost in a restart": (is_lost_in_a_restart, LOST),
    "declines": (lambda driver: driver.step(inputs.Decline(1)), DECLINED),
    "is not ready": (lambda driver: driver.tick(), NOT_READY),
    "declines too late": (lambda driver: driver.step(inputs.Decline(1), after=60_000), NOT_READY),
}


@pytest.mark.parametrize("how", DEPARTURES)
def test_an_open_seat_whose_agent_goes_is_open_again_and_the_next_one_plays(how: str) -> None:
    depart, cause = DEPARTURES[how]
    driver = taken()
    depart(driver)
    assert reopened(driver) == [(1, cause)]
    seat = driver.match.seats[1]
    assert (seat.kind, seat.agent_id, seat.name, seat.ready) == (match_pb2.SEAT_KIND_OPEN, "", "", False)
    assert driver.machine.wake_at() is None or how == "is lost in a restart"
    take(driver, 1, "ian")
    driver.start().play()
    assert [seat.name for seat in driver.match.seats] == ["anna", "ian"]
    assert not of_kind(driver.events, "fault_ruled")
    assert driver.match.result is not None
    assert list(driver.match.result.fault_counts) == [0, 0]
    verify(driver.events)
    verify(driver.events[:-1])
    assert record(driver.events)["agents"] == ["anna", "ian"]


def test_who_was_ready_and_goes_is_forgotten_with_its_nonce() -> None:
    driver = taken(ready=True)
    driver.step(inputs.Lose(1, left=True))
    assert reopened(driver) == [(1, LEFT)]
    assert driver.match.nonces == [b"", b""]
    driver.step(inputs.Ready(0, b""))
    assert driver.match.state == match_pb2.MATCH_STATE_WAITING
    take(driver, 1, "ian")
    driver.start(b"", b"\3" * 32).play()
    seed = dealing.match_seed(driver.match.deal_id, SECRET, [b"", b"\3" * 32])
    pack = dealing.deal_pack(seed, 0, driver.match.game.pack)
    assert list(of_kind(driver.events, "cards_dealt")[0].pack) == pack
    verify(driver.events)


def test_who_was_ready_and_is_lost_has_the_time_to_come_and_no_less() -> None:
    driver = taken(ready=True)
    driver.step(inputs.Lose(1))
    with pytest.raises(NotNowError):
        driver.step(inputs.Tick(), after=29_999)
    driver.step(inputs.Tick(), after=1)
    assert reopened(driver) == [(1, LOST)]


def test_who_is_back_in_time_keeps_its_seat() -> None:
    driver = taken(ready=True)
    driver.step(inputs.Lose(1))
    driver.step(inputs.Regain(1), after=29_999)
    driver.step(inputs.Ready(0, b""))
    driver.play()
    assert not reopened(driver)
    assert driver.match.seats[1].name == "eve"
    verify(driver.events)


def test_who_comes_and_goes_has_no_more_time_to_get_ready() -> None:
    driver = taken()
    driver.step(inputs.Lose(1), after=25_000)
    driver.step(inputs.Regain(1), after=25_000)
    assert driver.machine.wake_at() == driver.now + 10_000
    driver.tick()
    assert reopened(driver) == [(1, NOT_READY)]


def test_a_seat_that_is_lost_while_others_are_open_is_open_again_too() -> None:
    driver = waiting("open", "open")
    take(driver, 0, "eve")
    assert driver.machine.wake_at() is None
    driver.step(inputs.Lose(0))
    driver.tick()
    assert reopened(driver) == [(0, LOST)]
    take(driver, 1, "ian")
    take(driver, 0, "lia")
    driver.start().play()
    assert [seat.name for seat in driver.match.seats] == ["lia", "ian"]
    verify(driver.events)


def test_two_open_seats_are_given_back_each_for_itself() -> None:
    driver = waiting("open", "anna", "open")
    take(driver, 0, "eve")
    take(driver, 2, "ian")
    for seat in range(3):
        driver.step(inputs.OfferSeat(seat))
    driver.step(inputs.Ready(1, b""))
    driver.tick()
    driver.tick()
    assert reopened(driver) == [(0, NOT_READY), (2, NOT_READY)]
    take(driver, 0, "lia")
    take(driver, 2, "lot")
    driver.start().play()
    verify(driver.events)


def test_a_taken_seat_is_given_back_before_a_named_agent_is_ruled_on() -> None:
    driver = waiting("anna", "open")
    take(driver, 1, "eve")
    driver.step(inputs.OfferSeat(1))
    driver.step(inputs.Lose(1))
    driver.tick()
    assert reopened(driver) == [(1, LOST)]
    assert driver.machine.wake_at() is None, "the time of anna begins when all seats are taken"
    take(driver, 1, "ian", after=50_000)
    assert driver.machine.wake_at() == driver.now + 30_000
    driver.start().play()
    verify(driver.events)


def test_a_named_agent_has_its_time_to_get_ready_and_no_more_although_a_seat_is_open_again() -> None:
    driver = waiting("anna", "open")
    take(driver, 1, "eve")
    driver.step(inputs.OfferSeat(0))
    driver.step(inputs.OfferSeat(1))
    driver.step(inputs.Decline(1), after=10_000)
    assert driver.machine.wake_at() == 5 + 60_000
    driver.tick()
    [ruled] = of_kind(driver.events, "fault_ruled")
    assert (ruled.seat, ruled.kind) == (0, match_pb2.FAULT_KIND_START_TIMEOUT)
    assert driver.match.over
    verify(driver.events)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (inputs.Decline(0), match_pb2.FAULT_KIND_START_TIMEOUT),
        (inputs.Absent(0), match_pb2.FAULT_KIND_NO_SHOW),
        (None, match_pb2.FAULT_KIND_START_TIMEOUT),
    ],
)
def test_seats_of_named_agents_are_ruled_on_as_ever(
    given: inputs.Input | None, kind: match_pb2.FaultKind.ValueType
) -> None:
    driver = waiting("anna", "open")
    take(driver, 1, "eve")
    driver.step(inputs.OfferSeat(1))
    driver.step(inputs.Ready(1, b""))
    if kind == match_pb2.FAULT_KIND_START_TIMEOUT:
        driver.step(inputs.OfferSeat(0))
    driver.step(given) if given is not None else driver.tick()
    assert [(ruled.seat, ruled.kind) for ruled in of_kind(driver.events, "fault_ruled")] == [(0, kind)]
    assert driver.match.over
    assert not reopened(driver)


def test_after_the_start_a_seat_that_was_open_is_like_any_other() -> None:
    driver = waiting("anna", "open")
    take(driver, 1, "eve")
    driver.start()
    driver.step(inputs.Lose(1, left=True))
    driver.tick()
    assert [(ruled.seat, ruled.kind) for ruled in of_kind(driver.events, "fault_ruled")] == [
        (1, match_pb2.FAULT_KIND_DISCONNECT)
    ]
    driver.play()
    assert not reopened(driver)
    verify(driver.events)


@pytest.mark.parametrize("action", [match_pb2.FAULT_ACTION_CANCEL, match_pb2.FAULT_ACTION_REPLACE])
def test_no_policy_makes_a_fault_of_it(action: match_pb2.FaultAction.ValueType) -> None:
    rules = [
        match_pb2.FaultRule(kind=kind, action=action)
        for kind in (match_pb2.FAULT_KIND_NO_SHOW, match_pb2.FAULT_KIND_START_TIMEOUT)
    ]
    driver = waiting("bot:first", "open", policy=match_pb2.FaultPolicy(rules=rules))
    take(driver, 1, "eve")
    driver.step(inputs.OfferSeat(1))
    driver.tick()
    assert reopened(driver) == [(1, NOT_READY)]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_who_has_given_a_seat_back_is_left_alone_for_ten_seconds_and_twice_as_long_each_time(times: int) -> None:
    driver = waiting("bot:first", "open")
    for time in range(times):
        take(driver, 1, "eve", after=REST_US << time)
        driver.step(inputs.OfferSeat(1))
        driver.step(inputs.Decline(1))
    rest_us = REST_US << (times - 1)
    for after in (0, rest_us - 1):
        with pytest.raises(NotNowError, match="a moment ago"):
            take(driver, 1, "eve", after=after)
    driver.match = replay(driver.events)
    driver.machine = Machine(driver.match, SECRET)
    take(driver, 1, "eve", after=1)
    verify(driver.events)


def test_another_agent_need_not_wait() -> None:
    driver = waiting("bot:first", "open")
    take(driver, 1, "eve")
    driver.step(inputs.Lose(1, left=True))
    take(driver, 1, "ian", after=0)
    assert driver.match.seats[1].name == "ian"


def test_a_mute_agent_alone_makes_a_log_that_hardly_grows() -> None:
    driver = waiting("bot:first", "open")
    while driver.now < 365 * 86_400 * 1_000_000:
        take(driver, 1, "eve", after=max(0, driver.match.rests_until_us("id-eve") - driver.now))
        driver.step(inputs.OfferSeat(1))
        driver.tick()
    assert len(driver.events) < 80
    verify(driver.events)


def test_of_who_may_give_its_seat_back_no_stray_answers_are_put_on_record() -> None:
    driver = taken()
    with pytest.raises(NotNowError):
        driver.step(inputs.Stray(1, 0, b"guess", event_pb2.ANSWER_STATUS_NOT_OPEN))


def test_nothing_of_what_an_agent_gave_is_told_to_the_next_one() -> None:
    driver = taken(ready=True)
    driver.step(inputs.Lose(1, left=True))
    take(driver, 1, "ian")
    driver.step(inputs.Ready(0, b""))
    driver.start().play()
    assert b"\7" * 32 in b"".join(event.SerializeToString() for event in driver.events)
    for audience in (PUBLIC, 0, 1):
        seen = Projector(audience, driver.match.game).see(driver.events)
        assert b"\7" * 32 not in b"".join(event.SerializeToString() for event in seen)
        assert [event.seat_reopened.cause for event in seen if event.HasField("seat_reopened")] == [LEFT]


def test_the_transcript_says_who_had_the_seat_and_who_played() -> None:
    driver = taken()
    driver.step(inputs.Lose(1, left=True))
    take(driver, 1, "ian")
    driver.start().play()
    lines = [" ".join(line.split()) for line in transcript(driver.events)]
    start = lines.index("seat 1 eve takes the open seat")
    assert lines[start + 1 : start + 4] == [
        ". 1 eve left",
        ". 1 eve is not waited for; the seat is open again",
        "seat 1 ian takes the open seat",
    ]
    assert not any("eve" in line for line in lines[start + 4 :])


# Logs that somebody has tampered with.


def with_event(events: list[Event], place: int, seat: int, cause: event_pb2.ReopenCause.ValueType) -> list[Event]:
    """Returns a log with a seat given back at that place, numbered anew."""
    bogus = Event(seat_reopened=event_pb2.SeatReopened(seat=seat, cause=cause))
    bogus.match_time_us = events[place - 1].match_time_us
    copies = []
    for number, event in enumerate([*events[:place], bogus, *events[place:]], 1):
        copy = Event()
        copy.CopyFrom(event)
        copy.sequence = number
        copies.append(copy)
    return copies


@pytest.mark.parametrize("cause", [0, LEFT, LOST, NOT_READY, DECLINED, 99])
def test_a_seat_that_nobody_gave_back_is_found_wherever_it_is_put(cause: event_pb2.ReopenCause.ValueType) -> None:
    driver = waiting("anna", "open")
    take(driver, 1, "eve")
    driver.start().play(turns=3)
    for place in range(1, len(driver.events)):
        for seat in (0, 1, 2, -1):
            events = with_event(driver.events, place, seat, cause)
            with pytest.raises(LogError) as caught:
                verify(events)
            # To decline is an agent's own word, so that only what comes after can speak against it.
            may_be = cause == DECLINED and seat == 1 and events[place - 1].HasField("seat_offered")
            assert caught.value.sequence == place + 1 or (may_be and caught.value.sequence == place + 2)


@pytest.mark.parametrize("how", DEPARTURES)
def test_another_cause_than_the_true_one_is_found(how: str) -> None:
    driver = taken()
    DEPARTURES[how][0](driver)
    [place] = [place for place, event in enumerate(driver.events) if event.HasField("seat_reopened")]
    true = driver.events[place].seat_reopened.cause
    for cause in {*event_pb2.ReopenCause.values()} - {true}:
        driver.events[place].seat_reopened.cause = cause
        with pytest.raises(LogError) as caught:
            verify(driver.events)
        assert caught.value.sequence == place + 1


def test_a_seat_that_is_given_back_too_early_is_found() -> None:
    driver = taken()
    driver.tick()
    driver.events[-1].match_time_us -= 1
    with pytest.raises(LogError, match="no time limit"):
        verify(driver.events)


def test_a_seat_that_was_left_and_stays_taken_is_found() -> None:
    driver = taken()
    driver.step(inputs.Lose(1, left=True))
    with pytest.raises(LogError, match="ends before"):
        verify(driver.events[:-1])
