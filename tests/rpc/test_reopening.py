"""An open seat whose agent goes before the start, over real streams."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import event_pb2, log_service_pb2, match_pb2, registry_service_pb2
from rpc.agent import Agent, bearer, item, refused
from rpc.kit import HOST, Client, duel, play_out, responses, seat_view, until
from rpc.server import Referee, token_of

Make = Callable[..., Agent]
OPEN = match_pb2.Seat(kind=match_pb2.SEAT_KIND_OPEN)


def waiting(client: Client, agent: Make) -> tuple[str, Agent]:
    """Returns a match whose open seat eve has been offered."""
    eve = agent("eve")
    eve.hello(takes_open_seats=True, wants_events=True)
    match_id = client.create(duel("open", "bot:first"))
    assert eve.wait("match_offered").match_id == match_id
    return match_id, eve


def played_by(name: str, client: Client, agent: Make, match_id: str, referee: Referee) -> None:
    """Lets another agent come, take the seat and play, and has the log verified."""
    other = agent(name)
    other.hello(takes_open_seats=True)
    other.ready(other.wait("match_offered").match_id)
    play_out([other], match_id, referee)
    match = client.get(match_id)
    assert (match.state, match.seats[0].name) == (match_pb2.MATCH_STATE_FINISHED, name)
    verified = client.logs.VerifyLog(log_service_pb2.VerifyLogRequest(match_id=match_id), metadata=HOST)
    assert verified.outcome == log_service_pb2.VERIFY_OUTCOME_VERIFIED


def leaves(client: Client, eve: Agent, match_id: str, referee: Referee) -> None:
    eve.send(item(leave=pb.Leave()))


def declines(client: Client, eve: Agent, match_id: str, referee: Referee) -> None:
    eve.send(item(decline=pb.Decline(match_id=match_id)))


def is_lost(client: Client, eve: Agent, match_id: str, referee: Referee) -> None:
    eve.close()
    until(lambda: bool(referee.of_log(match_id, "seat_disconnected")), referee)
    referee.advance(30_000_000)


def is_mute(client: Client, eve: Agent, match_id: str, referee: Referee) -> None:
    referee.advance(60_000_000)


def is_revoked(client: Client, eve: Agent, match_id: str, referee: Referee) -> None:
    client.registry.RevokeAgent(registry_service_pb2.RevokeAgentRequest(agent="eve"), metadata=HOST)
    assert eve.end().reason == "CREDENTIAL_REVOKED"


def is_lost_and_revoked(client: Client, eve: Agent, match_id: str, referee: Referee) -> None:
    eve.close()
    until(lambda: bool(referee.of_log(match_id, "seat_disconnected")), referee)
    client.registry.RevokeAgent(registry_service_pb2.RevokeAgentRequest(agent="eve"), metadata=HOST)


@pytest.mark.parametrize(
    ("go", "cause"),
    [
        (leaves, event_pb2.REOPEN_CAUSE_LEFT),
        (declines, event_pb2.REOPEN_CAUSE_DECLINED),
        (is_lost, event_pb2.REOPEN_CAUSE_LOST),
        (is_mute, event_pb2.REOPEN_CAUSE_NOT_READY),
        (is_revoked, event_pb2.REOPEN_CAUSE_LEFT),
        (is_lost_and_revoked, event_pb2.REOPEN_CAUSE_LEFT),
    ],
)
def test_the_next_agent_takes_the_seat_and_the_match_is_played_and_verified(
    client: Client,
    agent: Make,
    referee: Referee,
    go: Callable[[Client, Agent, str, Referee], None],
    cause: event_pb2.ReopenCause.ValueType,
) -> None:
    match_id, eve = waiting(client, agent)
    go(client, eve, match_id, referee)
    until(lambda: client.get(match_id).seats[0] == OPEN, referee)
    assert referee.of_log(match_id, "seat_reopened") == [event_pb2.SeatReopened(seat=0, cause=cause)]
    played_by("ian", client, agent, match_id, referee)
    assert referee.of_log(match_id, "fault_ruled") == []


def test_who_was_ready_and_leaves_gives_the_seat_back_too(client: Client, agent: Make, referee: Referee) -> None:
    eve, ian = agent("eve"), agent("ian")
    eve.hello(takes_open_seats=True)
    ian.hello()
    match_id = client.create(duel("open", "ian"))
    eve.ready(eve.wait("match_offered").match_id, b"\1" * 32)
    ian.wait("match_offered")
    until(lambda: bool(referee.of_log(match_id, "seat_ready")), referee)
    eve.send(item(leave=pb.Leave()))
    assert eve.end().code == grpc.StatusCode.OK
    lia = agent("lia")
    lia.hello(takes_open_seats=True)
    for one in (lia, ian):
        one.ready(match_id)
    play_out([lia, ian], match_id, referee)
    [revealed] = referee.of_log(match_id, "secret_revealed")
    assert list(revealed.nonces) == [b"", b""]
    assert client.get(match_id).seats[0].name == "lia"


def test_who_gave_the_seat_back_is_told_so_and_late_words_are_refused(
    client: Client, agent: Make, referee: Referee
) -> None:
    match_id, eve = waiting(client, agent)
    is_mute(client, eve, match_id, referee)
    over = eve.wait("match_over")
    assert (over.match_id, over.seat) == (match_id, 0)
    assert over.result == match_pb2.MatchResult(reason=match_pb2.END_REASON_NOT_STARTED)
    for late in (item(ready=pb.Ready(match_id=match_id)), item(decline=pb.Decline(match_id=match_id))):
        eve.send(late)
        assert eve.wait("rejected").reason == reason_pb.ERROR_REASON_NO_SEAT
    eve.send(item(answer=pb.Answer(match_id=match_id, action="KS")))
    assert eve.wait("verdict").status == event_pb2.ANSWER_STATUS_NO_SEAT
    played_by("ian", client, agent, match_id, referee)
    assert len(eve.all("match_over")) == 1
    assert not any(event.HasField("cards_dealt") for piece in eve.all("events") for event in piece.events)


def test_a_mute_agent_alone_is_asked_a_few_times_and_whoever_comes_has_the_seat(
    client: Client, agent: Make, referee: Referee
) -> None:
    match_id, eve = waiting(client, agent)
    for _ in range(100):
        referee.advance(1_000_000)
    assert len(eve.all("match_offered")) == 2
    for _ in range(40):
        referee.advance(1_000_000)
    until(lambda: len(referee.of_log(match_id, "seat_reopened")) == 2, referee)
    played_by("ian", client, agent, match_id, referee)


def test_who_gave_the_seat_back_watches_it_no_longer(client: Client, agent: Make, referee: Referee) -> None:
    match_id, eve = waiting(client, agent)
    who = bearer(token_of("eve"))
    watching = client.watch(match_id, seat_view(0), who=who)
    responses(watching, 1)
    declines(client, eve, match_id, referee)
    seen: list[str | None] = []

    def read() -> None:
        for response in watching:
            seen.extend(event.WhichOneof("payload") for event in response.events)

    found = refused(read)
    assert (found.code, found.reason) == (grpc.StatusCode.PERMISSION_DENIED, "NO_SEAT")
    assert seen[-1] == "seat_reopened"
    assert refused(lambda: client.watch(match_id, seat_view(0), who=who)).reason == "NO_SEAT"
    played_by("ian", client, agent, match_id, referee)
    assert refused(lambda: client.watch(match_id, seat_view(0), who=who)).reason == "NO_SEAT"


def test_the_host_goes_on_watching_a_seat_that_is_open_again(client: Client, agent: Make, referee: Referee) -> None:
    match_id, eve = waiting(client, agent)
    watching = client.watch(match_id, seat_view(0))
    responses(watching, 1)
    declines(client, eve, match_id, referee)
    played_by("ian", client, agent, match_id, referee)
    kinds = {event.WhichOneof("payload") for response in watching for event in response.events}
    assert {"seat_reopened", "match_ended"} <= kinds
