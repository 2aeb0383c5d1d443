"""The names of pytest-grpc mean here what they mean there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from referee.v1 import match_service_pb2 as pb
from rpc.kit import HOST, Client, play_out, started
from rpc.server import Referee


def test_the_stub_reaches_the_service(grpc_stub: Any) -> None:
    assert list(grpc_stub.ListMatches(pb.ListMatchesRequest(), metadata=HOST, timeout=5).matches) == []


@pytest.mark.usefixtures("grpc_server")
def test_a_channel_made_by_hand_reaches_it_too(
    grpc_create_channel: Callable[..., grpc.Channel], grpc_stub_cls: Callable[[grpc.Channel], Any]
) -> None:
    stub = grpc_stub_cls(grpc_create_channel())
    assert stub.ListMatches(pb.ListMatchesRequest(), metadata=HOST, timeout=5).next_page_token == ""


def test_a_whole_match_is_played_over_the_wire(referee: Referee, client: Client, agent: Callable[..., Any]) -> None:
    match_id, agents = started(client, agent)
    play_out(agents, match_id, referee)
    digests = {one.wait("match_over").result.digest for one in agents}
    assert digests == {client.get(match_id).result.digest}
    assert referee.check(match_id).ended
