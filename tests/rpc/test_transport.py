"""What the wire can carry: bytes that are no message, too much of it, too slow readers, deadlines of all kinds."""

from __future__ import annotations

import resource
import struct
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
from grpc import StatusCode

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import event_pb2, match_pb2
from referee.v1 import match_service_pb2 as pb
from referee_server.tables.session import MAX_REQUEST_BYTES
from rpc.agent import Agent, bearer, item, refused
from rpc.http2 import Kind, Peer, frame
from rpc.kit import HOST, NOBODY, Client, duel, started, until
from rpc.server import AioServerThread, Referee, token_of

Make = Callable[..., Agent]
GETS = "/referee.v1.MatchService/GetMatch"
CREATES = "/referee.v1.MatchService/CreateMatch"
WATCHES = "/referee.v1.MatchService/WatchMatch"

Position = agent_pb.Position
NO_MESSAGE = {
    "half a number": b"\x08",
    "a length beyond the end": b"\x0a\xff\x01x",
    "an unknown wire type": b"\x0f",
    "all ones": b"\xff" * 100,
    "an unclosed group": b"\x0b",
    "a string that is not UTF-8": b"\x0a\x02\xc3\x28",
    "a surrogate in UTF-8": b"\x0a\x03\xed\xa0\x80",
    "groups 10,000 deep": b"\xfb\x3f" * 10_000,
}


def raw(client: Client, method: str, data: bytes, who: Any = HOST) -> Any:
    if method == WATCHES:
        return client.channel.unary_stream(method)(data, metadata=who, timeout=9)
    return client.channel.unary_unary(method)(data, metadata=who, timeout=9)


@pytest.mark.parametrize("method", [GETS, CREATES, WATCHES])
@pytest.mark.parametrize("data", NO_MESSAGE.values(), ids=NO_MESSAGE.keys())
def test_bytes_that_are_no_message_are_refused_in_fixed_words(client: Client, method: str, data: bytes) -> None:
    found = refused(lambda: raw(client, method, data))
    assert found[:2] == (StatusCode.INVALID_ARGUMENT, "NOT_PARSEABLE")
    assert found.message == f"the bytes are not a referee.v1.{method.rpartition('/')[2]}Request"


@pytest.mark.parametrize("data", NO_MESSAGE.values(), ids=NO_MESSAGE.keys())
@pytest.mark.parametrize("first", [True, False], ids=["instead of Hello", "later"])
def test_bytes_that_are_no_message_end_an_agents_stream(agent: Make, data: bytes, first: bool) -> None:
    anna = agent()
    if not first:
        anna.hello()
    # A string of the request itself is one of Hello here.
    anna.send_bytes(b"\x0a\x06\x0a\x04\x12\x02\xc3\x28" if data == NO_MESSAGE["a string that is not UTF-8"] else data)
    found = anna.end()
    assert found[:2] == (StatusCode.INVALID_ARGUMENT, "NOT_PARSEABLE")
    assert found.message == "the bytes are not a referee.v1.PlayRequest"


def test_a_message_of_another_type_is_refused(client: Client, agent: Make) -> None:
    other = agent_pb.PlayRequest(items=[item(pong=agent_pb.Pong(ping_id=1))]).SerializeToString()
    assert refused(lambda: raw(client, WATCHES, other)).code == StatusCode.INVALID_ARGUMENT
    anna = agent()
    anna.send_bytes(match_pb2.Seat(seat=3, name="x").SerializeToString())
    assert anna.end().reason == "NO_HELLO"


def test_thousands_of_empty_groups_are_only_unknown_fields(client: Client) -> None:
    assert refused(lambda: raw(client, GETS, b"\xfb\x3f\xfc\x3f" * 15_000))[:2] == (
        StatusCode.NOT_FOUND,
        "MATCH_UNKNOWN",
    )


def test_protobuf_runs_on_its_compiled_parser() -> None:
    from google.protobuf.internal import api_implementation

    assert api_implementation.Type() == "upb"


