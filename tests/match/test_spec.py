"""What a host may ask for, and which field is named when it cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from match.driver import spec_of
from referee.v1 import match_pb2
from referee_games import registry
from referee_server.match import spec
from referee_server.match.errors import RefusedError

Change = Callable[[match_pb2.MatchSpec], Any]
RULE = match_pb2.FaultRule
TIMEOUT = match_pb2.FAULT_KIND_TIMEOUT
MALFORMED = match_pb2.FAULT_KIND_MALFORMED
DISCONNECT = match_pb2.FAULT_KIND_DISCONNECT
NO_SHOW = match_pb2.FAULT_KIND_NO_SHOW


def clock(**fields: Any) -> Change:
    return lambda asked: asked.clock.CopyFrom(match_pb2.Clock(**fields))


def rules(*given: match_pb2.FaultRule, **fields: Any) -> Change:
    return lambda asked: asked.policy.CopyFrom(match_pb2.FaultPolicy(rules=given, **fields))


def seat(number: int, **fields: Any) -> Change:
    return lambda asked: asked.seats[number].CopyFrom(match_pb2.SeatSpec(**fields))


def put(**fields: Any) -> Change:
    return lambda asked: asked.MergeFrom(match_pb2.MatchSpec(**fields))


def check(asked: match_pb2.MatchSpec) -> match_pb2.MatchSpec:
    game = spec.find_game(asked.game)
    options = spec.configure(game, {})
    spec.check_seats(asked, game, options)
    return spec.settle(asked)


BAD: dict[str, tuple[Change, str, str]] = {
    "allowance below 0": (clock(allowance_ms=-1), "FIELD_INVALID", "spec.clock.allowance_ms"),
    "allowance above a day": (clock(allowance_ms=86_400_001), "FIELD_INVALID", "spec.clock.allowance_ms"),
    "allowance of 2**63 - 1": (clock(allowance_ms=2**63 - 1), "FIELD_INVALID", "spec.clock.allowance_ms"),
    "bank below 0": (clock(bank_ms=-1), "FIELD_INVALID", "spec.clock.bank_ms"),
    "increment above an hour": (clock(increment_ms=3_600_001), "FIELD_INVALID", "spec.clock.increment_ms"),
    "no time to connect": (clock(connect_ms=0), "FIELD_INVALID", "spec.clock.connect_ms"),
    "no time to be ready": (clock(ready_ms=0), "FIELD_INVALID", "spec.clock.ready_ms"),
    "grace below 0": (clock(reconnect_grace_ms=-5), "FIELD_INVALID", "spec.clock.reconnect_grace_ms"),
    "liveness of nothing": (clock(untimed=True, liveness_ms=0), "FIELD_INVALID", "spec.clock.liveness_ms"),
    "shutdown above an hour": (clock(shutdown_ms=3_600_001), "FIELD_INVALID", "spec.clock.shutdown_ms"),
    "no time at all": (clock(allowance_ms=0, bank_ms=0), "FIELD_INVALID", "spec.clock.allowance_ms"),
    "increments alone": (clock(allowance_ms=0, bank_ms=0, increment_ms=9), "FIELD_INVALID", "spec.clock.allowance_ms"),
    "untimed with a bank": (clock(untimed=True, bank_ms=5), "FIELD_INVALID", "spec.clock.bank_ms"),
    "strikes below 0": (rules(strikes=-1), "FIELD_INVALID", "spec.policy.strikes"),
    "strikes above 1000": (rules(strikes=1_001), "FIELD_INVALID", "spec.policy.strikes"),
    "unknown replacement": (rules(replacement_bot="deep"), "BOT_UNKNOWN", "spec.policy.replacement_bot"),
    "two rules of a kind": (
        rules(RULE(kind=TIMEOUT), RULE(kind=TIMEOUT)),
        "FIELD_INVALID",
        "spec.policy.rules[1].kind",
    ),
    "a rule of no kind": (rules(RULE()), "FIELD_INVALID", "spec.policy.rules[0].kind"),
    "a rule of an unknown kind": (
        rules(RULE(kind=match_pb2.FaultKind.ValueType(99))),
        "FIELD_INVALID",
        "spec.policy.rules[0].kind",
    ),
    "cancel on a timeout": (
        rules(RULE(kind=TIMEOUT, action=match_pb2.FAULT_ACTION_CANCEL)),
        "FIELD_INVALID",
        "spec.policy.rules[0].action",
    ),
    "substitute a lost agent's action": (
        rules(RULE(kind=DISCONNECT, action=match_pb2.FAULT_ACTION_SUBSTITUTE)),
        "FIELD_INVALID",
        "spec.policy.rules[0].action",
    ),
    "void before the start": (
        rules(RULE(kind=NO_SHOW, action=match_pb2.FAULT_ACTION_VOID_DEAL)),
        "FIELD_INVALID",
        "spec.policy.rules[0].action",
    ),
    "an unknown action": (
        rules(RULE(kind=TIMEOUT, action=match_pb2.FaultAction.ValueType(77))),
        "FIELD_INVALID",
        "spec.policy.rules[0].action",
    ),
    "asking again after a timeout": (
        rules(RULE(kind=TIMEOUT, ask_again_count=1)),
        "FIELD_INVALID",
        "spec.policy.rules[0].ask_again_count",
    ),
    "asking again 11 times": (
        rules(RULE(kind=TIMEOUT), RULE(kind=MALFORMED, ask_again_count=11)),
        "FIELD_INVALID",
        "spec.policy.rules[1].ask_again_count",
    ),
    "asking again -1 times": (
        rules(RULE(kind=MALFORMED, ask_again_count=-1)),
        "FIELD_INVALID",
        "spec.policy.rules[0].ask_again_count",
    ),
    "an unknown substitute": (rules(RULE(kind=TIMEOUT, bot="deep")), "BOT_UNKNOWN", "spec.policy.rules[0].bot"),
    "a substitute where there is none": (
        rules(RULE(kind=TIMEOUT, action=match_pb2.FAULT_ACTION_FORFEIT, bot="first")),
        "FIELD_INVALID",
        "spec.policy.rules[0].bot",
    ),
    "unknown auto-play": (put(auto_play=9), "FIELD_INVALID", "spec.auto_play"),
    "a short secret": (put(given_secret=bytes(31)), "FIELD_INVALID", "spec.given_secret"),
    "a long secret": (put(given_secret=bytes(33)), "FIELD_INVALID", "spec.given_secret"),
    "a long label": (put(label="x" * 81), "FIELD_INVALID", "spec.label"),
    "a label with an escape": (put(label="\x1b[2J"), "FIELD_INVALID", "spec.label"),
    "a label of two lines": (put(label="a\nb"), "FIELD_INVALID", "spec.label"),
    "a label with its direction turned": (put(label="a\u202eb"), "FIELD_INVALID", "spec.label"),
    "no seats": (lambda asked: asked.ClearField("seats"), "SEAT_COUNT", "spec.seats"),
    "a seat too few": (lambda asked: asked.seats.pop(), "SEAT_COUNT", "spec.seats"),
    "a seat too many": (lambda asked: asked.seats.add(agent="eve"), "SEAT_COUNT", "spec.seats"),
    "a seat for nobody": (seat(1), "FIELD_INVALID", "spec.seats[1]"),
    "an agent without a name": (seat(1, agent=""), "FIELD_INVALID", "spec.seats[1].agent"),
    "an agent twice": (seat(3, agent="anna"), "AGENT_REPEATED", "spec.seats[3]"),
    "an unknown bot": (seat(2, bot="deep"), "BOT_UNKNOWN", "spec.seats[2].bot"),
    "a bot without a name": (seat(2, bot=""), "BOT_UNKNOWN", "spec.seats[2].bot"),
    "first dealer -1": (put(first_dealer=-1), "FIELD_INVALID", "spec.first_dealer"),
    "first dealer 4 of 4": (put(first_dealer=4), "FIELD_INVALID", "spec.first_dealer"),
    "an unknown game": (put(game="whist"), "GAME_UNKNOWN", ""),
    "no game": (lambda asked: asked.ClearField("game"), "GAME_UNKNOWN", ""),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_spec_is_refused_by_reason_and_field(name: str) -> None:
    change, reason, field = BAD[name]
    asked = spec_of("guillotine")
    change(asked)
    with pytest.raises(RefusedError) as caught:
        check(asked)
    assert (caught.value.name, caught.value.field) == (reason, field)
    assert caught.value.message.isprintable()
    if field:
        assert caught.value.metadata["field"] == field


EDGES: dict[str, Change] = {
    "the longest allowance": clock(allowance_ms=86_400_000),
    "a bank alone": clock(allowance_ms=0, bank_ms=1),
    "an allowance alone": clock(allowance_ms=1, bank_ms=0),
    "untimed": clock(untimed=True),
    "untimed, said twice": clock(untimed=True, bank_ms=0),
    "no grace": clock(reconnect_grace_ms=0, shutdown_ms=0),
    "no strikes": rules(strikes=0),
    "1000 strikes": rules(strikes=1_000),
    "asking again 10 times": rules(RULE(kind=MALFORMED, ask_again_count=10)),
    "a label of 80": put(label="ж" * 80),
    "a secret": put(given_secret=bytes(32)),
    "dealer 3": put(first_dealer=3),
    "an open seat": seat(2, open=match_pb2.OpenSeat()),
    "a bot": seat(2, bot="first", bot_seed=2**64 - 1),
}


@pytest.mark.parametrize("name", EDGES)
def test_what_is_just_allowed_is_allowed(name: str) -> None:
    asked = spec_of("guillotine")
    EDGES[name](asked)
    check(asked)


@pytest.mark.parametrize("name", EDGES)
def test_what_is_written_out_stays_as_it_is(name: str) -> None:
    asked = spec_of("guillotine")
    EDGES[name](asked)
    settled = check(asked)
    assert check(settled) == settled


def test_every_default_is_written_out() -> None:
    settled = spec.settle(spec_of("guillotine"))
    assert {field.name: value for field, value in settled.clock.ListFields()} == {
        "allowance_ms": 5_000,
        "bank_ms": 60_000,
        "increment_ms": 0,
        "connect_ms": 30_000,
        "ready_ms": 60_000,
        "reconnect_grace_ms": 30_000,
        "shutdown_ms": 10_000,
        "liveness_ms": 600_000,
    }
    assert (settled.policy.strikes, settled.policy.replacement_bot) == (3, "greedy")
    assert settled.auto_play == match_pb2.AUTO_PLAY_PUBLIC


def test_every_kind_of_fault_has_its_default_rule() -> None:
    settled = spec.settle_policy(match_pb2.FaultPolicy())
    told = {
        match_pb2.FaultKind.Name(rule.kind).removeprefix("FAULT_KIND_"): (
            match_pb2.FaultAction.Name(rule.action).removeprefix("FAULT_ACTION_"),
            rule.strike,
        )
        for rule in settled.rules
    }
    assert told == {
        "NO_SHOW": ("CANCEL", False),
        "START_TIMEOUT": ("CANCEL", False),
        "TIMEOUT": ("SUBSTITUTE", True),
        "ILLEGAL": ("SUBSTITUTE", True),
        "MALFORMED": ("SUBSTITUTE", True),
        "DISCONNECT": ("REPLACE", False),
        "CRASH": ("REPLACE", False),
        "FLOOD": ("REPLACE", False),
    }


def test_a_given_secret_is_taken_out_and_the_hosts_message_left_alone() -> None:
    asked = spec_of("guillotine", given_secret=bytes(32))
    settled = spec.settle(asked)
    assert not settled.given_secret
    assert asked.given_secret
    assert not asked.HasField("clock")


@pytest.mark.parametrize("value", [0, 7, -1, "six", "", True])
def test_an_option_out_of_range_is_named(value: object) -> None:
    with pytest.raises(RefusedError) as caught:
        spec.configure(registry.find("guillotine"), {"deals_per_dealer": value})
    assert (caught.value.name, caught.value.metadata["option"]) == ("OPTION_INVALID", "'deals_per_dealer'")


def test_an_unknown_option_is_named_safely() -> None:
    with pytest.raises(RefusedError) as caught:
        spec.configure(registry.find("guillotine"), {"\x1b[2Jdeals": 1})
    assert caught.value.name == "OPTION_INVALID"
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(("players", "needed"), [(2, 2), (3, 3), (4, 4)])
def test_the_number_of_seats_follows_from_the_options(players: int, needed: int) -> None:
    game = registry.find("regicide")
    options = spec.configure(game, {"players": players})
    asked = match_pb2.MatchSpec(game="regicide", seats=[match_pb2.SeatSpec(bot="first")] * needed)
    spec.check_seats(asked, game, options)
    asked.seats.add(bot="first")
    with pytest.raises(RefusedError, match=f"has {needed} seats, not {needed + 1}"):
        spec.check_seats(asked, game, options)
