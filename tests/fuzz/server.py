"""Fuzzed messages to a real server over a socket: what the library makes of them counts too."""

from __future__ import annotations

import asyncio
import os
import random
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
from google.protobuf.descriptor import Descriptor
from google.rpc import error_details_pb2, status_pb2

from fuzz.echo import without_own
from fuzz.generate import Generator
from referee.v1 import match_pb2
from referee_server.director.local import LocalExecutor
from referee_server.director.tournaments import Tournaments
from referee_server.journal import MemoryJournal
from referee_server.match.verify import parse, verify
from referee_server.rpc import server as rpc_server
from referee_server.rpc.errors import CODE_OF
from referee_server.rpc.gate import Gate
from referee_server.tables.clock import MonotonicClock
from referee_server.tables.hall import Hall
from sim.ledger import CARD
from sim.logs import captured

_HOST = "ab" * 32
_AGENT = "cd" * 32
_LIBRARY = frozenset(
    {
        grpc.StatusCode.RESOURCE_EXHAUSTED,  # a message over the limit
        grpc.StatusCode.DEADLINE_EXCEEDED,  # ours
        grpc.StatusCode.CANCELLED,
    }
)
"""Statuses that come from the library, without a reason of ours."""
_CLIENT_WRITE_FAILED = "Internal error from Core"
"""What the client's own library makes of a write after the server has ended the call; no server sends it."""
_METHODS = [(service, method) for service in rpc_server._SERVICES for method in service.methods]


@dataclass
class Report:
    """What came of it.

    Attributes:
        sent: how many calls were made.
        statuses: how often calls ended how.
        wrong: what should not have been.
    """

    sent: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


async def fuzz_server(*, seed: int, messages: int) -> Report:
    """Sends so many messages to a server of its own, while house bots play beside it."""
    report = Report()
    hall = Hall(MemoryJournal(), MonotonicClock(), os.urandom)
    hall.start()
    server = grpc.aio.server(options=rpc_server.options(rpc_server.Patience()))
    tournaments = Tournaments(hall, os.urandom, lambda book: LocalExecutor(hall))
    gate = Gate(hall, _HOST, os.urandom, open_registration=True)
    rpc_server.add_services(server, hall, gate, tournaments)
    port = rpc_server.listen(server, "127.0.0.1:0")
    await server.start()

    def look(text: str) -> None:
        if any(hall.journal.secret(row.match_id).hex() in text for row in hall.journal.running()):
            report.wrong.append(f"a log line holds a secret: {text}")

    try:
        with captured(look, report.wrong.append, (), lambda: False):
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                await _Sender(channel, hall, report, random.Random(seed)).run(messages)
            await asyncio.sleep(0)
    finally:
        await hall.close()
        await server.stop(0)
    return report


class _Sender:
    def __init__(self, channel: grpc.aio.Channel, hall: Hall, report: Report, chance: random.Random) -> None:
        self._channel = channel
        self._hall = hall
        self._report = report
        self._chance = chance
        self._generator = Generator(chance)

    async def run(self, messages: int) -> None:
        beside = [self._bots() for _ in range(3)]
        while self._report.sent < messages:
            count = min(20, messages - self._report.sent)
            await asyncio.gather(*(self._one() for _ in range(count)))
        for match_id in beside:
            async for _ in self._hall.journal.follow(match_id):
                pass
            report = verify(parse(self._hall.journal.read(match_id)))
            if report.match.result is None or report.match.result.reason != match_pb2.END_REASON_COMPLETED:
                self._report.wrong.append(f"{match_id} was disturbed")

    def _bots(self) -> str:
        spec = match_pb2.MatchSpec(game="regicide")
        for _ in range(2):
            spec.seats.add(bot="first")
        return self._hall.matches.create(spec)

    async def _one(self) -> None:
        call: Any
        channel: Any = self._channel
        self._report.sent += 1
        if self._report.sent % 50 == 1:
            ids = list(self._hall.matches.running)[-5:]
            self._generator.known = {"match_id": [*ids, "nowhere"], "game": ["guillotine", "regicide"]}
        service, method = self._chance.choice(_METHODS)
        path = f"/{service.full_name}/{method.name}"
        if self._chance.random() < 0.02:
            path += "x"
        data = self._generator.encoded(method.input_type)
        if self._chance.random() < 0.01:
            data = bytes(self._chance.choice((70_000, 300_000)))
        token = self._chance.choice((_HOST, _AGENT, None, "xyz"))
        metadata = () if token is None else (("authorization", f"Bearer {token}"),)
        try:
            if method.client_streaming:
                answers = [data, self._generator.encoded(method.input_type)]
                call = channel.stream_stream(path)(iter(answers), metadata=metadata, timeout=0.3)
            elif method.server_streaming:
                call = channel.unary_stream(path)(data, metadata=metadata, timeout=0.3)
            else:
                await channel.unary_unary(path)(data, metadata=metadata, timeout=5)
                self._note("OK")
                return
            async for _ in call:
                pass
            self._note("OK")
        except grpc.aio.AioRpcError as error:
            self._check(path, error, method.input_type, data)

    def _note(self, what: str) -> None:
        self._report.statuses[what] = self._report.statuses.get(what, 0) + 1

    def _check(self, path: str, error: grpc.aio.AioRpcError, kind: Descriptor, data: bytes) -> None:
        details: dict[str, Any] = {str(key): value for key, value in (error.trailing_metadata() or ())}
        packed = details.get("grpc-status-details-bin")
        text = error.details() or ""
        if CARD.search(without_own(text, kind, data)):
            self._report.wrong.append(f"{path}: {text}")
        if packed is None:
            if text == _CLIENT_WRITE_FAILED and path.endswith("/Play"):
                self._note("a write that came too late")
                return
            self._note(error.code().name)
            planned = error.code() in _LIBRARY or (error.code() == grpc.StatusCode.UNIMPLEMENTED and path.endswith("x"))
            if not planned:
                self._report.wrong.append(f"{path}: {error.code().name} {text}")
            return
        info = error_details_pb2.ErrorInfo()
        status_pb2.Status.FromString(packed).details[0].Unpack(info)
        self._note(info.reason)
        if error.code().value[0] not in CODE_OF.values() or info.reason == "INTERNAL":
            self._report.wrong.append(f"{path}: {error.code().name} {info.reason} {text}")