@pytest.mark.parametrize("method", ["/referee.v1.MatchService/Nothing", "/referee.v1.Nothing/GetMatch", "/x", "/"])
def test_an_unknown_method_is_unimplemented(client: Client, method: str) -> None:
    assert refused(lambda: client.channel.unary_unary(method)(b"", metadata=HOST, timeout=9)).code == (
        StatusCode.UNIMPLEMENTED
    )


def padded(size: int) -> bytes:
    """Returns a request of exactly that many bytes whose filling is an unknown field."""
    body = agent_pb.PlayRequest(items=[item(hello=agent_pb.Hello(protocol_version=1, name="anna"))]).SerializeToString()
    rest = size - len(body) - 2
    for length_bytes in (1, 2, 3, 4):
        length = rest - length_bytes
        coded = bytearray()
        left = length
        while True:
            coded.append(left & 0x7F | (0x80 if left > 0x7F else 0))
            left >>= 7
            if not left:
                break
        if len(coded) == length_bytes:
            return body + b"\xfa\x3f" + bytes(coded) + bytes(length)
    raise AssertionError


@pytest.mark.parametrize("size", [MAX_REQUEST_BYTES - 1, MAX_REQUEST_BYTES])
def test_a_message_up_to_the_limit_is_taken(agent: Make, size: int) -> None:
    data = padded(size)
    assert len(data) == size
    anna = agent()
    anna.send_bytes(data)
    assert anna.wait("welcome").max_message_size == MAX_REQUEST_BYTES


def test_the_first_byte_over_the_limit_is_refused_with_a_reason(agent: Make) -> None:
    anna = agent()
    anna.send_bytes(padded(MAX_REQUEST_BYTES + 1))
    found = anna.end()
    assert found[:2] == (StatusCode.RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE")
    assert found.metadata == {"limit": str(MAX_REQUEST_BYTES)}


@pytest.mark.parametrize("size", [MAX_REQUEST_BYTES + 2, 5 * 1024 * 1024])
def test_more_than_that_is_refused_by_the_library(agent: Make, size: int) -> None:
    anna = agent()
    anna.send_bytes(padded(size))
    assert anna.end()[:2] == (StatusCode.RESOURCE_EXHAUSTED, "")


def test_a_length_of_2_gib_allocates_nothing(grpc_server: AioServerThread, client: Client) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Peer(grpc_server.port) as peer:
        stream = peer.greet().call(GETS)
        peer.send(frame(Kind.DATA, b"\x00" + struct.pack(">I", 2**31 - 1) + b"x", stream=stream))
        assert peer.answered(stream)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 * 1024
    assert refused(lambda: client.get("x")).reason == "MATCH_UNKNOWN"


def test_compressed_requests_are_not_taken(client: Client) -> None:
    call: Any = client.channel.unary_unary(GETS)
    found = refused(lambda: call(b"\x0a\x01x" * 1_000, metadata=HOST, timeout=9, compression=grpc.Compression.Gzip))
    assert found.code == StatusCode.UNIMPLEMENTED


# Streams that do not do their part.


@pytest.mark.referee(hello_deadline_s=0.1)
def test_a_stream_that_says_nothing_is_ended(agent: Make) -> None:
    assert agent().end()[:2] == (StatusCode.FAILED_PRECONDITION, "NO_HELLO")


def test_a_stream_that_begins_with_something_else_is_ended(agent: Make) -> None:
    anna = agent()
    anna.send(item(pong=agent_pb.Pong()))
    assert anna.end()[:2] == (StatusCode.FAILED_PRECONDITION, "NO_HELLO")


def test_an_empty_first_message_is_no_hello(agent: Make) -> None:
    anna = agent()
    anna.send()
    assert anna.end().reason == "NO_HELLO"


def test_half_a_stream_that_closes_at_once_is_ended(agent: Make) -> None:
    anna = agent()
    anna.half_close()
    assert anna.end().reason == "NO_HELLO"


@pytest.mark.parametrize("version", [0, -1])
def test_a_protocol_older_than_the_referees_is_refused_with_what_it_speaks(agent: Make, version: int) -> None:
    anna = agent()
    anna.send(item(hello=agent_pb.Hello(protocol_version=version, name="anna")))
    found = anna.end()
    assert found[:2] == (StatusCode.FAILED_PRECONDITION, "PROTOCOL_VERSION")
    assert found.metadata == {"oldest": "1", "newest": "1"}


def test_a_newer_protocol_is_answered_in_the_referees_own(agent: Make) -> None:
    assert agent().hello(protocol_version=1_000).protocol_version == 1


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"max_matches": -1}, "hello.max_matches"),
        ({"max_matches": 4_097}, "hello.max_matches"),
        ({"max_open_decisions": -1}, "hello.max_open_decisions"),
        ({"games": ["x"] * 65}, "hello.positions"),
        ({"client_version": "x" * 201}, "hello.positions"),
        ({"positions": [Position(after_sequence=-1)]}, "hello.positions[0].after_sequence"),
        (
            {"positions": [agent_pb.Position(), agent_pb.Position(after_sequence=-(2**63))]},
            "hello.positions[1].after_sequence",
        ),
    ],
)
def test_a_hello_out_of_range_is_refused_naming_the_field(agent: Make, fields: dict[str, Any], field: str) -> None:
    anna = agent()
    anna.send(item(hello=agent_pb.Hello(protocol_version=1, name="anna", **fields)))
    found = anna.end()
    assert (found.code, found.reason, found.fields) == (StatusCode.INVALID_ARGUMENT, "FIELD_INVALID", [field])


