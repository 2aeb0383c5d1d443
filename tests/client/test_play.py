"""An agent at a scripted referee: the whole way, over a real stream."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import grpc
import pytest

import referee_client
from referee.v1 import agent_service_pb2 as pb
from referee.v1 import error_reason_pb2, event_pb2, match_pb2
from referee_client import Event, Offer, Result, Verdict

from .agents import AsyncFirst, First, Play, SlowFirst, finish, one_match
from .conftest import TOKEN
from .fake import FakeReferee, FakeStream, accepted, decision, offer, over


@pytest.mark.parametrize("kind", [First, AsyncFirst, SlowFirst])
async def test_a_match_from_offer_to_result(play: Play, kind: type[First]) -> None:
    async def script(stream: FakeStream) -> None:
        hello = await stream.greet()
        assert stream.metadata["authorization"] == f"Bearer {TOKEN}"
        assert (hello.protocol_version, hello.name, hello.max_matches) == (1, "first", 1)
        assert hello.takes_open_seats
        assert hello.client_version.startswith("referee-python")
        ready = await stream.start()
        assert len(ready.nonce) == 32
        for number in range(3):
            await stream.send(decision=decision(number))
            answer = await stream.next("answer")
            assert (answer.match_id, answer.decision_id, answer.action) == ("m", number, "a")
            assert not answer.HasField("seat")
            await stream.send(verdict=accepted(number))
        await finish(stream)

    agent = kind()
    with FakeReferee(script) as referee:
        results = await play(agent, referee.address, matches=1)
    assert agent.asked == [0, 1, 2]
    assert results == [
        Result("m", "tiny", 1, 1, "completed", (-3, 8), (2, 1), (2, 1), (0, 1), digest="01ff"),
    ]


async def test_no_nonce_where_none_is_taken(play: Play) -> None:
    async def script(stream: FakeStream) -> None:
        await stream.greet()
        assert (await stream.start(nonces_taken=False)).nonce == b""
        await finish(stream)

    with FakeReferee(script) as referee:
        await play(First(), referee.address, matches=1)


@pytest.mark.parametrize("kind", [First, AsyncFirst])
async def test_questions_of_one_message_are_answered_in_one(play: Play, kind: type[First]) -> None:
    async def script(stream: FakeStream) -> None:
        await stream.greet()
        names = [f"m{number}" for number in range(40)]
        await stream.send_all(*(pb.ServerItem(match_offered=offer(name)) for name in names))
        for _ in names:
            await stream.next("ready")
        stream.sizes.clear()
        await stream.send_all(*(pb.ServerItem(decision=decision(0, name)) for name in names))
        for _ in names:
            await stream.next("answer")
        assert stream.sizes == [40]
        await stream.send_all(*(pb.ServerItem(match_over=over(name)) for name in names))
        await stream.next("leave")
        await stream.end()

    agent = kind()
    agent.max_matches = 50
    with FakeReferee(script) as referee:
        results = await play(agent, referee.address, matches=40)
    assert len(results) == 40


async def test_no_message_has_more_items_than_the_referee_takes(play: Play) -> None:
    async def script(stream: FakeStream) -> None:
        await stream.greet(max_items=7)
        await stream.start()
        for name in range(20):
            await stream.send(match_offered=offer(f"x{name}"))
            await stream.next("ready")
        stream.sizes.clear()
        await stream.send_all(*(pb.ServerItem(decision=decision(0, f"x{name}")) for name in range(20)))
        for _ in range(20):
            await stream.next("answer")
        assert max(stream.sizes) == 7
        assert sum(stream.sizes) == 20
        await stream.abort(grpc.StatusCode.ABORTED, "SUPERSEDED")

    with FakeReferee(script) as referee, pytest.raises(referee_client.SupersededError):
        await play(First(), referee.address)


async def test_a_ping_is_answered_while_a_slow_agent_thinks(play: Play) -> None:
    go_on = threading.Event()

    class Thinker(SlowFirst):
        def choose(self, decision: referee_client.Decision) -> str:
            assert go_on.wait(10)
            return super().choose(decision)

    async def script(stream: FakeStream) -> None:
        await stream.greet()
        await stream.start()
        await stream.send(decision=decision(0))
        await stream.send(ping=pb.Ping(ping_id=7))
        assert (await stream.next("pong")).ping_id == 7
        go_on.set()
        await stream.next("answer")
        await finish(stream)

    with FakeReferee(script) as referee:
        await play(Thinker(), referee.address, matches=1)


async def test_a_question_put_again_is_answered_from_memory(play: Play) -> None:
    async def first(stream: FakeStream) -> None:
        await stream.greet()
        first_nonce.append((await stream.start()).nonce)
        await stream.send(decision=decision(0))
        await stream.next("answer")
        await stream.send(decision=decision(1))
        await stream.next("answer")
        await stream.abort(grpc.StatusCode.UNAVAILABLE)

    async def second(stream: FakeStream) -> None:
        hello = await stream.greet()
        assert [position.match_id for position in hello.positions] == ["m"]
        await stream.send(match_offered=offer(ready=True))
        await stream.send(decision=decision(1))
        answer = await stream.next("answer")
        assert (answer.decision_id, answer.action) == (1, "a")
        await stream.send(decision=decision(0))  # older than what it knows: passed over
        await stream.send(decision=decision(2))
        assert (await stream.next("answer")).decision_id == 2
        await finish(stream)

    first_nonce: list[bytes] = []
    agent = First()
    with FakeReferee(first, second) as referee:
        assert len(await play(agent, referee.address, matches=1)) == 1
    assert agent.asked == [0, 1, 2]


async def test_the_same_nonce_is_sent_again_for_an_offer_that_is_repeated(play: Play) -> None:
    nonces: list[bytes] = []

    async def first(stream: FakeStream) -> None:
        await stream.greet()
        nonces.append((await stream.start()).nonce)

    async def second(stream: FakeStream) -> None:
        await stream.greet()
        nonces.append((await stream.start()).nonce)
        await finish(stream)

    with FakeReferee(first, second) as referee:
        await play(First(), referee.address, matches=1)
    assert nonces[0] == nonces[1]


async def test_an_open_seat_that_went_to_another_and_is_offered_anew_is_played_with_another_nonce(play: Play) -> None:
    nonces: list[bytes] = []

    async def script(stream: FakeStream) -> None:
        await stream.greet()
        nonces.append((await stream.start()).nonce)
        gone = match_pb2.MatchResult(reason=match_pb2.END_REASON_NOT_STARTED)
        await stream.send(match_over=pb.MatchOver(match_id="m", result=gone))
        nonces.append((await stream.start()).nonce)
        await finish(stream)

    with FakeReferee(script) as referee:
        [result] = await play(First(), referee.address, matches=1)
    assert result.reason == "completed"
    assert nonces[0] != nonces[1]


async def test_an_answer_that_is_found_while_the_stream_is_away_goes_out_on_the_next(play: Play) -> None:
    go_on = threading.Event()

    class Thinker(SlowFirst):
        def choose(self, decision: referee_client.Decision) -> str:
            assert go_on.wait(10)
            return super().choose(decision)

    async def first(stream: FakeStream) -> None:
        await stream.greet()
        await stream.start()
        await stream.send(decision=decision(0))

    async def second(stream: FakeStream) -> None:
        await stream.greet()
        go_on.set()
        await stream.send(match_offered=offer(ready=True), decision=decision(0))
        assert (await stream.next("answer")).decision_id == 0
        await finish(stream)

    agent = Thinker()
    with FakeReferee(first, second) as referee:
        await play(agent, referee.address, matches=1)
    assert agent.asked == [0]


async def test_an_answer_that_is_not_legal_is_the_referees_to_rule_on(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    class Stubborn(First):
        verdicts: list[Verdict] = []  # noqa: RUF012

        def choose(self, decision: referee_client.Decision) -> str:
            super().choose(decision)
            return "z" if len(self.asked) == 1 else "b"

        def on_verdict(self, verdict: Verdict) -> None:
            self.verdicts.append(verdict)

    async def script(stream: FakeStream) -> None:
        await stream.greet()
        await stream.start()
        await stream.send(decision=decision(0))
        assert (await stream.next("answer")).action == "z"
        ruled = pb.Verdict(
            match_id="m",
            decision_id=0,
            status=event_pb2.ANSWER_STATUS_FAULTED,
            fault=match_pb2.FAULT_KIND_MALFORMED,
            strike_count=1,
            asked_again=True,
        )
        await stream.send(verdict=ruled, decision=decision(0))
        assert (await stream.next("answer")).action == "b"
        await finish(stream)

    agent = Stubborn()
    with FakeReferee(script) as referee:
        await play(agent, referee.address, matches=1)
    assert agent.asked == [0, 0]
    assert agent.verdicts == [Verdict("m", 0, "faulted", "malformed", "", 1, True)]
    assert "ruled malformed" in caplog.text


async def test_a_choice_whose_time_has_run_out_is_cancelled(play: Play) -> None:
    class Hanging(AsyncFirst):
        cancelled = 0

        async def choose(self, decision: referee_client.Decision) -> str:  # type: ignore[override]
            if decision.number == 0:
                try:
                    await asyncio.Event().wait()
                finally:
                    self.cancelled += 1
            return decision.legal[0]

    async def script(stream: FakeStream) -> None:
        await stream.greet()
        await stream.start()
        await stream.send(decision=decision(0))
        await stream.send(decision=decision(1))
        assert (await stream.next("answer")).decision_id == 1
        await finish(stream)

    agent = Hanging()
    with FakeReferee(script) as referee:
        await play(agent, referee.address, matches=1)
    assert agent.cancelled == 1


async def test_offers_beyond_the_number_of_matches_are_declined(play: Play) -> None:
    async def script(stream: FakeStream) -> None:
        assert (await stream.greet()).max_matches == 2
        await stream.start("one")
        await stream.start("two")
        await stream.send(match_offered=offer("three"))
        assert (await stream.next("decline")).match_id == "three"
        await stream.send(match_over=over("one", match_pb2.END_REASON_NOT_STARTED))
        await stream.start("four")
        await stream.send(match_over=over("two"))
        await finish(stream, "four")

    agent = First()
    agent.max_matches = 5
    with FakeReferee(script) as referee:
        results = await play(agent, referee.address, matches=2)
    assert [result.match_id for result in results] == ["two", "four"]


async def test_what_the_package_does_not_know_is_passed_over(play: Play) -> None:
    newer = pb.ServerItem.FromString(b"\xfa\x07\x02\x08\x01")  # field 127

    async def script(stream: FakeStream) -> None:
        await stream.greet()
        await stream.start()
        await stream.send_all(newer, pb.ServerItem(), pb.ServerItem(decision=decision(0)))
        await stream.next("answer")
        rejected = pb.Rejected(reason=error_reason_pb2.ERROR_REASON_ALREADY_READY, message="too late")
        await stream.send(rejected=rejected)
        await stream.send(verdict=accepted(0, "unknown"), match_over=over("unknown"))
        await finish(stream)

    with FakeReferee(script) as referee:
        assert len(await play(First(), referee.address, matches=1)) == 1


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_hooks_are_called_in_the_order_things_happened(play: Play, slow: bool, asynchronous: bool) -> None:
    class Chatty(First):
        wants_events = True

        def __init__(self) -> None:
            super().__init__()
            self.heard: list[Any] = []

        def choose(self, decision: referee_client.Decision) -> str:
            self.heard.append(decision.number)
            return decision.legal[0]

        def on_match_start(self, offer: Offer) -> Any:
            return self.note(("start", offer.match_id, offer.game, offer.seat, offer.allowance_ms))

        def on_event(self, match_id: str, seat: int, event: Event) -> Any:
            return self.note((event.number, event.kind, event.data))

        def on_match_over(self, result: Result) -> Any:
            return self.note(("over", result.totals))

        def note(self, what: Any) -> Any:
            if not asynchronous or slow:
                self.heard.append(what)
                return None

            async def later() -> None:
                await asyncio.sleep(0)
                self.heard.append(what)

            return later()

    def events(*numbers: int) -> pb.SeatEvents:
        taken = event_pb2.TrickTaken(seat=2, cards=["7S"])
        return pb.SeatEvents(
            match_id="m", seat=1, events=[event_pb2.MatchEvent(sequence=n, trick_taken=taken) for n in numbers]
        )

    async def first(stream: FakeStream) -> None:
        assert (await stream.greet()).wants_events
        await stream.send(match_offered=offer(), events=events(1))
        await stream.next("ready")
        await stream.send(events=events(2), decision=decision(0))
        await stream.next("answer")

    async def second(stream: FakeStream) -> None:
        hello = await stream.greet()
        assert [(one.match_id, one.after_sequence) for one in hello.positions] == [("m", 2)]
        await stream.send(match_offered=offer(ready=True), events=events(2, 3))
        await finish(stream)

    agent = Chatty()
    agent.slow = slow
    with FakeReferee(first, second) as referee:
        await play(agent, referee.address, matches=1)
    data = {"seat": 2, "cards": ("7S",)}
    assert agent.heard == [
        ("start", "m", "tiny", 1, 5000),
        (1, "trick_taken", data),
        (2, "trick_taken", data),
        0,
        (3, "trick_taken", data),
        ("over", (-3, 8)),
    ]


async def test_a_choice_that_holds_up_the_loop_gets_advice(
    play: Play, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from referee_client import session

    monkeypatch.setattr(session, "_SLOW_CHOICE", -1.0)
    with FakeReferee(one_match) as referee, caplog.at_level(logging.WARNING):
        await play(First(), referee.address, matches=1)
    assert "set `slow = True` in First" in caplog.text
