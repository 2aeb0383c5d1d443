"""The vocabulary of pytest-grpc, with a server that runs asyncio servicers.

The plugin's own server runs servicers in threads and its fake one knows no asyncio at all; the names are kept, so that
who knows them finds his way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import grpc
import pytest

from referee.v1 import match_service_pb2_grpc
from rpc.agent import Agent
from rpc.kit import Client
from rpc.server import AioServerThread, Referee, serve


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "referee(**settings): how the referee under test is run (see rpc.server.Referee)"
    )


@pytest.fixture
def grpc_servicer(request: pytest.FixtureRequest) -> Referee:
    """The whole service. The marker `referee` says how it is run."""
    marker = request.node.get_closest_marker("referee")
    return Referee(**(marker.kwargs if marker is not None else {}))


@pytest.fixture
def grpc_add_to_server() -> Callable[..., Any]:
    return lambda servicer, server: servicer.put_on(server)


@pytest.fixture
def grpc_interceptors() -> tuple[Any, ...]:
    return ()


@pytest.fixture
def grpc_server(
    request: pytest.FixtureRequest,
    grpc_add_to_server: Callable[..., Any],
    grpc_servicer: Referee,
    grpc_interceptors: tuple[Any, ...],
) -> Iterator[AioServerThread]:
    if request.config.getoption("grpc-fake", default=False):
        pytest.skip("--grpc-fake-server cannot run an asyncio servicer")
    with serve(grpc_servicer, grpc_add_to_server, grpc_interceptors) as thread:
        yield thread


@pytest.fixture
def grpc_addr(grpc_server: AioServerThread) -> str:
    return f"127.0.0.1:{grpc_server.port}"


@pytest.fixture
def grpc_create_channel(grpc_addr: str) -> Iterator[Callable[..., grpc.Channel]]:
    """Makes channels of their own, each a connection of its own."""
    with ExitStack() as stack:

        def create(credentials: grpc.ChannelCredentials | None = None, options: Any = None) -> grpc.Channel:
            assert credentials is None
            options = (*(options or ()), ("grpc.use_local_subchannel_pool", 1))
            return stack.enter_context(grpc.insecure_channel(grpc_addr, options=options))

        yield create


@pytest.fixture
def grpc_channel(grpc_create_channel: Callable[..., grpc.Channel]) -> grpc.Channel:
    return grpc_create_channel()


@pytest.fixture
def grpc_stub_cls() -> Callable[[grpc.Channel], Any]:
    return match_service_pb2_grpc.MatchServiceStub


@pytest.fixture
def grpc_stub(grpc_stub_cls: Callable[[grpc.Channel], Any], grpc_channel: grpc.Channel) -> Any:
    return grpc_stub_cls(grpc_channel)


@pytest.fixture
def referee(grpc_servicer: Referee, grpc_server: AioServerThread) -> Referee:
    """The service, running."""
    return grpc_servicer


@pytest.fixture
def client(referee: Referee, grpc_channel: grpc.Channel) -> Client:
    """Calls of hosts, agents and anybody."""
    return Client(grpc_channel)


@pytest.fixture
def agent(referee: Referee, grpc_channel: grpc.Channel) -> Iterator[Callable[..., Agent]]:
    """Makes agents: `agent(NAME)` is one whose stream is open and has said nothing yet."""
    with ExitStack() as stack:

        def make(name: str = "anna", **fields: Any) -> Agent:
            one = Agent(fields.pop("channel", grpc_channel), name, **fields)
            stack.callback(one.close)
            return one

        yield make
