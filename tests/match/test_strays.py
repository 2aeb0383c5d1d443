"""Answers that nobody asked for: on record at most, and never a ruling."""

from __future__ import annotations

import pytest

from match.driver import Driver, of_kind, spec_of
from referee.v1 import event_pb2
from referee_server.match import inputs
from referee_server.match.inputs import NotNowError
from referee_server.match.machine import STRAYS_KEPT, Machine
from referee_server.match.verify import replay, verify


def played() -> Driver:
    return Driver(spec_of("regicide", options={"max_deals": 1})).start()


STATUSES = [event_pb2.ANSWER_STATUS_NOT_OPEN, event_pb2.ANSWER_STATUS_REPEATED, event_pb2.ANSWER_STATUS_TIMED_OUT]


@pytest.mark.parametrize("status", STATUSES)
def test_a_stray_answer_is_on_record_and_changes_nothing(status: event_pb2.AnswerStatus.ValueType) -> None:
    driver = played()
    driver.ask()
    deadline, bank_us = driver.match.deadline_us, driver.match.seats[0].bank_us
    driver.step(inputs.Stray(0, 77, b"x" * 300, status), after=500)
    (ignored,) = of_kind(driver.events, "answer_ignored")
    assert (ignored.seat, ignored.decision_id, ignored.status) == (0, 77, status)
    assert ignored.raw_answer == b"x" * 256
    assert (driver.match.deadline_us, driver.match.seats[0].bank_us) == (deadline, bank_us)
    assert not of_kind(driver.events, "fault_ruled")


def test_so_many_stray_answers_of_a_seat_are_kept_and_no_more() -> None:
    driver = played()
    for seat in (0, 1):
        for _ in range(STRAYS_KEPT):
            driver.step(inputs.Stray(seat, 0, b"", STATUSES[0]))
        with pytest.raises(NotNowError):
            driver.step(inputs.Stray(seat, 0, b"", STATUSES[0]))
    assert len(of_kind(driver.events, "answer_ignored")) == 2 * STRAYS_KEPT
    assert STRAYS_KEPT == 5


def test_stray_answers_are_counted_beyond_those_kept() -> None:
    driver = played()
    driver.step(inputs.Stray(1, 0, b"", STATUSES[0]))
    driver.machine.stray_counts[1] = 40
    driver.play()
    assert list(of_kind(driver.events, "match_ended")[0].ignored_counts) == [0, 40]
    verify(driver.events)


@pytest.mark.parametrize("seat", [-1, 2, 99])
def test_a_seat_that_does_not_exist_can_do_nothing(seat: int) -> None:
    driver = played()
    given: list[inputs.Input] = [inputs.Lose(seat), inputs.Regain(seat), inputs.Stray(seat, 0, b"", STATUSES[0])]
    given += [inputs.Ready(seat, b""), inputs.Decline(seat), inputs.OfferSeat(seat), inputs.Fill(seat, "id", "eve")]
    given += [inputs.Answer(seat, 0, b"open", 0), inputs.Choose(seat, 0, "open"), inputs.Ask(seat, 0)]
    for one in given:
        with pytest.raises(NotNowError):
            driver.step(one)


@pytest.mark.parametrize(("seat", "number"), [(1, 0), (0, 1), (0, 5), (0, -1)])
def test_an_answer_to_what_is_not_asked_is_not_taken(seat: int, number: int) -> None:
    driver = played()
    driver.ask()
    with pytest.raises(NotNowError):
        driver.step(inputs.Answer(seat, number, b"open", driver.now))


def test_only_the_first_answer_counts() -> None:
    driver = played()
    driver.ask()
    driver.answer("decline")
    with pytest.raises(NotNowError):
        driver.step(inputs.Answer(0, 0, b"open", driver.now))


def test_after_a_timeout_the_answer_is_too_late_and_the_record_says_so() -> None:
    driver = played()
    driver.ask()
    driver.tick()
    _, source, timed_out = driver.match.seats[0].outcome(0)
    assert (source, timed_out) == (event_pb2.ACTION_SOURCE_SUBSTITUTE, True)
    with pytest.raises(NotNowError):
        driver.step(inputs.Answer(0, 0, b"open", driver.now))


def test_after_a_restart_the_answers_on_record_are_still_counted() -> None:
    driver = played()
    driver.step(inputs.Stray(1, 0, b"", STATUSES[0]))
    driver.match = replay(driver.events)
    driver.machine = Machine(driver.match, driver.machine.secret)
    driver.step(inputs.Resume(0, 0))
    driver.play()
    assert list(of_kind(driver.events, "match_ended")[0].ignored_counts) == [0, 1]
    verify(driver.events)


def test_after_the_end_nothing_is_taken() -> None:
    driver = played().play()
    for given in (inputs.Stray(0, 0, b"", STATUSES[0]), inputs.Lose(0), inputs.Resume(0, 0), inputs.Tick()):
        with pytest.raises(NotNowError):
            driver.step(given)