def test_who_reads_nothing_is_cut_off_and_harms_nobody(
    client: Client, agent: Make, referee: Referee, grpc_channel: grpc.Channel
) -> None:
    match_id, (anna, bert) = started(client, agent)
    asked = bert.wait("decision")
    hello = item(hello=agent_pb.Hello(protocol_version=1, name="eve"))
    open_ = SimpleQueue[bytes | None]()
    open_.put(agent_pb.PlayRequest(items=[hello]).SerializeToString())
    play: Any = grpc_channel.stream_stream("/referee.v1.AgentService/Play", None, None)
    call = play(iter(open_.get, None), metadata=bearer(token_of("eve")), timeout=60)

    def session() -> Any:
        return next((one for one in referee.hall.presence.sessions.values() if one.name == "eve"), None)

    until(lambda: referee.do(session) is not None, referee)
    eve = referee.do(session)
    large = agent_pb.ServerItem(verdict=agent_pb.Verdict(match_id="x" * 8_000))

    def send() -> None:
        for _ in range(64):
            eve.push(large)

    for _ in range(1_000):  # far more than buffers on the way can hold
        referee.do(send)
        if eve.closed is not None:
            break
    assert refused(lambda: call)[:2] == (StatusCode.RESOURCE_EXHAUSTED, "SLOW_CONSUMER")
    open_.put(None)
    bert.answer(asked)
    assert bert.wait("verdict").status == event_pb2.ANSWER_STATUS_ACCEPTED
    assert anna.ended is None
    referee.check(match_id)


def test_more_streams_than_a_connection_may_have_wait_on_their_side(
    client: Client, grpc_create_channel: Callable[..., grpc.Channel]
) -> None:
    match_id = client.create(duel("open", "open"))
    crowded = Client(grpc_create_channel())
    watching = [crowded.watch(match_id) for _ in range(64)]
    for one in watching:
        next(one)
    request = pb.GetMatchRequest(match_id=match_id)
    assert refused(lambda: crowded.matches.GetMatch(request, metadata=HOST, timeout=0.2)).code == (
        StatusCode.DEADLINE_EXCEEDED
    )
    assert client.get(match_id).match_id == match_id
    watching[0].cancel()
    assert crowded.get(match_id).match_id == match_id
    for one in watching:
        one.cancel()


