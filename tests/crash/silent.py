"""Raw streams that a test holds in its hand: agents that say Hello and Ready, and then only what they are told to."""

from __future__ import annotations

import queue
import secrets
import threading
from collections.abc import Callable, Iterator

import grpc

from referee.v1 import agent_service_pb2 as pb
from referee.v1.agent_service_pb2_grpc import AgentServiceStub

from .referee import PATIENCE_S


class Hand:
    """One `Play` stream. It is ready for every match, and answers nothing by itself."""

    def __init__(self, address: str, name: str, token: str = "") -> None:
        self.token = token or secrets.token_hex(32)
        self.error: grpc.RpcError | None = None
        self.items: list[pb.ServerItem] = []
        self._to_send: queue.SimpleQueue[pb.PlayRequest | None] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._ended = False
        self._channel = grpc.insecure_channel(address)
        hello = pb.Hello(protocol_version=1, name=name, max_matches=64, takes_open_seats=False)
        self.send(pb.ClientItem(hello=hello))
        metadata = (("authorization", f"Bearer {self.token}"),)
        self._call = AgentServiceStub(self._channel).Play(iter(self._to_send.get, None), metadata=metadata)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.wait_for("welcome")

    def send(self, *items: pb.ClientItem) -> None:
        self._to_send.put(pb.PlayRequest(items=items))

    def answer(self, decision: pb.Decision) -> None:
        answer = pb.Answer(match_id=decision.match_id, decision_id=decision.decision_id, action=decision.legal[0])
        self.send(pb.ClientItem(answer=answer))

    def _read(self) -> None:
        try:
            for response in self._call:
                for item in response.items:
                    if item.HasField("match_offered") and not item.match_offered.ready:
                        self.send(pb.ClientItem(ready=pb.Ready(match_id=item.match_offered.match_id)))
                    with self._changed:
                        self.items.append(item)
                        self._changed.notify_all()
        except grpc.RpcError as error:
            self.error = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait(self, condition: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, seconds), f"not within {seconds:g} s: {what}"

    def found(self, kind: str) -> Iterator[pb.ServerItem]:
        return (item for item in self.items if item.HasField(kind))  # type: ignore[arg-type]  # a name of the oneof

    def wait_for(self, kind: str, count: int = 1) -> pb.ServerItem:
        """Returns the newest item of a kind once there are so many of it."""
        self.wait(lambda: len(list(self.found(kind))) >= count or self._ended, kind)
        found = list(self.found(kind))
        assert len(found) >= count, f"the stream ended before {kind}: {self.error}"
        return found[-1]

    def wait_end(self) -> None:
        self.wait(lambda: self._ended, "the stream's end")

    def close(self) -> None:
        self._to_send.put(None)
        self._call.cancel()
        self._reader.join(PATIENCE_S)
        self._channel.close()
