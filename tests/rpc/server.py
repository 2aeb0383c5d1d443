"""The whole service on a loop in a thread of its own, with a clock that stands still and randomness counted out."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Sequence
from hashlib import sha256
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc

from referee.v1 import event_pb2
from referee_server.director.local import LocalExecutor
from referee_server.director.tournaments import Tournaments
from referee_server.journal import Journal, MemoryJournal, StorageError
from referee_server.match.verify import Report, parse, verify
from referee_server.rpc.gate import Gate
from referee_server.rpc.server import Patience, add_services, options, set_serving
from referee_server.tables.hall import Hall, HallSettings
from tables.fake_clock import FakeClock
from tables.kit import Bytes

T = TypeVar("T")

HOST_TOKEN = "ab" * 32


class AioServerThread:
    """Runs a grpc.aio server, made on the loop it runs on, and picks a free port."""

    def __init__(self, build: Callable[[], Coroutine[Any, Any, grpc.aio.Server]]) -> None:
        self._build = build
        self._up = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._main, daemon=True)
        self.port = 0
        self.loop: asyncio.AbstractEventLoop

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._error = error
            self._up.set()

    async def _serve(self) -> None:
        self.loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await self._build()
        self.port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        self._up.set()
        await self._stop.wait()
        await server.stop(grace=0)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._up.wait(10)
        if self._error is not None:
            raise self._error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        if self._error is not None:
            raise self._error


class Referee:
    """The service under test, and the strings by which a test moves it.

    Attributes:
        hall: all matches and agents; to be touched in its own loop only (`do`, `run`).
        journal: what is stored.
        clock: stands still until `advance`.
    """

    hall: Hall
    gate: Gate

    def __init__(self, *, practice: bool = False, open_registration: bool = True, **timing: float) -> None:
        self.journal: Journal = MemoryJournal()
        self.clock = FakeClock()
        self._settings = HallSettings(practice=practice)
        self._open = open_registration
        self._timing = timing
        self.thread: AioServerThread

    async def put_on(self, server: grpc.aio.Server) -> None:
        """Puts all services on a server."""
        self.hall = Hall(self.journal, self.clock, Bytes(b"rpc"), self._settings)
        self.gate = Gate(self.hall, HOST_TOKEN, Bytes(b"gate"), open_registration=self._open)
        self.tournaments = Tournaments(self.hall, Bytes(b"tournaments"), lambda book: LocalExecutor(self.hall))
        healthy = add_services(server, self.hall, self.gate, self.tournaments, **self._timing)
        await set_serving(healthy, serving=True)

    def run(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Runs a coroutine in the service's loop."""
        return asyncio.run_coroutine_threadsafe(call(), self.thread.loop).result(10)

    def do(self, call: Callable[[], T]) -> T:
        """Calls something in the service's loop."""

        async def calling() -> T:
            return call()

        return self.run(calling)

    def quiet(self) -> None:
        """Waits until everything that follows by itself has happened."""

        async def settle() -> None:
            for _ in range(3):
                with contextlib.suppress(StorageError):
                    await self.hall.committer.settled()
                for _ in range(5):
                    await asyncio.sleep(0)

        self.run(settle)

    def advance(self, us: int) -> None:
        """Lets time pass."""
        self.do(lambda: self.clock.advance(us))
        self.quiet()

    def log(self, match_id: str) -> list[event_pb2.MatchEvent]:
        return parse(self.do(lambda: self.journal.read(match_id)))

    def of_log(self, match_id: str, kind: str) -> list[Any]:
        """Returns the payloads of one kind that a match's log has."""
        return [getattr(event, kind) for event in self.log(match_id) if event.WhichOneof("payload") == kind]

    def check(self, match_id: str) -> Report:
        """Verifies what is stored of a match: whatever happens, its log stays one that holds."""
        return verify(self.log(match_id))


def serve(referee: Referee, add_to_server: Callable[..., Any], interceptors: Sequence[Any] = ()) -> AioServerThread:
    """Returns a server thread for a referee, not yet started."""

    async def build() -> grpc.aio.Server:
        server = grpc.aio.server(options=options(Patience()), interceptors=interceptors)
        await add_to_server(referee, server)
        return server

    referee.thread = AioServerThread(build)
    return referee.thread


def token_of(name: str) -> str:
    """Returns the credential that an agent of that name uses in tests."""
    return sha256(name.encode()).hexdigest()
