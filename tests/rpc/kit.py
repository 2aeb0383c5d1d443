"""Calls and matches that the tests of the services are made of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from match.driver import spec_of
from referee.v1 import (
    agent_service_pb2_grpc,
    game_service_pb2_grpc,
    log_service_pb2_grpc,
    match_pb2,
    match_service_pb2_grpc,
    registry_service_pb2_grpc,
)
from referee.v1 import match_service_pb2 as pb
from rpc.agent import PATIENCE, Agent, bearer
from rpc.server import HOST_TOKEN, Referee
from tables.kit import duel

HOST = bearer(HOST_TOKEN)
NOBODY: tuple[tuple[str, str], ...] = ()
TIMEOUT = 20.0

PUBLIC = pb.View(public=pb.PublicView())
ALL = pb.View(all=pb.AllView())


def seat_view(seat: int) -> pb.View:
    return pb.View(seat=seat)


class Client:
    """The services but `Play`, called as the host unless said otherwise."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel: Any = channel
        self.matches: Any = match_service_pb2_grpc.MatchServiceStub(channel)
        self.logs: Any = log_service_pb2_grpc.LogServiceStub(channel)
        self.games: Any = game_service_pb2_grpc.GameServiceStub(channel)
        self.registry: Any = registry_service_pb2_grpc.RegistryServiceStub(channel)
        self.agents: Any = agent_service_pb2_grpc.AgentServiceStub(channel)

    def create(self, spec: match_pb2.MatchSpec | None = None, *, request_id: str = "", who: Any = HOST) -> str:
        """Creates a match, of house bots unless said otherwise, and returns its id."""
        request = pb.CreateMatchRequest(spec=spec or duel("bot:first", "bot:first"), request_id=request_id)
        match_id: str = self.matches.CreateMatch(request, metadata=who, timeout=TIMEOUT).match.match_id
        return match_id

    def get(self, match_id: str, who: Any = HOST) -> match_pb2.Match:
        match: match_pb2.Match = self.matches.GetMatch(
            pb.GetMatchRequest(match_id=match_id), metadata=who, timeout=TIMEOUT
        ).match
        return match

    def cancel(self, match_id: str, note: str = "", who: Any = HOST) -> Any:
        request = pb.CancelMatchRequest(match_id=match_id, note=note)
        return self.matches.CancelMatch(request, metadata=who, timeout=TIMEOUT)

    def watch(self, match_id: str, view: pb.View | None = None, *, who: Any = HOST, **fields: Any) -> Any:
        request = pb.WatchMatchRequest(match_id=match_id, view=view or PUBLIC, **fields)
        return self.matches.WatchMatch(request, metadata=who, timeout=TIMEOUT)

    def finished(self, referee: Referee, spec: match_pb2.MatchSpec | None = None) -> str:
        """Lets house bots play a match to its end, and returns its id."""
        match_id = self.create(spec)
        until(lambda: match_id not in referee.do(lambda: dict(referee.hall.matches.running)), referee)
        return match_id


def until(true: Callable[[], bool], referee: Referee) -> None:
    """Waits until something has happened that needs nobody's help."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it did not happen"
        referee.quiet()


def started(
    client: Client, agent: Callable[..., Agent], names: tuple[str, ...] = ("anna", "bert"), **fields: Any
) -> tuple[str, list[Agent]]:
    """Brings agents in, creates a match between them, and lets them be ready."""
    hello = fields.pop("hello", {})
    agents = [agent(name) for name in names]
    for one in agents:
        one.hello(**hello)
    spec = fields.pop("spec", None) or duel(*names, **fields)
    match_id = client.create(spec)
    for one in agents:
        one.ready(one.wait("match_offered").match_id)
    return match_id, agents


def play_out(agents: list[Agent], match_id: str, referee: Referee) -> None:
    """Lets agents answer what they are asked, until the match is over."""
    answered = [0] * len(agents)
    for _ in range(20_000):
        referee.quiet()
        if match_id not in referee.do(lambda: dict(referee.hall.matches.running)):
            return
        for number, one in enumerate(agents):
            decisions = one.all("decision")
            for decision in decisions[answered[number] :]:
                one.answer(decision)
            answered[number] = len(decisions)
    raise AssertionError("the match did not end")


def responses(call: Any, count: int) -> list[pb.WatchMatchResponse]:
    """Returns the next messages of a stream."""
    found: Iterator[pb.WatchMatchResponse] = call
    return [next(found) for _ in range(count)]


__all__ = [
    "ALL",
    "HOST",
    "NOBODY",
    "PUBLIC",
    "Client",
    "duel",
    "play_out",
    "responses",
    "seat_view",
    "spec_of",
    "started",
    "until",
]
