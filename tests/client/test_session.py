"""The session by itself: no stream, only messages in and items out."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import event_pb2, match_pb2
from referee_client import Agent, Decision, PolicyAgent, Tls, plain
from referee_client.client import Backoff
from referee_client.errors import CredentialError
from referee_client.outbox import Outbox
from referee_client.session import Session
from referee_client.status import reason_of

from .fake import decision, offer, over


class First(Agent):
    def choose(self, decision: Decision) -> str:
        return decision.legal[0]


def message(*items: Any) -> pb.PlayResponse:
    names = {
        pb.Decision: "decision",
        pb.MatchOffered: "match_offered",
        pb.Welcome: "welcome",
        pb.MatchOver: "match_over",
    }
    return pb.PlayResponse(items=[pb.ServerItem(**{names[type(item)]: item}) for item in items])


class Working:
    """A session at work, with a connection that is up."""

    def __init__(self, agent: Agent) -> None:
        self.session = Session(agent)

    async def __aenter__(self) -> Session:
        self.session.hello()
        self.session.receive(message(pb.Welcome()))
        self._task = asyncio.create_task(self.session.work())
        return self.session

    async def __aexit__(self, *exc: object) -> None:
        self._task.cancel()
        self.session.close()
        await asyncio.gather(self._task, return_exceptions=True)


async def sent(session: Session) -> list[str]:
    async with asyncio.timeout(10):
        await session.to_send.wait()
    session.to_send.clear()
    return [f"{item.answer.match_id}/{item.answer.decision_id}" for item in session.outbox.take()]


async def test_what_a_slow_agent_has_answered_does_not_wait_for_its_next_thought() -> None:
    go_on = threading.Event()

    class Thinker(First):
        slow = True

        def choose(self, decision: Decision) -> str:
            if decision.match_id == "two":
                assert go_on.wait(10)
            return "a"

    try:
        async with Working(Thinker()) as session:
            session.receive(message(offer("one"), offer("two")))
            await sent(session)
            session.receive(message(decision(0, "one"), decision(0, "two")))
            assert await sent(session) == ["one/0"]
            go_on.set()
            assert await sent(session) == ["two/0"]
    finally:
        go_on.set()


async def test_what_comes_before_the_connection_is_up_is_only_remembered() -> None:
    agent = First()
    async with Working(agent) as session:
        session.receive(message(offer(), decision(0)))
        await sent(session)
        session.hello()
        assert len(session.outbox) == 0
        session.receive(message(decision(1)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(session.outbox) == 0
        session.receive(message(pb.Welcome(), decision(1)))
        assert await sent(session) == ["m/1"]


async def test_a_decision_without_an_offer_is_answered_all_the_same() -> None:
    async with Working(First()) as session:
        session.receive(message(decision(5, "new")))
        assert await sent(session) == ["new/5"]


async def test_the_hello_of_an_agent_with_thousands_of_matches_fits_its_message() -> None:
    async with Working(First()) as session:
        session.receive(message(*(offer(f"{number:026d}") for number in range(4096))))
        await sent(session)
        assert session.hello().ByteSize() <= 64 * 1024


async def test_a_message_that_cannot_be_read_ends_the_session() -> None:
    async with Working(First()) as session:
        broken = decision(0)
        broken.ClearField("generic")
        session.receive(message(offer(), broken))
        with pytest.raises(ValueError, match="holds no view"):
            await asyncio.wait_for(session.done, 10)


async def test_a_text_that_is_far_too_long_ends_the_session() -> None:
    class Talker(First):
        def choose(self, decision: Decision) -> str:
            return "x" * 1001

    async with Working(Talker()) as session:
        session.receive(message(offer(), decision(0)))
        with pytest.raises(ValueError, match="1,001 characters"):
            await asyncio.wait_for(session.done, 10)


async def test_nothing_is_left_behind_when_matches_are_over() -> None:
    async with Working(First()) as session:
        for number in range(50):
            session.receive(message(offer(f"{number}"), decision(0, f"{number}"), over(f"{number}")))
            await sent(session)
        assert not session._tables
        assert not session._tasks


def test_waits_double_are_random_and_have_a_bound() -> None:
    low, high = Backoff(1, 5, rng=lambda: 0.0), Backoff(1, 5, rng=lambda: 1.0)
    assert [high.next() for _ in range(5)] == [1, 2, 4, 5, 5]
    assert [low.next() for _ in range(5)] == [0.5, 1, 2, 2.5, 2.5]
    high.reset()
    assert high.next() == 1


@given(st.binary())
def test_details_that_are_no_status_give_no_reason(details: bytes) -> None:
    assert reason_of(details) == ""


@pytest.mark.parametrize(
    ("tls", "message"),
    [
        (Tls(ca="/no/such"), "certificate file /no/such cannot be read"),
        (Tls(certificate="/no/such"), "comes with its key"),
        (Tls(key="/no/such"), "comes with its key"),
    ],
)
def test_what_encryption_needs_has_to_be_there(tls: Tls, message: str) -> None:
    with pytest.raises(CredentialError, match=message):
        tls.channel_credentials()


PAYLOADS = [field.name for field in event_pb2.MatchEvent.DESCRIPTOR.oneofs_by_name["payload"].fields]


@pytest.mark.parametrize("kind", PAYLOADS)
def test_every_event_has_plain_data(kind: str) -> None:
    event = event_pb2.MatchEvent(sequence=4, match_time_us=20_000)
    getattr(event, kind).SetInParent()
    back = plain.event_from(event_pb2.MatchEvent.FromString(event.SerializeToString()))
    assert (back.number, back.match_time_us, back.kind) == (4, 20_000, kind)


def test_an_event_in_full() -> None:
    event = event_pb2.MatchEvent(sequence=1)
    event.match_created.create_time.FromMilliseconds(1500)
    event.match_created.spec.options.generic.values["a"] = "b"
    event.match_created.seats.add(seat=2, kind=match_pb2.SEAT_KIND_BOT, name="greedy")
    data = plain.event_from(event).data
    assert data["create_time"] == 1.5
    assert data["spec"]["options"] == {"generic": {"values": {"a": "b"}}}
    assert data["seats"] == ({"seat": 2, "kind": "bot", "agent_id": "", "name": "greedy", "bot_seed": 0},)
    assert "first_dealer" not in data["spec"]


def test_a_newer_event_has_no_kind() -> None:
    assert plain.event_from(event_pb2.MatchEvent.FromString(b"\x08\x03\xa2\x06\x00")).kind == ""


def test_an_offer_and_a_result_in_full() -> None:
    message = offer(options={"generic": {"values": {"rounds": "3"}}}, auto_play=match_pb2.AUTO_PLAY_NEVER)
    message.seats.add(seat=0, kind=match_pb2.SEAT_KIND_AGENT, name="other")
    found = plain.offer_from(message, b"n" * 32)
    assert (found.options, found.auto_play, found.bank_ms) == ({"rounds": "3"}, "never", 60_000)
    assert found.seats[0].kind == "agent"
    assert plain.result_from(over(reason=99), "tiny").reason == "99"


def test_a_policy_becomes_an_agent() -> None:
    class Last:
        def choose(self, decision: Decision) -> str:
            return decision.legal[-1]

    agent = PolicyAgent(Last(), "last", max_matches=7)
    assert (agent.name, agent.max_matches) == ("last", 7)
    assert agent.choose(Decision("m", "tiny", 0, 0, None, ("a", "b"))) == "b"
    with pytest.raises(TypeError, match="no attribute 'speed'"):
        PolicyAgent(Last(), "last", speed=3)


def test_an_agent_without_choose_says_so() -> None:
    with pytest.raises(NotImplementedError, match=r"Agent has no choose\(decision\)"):
        Agent().choose(Decision("m", "tiny", 0, 0, None, ("a",)))


async def test_answers_go_out_when_half_of_the_tightest_time_is_gone() -> None:
    time = 0.0

    class Steady(First):
        def choose(self, decision: Decision) -> str:
            nonlocal time
            time += 1
            return "a"

    session = Session(Steady())
    session._clock = lambda: time
    session.outbox = Outbox(hold=1_000)
    session.hello()
    names = [f"{number}" for number in range(6)]
    session.receive(message(pb.Welcome(), *(offer(name) for name in names)))
    work = asyncio.create_task(session.work())
    await sent(session)
    # The first question leaves 9 s, the second 5: so at 2.5 s, once the third is answered, three have to go.
    times = [9, 5, 9, 9, 9, 9]
    questions = [decision(0, name, allowance_us=left * 1_000_000) for name, left in zip(names, times, strict=True)]
    session.receive(message(*questions))
    batches: list[list[str]] = []
    while sum(len(batch) for batch in batches) < len(names):
        batches.append(await sent(session))
    assert batches == [["0/0", "1/0", "2/0"], ["3/0", "4/0"], ["5/0"]]
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
