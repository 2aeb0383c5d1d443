"""Whatever happens to a match: it ends, its log verifies, and its result makes sense."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from match.driver import SECRET, Driver, Reply, of_kind, spec_of
from referee.v1 import event_pb2, match_pb2
from referee_games.contract import Decision, rank_places
from referee_server.match import inputs, spec
from referee_server.match.inputs import NotNowError
from referee_server.match.machine import Machine
from referee_server.match.record import record
from referee_server.match.seat import OPEN
from referee_server.match.transcript import transcript
from referee_server.match.verify import replay, verify
from referee_server.match.views import Projector

GAMES: list[tuple[str, dict[str, object]]] = [
    ("guillotine", {"deals_per_dealer": 1}),
    ("guillotine", {"deals_per_dealer": 1, "domino_pass": "free", "rank_order": "french"}),
    ("regicide", {"target": 20}),
    ("regicide", {"players": 3, "target": 5, "tie": "split", "change": "both"}),
    ("regicide", {"players": 4, "pairs": True, "stock": "exchange", "max_deals": 3}),
]
CLOCKS = [
    match_pb2.Clock(),
    match_pb2.Clock(allowance_ms=100, bank_ms=0),
    match_pb2.Clock(allowance_ms=0, bank_ms=2_000, increment_ms=50),
    match_pb2.Clock(allowance_ms=50, bank_ms=500, reconnect_grace_ms=0),
    match_pb2.Clock(untimed=True, liveness_ms=100),
]


@st.composite
def policies(draw: st.DrawFn) -> match_pb2.FaultPolicy:
    policy = match_pb2.FaultPolicy(strikes=draw(st.sampled_from([0, 1, 3])), replacement_bot="stride")
    for kind, (actions, _) in spec._RULES.items():
        rule = policy.rules.add(kind=kind, action=draw(st.sampled_from(actions)), strike=draw(st.booleans()))
        if kind in spec._MAY_ASK_AGAIN:
            rule.ask_again_count = draw(st.integers(0, 2))
        if rule.action == match_pb2.FAULT_ACTION_SUBSTITUTE:
            rule.bot = draw(st.sampled_from(["", "first", "random"]))
    return policy


class Chaos:
    """Agents that answer, err, dawdle and vanish at random, and a referee that is started again now and then."""

    def __init__(self, driver: Driver, chance: random.Random, wildness: float) -> None:
        self.driver = driver
        self.chance = chance
        self.wildness = wildness

    def reply(self, decision: Decision) -> Reply | None:
        think_us = int(self.chance.expovariate(1 / 20_000))
        if self.chance.random() > self.wildness:
            return self.chance.choice(decision.legal).encode(), think_us
        raw = self.chance.choice([None, b"", b"\xff", b"KS", b"x" * self.chance.randrange(600), b"contract:domino"])
        return None if raw is None else (raw, think_us)

    def disturb(self) -> None:
        driver, chance = self.driver, self.chance
        seat = chance.randrange(len(driver.match.seats))
        driver.now += chance.randrange(5_000)
        given: inputs.Input = chance.choice(
            [
                inputs.Lose(seat, left=chance.random() < 0.1),
                inputs.Regain(seat),
                inputs.Stray(seat, chance.randrange(50), b"y" * chance.randrange(400), 7),
                inputs.Tick(chance.randrange(100)),
                inputs.Accuse(seat, chance.choice(inputs.ACCUSATIONS)),
                inputs.Decline(seat),
                inputs.Resume(1, 2),
                inputs.Stop(match_pb2.END_REASON_CANCELLED, "") if chance.random() < 0.02 else inputs.Tick(),
            ]
        )
        try:
            driver.step(given)
        except NotNowError:
            return
        if isinstance(given, inputs.Resume):
            driver.match = replay(driver.events)
            driver.machine = Machine(driver.match, SECRET)

    def start(self) -> None:
        driver, chance = self.driver, self.chance
        while driver.match.state == match_pb2.MATCH_STATE_WAITING:
            if chance.random() < self.wildness / 3:
                self.disturb()
                continue
            for number in range(len(driver.match.seats)):
                seat = driver.match.seats[number]
                try:
                    if seat.kind == OPEN:
                        driver.now += chance.randrange(5_000_000)
                        name = chance.choice(["eve", "ian", "lia", "lot"])
                        driver.step(inputs.Fill(number, f"id-{name}", name))
                    elif chance.random() < self.wildness / 5 and driver.machine.wake_at() is not None:
                        driver.tick()
                    elif seat.offered_us is None:
                        driver.step(inputs.OfferSeat(seat.seat))
                    elif chance.random() < self.wildness / 5:
                        driver.step(inputs.Decline(seat.seat))
                    else:
                        driver.step(inputs.Ready(seat.seat, chance.choice([b"", chance.randbytes(32)])))
                except NotNowError:
                    continue

    def play(self) -> None:
        self.start()
        for _ in range(20_000):
            if self.driver.match.over:
                return
            if self.chance.random() < self.wildness / 3:
                self.disturb()
            if self.driver.match.agent_due() is not None and self.chance.random() < 0.1:
                self.driver.ask(transit_us=self.chance.randrange(50_000))
                deadline = self.driver.match.deadline_us
                if deadline is None or deadline > self.driver.now + 40_000:
                    self.driver.answer("open", think_us=40_000, lateness_us=self.chance.randrange(40_000))
                else:
                    self.driver.tick()
            self.driver.play(dict.fromkeys(range(4), self.reply), turns=1)
        raise AssertionError("the match does not end")


@settings(max_examples=60)
@given(
    game=st.sampled_from(GAMES),
    clock=st.sampled_from(CLOCKS),
    policy=policies(),
    seed=st.integers(0, 2**32),
    wildness=st.sampled_from([0.0, 0.02, 0.1, 0.5, 1.0]),
    opened=st.sets(st.integers(0, 3)),
)
def test_any_match_ends_verifies_and_has_a_sane_result(
    game: tuple[str, dict[str, object]],
    clock: match_pb2.Clock,
    policy: match_pb2.FaultPolicy,
    seed: int,
    wildness: float,
    opened: set[int],
) -> None:
    asked = spec_of(game[0], options=game[1], first_dealer=None, clock=clock, policy=policy)
    for number, seat in enumerate(asked.seats):
        if number in opened:
            seat.open.SetInParent()
    driver = Driver(asked)
    Chaos(driver, random.Random(seed), wildness).play()
    events = driver.events

    verify(events)
    verify(events[:-1])
    assert replay(events).result == driver.match.result
    json.dumps(record(events))
    assert list(transcript(events))
    for audience in range(-1, len(driver.match.seats)):
        Projector(audience, driver.match.game).see(events)
    check_reopenings(driver)
    check_result(driver)
    check_clocks(driver)
    check_decisions(driver)


def check_reopenings(driver: Driver) -> None:
    """Who takes an open seat is blamed for nothing before the start, and after it keeps the seat."""
    started = False
    for event in driver.events:
        started = started or event.HasField("match_started")
        was_open = driver.match.created.spec.seats[event.fault_ruled.seat].HasField("open")
        assert started or not event.HasField("fault_ruled") or not was_open
        assert not (started and event.HasField("seat_reopened"))
        assert not event.HasField("seat_reopened") or driver.match.seats[event.seat_reopened.seat].was_open


def check_result(driver: Driver) -> None:
    match, result = driver.match, driver.match.result
    assert result is not None
    assert list(result.fault_counts) == [
        sum(ruled.seat == seat.seat for ruled in of_kind(driver.events, "fault_ruled")) for seat in match.seats
    ]
    if result.reason not in (match_pb2.END_REASON_COMPLETED, match_pb2.END_REASON_FORFEITED):
        assert not [*result.totals, *result.places, *result.official_places]
        return
    sides = range(len(match.sides))
    offending = {side for side in sides if any(match.seats[seat].offender for seat in match.sides[side])}
    clean = [side for side in sides if side not in offending]
    places, official = list(result.places), list(result.official_places)
    assert places == list(rank_places(result.totals, lowest_wins=match.game.lowest_wins))
    assert [official[side] for side in clean] == list(rank_places([places[side] for side in clean], lowest_wins=True))
    assert all(official[side] == len(clean) + 1 for side in offending)


def check_clocks(driver: Driver) -> None:
    """Nobody but who is at fault ever has less than the bank he started with and spent himself."""
    spent = dict.fromkeys(range(4), 0)
    clock = driver.match.created.spec.clock
    if clock.untimed:
        assert all(seat.bank_us == 0 for seat in driver.match.seats)
        return
    for event in driver.events:
        applied, ruled = event.action_applied, event.fault_ruled
        if applied.source == event_pb2.ACTION_SOURCE_AGENT:
            over = max(0, applied.think_us - clock.allowance_ms * 1_000)
            spent[applied.seat] += over - clock.increment_ms * 1_000
            assert applied.bank_us == clock.bank_ms * 1_000 - spent[applied.seat] >= 0
        elif event.HasField("fault_ruled") and ruled.HasField("decision_id") and not ruled.asked_again:
            assert 0 <= ruled.bank_us <= clock.bank_ms * 1_000 - spent[ruled.seat]
            spent[ruled.seat] = clock.bank_ms * 1_000 - ruled.bank_us


def check_decisions(driver: Driver) -> None:
    """Every decision of a seat is closed once, in order: by an action, or by a ruling that voids or ends."""
    closed = [0] * 4
    for event in driver.events:
        applied, ruled = event.action_applied, event.fault_ruled
        if event.HasField("action_applied"):
            assert applied.decision_id == closed[applied.seat]
            closed[applied.seat] += 1
        elif event.HasField("fault_ruled") and ruled.HasField("decision_id"):
            assert ruled.decision_id == closed[ruled.seat]
            voids = ruled.action == match_pb2.FAULT_ACTION_VOID_DEAL and not ruled.asked_again
            closed[ruled.seat] += voids


@pytest.mark.parametrize("game", ["guillotine", "regicide"])
def test_equal_inputs_give_equal_logs(game: str) -> None:
    logs = []
    for _ in range(2):
        driver = Driver(spec_of(game, options={"deals_per_dealer": 1} if game == "guillotine" else {"target": 20}))
        Chaos(driver, random.Random(11), 0.2).play()
        logs.append([event.SerializeToString(deterministic=True) for event in driver.events])
    assert logs[0] == logs[1]
