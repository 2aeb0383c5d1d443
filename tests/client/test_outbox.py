"""When answers go out, by a clock that the test moves."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.v1 import agent_service_pb2 as pb
from referee_client.outbox import Outbox


def answer(number: int = 0, action: str = "7S") -> pb.ClientItem:
    return pb.ClientItem(answer=pb.Answer(match_id="m" * 26, decision_id=number, action=action))


def test_an_empty_one_has_no_deadline() -> None:
    outbox = Outbox()
    assert outbox.deadline == math.inf
    assert outbox.take() == []


def test_half_of_the_tightest_time_left_counts_from_when_the_question_came() -> None:
    outbox = Outbox(hold=1000)
    outbox.add(answer(0), now=103, asked=100, left=20)
    assert outbox.deadline == 110
    outbox.add(answer(1), now=104, asked=102, left=4)
    assert outbox.deadline == 104
    outbox.add(answer(2), now=104, asked=104, left=30)
    assert outbox.deadline == 104


def test_untimed_answers_wait_no_longer_than_the_hold() -> None:
    outbox = Outbox(hold=0.02)
    outbox.add(answer(), now=100, asked=90)
    assert outbox.deadline == pytest.approx(100.02)


def test_no_time_left_means_now() -> None:
    outbox = Outbox()
    outbox.add(answer(), now=100, asked=100, left=0)
    assert outbox.deadline == 100


def test_taking_everything_lifts_the_deadline() -> None:
    outbox = Outbox()
    outbox.add(answer(), now=100)
    assert len(outbox.take()) == 1
    assert outbox.deadline == math.inf


def test_clearing_too() -> None:
    outbox = Outbox()
    outbox.add(answer(), now=100)
    outbox.clear()
    assert (len(outbox), outbox.deadline, outbox.full, outbox.take()) == (0, math.inf, False, [])


@given(st.lists(st.integers(0, 900), max_size=600), st.integers(1, 256), st.integers(1100, 65536))
def test_messages_keep_to_the_limits_and_the_order(lengths: list[int], max_items: int, max_bytes: int) -> None:
    outbox = Outbox()
    outbox.max_items, outbox.max_bytes = max_items, max_bytes
    for number, length in enumerate(lengths):
        outbox.add(answer(number, "x" * length), now=0)
    numbers = []
    while items := outbox.take():
        message = pb.PlayRequest(items=items)
        assert len(items) <= max_items
        assert message.ByteSize() <= max_bytes
        numbers += [item.answer.decision_id for item in items]
    assert numbers == list(range(len(lengths)))
    assert len(outbox) == 0


def test_it_says_when_a_message_is_full() -> None:
    outbox = Outbox()
    for number in range(256):
        assert not outbox.full
        outbox.add(answer(number), now=0)
    assert outbox.full


def test_an_item_that_fits_no_message_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        Outbox().add(answer(action="x" * 65536), now=0)
