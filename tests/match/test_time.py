"""Where the time goes: what is charged, what is credited to the way, and what the referee takes on itself."""

from __future__ import annotations

import pytest

from match.driver import Driver, of_kind, spec_of
from referee.v1 import event_pb2, match_pb2
from referee_server.match import inputs
from referee_server.match.inputs import NotNowError
from referee_server.match.seat import QUOTA_US, REFILL_US
from referee_server.match.views import ALL, project, seen_result

MS = 1_000
LIMIT = 200 * MS
CLOCK = match_pb2.Clock(allowance_ms=150, bank_ms=50)
WAY = 30 * MS
"""Credit for the way in these tests."""


def asked(transit_us: int = 0) -> Driver:
    """Returns a match whose first question has just been put, with that credit."""
    driver = Driver(spec_of("regicide", clock=CLOCK)).start()
    seat = driver.match.agent_due()
    assert seat is not None
    driver.step(inputs.Ask(seat, 0, transit_us))
    return driver


def answered(driver: Driver, elapsed_us: int, lateness_us: int = 0) -> event_pb2.ActionApplied:
    """Answers the open question so long after it was put."""
    match = driver.match
    assert match.offered_us is not None
    assert match.actor is not None
    received_us = match.offered_us + elapsed_us
    driver.now = max(driver.now, received_us)
    number = len(match.seats[match.actor].outcomes)
    events = driver.step(inputs.Answer(match.actor, number, b"open", received_us, lateness_us))
    return events[0].action_applied


@pytest.mark.parametrize(
    ("elapsed", "credit", "late", "charged", "credited"),
    [
        (100 * MS, 0, 0, 100 * MS, 0),
        (100 * MS, WAY, 0, 70 * MS, WAY),
        (100 * MS, WAY, 50 * MS, 20 * MS, WAY),
        (20 * MS, WAY, 0, 0, 20 * MS),
        (100 * MS, WAY, 100 * MS, 0, 0),
        (229 * MS, WAY, 0, 199 * MS, WAY),
    ],
)
def test_think_transit_and_lateness_add_up_to_the_time_from_question_to_answer(
    elapsed: int, credit: int, late: int, charged: int, credited: int
) -> None:
    applied = answered(asked(credit), elapsed, late)
    assert (applied.think_us, applied.transit_us, applied.lateness_us) == (charged, credited, late)


@pytest.mark.parametrize(("credit", "late"), [(0, 0), (WAY, 0), (0, 70 * MS), (WAY, 70 * MS)])
@pytest.mark.parametrize("margin", [1, 1 * MS])
def test_an_answer_within_credit_and_lateness_of_the_limit_is_in_time(credit: int, late: int, margin: int) -> None:
    applied = answered(asked(credit), LIMIT + credit + late - margin, late)
    assert applied.source == event_pb2.ACTION_SOURCE_AGENT
    assert applied.bank_us == margin


@pytest.mark.parametrize(("credit", "late"), [(0, 0), (WAY, 0), (0, 70 * MS), (WAY, 70 * MS)])
@pytest.mark.parametrize("over", [0, 1, 1 * MS])
def test_an_answer_beyond_credit_and_lateness_of_the_limit_is_too_late(credit: int, late: int, over: int) -> None:
    with pytest.raises(NotNowError, match="too late"):
        answered(asked(credit), LIMIT + credit + late + over, late)


@pytest.mark.parametrize(("credit", "late"), [(0, 0), (WAY, 0), (0, 70 * MS), (WAY, 70 * MS)])
@pytest.mark.parametrize("early", [1, 1 * MS])
def test_the_flag_does_not_fall_while_the_referee_owes_time(credit: int, late: int, early: int) -> None:
    driver = asked(credit)
    assert driver.match.offered_us is not None
    driver.now = driver.match.offered_us + LIMIT + credit + late - early
    with pytest.raises(NotNowError):
        driver.step(inputs.Tick(late))


@pytest.mark.parametrize(("credit", "late"), [(0, 0), (WAY, 0), (0, 70 * MS), (WAY, 70 * MS)])
def test_the_flag_falls_once_nothing_is_owed(credit: int, late: int) -> None:
    driver = asked(credit)
    assert driver.match.offered_us is not None
    driver.now = driver.match.offered_us + LIMIT + credit + late
    (ruled,) = of_kind(driver.step(inputs.Tick(late)), "fault_ruled")
    assert (ruled.think_us, ruled.transit_us, ruled.lateness_us) == (LIMIT, credit, late)


def test_the_referee_cannot_have_been_late_for_longer_than_the_question_was_open() -> None:
    with pytest.raises(NotNowError, match="late"):
        answered(asked(), 10 * MS, 10 * MS + 1)


def test_credit_for_the_way_is_bounded_by_a_quota() -> None:
    driver = Driver(spec_of("regicide", clock=CLOCK)).start()
    seat = driver.match.agent_due()
    assert seat is not None
    with pytest.raises(NotNowError, match="credit"):
        driver.step(inputs.Ask(seat, 0, QUOTA_US + 1))


def test_each_decision_refills_the_quota_a_little() -> None:
    driver = asked(QUOTA_US)
    seat = driver.match.seats[driver.match.actor or 0]
    assert seat.quota_us == REFILL_US


def test_the_result_sums_where_the_time_of_each_seat_went() -> None:
    driver = asked(WAY)
    seat = driver.match.actor
    answered(driver, 100 * MS, 20 * MS)
    (ended,) = of_kind(driver.step(inputs.Stop(match_pb2.END_REASON_CANCELLED, "")), "match_ended")
    time = next(time for time in ended.result.seat_times if time.seat == seat)
    assert (time.think_us, time.transit_us, time.lateness_us) == (50 * MS, WAY, 20 * MS)


@pytest.mark.parametrize("audience", [-1, 0, 1])
def test_nobody_learns_how_long_another_seat_thought(audience: int) -> None:
    driver = asked(WAY)
    answered(driver, 100 * MS)
    driver.step(inputs.Stop(match_pb2.END_REASON_CANCELLED, ""))
    ended = next(event for event in driver.events if event.HasField("match_ended"))
    seen = project(ended, audience, driver.match.game)
    assert seen is not None
    assert [time.seat for time in seen.match_ended.result.seat_times] == [audience] * (audience >= 0)


def test_the_host_learns_how_long_everybody_thought() -> None:
    result = match_pb2.MatchResult(seat_times=[match_pb2.SeatTime(seat=0), match_pb2.SeatTime(seat=1)])
    assert len(seen_result(result, ALL).seat_times) == 2


@pytest.mark.parametrize("kind", inputs.ACCUSATIONS)
def test_an_agent_whose_process_ended_or_that_floods_is_replaced(kind: match_pb2.FaultKind.ValueType) -> None:
    driver = asked()
    events = driver.step(inputs.Accuse(1, kind))
    assert [event.WhichOneof("payload") for event in events] == ["fault_ruled", "seat_replaced"]
    assert events[0].fault_ruled.kind == kind


def test_an_accusation_does_not_touch_the_question_of_another_seat() -> None:
    driver = asked()
    other = 1 - (driver.match.actor or 0)
    before = driver.match.deadline_us
    driver.step(inputs.Accuse(other, match_pb2.FAULT_KIND_CRASH))
    assert driver.match.deadline_us == before
