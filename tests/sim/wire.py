"""Calls without a network: the very handlers that the gRPC server has, and a context that hands bytes over."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import grpc

from referee_server.director.tournaments import Tournaments
from referee_server.rpc import server as rpc_server
from referee_server.rpc.agent_service import AgentService
from referee_server.rpc.game_service import GameService
from referee_server.rpc.gate import Gate
from referee_server.rpc.log_service import LogService
from referee_server.rpc.match_service import MatchService
from referee_server.rpc.register import add_service
from referee_server.rpc.registry_service import RegistryService
from referee_server.rpc.tournament_service import TournamentService
from referee_server.tables.hall import Hall

EOF: Final = grpc.aio.EOF
SERVICES: Final = rpc_server._SERVICES
"""What a simulated referee serves."""


def handlers(hall: Hall, gate: Gate, tournaments: Tournaments) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    """Returns the handlers of `SERVICES`, by `Service/Method`."""
    servicers: dict[str, object] = {
        type(servicer).__name__: servicer
        for servicer in (
            AgentService(hall, gate),
            MatchService(hall, gate),
            LogService(hall, gate),
            GameService(hall, gate),
            RegistryService(hall, gate),
            TournamentService(tournaments, gate),
        )
    }
    generic: list[grpc.GenericRpcHandler] = []
    server: Any = SimpleNamespace(add_generic_rpc_handlers=generic.extend)
    found: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
    for descriptor in SERVICES:
        generic.clear()
        add_service(server, descriptor, servicers[descriptor.name], gate)
        for method in descriptor.methods:
            details: Any = SimpleNamespace(method=f"/{descriptor.full_name}/{method.name}", invocation_metadata=())
            handler = generic[0].service(details)
            assert handler is not None
            found[f"{descriptor.name}/{method.name}"] = handler
    return found


class Call:
    """One call, as the server sees it (`ServicerContext`) and as the client's end of the wire does.

    Attributes:
        task: the server's side of it.
        status: how it ended: code, message and details; None while it goes on, or when the client went away.
        ended: whether it is over for the server.
        window: how many messages may lie unread before the server has to wait.
        blocked: whether a message had to wait for the reader.
    """

    def __init__(
        self, token: str | None, on_write: Callable[[bytes], None], on_end: Callable[[], None], window: int = 1 << 30
    ) -> None:
        self.task: asyncio.Task[Any] | None = None
        self.status: tuple[int, str, Any] | None = None
        self.ended = False
        self.blocked = False
        self.window = window
        self._metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        self._caller = token
        self._on_write = on_write
        self._on_end = on_end
        self._inbox: deque[bytes | object] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._unread = 0
        self._writer: asyncio.Future[None] | None = None

    def peer(self) -> str:
        """Where it comes from, as gRPC says it. Each client by itself, so that none is limited for another."""
        return f"sim:{self._caller}:1"

    def start(
        self, loop: asyncio.AbstractEventLoop, handler: grpc.RpcMethodHandler[Any, Any], request: bytes = b""
    ) -> Call:
        """Lets the server take the call."""
        running: Any
        if handler.request_streaming:
            running = handler.stream_stream(None, self)  # type: ignore[misc,arg-type]
        elif handler.response_streaming:
            running = handler.unary_stream(request, self)  # type: ignore[misc,arg-type]
        else:
            running = handler.unary_unary(request, self)  # type: ignore[misc,arg-type]
        self.task = loop.create_task(running)
        self.task.add_done_callback(self._done)
        return self

    def _done(self, task: asyncio.Task[Any]) -> None:
        self.ended = True
        if task.cancelled():
            self._on_end()
            return
        error = task.exception()
        if error is None:
            self.status = 0, "", None
            if isinstance(task.result(), bytes):
                self._on_write(task.result())
        elif not isinstance(error, grpc.aio.AbortError):
            self.status = 2, f"{type(error).__name__}: {error}", None
        self._on_end()

    # The client's end.

    def deliver(self, data: bytes) -> None:
        """Puts a message where the server reads it."""
        self._inbox.append(data)
        self._wake_reader()

    def half_close(self) -> None:
        """Says that nothing more comes."""
        self._inbox.append(EOF)
        self._wake_reader()

    def cancel(self) -> None:
        """Lets the server find that the client is gone."""
        if self.task is not None and not self.task.done():
            self.task.cancel()

    def took(self) -> None:
        """Makes room for one more message."""
        self._unread -= 1
        if self._writer is not None and self._unread < self.window and not self._writer.done():
            self._writer.set_result(None)

    def _wake_reader(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # The server's end.

    async def read(self) -> bytes | object:
        while not self._inbox:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        await asyncio.sleep(0)
        return self._inbox[0] if self._inbox[0] is EOF else self._inbox.popleft()

    async def write(self, data: bytes) -> None:
        while self._unread >= self.window:
            self.blocked = True
            self._writer = asyncio.get_running_loop().create_future()
            await self._writer
        self._unread += 1
        self._on_write(data)
        await asyncio.sleep(0)

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._metadata

    def done(self) -> bool:
        return self.ended

    async def send_initial_metadata(self, metadata: Any) -> None:
        """Nobody here looks at metadata."""

    async def abort_with_status(self, status: Any) -> None:
        self.status = status.code.value[0], status.details, dict(status.trailing_metadata)
        raise grpc.aio.AbortError
