"""How services are put on a server: every method parsed, identified, timed and ended in one place.

Requests arrive as bytes and are parsed here, and whatever is raised ends here, because the library would send the text
of an exception to the client; that text may know what nobody at the table may.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeVar
from uuid import uuid4

import grpc
import structlog
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message

from referee.v1 import error_reason_pb2 as reason_pb
from referee_server.journal import ClosedError, LogError, StorageError
from referee_server.match.errors import RefusedError
from referee_server.rpc.errors import abort, internal
from referee_server.rpc.gate import Caller, Gate

_log = structlog.get_logger(__name__)

WRITE_DEADLINE_S: Final = 10.0
"""How long a reader may leave one message unread before it is cut off, in seconds."""

M = TypeVar("M", bound=Message)
Context = grpc.aio.ServicerContext[Any, Any]


def parse(kind: type[M], data: bytes) -> M:
    """Returns a message from its bytes.

    Raises:
        RefusedError: NOT_PARSEABLE, in the same words whatever the bytes.
    """
    try:
        return kind.FromString(data)
    except (DecodeError, RecursionError):
        name = kind.DESCRIPTOR.full_name
        raise RefusedError(reason_pb.ERROR_REASON_NOT_PARSEABLE, f"the bytes are not a {name}") from None


def add_service(server: grpc.aio.Server, service: ServiceDescriptor, servicer: object, gate: Gate) -> None:
    """Puts a service on a server.

    The servicer has a coroutine of the method's name for each method: `(request, caller) -> response`, for streamed
    responses an async generator `(request, caller)`, and for bidirectional ones `(context, caller)`, which reads and
    writes bytes itself.
    """
    handlers = {method.name: _handler(method, getattr(servicer, method.name), gate) for method in service.methods}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))


def _handler(method: MethodDescriptor, behaviour: Callable[..., Any], gate: Gate) -> grpc.RpcMethodHandler[Any, Any]:
    request_kind = message_factory.GetMessageClass(method.input_type)
    rpc = method.full_name.removeprefix("referee.v1.")

    async def unary(data: bytes, context: Context) -> bytes:
        async def call(caller: Caller) -> bytes:
            response: Message = await behaviour(parse(request_kind, data), caller)
            return response.SerializeToString()

        return await _ended_well(call, context, gate, rpc)

    async def server_stream(data: bytes, context: Context) -> None:
        async def call(caller: Caller) -> None:
            await _write_all(behaviour(parse(request_kind, data), caller), context)

        await _ended_well(call, context, gate, rpc)

    async def both_streams(requests: object, context: Context) -> None:
        del requests  # read from the context instead
        await _ended_well(lambda caller: behaviour(context, caller), context, gate, rpc)

    if method.client_streaming and method.server_streaming:
        return grpc.stream_stream_rpc_method_handler(both_streams)
    if method.server_streaming:
        return grpc.unary_stream_rpc_method_handler(server_stream)
    return grpc.unary_unary_rpc_method_handler(unary)


T = TypeVar("T")


async def _ended_well(call: Callable[[Caller], Awaitable[T]], context: Context, gate: Gate, rpc: str) -> T:
    """Identifies the caller, runs a call, and turns whatever it raises into a status."""
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(rpc=rpc)
    try:
        return await call(gate.identify(_authorization(context), context.peer()))
    except RefusedError as error:
        refused = error
        if refused.reason == reason_pb.ERROR_REASON_CREDENTIAL_UNKNOWN:
            refused = gate.turned_away(refused, context.peer())
    except StorageError:
        refused = RefusedError(reason_pb.ERROR_REASON_STORAGE, "the journal cannot be read or written")
    except LogError as error:
        place = error.place
        refused = RefusedError(reason_pb.ERROR_REASON_LOG_DAMAGED, f"the log is damaged at event {place}", place=place)
    except ClosedError:
        refused = RefusedError(reason_pb.ERROR_REASON_DRAINING, "the referee is shutting down; try again later")
    except grpc.aio.AbortError:
        raise
    except Exception as error:
        # The client went away while we were writing to it: its end of the stream is closed, nothing failed.
        if context.done() or type(error).__name__ == "ExecuteBatchError":
            raise asyncio.CancelledError from error
        incident = uuid4().hex[:12]
        _log.exception("call_failed", incident=incident)
        refused = internal(incident)
    _log.info("call_refused", reason=refused.name)
    try:
        await abort(context, refused)
    except grpc.aio.AbortError:
        raise
    except Exception as error:
        # The library does not take the status any more. Whatever else is raised it would log with a traceback.
        _log.info("status_not_sent", reason=refused.name)
        raise asyncio.CancelledError from error
    raise AssertionError("the call goes on after its end")


async def begin(context: Context) -> None:
    """Begins the responses of a stream; to be awaited before the first of them is written.

    The library sends initial metadata with the first message, and takes note of that only when the write has
    completed. If the write is cancelled before, ending the call would send them a second time, which the library
    refuses: the status would never go out, and the client would wait for ever.
    """
    await context.send_initial_metadata(())


def _authorization(context: Context) -> str | bytes | None:
    found: list[str | bytes] = [value for key, value in context.invocation_metadata() or () if key == "authorization"]
    if len(found) > 1:
        return b""
    return found[0] if found else None


async def _write_all(responses: AsyncIterator[Message], context: Context) -> None:
    received = 0
    begun = False
    try:
        async for response in responses:
            if not begun:
                begun = True
                await begin(context)
            try:
                # Not `wait_for`: in Python 3.11 it swallows a cancellation that comes as the write completes.
                async with asyncio.timeout(WRITE_DEADLINE_S):
                    await context.write(response.SerializeToString())
            except TimeoutError:
                # What was written before arrives before the status does; this message may not.
                metadata: dict[str, Any] = {"resume_from": received} if hasattr(response, "through_sequence") else {}
                slow = RefusedError(
                    reason_pb.ERROR_REASON_SLOW_CONSUMER, "the reader is too slow; go on from where it was", **metadata
                )
                # Raised where the responses come from, so that it is known there too.
                await responses.athrow(slow)  # type: ignore[attr-defined]  # an async generator
                raise slow from None
            received = getattr(response, "through_sequence", 0)
    finally:
        await responses.aclose()  # type: ignore[attr-defined]  # an async generator
