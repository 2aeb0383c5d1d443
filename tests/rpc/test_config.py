"""What a host may ask for: every mistake is refused by name, and nothing of it is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from grpc import StatusCode

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import game_pb2, match_pb2
from referee.v1 import registry_service_pb2 as registry_pb
from rpc.agent import Agent, Refusal, item, refused
from rpc.kit import HOST, Client, duel, spec_of
from rpc.server import Referee

Make = Callable[..., Agent]
INVALID = StatusCode.INVALID_ARGUMENT
BOTS = ("bot:first", "bot:first")


@pytest.fixture
def refusal(client: Client, referee: Referee) -> Iterator[Callable[[match_pb2.MatchSpec], Refusal]]:
    """Asks for a match and returns how that was refused; nothing may be left of it."""
    yield lambda spec: refused(lambda: client.create(spec))
    assert referee.do(lambda: (referee.journal.matches(), dict(referee.hall.matches.running))) == ([], {})


Refuse = Callable[[match_pb2.MatchSpec], Refusal]


@pytest.mark.parametrize("count", [0, 1, 3, 5, 1_000])
def test_another_number_of_seats_is_refused_naming_the_right_one(refusal: Refuse, count: int) -> None:
    spec = match_pb2.MatchSpec(game="guillotine")
    for _ in range(count):
        spec.seats.add(bot="first")
    found = refusal(spec)
    assert found[:3] == (INVALID, "SEAT_COUNT", {"needed": "4", "given": str(count), "field": "spec.seats"})


def test_a_million_seats_are_no_message(client: Client) -> None:
    spec = match_pb2.MatchSpec(game="guillotine")
    for _ in range(20_000):
        spec.seats.add(bot="first")
    assert refused(lambda: client.create(spec)).code == StatusCode.RESOURCE_EXHAUSTED


def test_an_agent_sits_at_one_seat(refusal: Refuse, agent: Make) -> None:
    agent_id = agent("anna").hello().agent_id
    for other in ("anna", "ANNA", agent_id):
        assert refusal(duel("anna", other))[:2] == (INVALID, "AGENT_REPEATED")


@pytest.mark.parametrize("length", [1, 16, 31, 33, 64])
def test_a_given_secret_of_another_length_is_refused(refusal: Refuse, length: int) -> None:
    found = refusal(duel(*BOTS, given_secret=bytes(length)))
    assert (found.code, found.fields) == (INVALID, ["spec.given_secret"])


def test_a_given_secret_is_not_used_twice_for_the_same_match(client: Client) -> None:
    spec = duel(*BOTS, given_secret=b"s" * 32)
    client.create(spec)
    found = refused(lambda: client.create(spec))
    assert (found.code, found.fields) == (INVALID, ["spec.given_secret"])


def test_a_match_of_a_given_secret_says_so(client: Client, referee: Referee) -> None:
    match_id = client.finished(referee, duel(*BOTS, given_secret=b"s" * 32))
    assert referee.of_log(match_id, "match_created")[0].unsealed
    assert b"s" * 32 not in referee.log(match_id)[0].SerializeToString()
    assert referee.of_log(match_id, "secret_revealed")[0].secret == b"s" * 32


DAY = 86_400_000


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"allowance_ms": 0, "bank_ms": 0}, "allowance_ms"),
        ({"allowance_ms": -1}, "allowance_ms"),
        ({"allowance_ms": DAY + 1}, "allowance_ms"),
        ({"allowance_ms": 2**63 - 1}, "allowance_ms"),
        ({"allowance_ms": -(2**63)}, "allowance_ms"),
        ({"bank_ms": -5}, "bank_ms"),
        ({"bank_ms": DAY + 1}, "bank_ms"),
        ({"increment_ms": -1}, "increment_ms"),
        ({"increment_ms": 3_600_001}, "increment_ms"),
        ({"connect_ms": 0}, "connect_ms"),
        ({"ready_ms": 0}, "ready_ms"),
        ({"ready_ms": 100 * 365 * DAY}, "ready_ms"),
        ({"reconnect_grace_ms": -1}, "reconnect_grace_ms"),
        ({"shutdown_ms": 3_600_001}, "shutdown_ms"),
        ({"untimed": True, "allowance_ms": 5}, "allowance_ms"),
        ({"untimed": True, "bank_ms": 5}, "bank_ms"),
    ],
)
def test_a_clock_out_of_range_is_refused_naming_the_field(refusal: Refuse, fields: dict[str, Any], field: str) -> None:
    found = refusal(duel(*BOTS, clock=match_pb2.Clock(**fields)))
    assert (found.code, found.reason, found.fields) == (INVALID, "FIELD_INVALID", [f"spec.clock.{field}"])


def Rule(**fields: Any) -> match_pb2.FaultRule:  # noqa: N802  stands for the message, with numbers that no enum has
    return match_pb2.FaultRule(**fields)


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        (match_pb2.FaultPolicy(strikes=-1), "strikes"),
        (match_pb2.FaultPolicy(strikes=1_001), "strikes"),
        (match_pb2.FaultPolicy(rules=[Rule()]), "rules[0].kind"),
        (match_pb2.FaultPolicy(rules=[Rule(kind=99)]), "rules[0].kind"),
        (match_pb2.FaultPolicy(rules=[Rule(kind=3, action=99)]), "rules[0].action"),
        (match_pb2.FaultPolicy(rules=[Rule(kind=1, action=1)]), "rules[0].action"),
        (match_pb2.FaultPolicy(rules=[Rule(kind=4), Rule(kind=4)]), "rules[1].kind"),
        (match_pb2.FaultPolicy(rules=[Rule(kind=4, ask_again_count=11)]), "rules[0].ask_again_count"),
        (match_pb2.FaultPolicy(rules=[Rule(kind=4, ask_again_count=-1)]), "rules[0].ask_again_count"),
        (match_pb2.FaultPolicy(rules=[Rule(kind=3, ask_again_count=1)]), "rules[0].ask_again_count"),
        (match_pb2.FaultPolicy(rules=[Rule(kind=4, action=2, bot="first")]), "rules[0].bot"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_naming_the_field(
    refusal: Refuse, policy: match_pb2.FaultPolicy, field: str
) -> None:
    found = refusal(duel(*BOTS, policy=policy))
    assert (found.code, found.reason, found.fields) == (INVALID, "FIELD_INVALID", [f"spec.policy.{field}"])


@pytest.mark.parametrize("game", ["", "bridge", "Guillotine", "guillotine ", "../guillotine", "x" * 10_000])
def test_an_unknown_game_is_not_found(refusal: Refuse, game: str) -> None:
    found = refusal(match_pb2.MatchSpec(game=game, seats=[match_pb2.SeatSpec(bot="first")] * 2))
    assert found[:2] == (StatusCode.NOT_FOUND, "GAME_UNKNOWN")
    assert len(found.message) < 300


@pytest.mark.parametrize("bot", ["nobody", "GREEDY", "x" * 10_000])
def test_an_unknown_house_bot_is_not_found(refusal: Refuse, bot: str) -> None:
    assert refusal(duel("bot:first", f"bot:{bot}"))[:2] == (StatusCode.NOT_FOUND, "BOT_UNKNOWN")
    assert refusal(duel(*BOTS, policy=match_pb2.FaultPolicy(replacement_bot=bot)))[1] == "BOT_UNKNOWN"


def test_an_unknown_agent_is_not_found(refusal: Refuse) -> None:
    found = refusal(duel("nobody", "bot:first"))
    assert found[:3] == (StatusCode.NOT_FOUND, "AGENT_UNKNOWN", {"agent": "'nobody'"})


def generic(**values: str) -> match_pb2.MatchSpec:
    spec = duel(*BOTS)
    spec.options.CopyFrom(game_pb2.GameOptions(generic=game_pb2.GenericOptions(values=values)))
    return spec


@pytest.mark.parametrize(
    ("spec", "option"),
    [
        (generic(daels="3"), "'daels'"),
        (generic(deals="0"), "'deals'"),
        (generic(deals="-1"), "'deals'"),
        (generic(deals="101"), "'deals'"),
        (generic(deals="three"), "'deals'"),
        (generic(deals="1e3"), "'deals'"),
        (generic(deals="\u0663"), "'deals'"),
        (generic(deals=""), "'deals'"),
    ],
)
def test_an_unknown_option_and_a_value_out_of_range_are_refused_by_name(
    refusal: Refuse, spec: match_pb2.MatchSpec, option: str
) -> None:
    found = refusal(spec)
    assert (found.code, found.reason, found.metadata["option"]) == (INVALID, "OPTION_INVALID", option)


def test_options_of_another_game_are_refused(refusal: Refuse) -> None:
    spec = spec_of("regicide", *BOTS)
    spec.game = "high_card"
    assert refusal(spec)[:2] == (INVALID, "OPTION_INVALID")


def test_senseless_options_are_refused(refusal: Refuse) -> None:
    spec = spec_of("regicide", *BOTS)
    spec.options.regicide.pairs = True
    assert refusal(spec)[:2] == (INVALID, "OPTION_INVALID")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda spec: setattr(spec, "first_dealer", 2), "spec.first_dealer"),
        (lambda spec: setattr(spec, "first_dealer", -1), "spec.first_dealer"),
        (lambda spec: setattr(spec, "auto_play", 99), "spec.auto_play"),
        (lambda spec: setattr(spec, "label", "x" * 81), "spec.label"),
        (lambda spec: setattr(spec, "label", "a\x1b[31mb"), "spec.label"),
        (lambda spec: setattr(spec, "label", "a\u202eb"), "spec.label"),
        (lambda spec: spec.seats[1].Clear(), "spec.seats[1]"),
        (lambda spec: setattr(spec.seats[0], "agent", ""), "spec.seats[0].agent"),
    ],
)
def test_a_field_that_is_missing_or_senseless_is_named(
    refusal: Refuse, change: Callable[[match_pb2.MatchSpec], Any], field: str
) -> None:
    spec = duel(*BOTS)
    change(spec)
    found = refusal(spec)
    assert (found.code, found.reason, found.fields) == (INVALID, "FIELD_INVALID", [field])


def test_a_request_without_a_match_is_refused(refusal: Refuse) -> None:
    assert refusal(match_pb2.MatchSpec()).reason == "GAME_UNKNOWN"


def test_a_request_id_is_at_most_64_characters(client: Client) -> None:
    client.create(duel(*BOTS), request_id="x" * 64)
    found = refused(lambda: client.create(duel(*BOTS), request_id="x" * 65))
    assert (found.code, found.fields) == (INVALID, ["request_id"])


def test_a_request_id_is_for_one_request(client: Client) -> None:
    first = client.create(duel(*BOTS), request_id="one")
    assert client.create(duel(*BOTS), request_id="one") == first
    found = refused(lambda: client.create(duel("bot:first", "bot:random"), request_id="one"))
    assert found[:2] == (StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")


def test_two_requests_with_one_id_at_once_are_one_match(client: Client, referee: Referee) -> None:
    from referee.v1 import match_service_pb2 as pb

    request = pb.CreateMatchRequest(spec=duel("open", "open"), request_id="both")
    calls = [client.matches.CreateMatch.future(request, metadata=HOST, timeout=9) for _ in range(20)]
    assert len({call.result().match.match_id for call in calls}) == 1
    assert referee.do(lambda: referee.hall.committer.failed) is None


# Names over the wire; all of what a name can be is in tests/tables/test_names.py.

UNSAFE = {
    "control": "a\x07b",
    "NUL": "a\0b",
    "newline": "a\nb",
    "ANSI escape": "\x1b[2Jhi",
    "right-to-left override": "abc\u202edef",
    "zero width": "a\u200bb",
    "marks": "a" + "\u0301" * 1_000,
    "too long": "x" * 65,
    "nothing": "",
}
DATA = [
    "<script>alert(1)</script>",
    "'; DROP TABLE agents; --",
    "{0.__class__}",
    "%s%s%n",
    "=cmd|'x'!A0",
    "🂡",
    "../x",
]


@pytest.mark.parametrize("name", UNSAFE.values(), ids=UNSAFE.keys())
def test_an_unsafe_name_does_not_register(client: Client, agent: Make, name: str) -> None:
    one = agent("some credential")
    one.send(item(hello=agent_pb.Hello(protocol_version=1, name=name)))
    found = one.end()
    assert (found.code, found.reason) == (INVALID, "NAME_INVALID")
    assert found.message.isprintable()
    request = registry_pb.AddAgentRequest(name=name, credential_hash=bytes(32))
    assert refused(lambda: client.registry.AddAgent(request, metadata=HOST, timeout=9)).reason == "NAME_INVALID"


@pytest.mark.parametrize("name", DATA)
def test_text_that_means_something_elsewhere_is_data_here(client: Client, agent: Make, name: str) -> None:
    assert agent("some credential").hello(name=name).name == name
    [row] = client.registry.ListAgents(registry_pb.ListAgentsRequest(), metadata=HOST, timeout=9).agents
    assert row.name == name
    match_id = client.create(duel(name, "open", label=name))
    match = client.get(match_id)
    assert (match.seats[0].name, match.label) == (name, name)


@pytest.mark.parametrize("note", ["x" * 201, "a\nb", "a\x1b[0m"])
def test_a_note_that_is_too_long_or_unsafe_is_refused(client: Client, note: str) -> None:
    match_id = client.create(duel("open", "open"))
    found = refused(lambda: client.cancel(match_id, note))
    assert (found.code, found.fields) == (INVALID, ["note"])
