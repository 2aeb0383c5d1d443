"""A scripted agent: says exactly what a test has it say, bytes that are no message included."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from referee.v1 import agent_service_pb2 as pb
from rpc.server import token_of

PATIENCE = 10.0


class Refusal(NamedTuple):
    """How a call was refused.

    Attributes:
        code: the gRPC status.
        reason: of ErrorInfo; empty where the library refused, not the referee.
        metadata: of ErrorInfo.
        message: the text.
        fields: the fields that BadRequest names.
    """

    code: grpc.StatusCode
    reason: str
    metadata: dict[str, str]
    message: str
    fields: list[str]


def refusal_of(error: grpc.RpcError) -> Refusal:
    """Returns what a status says."""
    call: Any = error  # an RpcError is a Call, too
    try:
        status = rpc_status.from_call(call)
    except ValueError:  # cancelled here as a status came from there
        status = None
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in status.details if status is not None else ():
        detail.Unpack(info) or detail.Unpack(bad)
    fields = [violation.field for violation in bad.field_violations]
    return Refusal(call.code(), info.reason, dict(info.metadata), call.details() or "", fields)


def refused(call: Callable[[], Any]) -> Refusal:
    """Makes a call that has to be refused, and returns how. A stream is read to its end."""
    try:
        answer = call()
        if isinstance(answer, Iterable):
            for _ in answer:
                pass
    except grpc.RpcError as error:
        return refusal_of(error)
    raise AssertionError("the call was not refused")


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


def item(**fields: Any) -> pb.ClientItem:
    return pb.ClientItem(**fields)


class Agent:
    """One `Play` stream. What came is in `got`, message by message in `messages`."""

    def __init__(
        self, channel: grpc.Channel, name: str, *, token: str | None = None, metadata: Sequence[Any] | None = None
    ) -> None:
        self.name = name
        self.got: list[pb.ServerItem] = []
        self.messages: list[bytes] = []
        self.ended: Refusal | None = None
        self._next = 0
        self._more = threading.Condition()
        self._requests: SimpleQueue[bytes | None] = SimpleQueue()
        play: Any = channel.stream_stream("/referee.v1.AgentService/Play", None, None)
        credential = bearer(token or token_of(name)) if metadata is None else metadata
        self.call = play(iter(self._requests.get, None), metadata=credential, timeout=60)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            for message in self.call:
                with self._more:
                    self.messages.append(message)
                    self.got += pb.PlayResponse.FromString(message).items
                    self._more.notify_all()
            ended = Refusal(grpc.StatusCode.OK, "", {}, "", [])
        except grpc.RpcError as error:
            ended = refusal_of(error)
        with self._more:
            self.ended = ended
            self._more.notify_all()

    def send(self, *items: pb.ClientItem) -> None:
        self._requests.put(pb.PlayRequest(items=items).SerializeToString())

    def send_bytes(self, data: bytes) -> None:
        self._requests.put(data)

    def hello(self, **fields: Any) -> pb.Welcome:
        """Says hello and waits for the welcome."""
        self.send(item(hello=pb.Hello(**{"protocol_version": 1, "name": self.name, **fields})))
        welcome: pb.Welcome = self.wait("welcome")
        return welcome

    def ready(self, match_id: str, nonce: bytes = b"") -> None:
        self.send(item(ready=pb.Ready(match_id=match_id, nonce=nonce)))

    def answer(self, asked: pb.Decision, action: str | None = None, **fields: Any) -> None:
        text = asked.legal[0] if action is None else action
        fields = {"match_id": asked.match_id, "decision_id": asked.decision_id, "action": text, **fields}
        self.send(item(answer=pb.Answer(**fields)))

    def half_close(self) -> None:
        self._requests.put(None)

    def wait(self, kind: str) -> Any:
        """Returns the next item of that kind; those before it are passed over."""
        with self._more:
            until = time.monotonic() + PATIENCE
            while True:
                while self._next < len(self.got):
                    one = self.got[self._next]
                    self._next += 1
                    if one.WhichOneof("item") == kind:
                        return getattr(one, kind)
                assert self.ended is None, f"the stream ended where {kind} was due: {self.ended}"
                assert self._more.wait(until - time.monotonic()), f"no {kind} came: {self.got[-3:]}"

    def end(self) -> Refusal:
        """Waits for the end of the stream and returns how it came."""
        with self._more:
            assert self._more.wait_for(lambda: self.ended is not None, PATIENCE), "the stream did not end"
        assert self.ended is not None
        return self.ended

    def all(self, kind: str) -> list[Any]:
        """Returns everything of one kind that has come so far."""
        with self._more:
            return [getattr(one, kind) for one in self.got if one.WhichOneof("item") == kind]

    def close(self) -> None:
        """Is lost, without goodbye."""
        self.call.cancel()
        self.half_close()
        self._reader.join(PATIENCE)
