"""What ends a watch before the match ends, and who may watch how much."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from grpc import StatusCode

from referee.v1 import registry_service_pb2 as registry_pb
from rpc.agent import Agent, bearer, refused
from rpc.kit import ALL, HOST, NOBODY, PUBLIC, Client, duel, seat_view, started, until
from rpc.server import Referee, token_of

Make = Callable[..., Agent]
ANNA, BERT = bearer(token_of("anna")), bearer(token_of("bert"))


def revoke(client: Client, name: str) -> None:
    client.registry.RevokeAgent(registry_pb.RevokeAgentRequest(agent=name), metadata=HOST, timeout=20)


def watching(referee: Referee) -> int:
    return referee.do(lambda: referee.hall.watchers.count)


@pytest.mark.parametrize("view", [seat_view(0), PUBLIC], ids=["seat", "public"])
def test_revoking_ends_what_the_agent_watches(client: Client, agent: Make, view: object) -> None:
    match_id, _ = started(client, agent)
    watch = client.watch(match_id, view, who=ANNA)  # type: ignore[arg-type]  # a View
    next(watch)
    next(watch)
    revoke(client, "anna")
    assert refused(lambda: watch)[:2] == (StatusCode.UNAUTHENTICATED, "CREDENTIAL_REVOKED")


def test_revoking_one_ends_nobody_elses_watch(client: Client, agent: Make, referee: Referee) -> None:
    match_id, _ = started(client, agent)
    others = [client.watch(match_id, seat_view(1), who=BERT), client.watch(match_id, ALL), client.watch(match_id)]
    for one in others:
        next(one)
    assert watching(referee) == 3
    revoke(client, "anna")
    client.cancel(match_id)
    for one in others:
        assert [response.HasField("result") for response in one][-1]


def test_an_agent_that_was_revoked_sees_its_seat_no_more(client: Client, agent: Make) -> None:
    match_id, _ = started(client, agent)
    revoke(client, "anna")
    found = refused(lambda: client.watch(match_id, seat_view(0), who=ANNA))
    assert found.code == StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("delay_ms", [0, 86_400_000])
def test_when_the_service_ends_watchers_are_told_so(client: Client, referee: Referee, delay_ms: int) -> None:
    match_id = client.create(duel("open", "open"))
    watch = client.watch(match_id, ALL, delay_ms=delay_ms)
    next(watch)
    referee.run(referee.hall.close)
    assert refused(lambda: watch)[:2] == (StatusCode.UNAVAILABLE, "DRAINING")


def test_when_the_service_ends_nobody_begins_to_watch(client: Client, referee: Referee) -> None:
    match_id = client.create(duel("open", "open"))
    referee.run(referee.hall.close)
    assert refused(lambda: client.watch(match_id))[:2] == (StatusCode.UNAVAILABLE, "DRAINING")


def test_who_has_gone_or_has_seen_the_end_watches_no_more(client: Client, referee: Referee) -> None:
    running, finished = client.create(duel("open", "open")), client.finished(referee)
    watch = client.watch(running, who=NOBODY)
    next(watch)
    list(client.watch(finished, who=NOBODY))
    assert watching(referee) == 1
    watch.cancel()
    until(lambda: watching(referee) == 0, referee)
