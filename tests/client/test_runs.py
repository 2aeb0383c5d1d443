"""How a run begins, comes back, and ends: connections, refusals, exceptions, Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import grpc
import pytest

import referee_client
from referee.v1 import agent_service_pb2 as pb

from .agents import AsyncFirst, First, Play, SlowFirst, finish, one_match
from .fake import FakeReferee, FakeStream, decision, offer, over


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN])
async def test_it_comes_back_after_a_lost_connection(play: Play, code: grpc.StatusCode) -> None:
    async def lost(stream: FakeStream) -> None:
        await stream.greet()
        await stream.abort(code)

    async def refused(stream: FakeStream) -> None:
        await stream.next("hello")
        await stream.abort(code)

    async def last(stream: FakeStream) -> None:
        await stream.greet()
        await stream.start()
        await finish(stream)

    with FakeReferee(lost, refused, last) as referee:
        assert len(await play(First(), referee.address, matches=1)) == 1


async def test_it_comes_back_when_the_referee_was_restarted(play: Play) -> None:
    async def first(stream: FakeStream) -> None:
        await stream.greet()
        await stream.start()
        await stream.send(going_away=pb.GoingAway(grace_ms=1000))
        await stream.send(decision=decision(0))
        await stream.next("answer")

    async def second(stream: FakeStream) -> None:
        await stream.greet()
        await stream.send(match_offered=offer(ready=True))
        await finish(stream)

    with FakeReferee(first, second) as referee:
        assert len(await play(First(), referee.address, matches=1)) == 1


async def test_it_never_comes_back_once_superseded(play: Play) -> None:
    async def script(stream: FakeStream) -> None:
        await stream.greet()
        await stream.abort(grpc.StatusCode.ABORTED, "SUPERSEDED")

    with FakeReferee(script) as referee, pytest.raises(referee_client.SupersededError, match="second time"):
        await play(First(), referee.address)


@pytest.mark.parametrize(
    ("code", "reason", "error", "words"),
    [
        ("UNAUTHENTICATED", "CREDENTIAL_REVOKED", "CredentialError", "refuses the credential of first: so it is"),
        ("PERMISSION_DENIED", "REGISTRATION_CLOSED", "RegistrationClosedError", "ask its host to add first"),
        ("PERMISSION_DENIED", "AGENT_ONLY", "CredentialError", "does not let the credential"),
        ("ALREADY_EXISTS", "NAME_TAKEN", "NameTakenError", "the name first is taken"),
        ("INVALID_ARGUMENT", "NAME_INVALID", "NameInvalidError", "does not take the name 'first'"),
        ("FAILED_PRECONDITION", "PROTOCOL_VERSION", "ProtocolVersionError", "speaks protocol version 1"),
        ("RESOURCE_EXHAUSTED", "MESSAGE_TOO_LARGE", "RefusedError", "MESSAGE_TOO_LARGE"),
        ("INVALID_ARGUMENT", "", "RefusedError", "INVALID_ARGUMENT: so it is"),
        ("UNIMPLEMENTED", "", "ProtocolVersionError", "no referee at that address"),
    ],
)
async def test_what_the_author_can_mend_is_told_and_not_tried_again(
    play: Play, code: str, reason: str, error: str, words: str
) -> None:
    async def script(stream: FakeStream) -> None:
        await stream.next("hello")
        await stream.abort(grpc.StatusCode[code], reason, "so it is.")

    with FakeReferee(script) as referee, pytest.raises(getattr(referee_client, error), match=words) as caught:
        await play(First(), referee.address)
    assert type(caught.value).__name__ == error
    assert "\n" not in str(caught.value)


async def test_an_address_where_nobody_answers(play: Play) -> None:
    with FakeReferee() as referee:
        address = referee.address
    with pytest.raises(referee_client.NotReachableError, match=rf"{address} is not reachable within 0.3 s"):
        await play(First(), address, connect_timeout=0.3)


async def test_a_referee_that_never_welcomes(play: Play) -> None:
    async def script(stream: FakeStream) -> None:
        await stream.next("hello")
        await stream.end()

    with FakeReferee(script) as referee, pytest.raises(referee_client.NotReachableError, match="no answer"):
        await play(First(), referee.address, connect_timeout=0.2)


@pytest.mark.parametrize("kind", [First, AsyncFirst, SlowFirst])
async def test_an_exception_in_choose_ends_the_run_with_it(play: Play, kind: type[First]) -> None:
    async def fail_later(decision: referee_client.Decision) -> str:
        raise LookupError("no idea")

    def fail(decision: referee_client.Decision) -> str:
        raise LookupError("no idea")

    broken: Any = kind()
    broken.choose = fail_later if kind is AsyncFirst else fail

    async def script(stream: FakeStream) -> None:
        await stream.greet()
        await stream.start()
        await stream.send(decision=decision(0))
        await stream.next("leave")
        await stream.end()

    with FakeReferee(script) as referee, pytest.raises(LookupError, match="no idea"):
        await play(broken, referee.address)


@pytest.mark.parametrize("kind", [First, SlowFirst])
async def test_even_a_stray_stop_iteration_ends_the_run(play: Play, kind: type[First]) -> None:
    class Broken(kind):  # type: ignore[misc, valid-type]
        def choose(self, decision: referee_client.Decision) -> str:
            raise StopIteration

    async def script(stream: FakeStream) -> None:
        await stream.greet()
        await stream.start()
        await stream.send(decision=decision(0))
        await stream.next("leave")
        await stream.end()

    with FakeReferee(script) as referee, pytest.raises(RuntimeError, match="StopIteration"):
        await play(Broken(), referee.address)


@pytest.mark.parametrize("value", [None, 7, b"a", ["a"]])
async def test_an_answer_that_is_no_text_ends_the_run(play: Play, value: Any) -> None:
    class Broken(First):
        def choose(self, decision: referee_client.Decision) -> Any:
            return value

    async def script(stream: FakeStream) -> None:
        await stream.greet()
        await stream.start()
        await stream.send(decision=decision(0))
        await stream.next("leave")
        await stream.end()

    with FakeReferee(script) as referee, pytest.raises(TypeError, match="not the text of an action"):
        await play(Broken(), referee.address)


async def test_cancelling_says_goodbye(play: Play) -> None:
    asked = asyncio.Event()

    class Hanging(AsyncFirst):
        async def choose(self, decision: referee_client.Decision) -> str:  # type: ignore[override]
            asked.set()
            await asyncio.Event().wait()
            return ""

    async def script(stream: FakeStream) -> None:
        await stream.greet()
        await stream.start()
        await stream.send(decision=decision(0))
        await stream.next("leave")
        await stream.end()

    with FakeReferee(script) as referee:
        task = asyncio.create_task(play(Hanging(), referee.address))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_run_in_a_plain_script() -> None:
    with FakeReferee(one_match) as referee:
        results = referee_client.run(First(), referee.address, matches=1)
    assert [result.reason for result in results] == ["completed"]


async def test_run_inside_a_running_loop() -> None:
    with FakeReferee(one_match) as referee:
        results = referee_client.run(First(), referee.address, matches=1)
    assert [result.reason for result in results] == ["completed"]


async def test_errors_come_out_of_the_thread_too() -> None:
    async def script(stream: FakeStream) -> None:
        await stream.next("hello")
        await stream.abort(grpc.StatusCode.ALREADY_EXISTS, "NAME_TAKEN")

    with FakeReferee(script) as referee, pytest.raises(referee_client.NameTakenError):
        referee_client.run(First(), referee.address)


async def test_play_in_async_code() -> None:
    with FakeReferee(one_match) as referee:
        assert len(await referee_client.play(First(), referee.address, matches=1)) == 1


async def interrupted(stream: FakeStream) -> None:
    await stream.greet()
    await stream.start("one")
    await stream.send(match_over=over("one"))
    await stream.start("two")
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    await stream.next("leave")
    await stream.end()


def test_ctrl_c_says_goodbye_and_returns_the_results() -> None:
    with FakeReferee(interrupted) as referee:
        results = referee_client.run(First(), referee.address)
    assert [result.match_id for result in results] == ["one"]


async def test_an_interrupted_notebook_says_goodbye_too(monkeypatch: pytest.MonkeyPatch) -> None:
    # pytest-asyncio's runner takes SIGINT for itself; a notebook has Python's own handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with FakeReferee(interrupted) as referee:
            results = referee_client.run(First(), referee.address)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [result.match_id for result in results] == ["one"]


@pytest.mark.parametrize("matches", [0, -1])
async def test_a_senseless_number_of_matches_is_refused(play: Play, matches: int) -> None:
    with pytest.raises(ValueError, match="matches is at least 1"):
        await play(First(), "localhost:1", matches=matches)
