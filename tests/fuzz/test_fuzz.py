"""A few thousand fuzzed messages, in process and over a real server. `scripts/soak fuzz` sends as many as one likes."""

from __future__ import annotations

import random

import pytest

from fuzz.generate import Generator
from fuzz.server import fuzz_server
from fuzz.world import FuzzWorld
from referee.v1 import agent_service_pb2
from sim.ledger import BrokenError


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
