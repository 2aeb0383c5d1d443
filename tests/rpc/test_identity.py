"""Who calls, and what he may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from grpc import StatusCode

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import event_pb2, match_pb2
from referee.v1 import log_service_pb2 as log_pb
from referee.v1 import match_service_pb2 as pb
from referee.v1 import registry_service_pb2 as registry_pb
from rpc.agent import Agent, bearer, item, refused
from rpc.kit import HOST, NOBODY, Client, duel, play_out, seat_view, started, until
from rpc.server import HOST_TOKEN, Referee, token_of

Make = Callable[..., Agent]
ELSEWHERE = "abcdefghijklmnopqrstuvwx23"
UNKNOWN = (StatusCode.UNAUTHENTICATED, "CREDENTIAL_UNKNOWN")

HOST_CALLS: dict[str, Callable[[Client, Any], Any]] = {
    "CreateMatch": lambda client, who: client.create(who=who),
    "GetMatch": lambda client, who: client.get(ELSEWHERE, who=who),
    "ListMatches": lambda client, who: client.matches.ListMatches(pb.ListMatchesRequest(), metadata=who, timeout=9),
    "CancelMatch": lambda client, who: client.cancel(ELSEWHERE, who=who),
    "ListAgents": lambda client, who: client.registry.ListAgents(
        registry_pb.ListAgentsRequest(), metadata=who, timeout=9
    ),
    "AddAgent": lambda client, who: client.registry.AddAgent(
        registry_pb.AddAgentRequest(name="x", credential_hash=bytes(32)), metadata=who, timeout=9
    ),
    "RevokeAgent": lambda client, who: client.registry.RevokeAgent(
        registry_pb.RevokeAgentRequest(agent="anna"), metadata=who, timeout=9
    ),
}
BAD_CREDENTIALS: dict[str, list[tuple[str, Any]]] = {
    "none": [],
    "no scheme": [("authorization", "a" * 64)],
    "another scheme": [("authorization", "Basic " + "a" * 64)],
    "too short": [("authorization", "Bearer " + "a" * 63)],
    "too long": [("authorization", "Bearer " + "a" * 65)],
    "no hex digits": [("authorization", "Bearer " + "g" * 64)],
    "something behind": [("authorization", "Bearer " + "a" * 64 + " x")],
    "empty": [("authorization", "")],
    "2 KiB": [("authorization", "Bearer " + "a" * 2_048)],
    "two of them": [*bearer("a" * 64), *bearer("b" * 64)],
    "in a binary header": [("authorization-bin", b"Bearer " + b"a" * 64)],
}


@pytest.mark.parametrize("call", HOST_CALLS.values(), ids=HOST_CALLS.keys())
@pytest.mark.parametrize("who", BAD_CREDENTIALS.values(), ids=BAD_CREDENTIALS.keys())
def test_without_a_good_credential_every_host_call_is_refused_alike(client: Client, call: Any, who: Any) -> None:
    found = refused(lambda: call(client, tuple(who)))
    assert found[:2] == UNKNOWN
    assert found.message == "no valid credential: send `authorization: Bearer` and 64 hex digits"


@pytest.mark.parametrize("who", BAD_CREDENTIALS.values(), ids=BAD_CREDENTIALS.keys())
def test_without_a_good_credential_nobody_plays(agent: Make, who: Any) -> None:
    nobody = agent(metadata=tuple(who))
    nobody.send(item(hello=agent_pb.Hello(protocol_version=1, name="x")))
    assert nobody.end()[:2] == UNKNOWN


def test_who_has_no_credential_need_not_say_hello_to_be_told(agent: Make) -> None:
    assert agent(metadata=NOBODY).end()[:2] == UNKNOWN


def test_a_credential_larger_than_all_metadata_may_be_is_refused_by_the_library(client: Client) -> None:
    found = refused(lambda: client.create(who=bearer("a" * 20_000)))
    assert (found.code, found.reason) == (StatusCode.RESOURCE_EXHAUSTED, "")


def test_of_many_random_tokens_none_is_taken_for_somebodys_and_soon_all_are_too_many(
    client: Client, agent: Make, referee: Referee
) -> None:
    agent().hello()
    found = [
        refused(lambda number=number: client.get("x", who=bearer(token_of(f"guess {number}"))))[:2]  # type: ignore[misc]
        for number in range(300)
    ]
    assert found[0] == UNKNOWN
    assert found[-1] == (StatusCode.RESOURCE_EXHAUSTED, "RATE")
    assert set(found) == {found[0], found[-1]}
    referee.advance(1_000_000)
    assert refused(lambda: client.get("x", who=bearer(token_of("another guess"))))[:2] == UNKNOWN


@pytest.mark.parametrize("call", HOST_CALLS.values(), ids=HOST_CALLS.keys())
def test_an_agents_credential_is_not_the_hosts(client: Client, agent: Make, call: Any) -> None:
    agent().hello()
    found = refused(lambda: call(client, bearer(token_of("anna"))))
    assert found[:2] == (StatusCode.PERMISSION_DENIED, "HOST_ONLY")
    assert list(client.matches.ListMatches(pb.ListMatchesRequest(), metadata=HOST, timeout=9).matches) == []


def test_the_hosts_credential_does_not_play(agent: Make) -> None:
    host = agent(token=HOST_TOKEN)
    host.send(item(hello=agent_pb.Hello(protocol_version=1, name="host")))
    assert host.end()[:2] == (StatusCode.PERMISSION_DENIED, "AGENT_ONLY")


def test_who_only_watches_cannot_play(client: Client, agent: Make, referee: Referee) -> None:
    """A spectator has no credential, so that there is none to play with."""
    match_id = client.create(duel("bot:first", "open"))
    assert next(client.watch(match_id, who=NOBODY)).through_sequence == 0
    spectator = agent(metadata=NOBODY)
    spectator.send(item(answer=agent_pb.Answer(match_id=match_id, action="2S")))
    assert spectator.end()[:2] == UNKNOWN
    assert referee.of_log(match_id, "action_applied") == []


# Registration.


def test_the_first_hello_registers_name_and_credential(client: Client, agent: Make) -> None:
    welcome = agent("Anna").hello()
    [row] = client.registry.ListAgents(registry_pb.ListAgentsRequest(), metadata=HOST, timeout=9).agents
    assert (row.agent_id, row.name, row.connected) == (welcome.agent_id, "Anna", True)


def test_the_second_hello_may_leave_the_name_out_and_cannot_change_it(agent: Make) -> None:
    first = agent("anna").hello()
    assert agent("anna").hello(name="") == first
    assert agent("anna").hello(name="somebody else") == first


@pytest.mark.parametrize("name", ["anna", "ANNA", "\u0430nna", "an na"])
def test_a_name_that_reads_like_another_agents_is_taken(agent: Make, name: str) -> None:
    agent("anna").hello()
    other = agent("other")
    other.send(item(hello=agent_pb.Hello(protocol_version=1, name=name)))
    assert other.end()[:2] == (StatusCode.ALREADY_EXISTS, "NAME_TAKEN")


def test_two_first_streams_of_one_credential_are_one_agent(agent: Make, client: Client, referee: Referee) -> None:
    """A client that tries again before it has heard is not a stranger that wants its name."""
    one, other = agent("anna"), agent("anna")
    hello = agent_pb.Hello(protocol_version=1, name="anna")
    one.send(item(hello=hello))
    other.send(item(hello=agent_pb.Hello(protocol_version=1, name="anna again")))
    until(lambda: one.ended is not None or other.ended is not None, referee)  # both have been heard
    agent("anna").hello()
    assert {one.end().reason, other.end().reason} == {"SUPERSEDED"}
    rows = client.registry.ListAgents(registry_pb.ListAgentsRequest(), metadata=HOST, timeout=9).agents
    assert len(rows) == 1


@pytest.mark.referee(open_registration=False)
def test_with_registration_closed_a_stranger_is_refused(agent: Make) -> None:
    stranger = agent()
    stranger.send(item(hello=agent_pb.Hello(protocol_version=1, name="anna")))
    assert stranger.end()[:2] == (StatusCode.PERMISSION_DENIED, "REGISTRATION_CLOSED")


@pytest.mark.referee(open_registration=False)
def test_with_registration_closed_who_was_added_by_the_host_plays(client: Client, agent: Make) -> None:
    from referee_server.tables.credentials import hash_credential

    request = registry_pb.AddAgentRequest(name="anna", credential_hash=hash_credential(token_of("anna")))
    added = client.registry.AddAgent(request, metadata=HOST, timeout=9).agent
    assert agent("anna").hello().agent_id == added.agent_id


@pytest.mark.parametrize("hashed", [b"", bytes(31), bytes(33), "anna's"])
def test_a_hash_that_is_none_or_is_taken_is_not_added(client: Client, agent: Make, hashed: Any) -> None:
    from referee_server.tables.credentials import hash_credential

    agent("anna").hello()
    given = hash_credential(token_of("anna")) if hashed == "anna's" else hashed
    request = registry_pb.AddAgentRequest(name="bert", credential_hash=given)
    found = refused(lambda: client.registry.AddAgent(request, metadata=HOST, timeout=9))
    assert (found.code, found.reason, found.fields) == (
        StatusCode.INVALID_ARGUMENT,
        "FIELD_INVALID",
        ["credential_hash"],
    )


# Revocation.


def revoke(client: Client, name: str) -> registry_pb.RegisteredAgent:
    request = registry_pb.RevokeAgentRequest(agent=name)
    revoked: registry_pb.RegisteredAgent = client.registry.RevokeAgent(request, metadata=HOST, timeout=9).agent
    return revoked


def test_revoking_ends_the_stream_and_the_decision_is_timed_out(client: Client, agent: Make, referee: Referee) -> None:
    match_id, (_, bert) = started(client, agent)
    asked = bert.wait("decision")
    assert revoke(client, "bert").revoked
    assert bert.end()[:2] == (StatusCode.UNAUTHENTICATED, "CREDENTIAL_REVOKED")
    referee.advance(asked.allowance_us + asked.bank_us)
    kinds = [ruled.kind for ruled in referee.of_log(match_id, "fault_ruled")]
    assert kinds[0] in (match_pb2.FAULT_KIND_TIMEOUT, match_pb2.FAULT_KIND_DISCONNECT)
    referee.check(match_id)


def test_a_revoked_credential_does_not_come_back_and_its_name_stays_taken(client: Client, agent: Make) -> None:
    agent("anna").hello()
    revoke(client, "anna")
    again = agent("anna")
    again.send(item(hello=agent_pb.Hello(protocol_version=1, name="anna")))
    assert again.end()[:2] == (StatusCode.UNAUTHENTICATED, "CREDENTIAL_REVOKED")
    other = agent("other")
    other.send(item(hello=agent_pb.Hello(protocol_version=1, name="anna")))
    assert other.end().reason == "NAME_TAKEN"


def test_a_credential_revoked_between_call_and_hello_is_revoked(client: Client, agent: Make, referee: Referee) -> None:
    agent("anna").hello()
    late = agent("anna")
    referee.quiet()
    revoke(client, "anna")
    late.send(item(hello=agent_pb.Hello(protocol_version=1)))
    assert late.end().reason == "CREDENTIAL_REVOKED"


def test_an_unknown_agent_is_not_revoked(client: Client) -> None:
    assert refused(lambda: revoke(client, "nobody"))[:2] == (StatusCode.NOT_FOUND, "AGENT_UNKNOWN")


# Seats.


def test_an_agent_without_a_seat_learns_nothing_of_a_match_not_even_whether_it_exists(
    client: Client, agent: Make
) -> None:
    match_id, _ = started(client, agent)
    eve = agent("eve")
    eve.hello()
    who = bearer(token_of("eve"))
    found = [refused(lambda one=one: client.watch(one, seat_view(0), who=who)) for one in (match_id, ELSEWHERE)]  # type: ignore[misc]
    assert found[0][:2] == (StatusCode.PERMISSION_DENIED, "NO_SEAT")
    assert found[0].message == found[1].message
    assert found[0][:2] == found[1][:2]
    verdicts = []
    for one in (match_id, ELSEWHERE):
        eve.send(item(answer=agent_pb.Answer(match_id=one, action="2S")))
        verdicts.append(eve.wait("verdict"))
        eve.ready(one)
        verdicts.append(eve.wait("rejected"))
    for one in verdicts:
        one.ClearField("match_id")
    assert verdicts[:2] == verdicts[2:]
    assert verdicts[0].status == event_pb2.ANSWER_STATUS_NO_SEAT


def test_an_answer_naming_another_seat_has_no_effect_and_is_no_strike(
    client: Client, agent: Make, referee: Referee
) -> None:
    match_id, (anna, bert) = started(client, agent)
    asked = bert.wait("decision")
    for one, seat in ((anna, 1), (bert, 0)):
        one.answer(asked, seat=seat)
        assert one.wait("verdict").status == event_pb2.ANSWER_STATUS_SEAT_MISMATCH
    assert referee.of_log(match_id, "action_applied") == []
    assert referee.of_log(match_id, "fault_ruled") == []


def test_an_answer_to_anothers_decision_does_not_tell_whether_that_is_open(client: Client, agent: Make) -> None:
    _, (anna, bert) = started(client, agent)
    asked = bert.wait("decision")
    anna.answer(asked)
    open_now = anna.wait("verdict")
    anna.answer(asked, decision_id=7)
    never = anna.wait("verdict")
    assert open_now.status == never.status == event_pb2.ANSWER_STATUS_NOT_OPEN


def test_an_answer_for_a_finished_match_is_told_so_and_the_result_stays(
    client: Client, agent: Make, referee: Referee
) -> None:
    match_id, agents = started(client, agent)
    play_out(agents, match_id, referee)
    before = client.get(match_id)
    for one in agents:
        one.wait("match_over")
        one.send(item(answer=agent_pb.Answer(match_id=match_id, decision_id=0, action="2S")))
        assert one.wait("verdict").status == event_pb2.ANSWER_STATUS_MATCH_OVER
        one.ready(match_id)
        assert one.wait("rejected").message == "the match has ended"
    assert client.get(match_id) == before


# Two streams of one agent.


def test_the_newer_stream_wins_with_the_same_question_and_the_same_clock(
    client: Client, agent: Make, referee: Referee
) -> None:
    match_id, (_, bert) = started(client, agent)
    asked = bert.wait("decision")
    referee.advance(1_000_000)
    again = agent("bert")
    again.hello()
    assert bert.end()[:2] == (StatusCode.ABORTED, "SUPERSEDED")
    repeated = again.wait("decision")
    assert (repeated.decision_id, repeated.legal) == (asked.decision_id, asked.legal)
    assert repeated.allowance_us == asked.allowance_us - 1_000_000
    again.answer(repeated)
    assert again.wait("verdict").status == event_pb2.ANSWER_STATUS_ACCEPTED
    referee.check(match_id)


def test_who_reconnects_resumes_without_losing_or_doubling_an_event(
    client: Client, agent: Make, referee: Referee
) -> None:
    match_id, (anna, bert) = started(client, agent, hello={"wants_events": True}, options={"deals": 10})
    # Who is lost before he has been heard to be ready is waited for, for ever where the clock stands still.
    until(lambda: bool(anna.all("decision") or bert.all("decision")), referee)
    told: list[event_pb2.MatchEvent] = []
    stream = bert
    for _ in range(5):
        if (decisions := stream.all("decision")) and stream.ended is None:
            stream.answer(decisions[-1])
        if anna.all("decision"):
            anna.answer(anna.all("decision")[-1])
        referee.quiet()
        stream.close()
        told += [event for piece in stream.all("events") for event in piece.events]
        stream = agent("bert")
        position = agent_pb.Position(match_id=match_id, after_sequence=len(told))
        stream.hello(wants_events=True, positions=[position])
        referee.quiet()
    play_out([anna, stream], match_id, referee)
    stream.wait("match_over")
    told += [event for piece in stream.all("events") for event in piece.events]
    assert [event.sequence for event in told] == list(range(1, len(told) + 1))
    assert told[-1].HasField("secret_revealed")
    referee.check(match_id)


@pytest.mark.parametrize("call", ["grpc.channelz.v1.Channelz/GetTopChannels", "grpc.channelz.v1.Channelz/GetServers"])
def test_there_is_no_channelz(client: Client, call: str) -> None:
    method = client.channel.unary_unary(f"/{call}")
    found = refused(lambda: method(b"", metadata=HOST, timeout=9))
    assert found.code == StatusCode.UNIMPLEMENTED


def test_health_and_reflection_are_open_to_everybody(client: Client) -> None:
    from grpc_health.v1 import health_pb2, health_pb2_grpc
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

    stub: Any = health_pb2_grpc.HealthStub(client.channel)
    state = stub.Check(health_pb2.HealthCheckRequest(service="referee.v1.AgentService"), timeout=9)
    assert state.status == health_pb2.HealthCheckResponse.SERVING
    assert "referee.v1.AgentService" in ProtoReflectionDescriptorDatabase(client.channel).get_services()


def test_logs_are_open_to_everybody_after_the_end(client: Client, referee: Referee) -> None:
    match_id = client.finished(referee)
    request = log_pb.VerifyLogRequest(match_id=match_id)
    assert client.logs.VerifyLog(request, timeout=9).outcome == log_pb.VERIFY_OUTCOME_VERIFIED


def test_a_call_with_a_bad_credential_is_refused_even_where_none_is_needed(client: Client) -> None:
    from referee.v1 import game_service_pb2 as game_pb

    request, who = game_pb.ListGamesRequest(), (("authorization", "x"),)
    assert refused(lambda: client.games.ListGames(request, metadata=who, timeout=9))[:2] == UNKNOWN
