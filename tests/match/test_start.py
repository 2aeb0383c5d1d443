"""How a match comes about, how streams are lost, and how it is stopped."""

from __future__ import annotations

import pytest

from match.driver import SECRET, Driver, house, of_kind, spec_of
from referee.v1 import event_pb2, match_pb2
from referee_games import dealing
from referee_server.match import inputs
from referee_server.match.inputs import NotNowError
from referee_server.match.verify import verify

NO_SHOW = match_pb2.FAULT_KIND_NO_SHOW
START_TIMEOUT = match_pb2.FAULT_KIND_START_TIMEOUT
DISCONNECT = match_pb2.FAULT_KIND_DISCONNECT
CLOCK = match_pb2.Clock(connect_ms=30, ready_ms=60, reconnect_grace_ms=20)


def waiting(*seats: str, policy: match_pb2.FaultPolicy | None = None) -> Driver:
    return Driver(spec_of("regicide", *seats, options={"max_deals": 1}, clock=CLOCK, policy=policy))


def replacing(kind: match_pb2.FaultKind.ValueType) -> match_pb2.FaultPolicy:
    return match_pb2.FaultPolicy(rules=[match_pb2.FaultRule(kind=kind, action=match_pb2.FAULT_ACTION_REPLACE)])


def faults(driver: Driver) -> list[event_pb2.FaultRuled]:
    return of_kind(driver.events, "fault_ruled")


def test_a_match_of_house_bots_starts_by_itself() -> None:
    driver = waiting("bot:first", "bot:stride")
    assert driver.match.state == match_pb2.MATCH_STATE_RUNNING
    driver.play()
    verify(driver.events)


def test_a_match_starts_when_the_last_seat_is_ready() -> None:
    driver = waiting()
    driver.step(inputs.OfferSeat(0))
    driver.step(inputs.OfferSeat(1))
    driver.step(inputs.Ready(1, b""))
    assert driver.match.state == match_pb2.MATCH_STATE_WAITING
    driver.step(inputs.Ready(0, b""))
    assert driver.match.state == match_pb2.MATCH_STATE_RUNNING


def test_no_card_is_drawn_before_the_last_nonce_is_in() -> None:
    driver = waiting()
    driver.step(inputs.OfferSeat(0))
    driver.step(inputs.Ready(0, b"\1" * 32))
    assert not of_kind(driver.events, "cards_dealt")


def test_the_nonces_are_in_the_cards() -> None:
    nonces = [b"\1" * 32, b""]
    driver = waiting().start(*nonces)
    seed = dealing.match_seed(driver.match.deal_id, SECRET, nonces)
    pack = dealing.deal_pack(seed, 0, driver.match.game.pack)
    assert list(of_kind(driver.events, "cards_dealt")[0].pack) == pack


@pytest.mark.parametrize("size", [1, 31, 33, 1_000_000])
def test_a_nonce_of_another_length_is_refused(size: int) -> None:
    driver = waiting()
    driver.step(inputs.OfferSeat(0))
    with pytest.raises(NotNowError, match="nonce"):
        driver.step(inputs.Ready(0, bytes(size)))
    driver.step(inputs.Ready(0, bytes(32)))


def test_in_duplicate_play_no_nonce_is_taken() -> None:
    driver = Driver(spec_of("regicide"), nonces_taken=False)
    driver.step(inputs.OfferSeat(0))
    with pytest.raises(NotNowError, match="nonce"):
        driver.step(inputs.Ready(0, bytes(32)))
    driver.step(inputs.Ready(0, b""))


def test_a_seat_is_ready_once_and_only_after_it_was_asked() -> None:
    driver = waiting()
    with pytest.raises(NotNowError):
        driver.step(inputs.Ready(0, b""))
    driver.step(inputs.OfferSeat(0))
    driver.step(inputs.Ready(0, b""))
    with pytest.raises(NotNowError):
        driver.step(inputs.Ready(0, b"\2" * 32))


@pytest.mark.parametrize(("early", "flagged"), [(1_000, False), (1, False), (0, True)])
def test_who_is_not_there_in_time_is_a_no_show(early: int, flagged: bool) -> None:
    driver = waiting()
    if not flagged:
        with pytest.raises(NotNowError):
            driver.tick(early=early)
        return
    driver.tick()
    assert driver.now == 30_000
    assert [(ruled.seat, ruled.kind, ruled.rule) for ruled in faults(driver)] == [(0, NO_SHOW, "no_show: cancel")]
    assert driver.match.result is not None
    assert driver.match.result.reason == match_pb2.END_REASON_NOT_STARTED
    assert not driver.match.result.places
    verify(driver.events)


