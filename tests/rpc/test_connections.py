"""Connections that are opened for no good: what they see of their end, and that nobody else sees anything of them."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import grpc
import pytest

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import match_service_pb2 as pb
from referee_server.rpc.server import Patience
from rpc.agent import Agent, bearer, item
from rpc.http2 import (
    ACK,
    END_STREAM,
    PREFACE,
    Code,
    Kind,
    Peer,
    frame,
    message,
    settings,
)
from rpc.kit import HOST, Client, duel, started, until
from rpc.server import AioServerThread, Referee, token_of

Make = Callable[..., Agent]

GETS = "/referee.v1.MatchService/GetMatch"
PLAYS = "/referee.v1.AgentService/Play"

CONNECTIONS = 300
STREAMS = 2_000
LARGEST_WINDOW = 2**31 - 1

NO_SETTINGS = b"Did not receive HTTP/2 settings before handshake timeout"

IMPATIENT = Patience(keepalive_s=1, ping_timeout_s=1, handshake_s=0.5, idle_s=1)


def descriptors() -> int:
    """Returns how many descriptors this process has open; the server is in it."""
    return len(list(Path("/proc/self/fd").iterdir()))


def resetting(stream: int) -> bytes:
    return frame(Kind.RST_STREAM, struct.pack(">I", Code.CANCEL), stream=stream)


def widening(by: int, stream: int = 0) -> bytes:
    return frame(Kind.WINDOW_UPDATE, struct.pack(">I", by), stream=stream)


def getting(match_id: str) -> bytes:
    return pb.GetMatchRequest(match_id=match_id).SerializeToString()


@pytest.fixture
def match_id(client: Client) -> str:
    return client.create(duel("open", "open"))


@pytest.fixture
def peer(grpc_server: AioServerThread) -> Iterator[Peer]:
    """A connection that has begun as it should."""
    with Peer(grpc_server.port) as one:
        yield one.greet()


@pytest.fixture
def served(client: Client, match_id: str, grpc_create_channel: Callable[..., grpc.Channel]) -> Callable[[], None]:
    """Checks that calls are answered: on a connection that there was before, and on a fresh one."""

    def check() -> None:
        assert client.get(match_id).match_id == match_id
        assert Client(grpc_create_channel()).get(match_id).match_id == match_id

    return check


# Connections without a call.


@pytest.mark.referee(patience=IMPATIENT)
def test_hundreds_of_connections_that_say_nothing_are_closed_and_others_are_served_meanwhile(
    grpc_server: AioServerThread, referee: Referee, served: Callable[[], None]
) -> None:
    served()
    before = descriptors()
    with ExitStack() as stack:
        silent = [stack.enter_context(Peer(grpc_server.port)) for _ in range(CONNECTIONS)]
        served()
        assert {one.gone().words for one in silent} <= {NO_SETTINGS, b"settings_timeout"}  # whichever is first
    until(lambda: descriptors() <= before + 2, referee)  # `served` has made a connection


@pytest.mark.referee(patience=IMPATIENT)
@pytest.mark.parametrize(
    "begin",
    [PREFACE, PREFACE[:5], b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"],
    ids=["the preface", "half of it", "HTTP/1.1"],
)
def test_a_connection_that_does_not_come_to_its_settings_is_closed(
    grpc_server: AioServerThread, served: Callable[[], None], begin: bytes
) -> None:
    with Peer(grpc_server.port) as one:
        one.send(begin)
        one.gone()
    served()


@pytest.mark.referee(patience=Patience(handshake_s=0.5))
def test_a_connection_that_does_not_acknowledge_the_settings_is_closed(
    grpc_server: AioServerThread, served: Callable[[], None]
) -> None:
    with Peer(grpc_server.port) as one:
        one.send(PREFACE + settings())
        assert one.gone() == (Code.SETTINGS_TIMEOUT, b"settings_timeout")
    served()


@pytest.mark.referee(patience=Patience(idle_s=1))
def test_connections_without_a_call_are_closed_when_they_have_idled_long_enough(
    grpc_server: AioServerThread, served: Callable[[], None]
) -> None:
    with ExitStack() as stack:
        idle = [stack.enter_context(Peer(grpc_server.port)).greet() for _ in range(30)]
        served()
        assert {one.gone().words for one in idle} == {b"connection idle"}


# Floods.


def test_a_flood_of_pings_is_told_to_calm_down(peer: Peer, served: Callable[[], None]) -> None:
    # In one piece: what came after the end would have the system throw the last words away.
    peer.send(b"".join(frame(Kind.PING, struct.pack(">Q", number)) for number in range(10)))
    assert peer.gone() == (Code.ENHANCE_YOUR_CALM, b"too_many_pings")
    served()


@pytest.mark.referee(patience=IMPATIENT)
def test_a_flood_of_settings_whose_acknowledgements_nobody_reads_is_cut_off(
    grpc_server: AioServerThread, served: Callable[[], None]
) -> None:
    flood = settings(initial_window_size=65_535) * 1_000
    with Peer(grpc_server.port, receive_buffer=4_096) as one:
        one.greet()
        with suppress(ConnectionError):
            while True:
                one.send(flood)
    served()


def test_a_flood_of_settings_whose_acknowledgements_are_read_holds_up_nobody_else(
    peer: Peer, served: Callable[[], None]
) -> None:
    for _ in range(100):
        peer.send(settings(initial_window_size=65_535) * 100)
        for _ in range(100):
            peer.frame_of(Kind.SETTINGS, lambda found: found.flags & ACK)
    served()


@pytest.mark.parametrize("with_hello", [False, True], ids=["of nothing", "of agents"])
def test_streams_that_are_reset_as_soon_as_they_are_opened_leave_nothing_behind(
    peer: Peer, client: Client, agent: Make, referee: Referee, served: Callable[[], None], with_hello: bool
) -> None:
    match_id, (anna, bert) = started(client, agent)
    asked = bert.wait("decision")
    hello = agent_pb.PlayRequest(items=[item(hello=agent_pb.Hello(protocol_version=1, name="eve"))])
    referee.quiet()
    tasks = referee.do(lambda: len(asyncio.all_tasks()))
    for number in range(STREAMS):
        stream = peer.call(PLAYS, more=bearer(token_of("eve")))
        data = frame(Kind.DATA, message(hello.SerializeToString()), stream=stream) if with_hello else b""
        peer.send(data + resetting(stream))
        if number == STREAMS // 2:
            served()
    # As long as more streams are being taken down than there may be, new ones are refused.
    while not peer.answered(peer.call(GETS, getting(match_id), more=HOST)):
        referee.quiet()
    until(lambda: referee.do(lambda: len(referee.hall.presence.sessions)) == 2, referee)
    until(lambda: referee.do(lambda: len(asyncio.all_tasks())) <= tasks, referee)
    bert.answer(asked)
    bert.wait("verdict")
    assert anna.ended is None
    referee.check(match_id)


# Windows.


@pytest.mark.referee(patience=Patience(idle_s=1))
def test_an_answer_that_finds_no_window_goes_with_its_idle_connection(
    grpc_server: AioServerThread, match_id: str, served: Callable[[], None]
) -> None:
    with Peer(grpc_server.port) as one:
        one.greet(initial_window_size=0)
        one.call(GETS, getting(match_id), more=HOST)
        served()
        assert one.gone().words == b"connection idle"


@pytest.mark.parametrize(
    "sent",
    [
        widening(0),
        widening(0, stream=1),
        settings(initial_window_size=LARGEST_WINDOW + 1),
        frame(Kind.WINDOW_UPDATE, b"\x00"),
        frame(Kind.SETTINGS, flags=ACK) * 5,
    ],
    ids=["no increment", "no increment of a stream", "too large a window", "half an increment", "acks of nothing"],
)
def test_what_breaks_the_rules_of_flow_control_closes_its_connection(
    peer: Peer, served: Callable[[], None], sent: bytes
) -> None:
    peer.call(GETS)
    peer.send(sent)
    peer.gone()
    served()


@pytest.mark.parametrize("stream", [0, 1], ids=["of the connection", "of a stream"])
def test_a_window_beyond_the_largest_is_worth_no_more_than_the_largest(
    peer: Peer, match_id: str, served: Callable[[], None], stream: int
) -> None:
    assert peer.call(GETS, more=HOST) == 1
    peer.send(widening(LARGEST_WINDOW, stream) * 100)
    peer.send(frame(Kind.DATA, message(getting(match_id)), flags=END_STREAM, stream=1))
    assert peer.answered(1)
    served()
