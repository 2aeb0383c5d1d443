"""One log of each sort, played once and shared by the tests."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from match.driver import Driver, at, house, says, silent, spec_of
from referee.v1 import event_pb2, match_pb2
from referee_server.match import inputs

RULE = match_pb2.FaultRule
_NONCES = (b"\1" * 32, b"", b"\3" * 32, b"\4" * 32)
_FAST = match_pb2.Clock(allowance_ms=100, bank_ms=300, increment_ms=5)


def _policy(*rules: match_pb2.FaultRule, **fields: int) -> match_pb2.FaultPolicy:
    return match_pb2.FaultPolicy(rules=rules, replacement_bot="stride", **fields)


def _guillotine() -> Driver:
    again = RULE(kind=match_pb2.FAULT_KIND_MALFORMED, ask_again_count=1)
    spec = spec_of("guillotine", options={"deals_per_dealer": 1}, first_dealer=None, clock=_FAST, policy=_policy(again))
    agents = {
        0: at([3, 11], silent, house("stride", think_us=110_000)),
        1: at([2, 5, 9], says("QQ"), house("random")),
        2: at([6], says("contract:domino"), house("stride")),
        3: house("stride", think_us=104_321),
    }
    return Driver(spec).start(*_NONCES).play(agents)


def _regicide() -> Driver:
    by_bot = RULE(kind=match_pb2.FAULT_KIND_TIMEOUT, bot="first")
    options = {"stock": "exchange", "max_deals": 1, "change": "both"}
    driver = Driver(spec_of("regicide", "anna", "open", options=options, clock=_FAST, policy=_policy(by_bot)))
    driver.step(inputs.Fill(1, "id-eve", "eve"), after=500)
    driver.start(*_NONCES).play(turns=3)
    driver.ask(wait_us=70, transit_us=9_000, after=100)
    driver.step(inputs.Stray(1, 40, b"early", event_pb2.ANSWER_STATUS_NOT_OPEN), after=20)
    driver.answer("9D" * 200, think_us=50_000, lateness_us=4_000)
    driver.step(inputs.Lose(1), after=3)
    driver.step(inputs.Regain(1), after=3)
    driver.step(inputs.Resume(1_700_000_000, 5), after=3)
    return driver.play({0: at([5], silent, house("stride")), 1: at([4], silent)})


def _resumed() -> Driver:
    driver = Driver(spec_of("regicide", options={"max_deals": 1}))
    driver.step(inputs.OfferSeat(0))
    driver.step(inputs.Resume(1_700_000_000, 0), after=10)
    driver.start().play(turns=6)
    driver.ask()
    driver.step(inputs.Resume(1_700_000_001, 0), after=10)
    driver.step(inputs.Regain(0))
    return driver.play()


def _reopened() -> Driver:
    """A seat that four agents take and give back, each for another reason, before a fifth plays."""
    clock = match_pb2.Clock(connect_ms=30, ready_ms=60)
    driver = Driver(spec_of("regicide", "anna", "open", options={"max_deals": 1}, clock=clock))

    def taken(name: str, *, ready: bool = False) -> None:
        driver.step(inputs.Fill(1, f"id-{name}", name), after=7)
        if driver.match.seats[0].offered_us is None:
            driver.step(inputs.OfferSeat(0))
            driver.step(inputs.Ready(0, b"\1" * 32))
        driver.step(inputs.OfferSeat(1))
        if ready:
            driver.step(inputs.Ready(1, b"\2" * 32))

    taken("lia")
    driver.step(inputs.Lose(1, left=True), after=5)
    taken("lot")
    driver.step(inputs.Lose(1), after=5)
    driver.tick()
    taken("dan")
    driver.step(inputs.Decline(1), after=5)
    taken("ned")
    driver.tick()
    driver.step(inputs.Fill(1, "id-eve", "eve"), after=5)
    return driver.start(b"", b"\5" * 32).play()


def _late() -> Driver:
    driver = Driver(spec_of("regicide", options={"max_deals": 1}, clock=_FAST, policy=_policy())).start()
    for _ in range(4):
        decision = driver.ask(transit_us=20_000, after=5)
        driver.answer(decision.legal[0], think_us=130_000, lateness_us=15_000)
    driver.ask(transit_us=30_000)
    driver.tick()
    driver.step(inputs.Accuse(1, match_pb2.FAULT_KIND_FLOOD), after=50)
    driver.play(turns=3)
    driver.ask()
    driver.step(inputs.Accuse(0, match_pb2.FAULT_KIND_CRASH), after=50)
    return driver.play()


def _cancelled(turns: int) -> Driver:
    driver = Driver(spec_of("guillotine"))
    if turns:
        driver.start().play(turns=turns)
    driver.step(inputs.Stop(match_pb2.END_REASON_CANCELLED, "rain"), after=5)
    return driver


def _not_started() -> Driver:
    driver = Driver(spec_of("regicide"))
    driver.step(inputs.OfferSeat(0))
    driver.step(inputs.Ready(0, b"\1" * 32))
    driver.tick()
    return driver


def _voided() -> Driver:
    void = RULE(kind=match_pb2.FAULT_KIND_TIMEOUT, action=match_pb2.FAULT_ACTION_VOID_DEAL)
    options = {"players": 3, "max_deals": 3}
    return Driver(spec_of("regicide", options=options, policy=_policy(void, strikes=2))).start().play({2: silent})


def _forfeited() -> Driver:
    forfeit = RULE(kind=match_pb2.FAULT_KIND_ILLEGAL, action=match_pb2.FAULT_ACTION_FORFEIT)
    spec = spec_of("guillotine", policy=_policy(forfeit))
    return Driver(spec).start().play({1: at([4], says("contract:domino"))})


def _lost() -> Driver:
    driver = Driver(spec_of("regicide", options={"max_deals": 1}, clock=match_pb2.Clock(untimed=True))).start()
    driver.play(turns=5)
    driver.step(inputs.Lose(1, left=True), after=5)
    driver.tick()
    return driver.play()


def _pairs() -> Driver:
    options = {"players": 4, "pairs": True, "target": 10, "joker": "as_trump", "first_change": "not_leader"}
    return Driver(spec_of("regicide", options=options)).start().play(dict.fromkeys(range(4), house("random")))


def _bots() -> Driver:
    spec = spec_of("guillotine", *["bot:random", "bot:stride"] * 2, options={"deals_per_dealer": 1})
    return Driver(spec).play()


LOGS: Final[dict[str, Callable[[], Driver]]] = {
    "guillotine": _guillotine,
    "regicide": _regicide,
    "resumed": _resumed,
    "reopened": _reopened,
    "late": _late,
    "cancelled": lambda: _cancelled(9),
    "cancelled at once": lambda: _cancelled(0),
    "not started": _not_started,
    "voided": _voided,
    "forfeited": _forfeited,
    "lost": _lost,
    "pairs": _pairs,
    "house bots": _bots,
}


@cache
def log(name: str) -> Driver:
    """Returns one of `LOGS`. Its events are shared: copy before changing any."""
    return LOGS[name]()
