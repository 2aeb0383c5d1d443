"""Clocks: who has run out of time and who has not, to the microsecond, and what is charged."""

from __future__ import annotations

from typing import Any

import pytest

from match.driver import Driver, house, of_kind, silent, spec_of
from referee.v1 import event_pb2, match_pb2
from referee_server.match import inputs
from referee_server.match.inputs import NotNowError

MS = 1_000
RUNNING = match_pb2.MATCH_STATE_RUNNING
CLOCKS = {
    "allowance alone": match_pb2.Clock(allowance_ms=200, bank_ms=0),
    "bank alone": match_pb2.Clock(allowance_ms=0, bank_ms=200),
    "allowance and bank": match_pb2.Clock(allowance_ms=150, bank_ms=50),
    "with increment": match_pb2.Clock(allowance_ms=150, bank_ms=50, increment_ms=1_000),
}
LIMIT = 200 * MS
"""What each of these clocks gives the first decision."""


def asked(clock: match_pb2.Clock | None = None, *, now: int = 0, **fields: Any) -> Driver:
    """Returns a match whose first question has just been put."""
    driver = Driver(spec_of("regicide", clock=clock, **fields)).start()
    driver.ask(after=now)
    return driver


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("early", [1 * MS, 1])
def test_an_answer_received_before_the_deadline_counts(clock: str, early: int) -> None:
    events = asked(CLOCKS[clock]).answer("open", think_us=LIMIT - early)
    assert events[0].action_applied.source == event_pb2.ACTION_SOURCE_AGENT


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("late", [0, 1, 1 * MS])
def test_an_answer_received_at_the_deadline_or_later_does_not_count(clock: str, late: int) -> None:
    driver = asked(CLOCKS[clock])
    with pytest.raises(NotNowError, match="too late"):
        driver.answer("open", think_us=LIMIT + late)
    assert driver.match.offered_us is not None


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("late", [0, 1, 1 * MS])
def test_the_flag_falls_at_the_deadline(clock: str, late: int) -> None:
    driver = asked(CLOCKS[clock])
    assert driver.match.offered_us is not None
    driver.now = driver.match.offered_us + LIMIT + late
    (ruled,) = of_kind(driver.step(inputs.Tick()), "fault_ruled")
    assert (ruled.kind, ruled.think_us) == (match_pb2.FAULT_KIND_TIMEOUT, LIMIT + late)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("early", [1 * MS, 1])
def test_the_flag_does_not_fall_before_the_deadline(clock: str, early: int) -> None:
    driver = asked(CLOCKS[clock])
    with pytest.raises(NotNowError):
        driver.tick(early=early)


def test_an_answer_in_time_counts_although_it_is_dealt_with_after_the_deadline() -> None:
    events = asked(CLOCKS["allowance alone"]).answer("open", think_us=LIMIT - 1, read_after=50 * MS)
    assert events[0].action_applied.think_us == LIMIT - 1


@pytest.mark.parametrize(
    ("think_us", "left_us"), [(0, 50), (149_999, 50), (150_000, 50), (150_001, 49.999), (199_999, 0.001)]
)
def test_the_bank_pays_for_what_goes_beyond_the_allowance_only(think_us: int, left_us: float) -> None:
    driver = asked(CLOCKS["allowance and bank"])
    (applied, *_) = of_kind(driver.answer("open", think_us=think_us), "action_applied")
    assert applied.think_us == think_us
    assert applied.bank_us == driver.match.seats[0].bank_us == round(left_us * MS)


def test_an_increment_is_added_after_the_answer_and_not_before() -> None:
    driver = asked(CLOCKS["with increment"])
    (applied, *_) = of_kind(driver.answer("decline", think_us=LIMIT - 1), "action_applied")
    assert applied.bank_us == 1 + 1_000 * MS


def test_a_timeout_empties_the_bank_and_earns_no_increment() -> None:
    driver = asked(CLOCKS["with increment"])
    (ruled,) = of_kind(driver.tick(), "fault_ruled")
    assert ruled.bank_us == driver.match.seats[0].bank_us == 0