@pytest.mark.parametrize(("early", "flagged"), [(1_000, False), (1, False), (0, True)])
def test_who_is_not_ready_in_time_is_too_late_for_the_start(early: int, flagged: bool) -> None:
    driver = waiting()
    driver.step(inputs.OfferSeat(0), after=5_000)
    driver.step(inputs.OfferSeat(1))
    driver.step(inputs.Ready(1, b""))
    if not flagged:
        with pytest.raises(NotNowError):
            driver.tick(early=early)
        return
    driver.tick()
    assert driver.now == 5_000 + 60_000
    assert [(ruled.seat, ruled.kind) for ruled in faults(driver)] == [(0, START_TIMEOUT)]
    verify(driver.events)


@pytest.mark.parametrize("kind", [NO_SHOW, START_TIMEOUT])
def test_a_missing_agent_can_be_replaced_so_that_the_others_have_their_match(
    kind: match_pb2.FaultKind.ValueType,
) -> None:
    driver = waiting(policy=replacing(kind))
    if kind == START_TIMEOUT:
        driver.step(inputs.OfferSeat(0))
    driver.step(inputs.OfferSeat(1))
    driver.step(inputs.Ready(1, b""))
    driver.tick()
    assert of_kind(driver.events, "seat_replaced")[0].seat == 0
    driver.play()
    assert driver.match.result is not None
    assert list(driver.match.result.official_places) == [2, 1]
    verify(driver.events)


def test_who_declines_is_ruled_on_like_who_is_not_ready() -> None:
    driver = waiting()
    driver.step(inputs.OfferSeat(1))
    driver.step(inputs.Decline(1))
    assert [(ruled.seat, ruled.kind) for ruled in faults(driver)] == [(1, START_TIMEOUT)]
    assert driver.match.over
    verify(driver.events)


def test_a_decline_verifies_although_another_seat_is_overdue() -> None:
    driver = waiting(policy=replacing(START_TIMEOUT))
    driver.step(inputs.OfferSeat(0))
    driver.step(inputs.OfferSeat(1))
    driver.step(inputs.Decline(1), after=70_000)
    driver.tick()
    assert [ruled.seat for ruled in faults(driver)] == [1, 0]
    driver.play()
    verify(driver.events)


def test_nobody_can_decline_what_is_not_on_offer() -> None:
    driver = waiting()
    with pytest.raises(NotNowError):
        driver.step(inputs.Decline(0))
    driver.start()
    with pytest.raises(NotNowError):
        driver.step(inputs.Decline(0))


def test_an_open_seat_is_filled_once_and_the_time_starts_then() -> None:
    driver = waiting("anna", "open")
    assert driver.machine.wake_at() is None
    driver.step(inputs.Fill(1, "id-eve", "eve"), after=1_000_000)
    assert driver.machine.wake_at() == 1_000_000 + 30_000
    with pytest.raises(NotNowError):
        driver.step(inputs.Fill(1, "id-ian", "ian"))
    driver.start().play()
    assert driver.match.seats[1].name == "eve"
    verify(driver.events)


def test_a_seat_is_not_offered_before_all_are_filled() -> None:
    driver = waiting("anna", "open")
    with pytest.raises(NotNowError):
        driver.step(inputs.OfferSeat(0))


def test_a_lost_agent_has_its_grace() -> None:
    driver = waiting().start()
    driver.step(inputs.Lose(1), after=100)
    lost = driver.now
    with pytest.raises(NotNowError):
        driver.tick(early=1)
    driver.tick()
    assert driver.now == lost + 20_000
    assert [(ruled.seat, ruled.kind, ruled.rule) for ruled in faults(driver)] == [
        (1, DISCONNECT, "disconnect: replace")
    ]
    assert not faults(driver)[0].HasField("decision_id")
    assert of_kind(driver.events, "seat_replaced")
    driver.play()
    verify(driver.events)


