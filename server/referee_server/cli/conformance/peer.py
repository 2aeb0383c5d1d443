"""A referee that follows a script: it speaks the protocol, byte for byte, and can be made to misbehave."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee_server.match.errors import RefusedError
from referee_server.rpc.errors import abort

_SERVICE: Final = "referee.v1.AgentService"
_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),
    # As the service: nothing compressed is taken.
    ("grpc.compression_enabled_algorithms_bitset", 1),
    # Beyond what the protocol allows: what is too long is to be seen and told, not cut off by the library.
    ("grpc.max_receive_message_length", 4 * 1024 * 1024),
)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the agent.

    Attributes:
        items: its items; empty when it is not to be parsed.
        size: its bytes.
        at: when it was read, by the monotonic clock.
        parsed: whether it is a PlayRequest.
    """

    items: list[pb.ClientItem]
    size: int
    at: float
    parsed: bool = True


class Talk:
    """One `Play` stream, from the referee's side.

    Attributes:
        authorization: what the call carried as its credential.
        inbox: messages in the order they came; None at the end.
        began: when the call came in, by the monotonic clock.
    """

    def __init__(self, context: Any) -> None:
        self.began = time.monotonic()
        self.inbox: asyncio.Queue[Message | None] = asyncio.Queue()
        self.authorization = dict(context.invocation_metadata() or ()).get("authorization", "")
        self._context = context
        self._how: asyncio.Future[RefusedError | None] = asyncio.get_running_loop().create_future()
        self._gone = False
        self._writing = asyncio.Lock()

    async def serve(self) -> None:
        """Reads until the script ends the stream, or the agent does."""
        reading = asyncio.ensure_future(self._read())
        try:
            await asyncio.shield(self._how)
        finally:
            self._gone = True
            reading.cancel()
            self.inbox.put_nowait(None)
        refused = self._how.result()
        if refused is not None:
            await abort(self._context, refused)

    async def _read(self) -> None:
        while True:
            data = await self._context.read()
            at = time.monotonic()
            if not isinstance(data, bytes):
                self._gone = True
                self.inbox.put_nowait(None)
                return
            try:
                self.inbox.put_nowait(Message(list(pb.PlayRequest.FromString(data).items), len(data), at))
            except DecodeError:
                self.inbox.put_nowait(Message([], len(data), at, parsed=False))

    async def send(self, *items: pb.ServerItem, raw: bytes = b"") -> None:
        """Sends one message; `raw` is put behind it as it is. Who is gone is sent nothing, and found out later."""
        # One at a time: of two writes at once the library refuses one.
        async with self._writing:
            if not self._gone:
                await self._write(pb.PlayResponse(items=items).SerializeToString() + raw)

    async def _write(self, data: bytes) -> None:
        try:
            await self._context.write(data)
        except Exception as error:
            # A client that goes while it is written to; the library's class for it is private.
            if type(error).__name__ != "ExecuteBatchError":
                raise

    def end(self, reason: reason_pb.ErrorReason.ValueType | None = None, message: str = "") -> None:
        """Ends the stream: with a reason, or without a word."""
        if not self._how.done():
            self._how.set_result(None if reason is None else RefusedError(reason, message))


class Peer:
    """A server of `AgentService` whose streams are handed to a script.

    Attributes:
        talks: streams in the order they came, each once.
        arrivals: when each stream came, by the monotonic clock.
        address: where it listens.
    """

    def __init__(self) -> None:
        self.talks: asyncio.Queue[Talk] = asyncio.Queue()
        self.arrivals: list[float] = []
        self.address = ""
        self._server: grpc.aio.Server | None = None
        self._live: set[Talk] = set()

    async def start(self) -> None:
        """Listens: on a free port, or again on the one it had."""
        self._server = grpc.aio.server(options=_OPTIONS)
        handlers: dict[str, Any] = {"Play": grpc.stream_stream_rpc_method_handler(self._play)}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
        port = self._server.add_insecure_port(self.address or "127.0.0.1:0")
        self.address = f"127.0.0.1:{port}"
        await self._server.start()

    async def _play(self, requests: object, context: Any) -> None:
        del requests  # read from the context instead
        talk = Talk(context)
        self.arrivals.append(talk.began)
        self._live.add(talk)
        self.talks.put_nowait(talk)
        try:
            await talk.serve()
        finally:
            self._live.discard(talk)

    async def stop(self) -> None:
        """Goes away, and cuts whatever stream there is."""
        if self._server is None:
            return
        server, self._server = self._server, None
        for talk in list(self._live):
            talk.end(reason_pb.ERROR_REASON_DRAINING, "the referee is shutting down; try again later")
        await server.stop(0.2)