def test_after_a_timeout_there_is_the_allowance_alone() -> None:
    driver = asked(CLOCKS["allowance and bank"])
    driver.tick()
    driver.play(turns=1)  # the other seat
    driver.ask()
    assert driver.match.actor == 0
    assert driver.match.deadline_us == driver.now + 150 * MS


@pytest.mark.parametrize("clock", CLOCKS)
def test_instant_agents_never_lose_on_time(clock: str) -> None:
    spec = spec_of("guillotine", options={"deals_per_dealer": 1}, clock=CLOCKS[clock])
    driver = Driver(spec).start().play(dict.fromkeys(range(4), house("stride", think_us=1)))
    assert not of_kind(driver.events, "fault_ruled")
    assert driver.match.result is not None


def test_an_allowance_starts_anew_with_each_decision() -> None:
    spec = spec_of("guillotine", options={"deals_per_dealer": 1}, clock=CLOCKS["allowance alone"])
    driver = Driver(spec).start().play(dict.fromkeys(range(4), house("first", think_us=LIMIT - 1)))
    assert not of_kind(driver.events, "fault_ruled")


def test_a_bank_is_used_up_over_the_match() -> None:
    spec = spec_of("guillotine", options={"deals_per_dealer": 1}, clock=match_pb2.Clock(allowance_ms=100, bank_ms=100))
    driver = Driver(spec).start().play({1: house("first", think_us=130 * MS)})
    numbers = [ruled.decision_id for ruled in of_kind(driver.events, "fault_ruled")]
    assert numbers == [3, 4, 5]  # three times 30 ms are in the bank; then it is empty


def test_others_are_not_charged_while_one_thinks() -> None:
    spec = spec_of("guillotine", options={"deals_per_dealer": 1})
    driver = Driver(spec).start().play({1: at_limit()})
    assert [seat.bank_us == 60_000 * MS for seat in driver.match.seats] == [True, False, True, True]


def at_limit() -> Any:
    return house("first", think_us=5_001 * MS)


LIVE = match_pb2.Clock(untimed=True, liveness_ms=200)


@pytest.mark.parametrize("early", [1 * MS, 1])
def test_untimed_play_charges_nothing_within_its_liveness_limit(early: int) -> None:
    driver = asked(LIVE)
    driver.answer("open", think_us=LIMIT - early)
    assert driver.match.seats[0].bank_us == 0
    assert driver.match.seats[0].fault_count == 0


@pytest.mark.parametrize("late", [0, 1, 1 * MS])
def test_in_untimed_play_who_says_nothing_is_taken_for_dead_at_the_liveness_limit(late: int) -> None:
    driver = asked(LIVE)
    assert driver.match.offered_us is not None
    assert driver.machine.wake_at() == driver.match.offered_us + LIMIT
    driver.now = driver.match.offered_us + LIMIT + late
    (ruled,) = of_kind(driver.step(inputs.Tick()), "fault_ruled")
    assert ruled.kind == match_pb2.FAULT_KIND_TIMEOUT


@pytest.mark.parametrize("received", [-1, -1_000])
def test_an_answer_from_before_its_question_is_a_guess(received: int) -> None:
    driver = asked(now=5_000)
    with pytest.raises(NotNowError, match="outside the time"):
        driver.answer("open", think_us=received)


def test_an_answer_from_the_future_is_refused() -> None:
    driver = asked()
    assert driver.match.offered_us is not None
    with pytest.raises(NotNowError, match="outside the time"):
        driver.machine.step(inputs.Answer(0, 0, b"open", driver.now + 1), driver.now)


def asking_again(count: int, kind: match_pb2.FaultKind.ValueType) -> match_pb2.FaultPolicy:
    return match_pb2.FaultPolicy(rules=[match_pb2.FaultRule(kind=kind, ask_again_count=count)])


