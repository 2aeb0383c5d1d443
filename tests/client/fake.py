"""A referee that follows a script: one coroutine a stream, on a loop and in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

import grpc
import grpc.aio
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import agent_service_pb2_grpc as pb_grpc
from referee.v1 import event_pb2, game_pb2, match_pb2

PATIENCE = 10.0
Script = Callable[["FakeStream"], Awaitable[None]]


class FakeStream:
    """One `Play` stream as its script sees it."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.metadata = dict(context.invocation_metadata())
        self.sizes: list[int] = []
        """Number of items of each message that came."""
        self._items: deque[pb.ClientItem] = deque()

    async def next(self, kind: str) -> Any:
        """Returns the next item, which has to be of that kind."""
        while not self._items:
            async with asyncio.timeout(PATIENCE):
                message = await self.context.read()
            assert message is not grpc.aio.EOF, f"the stream ended where {kind} was due"
            self.sizes.append(len(message.items))
            self._items.extend(message.items)
        item = self._items.popleft()
        assert item.WhichOneof("item") == kind, f"{kind} was due, not {item}"
        return getattr(item, kind)

    async def end(self) -> None:
        """Waits until the client ends the stream."""
        assert not self._items, f"more than was due: {self._items}"
        async with asyncio.timeout(PATIENCE):
            message = await self.context.read()
        assert message is grpc.aio.EOF, f"more than was due: {message}"

    async def send(self, **items: Any) -> None:
        """Sends one message of one item for each argument."""
        await self.send_all(*(pb.ServerItem(**{kind: item}) for kind, item in items.items()))

    async def send_all(self, *items: pb.ServerItem) -> None:
        await self.context.write(pb.PlayResponse(items=items))

    async def greet(self, **fields: Any) -> Any:
        """Takes the hello, sends a welcome, returns the hello."""
        hello = await self.next("hello")
        welcome: dict[str, Any] = {"protocol_version": 1, "max_items": 256, "max_message_size": 65536, **fields}
        await self.send(welcome=pb.Welcome(**welcome))
        return hello

    async def start(self, match_id: str = "m", **fields: Any) -> Any:
        """Offers a match and returns what came back: ready, or else an assertion fails."""
        await self.send(match_offered=offer(match_id, **fields))
        return await self.next("ready")

    async def abort(self, code: grpc.StatusCode, reason: str = "", text: str = "as the script says") -> None:
        """Ends the stream with a status."""
        details = []
        if reason:
            info = any_pb2.Any()
            info.Pack(error_details_pb2.ErrorInfo(reason=reason, domain="referee.v1", metadata={"field": "name"}))
            details.append(info)
        number = code_pb2.Code.Value(code.name)
        await self.context.abort_with_status(
            rpc_status.to_status(status_pb2.Status(code=number, message=text, details=details))
        )


class FakeReferee(pb_grpc.AgentServiceServicer):
    """Plays one script a stream, in the order the streams come. As a context manager: fails if a script failed."""

    def __init__(self, *scripts: Script, port: int = 0) -> None:
        self._scripts = deque(scripts)
        self._errors: list[BaseException] = []
        self._up = threading.Event()
        self._port = port
        self.address = ""

    async def Play(  # type: ignore[override] # noqa: N802 - the stubs know generators only
        self, request_iterator: Any, context: Any
    ) -> None:
        stream = FakeStream(context)
        if not self._scripts:
            await stream.abort(grpc.StatusCode.PERMISSION_DENIED, text="no script is left")
        try:
            await self._scripts.popleft()(stream)
        except (AssertionError, TimeoutError) as error:
            self._errors.append(error)
            raise

    def __enter__(self) -> FakeReferee:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._up.wait(PATIENCE)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        if self._errors:
            raise self._errors[0]
        if error is None:
            assert not self._scripts, f"{len(self._scripts)} streams never came"

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        pb_grpc.add_AgentServiceServicer_to_server(self, server)
        self.address = f"127.0.0.1:{server.add_insecure_port(f'127.0.0.1:{self._port}')}"
        await server.start()
        self._up.set()
        await self._stop.wait()
        await server.stop(grace=0)


def offer(match_id: str = "m", **fields: Any) -> pb.MatchOffered:
    values: dict[str, Any] = {
        "match_id": match_id,
        "game": "tiny",
        "seat": 1,
        "clock": match_pb2.Clock(allowance_ms=5000, bank_ms=60000),
        "nonces_taken": True,
        **fields,
    }
    return pb.MatchOffered(**values)


def decision(number: int, match_id: str = "m", **fields: Any) -> pb.Decision:
    values: dict[str, Any] = {
        "match_id": match_id,
        "decision_id": number,
        "seat": 1,
        "generic": game_pb2.GenericView(text=f"view {number}"),
        "legal": ["a", "b"],
        "allowance_us": 5_000_000,
        "bank_us": 60_000_000,
        **fields,
    }
    return pb.Decision(**values)


def accepted(number: int, match_id: str = "m", action: str = "a") -> pb.Verdict:
    return pb.Verdict(match_id=match_id, decision_id=number, status=event_pb2.ANSWER_STATUS_ACCEPTED, action=action)


def over(match_id: str = "m", reason: Any = match_pb2.END_REASON_COMPLETED, seat: int = 1) -> pb.MatchOver:
    result = match_pb2.MatchResult(
        reason=reason, totals=[-3, 8], places=[2, 1], official_places=[2, 1], sides=[0, 1], digest=b"\x01\xff"
    )
    return pb.MatchOver(match_id=match_id, seat=seat, result=result)