@pytest.mark.parametrize("timeout", [-5, 0.001])  # Python takes 0 for none
def test_a_deadline_that_is_over_is_the_clients_own(client: Client, timeout: float) -> None:
    match_id = client.create(duel("open", "open"))
    request = pb.WatchMatchRequest(match_id=match_id, view=pb.View(public=pb.PublicView()))
    found = refused(lambda: client.matches.WatchMatch(request, timeout=timeout))
    assert found[:2] == (StatusCode.DEADLINE_EXCEEDED, "")
    assert client.get(match_id).match_id == match_id


def test_a_deadline_of_ten_years_moves_no_clock_of_the_match(client: Client, agent: Make, referee: Referee) -> None:
    match_id, (anna, bert) = started(client, agent)
    request = pb.WatchMatchRequest(match_id=match_id, view=pb.View(public=pb.PublicView()))
    watching = client.matches.WatchMatch(request, timeout=10 * 365 * 86_400)
    next(watching)
    asked = bert.wait("decision")
    referee.advance(asked.allowance_us + asked.bank_us)
    assert referee.of_log(match_id, "fault_ruled")[0].kind == match_pb2.FAULT_KIND_TIMEOUT
    watching.cancel()
    assert anna.ended is None


# Pages.


def page(client: Client, **fields: Any) -> pb.ListMatchesResponse:
    response: pb.ListMatchesResponse = client.matches.ListMatches(
        pb.ListMatchesRequest(**fields), metadata=HOST, timeout=9
    )
    return response


def test_pages_cover_every_match_once_the_newest_first(client: Client) -> None:
    ids = [client.create(duel("open", "open", label=str(number))) for number in range(7)]
    found: list[str] = []
    token = ""
    while True:
        response = page(client, page_size=3, page_token=token)
        found += [match.match_id for match in response.matches]
        token = response.next_page_token
        if not token:
            break
    assert found == ids[::-1]


@pytest.mark.parametrize("size", [0, 10**9])
def test_a_page_size_of_nothing_or_too_much_is_bounded(client: Client, size: int) -> None:
    client.create(duel("open", "open"))
    assert len(page(client, page_size=size).matches) == 1


@pytest.mark.parametrize("size", [-1, -(2**31)])
def test_a_negative_page_size_is_refused(client: Client, size: int) -> None:
    found = refused(lambda: page(client, page_size=size))
    assert (found.code, found.fields) == (StatusCode.INVALID_ARGUMENT, ["page_size"])


@pytest.mark.parametrize(
    "token", ["x", "bTA=", "bS01", "bTEgAA==", "x" * 65, "MQ==", "bQ==", "ключ", "bTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5"]
)
def test_a_page_token_that_the_referee_did_not_make_is_refused(client: Client, token: str) -> None:
    found = refused(lambda: page(client, page_token=token))
    assert found[:2] == (StatusCode.INVALID_ARGUMENT, "PAGE_TOKEN_INVALID")


def test_states_choose_what_is_listed(client: Client, referee: Referee) -> None:
    waiting, over = client.create(duel("open", "open")), client.finished(referee)
    for state, match_id in ((match_pb2.MATCH_STATE_WAITING, waiting), (match_pb2.MATCH_STATE_FINISHED, over)):
        assert [match.match_id for match in page(client, states=[state]).matches] == [match_id]


def test_anybody_may_see_the_catalogue(client: Client) -> None:
    from referee.v1 import game_service_pb2 as game_pb

    games = client.games.ListGames(game_pb.ListGamesRequest(), metadata=NOBODY, timeout=9)
    assert {"guillotine", "regicide", "high_card"} <= {game.name for game in games.games}
    info = client.games.GetServerInfo(game_pb.GetServerInfoRequest(), metadata=NOBODY, timeout=9)
    assert (info.oldest_protocol_version, info.newest_protocol_version) == (1, 1)
    assert info.capabilities.open_registration