def test_a_question_put_again_keeps_its_clock() -> None:
    policy = asking_again(5, match_pb2.FAULT_KIND_MALFORMED)
    driver = asked(CLOCKS["allowance and bank"], policy=policy)
    deadline = driver.match.deadline_us
    for think_us in (10 * MS, 120 * MS, 190 * MS):
        (ruled,) = of_kind(driver.answer("?", think_us=think_us), "fault_ruled")
        assert (ruled.asked_again, ruled.think_us) == (True, think_us)
        assert driver.match.deadline_us == deadline
    (applied, *_) = of_kind(driver.answer("open", think_us=199 * MS), "action_applied")
    assert (applied.think_us, applied.bank_us) == (199 * MS, 1 * MS)


def test_a_question_put_again_flags_at_its_first_deadline() -> None:
    driver = asked(CLOCKS["allowance alone"], policy=asking_again(5, match_pb2.FAULT_KIND_MALFORMED))
    driver.answer("?", think_us=LIMIT - 1)
    assert of_kind(driver.tick(), "fault_ruled")[0].think_us == LIMIT


def test_a_wrong_answer_is_charged_for_like_a_right_one() -> None:
    driver = asked(CLOCKS["allowance and bank"])
    (ruled, *_) = of_kind(driver.answer("?", think_us=170 * MS), "fault_ruled")
    assert ruled.bank_us == driver.match.seats[0].bank_us == 30 * MS


def test_forced_decisions_are_not_put_and_cost_nothing() -> None:
    spec = spec_of("guillotine", options={"deals_per_dealer": 1}, clock=CLOCKS["with increment"])
    driver = Driver(spec).start().play()
    forced = [a for a in of_kind(driver.events, "action_applied") if a.source == event_pb2.ACTION_SOURCE_AUTO]
    asked_for = {(offered.seat, offered.decision_id) for offered in of_kind(driver.events, "decision_offered")}
    assert len(forced) >= 4
    assert not {(applied.seat, applied.decision_id) for applied in forced} & asked_for
    assert all(applied.think_us == 0 for applied in forced)
    assert all(seat.bank_us == 50 * MS + 1_000 * MS * asks(driver, seat.seat) for seat in driver.match.seats)


def asks(driver: Driver, seat: int) -> int:
    return sum(offered.seat == seat for offered in of_kind(driver.events, "decision_offered"))


def test_without_auto_play_every_decision_is_put() -> None:
    spec = spec_of("guillotine", options={"deals_per_dealer": 1}, auto_play=match_pb2.AUTO_PLAY_NEVER)
    driver = Driver(spec).start().play()
    assert len(of_kind(driver.events, "decision_offered")) == len(of_kind(driver.events, "action_applied"))


def test_the_time_a_question_waits_is_recorded_and_not_charged() -> None:
    driver = Driver(spec_of("regicide", clock=CLOCKS["allowance alone"])).start()
    driver.ask(wait_us=900 * MS, after=900 * MS)
    assert of_kind(driver.events, "decision_offered")[0].wait_us == 900 * MS
    assert driver.match.deadline_us == driver.now + LIMIT


@pytest.mark.parametrize("wait_us", [-1, 2**40])
def test_a_question_cannot_have_waited_longer_than_the_match_lasts(wait_us: int) -> None:
    driver = Driver(spec_of("regicide")).start()
    with pytest.raises(NotNowError):
        driver.ask(wait_us=wait_us)


def test_time_never_runs_backwards() -> None:
    driver = asked(now=1_000_000)
    (event, *_) = driver.machine.step(inputs.Lose(1), 5)
    assert event.match_time_us == driver.now


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_match_of_silence_ends(clock: str) -> None:
    spec = spec_of("regicide", options={"target": 5}, clock=CLOCKS[clock])
    driver = Driver(spec).start().play(dict.fromkeys(range(2), silent))
    assert driver.match.result is not None


def test_a_question_after_a_restart_has_its_whole_allowance_and_the_same_number() -> None:
    driver = asked(CLOCKS["allowance and bank"])
    driver.now += 190 * MS
    driver.step(inputs.Resume(1_700_000_000, 0))
    assert driver.match.offered_us is None
    decision = driver.ask(after=7)
    assert decision.number == 0
    assert driver.match.deadline_us == driver.now + LIMIT
