"""Facts about the libraries that the service relies on: where one turns red, see to rpc/server.py and register.py."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from grpc import StatusCode

from rpc.agent import refused
from rpc.server import AioServerThread

Handler = Callable[[Any, Any], Any]


@contextmanager
def plain_server(handler: grpc.RpcMethodHandler[Any, Any], options: Any = ()) -> Iterator[tuple[AioServerThread, Any]]:
    """Runs a bare grpc.aio server with one method, `/t.T/Call`, and gives a channel to it."""

    async def build() -> grpc.aio.Server:
        server = grpc.aio.server(options=options)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t.T", {"Call": handler}),))
        return server

    with AioServerThread(build) as thread, grpc.insecure_channel(f"127.0.0.1:{thread.port}") as channel:
        yield thread, channel


def unary(behaviour: Handler) -> grpc.RpcMethodHandler[Any, Any]:
    return grpc.unary_unary_rpc_method_handler(behaviour)


async def echo(request: Any, context: Any) -> Any:
    return request


@pytest.mark.parametrize(("reuse", "refuses"), [(0, True), (1, False)])
def test_without_so_reuseport_a_second_server_is_refused_the_port(reuse: int, refuses: bool) -> None:
    options = [("grpc.so_reuseport", reuse)]
    with plain_server(unary(echo), options) as (thread, _):

        async def second() -> bool:
            server = grpc.aio.server(options=options)
            try:
                return server.add_insecure_port(f"127.0.0.1:{thread.port}") == 0
            except RuntimeError:
                return True
            finally:
                await server.stop(None)

        assert asyncio.run_coroutine_threadsafe(second(), thread.loop).result(5) is refuses


def test_so_reuseport_is_on_unless_it_is_switched_off() -> None:
    with plain_server(unary(echo)) as (thread, _):

        async def second() -> int:
            server = grpc.aio.server()
            try:
                return server.add_insecure_port(f"127.0.0.1:{thread.port}")
            finally:
                await server.stop(None)

        assert asyncio.run_coroutine_threadsafe(second(), thread.loop).result(5) == thread.port


def test_the_library_sends_the_text_of_an_exception_to_the_client() -> None:
    async def fails(request: Any, context: Any) -> Any:
        raise RuntimeError("seat 2 holds 7S")

    with plain_server(unary(fails)) as (_, channel):
        found = refused(lambda: channel.unary_unary("/t.T/Call")(b"", timeout=5))
    assert found.code == StatusCode.UNKNOWN
    assert "seat 2 holds 7S" in found.message


def test_the_library_sends_the_text_of_a_parsing_error_too() -> None:
    def parse(data: bytes) -> Any:
        raise ValueError("seat 2 holds 7S")

    handler: Any = grpc.unary_unary_rpc_method_handler(echo, request_deserializer=parse)
    with plain_server(handler) as (_, channel):
        found = refused(lambda: channel.unary_unary("/t.T/Call")(b"", timeout=5))
    assert found.code == StatusCode.UNKNOWN


def test_with_identity_only_a_compressed_message_is_unimplemented() -> None:
    options = [("grpc.compression_enabled_algorithms_bitset", 1)]
    with plain_server(unary(echo), options) as (_, channel):
        call = channel.unary_unary("/t.T/Call")
        assert call(b"x" * 1_000, timeout=5) == b"x" * 1_000
        found = refused(lambda: call(b"x" * 1_000, timeout=5, compression=grpc.Compression.Gzip))
    assert found.code == StatusCode.UNIMPLEMENTED


def test_too_large_a_message_is_resource_exhausted() -> None:
    with plain_server(unary(echo), [("grpc.max_receive_message_length", 1_000)]) as (_, channel):
        call = channel.unary_unary("/t.T/Call")
        assert call(b"x" * 1_000, timeout=5) == b"x" * 1_000
        assert refused(lambda: call(b"x" * 1_001, timeout=5)).code == StatusCode.RESOURCE_EXHAUSTED


def test_abort_with_status_works_on_the_aio_context() -> None:
    from google.rpc import code_pb2, status_pb2
    from grpc_status import rpc_status

    async def aborts(request: Any, context: Any) -> Any:
        status = status_pb2.Status(code=code_pb2.DATA_LOSS, message="m")
        await context.abort_with_status(rpc_status.to_status(status))

    with plain_server(unary(aborts)) as (_, channel):
        found = refused(lambda: channel.unary_unary("/t.T/Call")(b"", timeout=5))
    assert (found.code, found.message) == (StatusCode.DATA_LOSS, "m")


@pytest.mark.parametrize(("begun", "told"), [(True, StatusCode.ABORTED), (False, StatusCode.DEADLINE_EXCEEDED)])
def test_a_call_whose_first_write_was_cancelled_can_be_ended_only_if_it_was_begun(begun: bool, told: Any) -> None:
    async def writes(requests: Any, context: Any) -> None:
        if begun:
            await context.send_initial_metadata(())
        writing = asyncio.ensure_future(context.write(b"x"))
        await asyncio.sleep(0)  # the write begins
        writing.cancel()
        await asyncio.wait((writing,))
        try:
            await context.abort(StatusCode.ABORTED, "m")
        except Exception as error:
            raise asyncio.CancelledError from error

    with plain_server(grpc.stream_stream_rpc_method_handler(writes)) as (_, channel):
        found = refused(lambda: list(channel.stream_stream("/t.T/Call")(iter(()), timeout=1)))
    assert found.code == told


@pytest.mark.parametrize("how", ["half-close", "cancel", "deadline"])
def test_however_a_client_goes_its_reader_sees_the_same_end(how: str) -> None:
    seen: list[Any] = []
    reading, done = asyncio.Event(), asyncio.Event()

    async def reads(requests: Any, context: Any) -> None:
        try:
            await context.write(b"here")
            asyncio.get_running_loop().call_soon(reading.set)  # once it waits in the next line
            seen.append(await context.read())
            seen.append(context.cancelled())
        finally:
            done.set()

    with plain_server(grpc.stream_stream_rpc_method_handler(reads)) as (thread, channel):
        more = asyncio.run_coroutine_threadsafe(_never(), thread.loop)
        requests = iter(()) if how == "half-close" else iter(more.result, None)
        call = channel.stream_stream("/t.T/Call")(requests, timeout=0.3 if how == "deadline" else 5)
        assert next(call) == b"here"
        asyncio.run_coroutine_threadsafe(reading.wait(), thread.loop).result(5)
        if how == "cancel":
            call.cancel()
        asyncio.run_coroutine_threadsafe(done.wait(), thread.loop).result(5)
        more.cancel()
    assert seen == [grpc.aio.EOF, False]


async def _never() -> None:
    await asyncio.Event().wait()


def test_a_handler_that_waits_for_something_else_is_cancelled_when_its_client_goes() -> None:
    ended: list[str] = []
    done = asyncio.Event()

    async def waits(request: Any, context: Any) -> None:
        await context.write(b"here")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        finally:
            done.set()

    with plain_server(grpc.unary_stream_rpc_method_handler(waits)) as (thread, channel):
        call = channel.unary_stream("/t.T/Call")(b"", timeout=5)
        assert next(call) == b"here"
        call.cancel()
        asyncio.run_coroutine_threadsafe(done.wait(), thread.loop).result(5)
    assert ended == ["cancelled"]


async def test_wait_for_can_swallow_a_cancellation_and_timeout_cannot() -> None:
    """Why register.py and match_service.py have `asyncio.timeout`; fixed in Python 3.12."""
    import sys

    outcomes = {}
    for name in ("wait_for", "timeout"):
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def waits(name: str = name, future: asyncio.Future[int] = future) -> int:
            if name == "wait_for":
                return await asyncio.wait_for(future, 5)
            async with asyncio.timeout(5):
                return await future

        task = asyncio.ensure_future(waits())
        await asyncio.sleep(0)
        future.set_result(1)
        task.cancel()
        await asyncio.wait((task,))
        outcomes[name] = task.cancelled()
    assert outcomes == {"wait_for": sys.version_info >= (3, 12), "timeout": True}


def test_metadata_far_beyond_the_limit_is_refused_by_the_library() -> None:
    options = [("grpc.max_metadata_size", 4_096), ("grpc.absolute_max_metadata_size", 8_192)]
    with plain_server(unary(echo), options) as (_, channel):
        call = channel.unary_unary("/t.T/Call")
        found = refused(lambda: call(b"", metadata=(("x", "y" * 20_000),), timeout=5))
    assert found.code == StatusCode.RESOURCE_EXHAUSTED
