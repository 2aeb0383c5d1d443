"""A few thousand fuzzed messages, in process and over a real server. `scripts/soak fuzz` sends as many as one likes."""

from __future__ import annotations

import random

import pytest

from fuzz.echo import without_own
from fuzz.generate import Generator
from fuzz.server import fuzz_server
from fuzz.world import FuzzWorld
from referee.v1 import agent_service_pb2, match_service_pb2
from referee_games.contract import shown
from referee_server.tables import creation
from sim.ledger import CARD, BrokenError


@pytest.mark.parametrize("seed", range(4))
def test_nothing_that_is_sent_disturbs_others_or_is_told_more_than_it_may(seed: int) -> None:
    try:
        world = FuzzWorld(seed, 1_500).run()
    except BrokenError as error:
        raise AssertionError(f"python -m fuzz --seed {seed} --messages 1500 --verbose: {error}") from error
    assert any(told.final for told in world.ledger.matches.values())


async def test_a_server_over_a_socket_ends_every_call_as_planned() -> None:
    report = await fuzz_server(seed=1, messages=600)
    assert report.sent == 600
    assert report.wrong == []


def test_a_generator_draws_the_same_messages_from_the_same_seed() -> None:
    kind = agent_service_pb2.PlayRequest.DESCRIPTOR
    one, other = Generator(random.Random(3)), Generator(random.Random(3))
    assert [one.encoded(kind) for _ in range(50)] == [other.encoded(kind) for _ in range(50)]


@pytest.mark.parametrize(
    ("own", "reply", "found"),
    [
        pytest.param("7S\x17S", "there is no match " + shown("7S\x17S"), [], id="the caller's own words"),
        pytest.param("7S\x17S", "there is no match " + shown("7S\x17S") + ", but QH", ["QH"], id="a card beside them"),
        pytest.param("7S", "seat 1 holds 7S", ["7S"], id="the same card, not as the caller's words are shown"),
        pytest.param("", "seat 1 holds 7S", ["7S"], id="no words of its own"),
        pytest.param("x 7S " * 20, "there is no match " + shown("x 7S " * 20), [], id="words that are cut short"),
    ],
)
def test_a_reply_may_repeat_the_callers_own_words_and_name_no_card_beside(
    own: str, reply: str, found: list[str]
) -> None:
    request = match_service_pb2.GetMatchRequest(match_id=own)
    assert CARD.findall(without_own(reply, request.DESCRIPTOR, request.SerializeToString())) == found


def test_a_card_in_an_error_text_is_found_while_fuzzing(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = creation.unknown_match

    def leaky(match_id: str) -> Exception:
        error = unknown(match_id)
        error.message += "; seat 1 holds QH"
        return error

    monkeypatch.setattr("referee_server.rpc.match_service.unknown_match", leaky)
    with pytest.raises(BrokenError, match="names \\['QH'\\]"):
        FuzzWorld(0, 1_500).run()