def test_an_agent_that_comes_back_in_time_goes_on() -> None:
    driver = waiting().start()
    driver.step(inputs.Lose(1))
    driver.step(inputs.Regain(1), after=19_999)
    assert driver.machine.wake_at() is None
    driver.play()
    assert not faults(driver)
    verify(driver.events)


def test_who_said_goodbye_is_not_waited_for() -> None:
    driver = waiting().start()
    driver.step(inputs.Lose(1, left=True))
    driver.tick()
    assert driver.now == driver.events[-1].match_time_us
    assert [(ruled.seat, ruled.kind) for ruled in faults(driver)] == [(1, DISCONNECT)]


def test_to_be_lost_twice_is_no_second_grace() -> None:
    driver = waiting().start()
    driver.step(inputs.Lose(1))
    due = driver.machine.wake_at()
    driver.step(inputs.Lose(1), after=15_000)
    assert driver.machine.wake_at() == due


def test_the_clock_of_a_lost_agent_runs_on() -> None:
    driver = waiting().start()
    driver.ask()
    deadline = driver.match.deadline_us
    driver.step(inputs.Lose(0))
    driver.step(inputs.Regain(0), after=10_000)
    assert driver.match.deadline_us == deadline


def test_an_agent_that_is_lost_while_it_is_asked_leaves_its_question_to_the_bot() -> None:
    driver = waiting().start()
    driver.ask()
    driver.step(inputs.Lose(0))
    driver.tick()
    assert driver.match.bot_due() == (0, "greedy", 0)
    assert driver.match.deadline_us is None
    driver.play()
    verify(driver.events)


def test_losing_the_connection_can_forfeit() -> None:
    forfeit = match_pb2.FaultRule(kind=DISCONNECT, action=match_pb2.FAULT_ACTION_FORFEIT)
    driver = waiting(policy=match_pb2.FaultPolicy(rules=[forfeit])).start()
    driver.ask()
    driver.step(inputs.Lose(1))
    driver.tick()
    assert driver.match.result is not None
    assert list(driver.match.result.official_places) == [1, 2]
    verify(driver.events)


def test_losses_do_not_touch_the_others() -> None:
    driver = waiting().start()
    driver.step(inputs.Lose(1))
    driver.tick()
    driver.play({0: house("stride")})
    state = driver.match.seats[0]
    assert (state.fault_count, state.strike_count, state.bank_us) == (0, 0, 60_000_000)


@pytest.mark.parametrize("reason", [match_pb2.END_REASON_CANCELLED, match_pb2.END_REASON_REFEREE_FAULT])
@pytest.mark.parametrize("turns", [0, 5])
def test_a_match_that_is_stopped_has_no_result_and_reveals_its_secret(
    reason: match_pb2.EndReason.ValueType, turns: int
) -> None:
    driver = waiting()
    if turns:
        driver.start().play(turns=turns)
    events = driver.step(inputs.Stop(reason, "rain"))
    assert [event.WhichOneof("payload") for event in events] == ["match_ended", "secret_revealed"]
    ended = events[0].match_ended
    assert (ended.result.reason, ended.note, list(ended.result.places)) == (reason, "rain", [])
    assert driver.match.state == match_pb2.MATCH_STATE_CANCELLED
    assert driver.machine.wake_at() is None
    verify(driver.events)


@pytest.mark.parametrize(
    "reason",
    [reason for reason in match_pb2.EndReason.values() if reason not in inputs.STOP_REASONS],
)
def test_a_match_cannot_be_stopped_with_a_result(reason: match_pb2.EndReason.ValueType) -> None:
    with pytest.raises(NotNowError):
        waiting().start().step(inputs.Stop(reason, ""))


def test_after_a_restart_everybody_has_the_grace_to_come_back() -> None:
    driver = waiting().start()
    driver.step(inputs.Resume(1_700_000_000, 0), after=1_000)
    assert driver.machine.wake_at() == driver.now + 20_000
    driver.step(inputs.Regain(0))
    driver.step(inputs.Regain(1))
    driver.play()
    verify(driver.events)


def test_after_a_restart_the_time_to_get_ready_starts_anew() -> None:
    driver = waiting()
    driver.step(inputs.OfferSeat(0))
    driver.step(inputs.Resume(1_700_000_000, 0), after=29_000)
    assert driver.machine.wake_at() == 29_000 + 30_000
    driver.start().play()
    verify(driver.events)
