"""However little of a stream has been written when it has to end, its client is told how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from grpc import StatusCode

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import match_service_pb2 as match_pb
from referee.v1 import registry_service_pb2 as registry_pb
from referee_server.rpc import register
from rpc.agent import Agent, item, refused
from rpc.kit import HOST, Client, duel, until
from rpc.server import AioServerThread, Referee

Make = Callable[..., Agent]


class Stuck:
    """A call whose first write is called off on the way, and never completes for whoever made it."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    async def write(self, message: bytes) -> None:
        writing = asyncio.ensure_future(self._context.write(message))
        await asyncio.sleep(0)  # it begins
        writing.cancel()
        await asyncio.wait((writing,))
        await asyncio.get_running_loop().create_future()


class Sticking(grpc.aio.ServerInterceptor):
    """Makes every stream a stuck one."""

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = await continuation(details)
        for kind in ("stream_stream", "unary_stream"):
            behaviour = getattr(handler, kind)
            if behaviour is not None:
                return handler._replace(**{kind: _stuck(behaviour)})
        return handler


def _stuck(behaviour: Any) -> Any:
    async def run(request: Any, context: Any) -> Any:
        return await behaviour(request, Stuck(context))

    return run


@pytest.fixture
def grpc_interceptors() -> tuple[Any, ...]:
    return (Sticking(),)


def test_an_agent_revoked_while_its_first_message_is_on_the_way_is_told_so(
    client: Client, agent: Make, referee: Referee
) -> None:
    anna = agent()
    anna.send(item(hello=agent_pb.Hello(protocol_version=1, name="anna")))

    until(lambda: referee.do(lambda: len(referee.hall.presence.sessions)) == 1, referee)
    client.registry.RevokeAgent(registry_pb.RevokeAgentRequest(agent="anna"), metadata=HOST, timeout=9)
    assert anna.end()[:2] == (StatusCode.UNAUTHENTICATED, "CREDENTIAL_REVOKED")


def test_a_watcher_that_does_not_take_its_first_message_is_told_so(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(register, "WRITE_DEADLINE_S", 0.1)
    match_id = client.create(duel("open", "open"))
    assert refused(lambda: list(client.watch(match_id)))[:2] == (StatusCode.RESOURCE_EXHAUSTED, "SLOW_CONSUMER")


def test_a_status_that_the_library_does_not_take_is_no_failure(
    client: Client, monkeypatch: pytest.MonkeyPatch, grpc_server: AioServerThread, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuses(*_: Any) -> None:
        raise RuntimeError("TOO_MANY_OPERATIONS")

    monkeypatch.setattr(register, "abort", refuses)
    request = match_pb.GetMatchRequest(match_id="x")
    found = refused(lambda: client.matches.GetMatch(request, metadata=HOST, timeout=0.5))
    assert found.code == StatusCode.DEADLINE_EXCEEDED
    monkeypatch.undo()
    assert refused(lambda: client.get("x")).reason == "MATCH_UNKNOWN"
    assert not caplog.records
