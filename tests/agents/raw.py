"""What the bad agents share: the protocol by hand, without the client package, so that each can break it its own way.

A program of the zoo is started as `python NAME.py HOST:PORT NAME CREDENTIAL [MORE…]`, says on standard output what
happens to it, one line each, and ends with `end CODE REASON` when its stream does.
"""

from __future__ import annotations

import os
import queue
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import event_pb2, match_pb2

PLAY = "/referee.v1.AgentService/Play"
CARDS = [rank + suit for suit in "CDHS" for rank in "789TJQKA"]


def say(*words: object) -> None:
    """Tells the test what happens."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")  # in one piece: other threads tell things too
    sys.stdout.flush()


class Stream:
    """One `Play` stream of bytes."""

    def __init__(self, address: str, credential: str, **options: Any) -> None:
        self._channel = grpc.insecure_channel(address)
        self._out: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        call: Any = self._channel.stream_stream(PLAY)
        self.call = call(iter(self._out.get, None), metadata=(("authorization", f"Bearer {credential}"),), **options)

    def send(self, *items: pb.ClientItem) -> None:
        """Sends items in one message."""
        self.send_bytes(pb.PlayRequest(items=items).SerializeToString())

    def send_bytes(self, data: bytes) -> None:
        """Sends a message as it is."""
        self._out.put(data)

    def half_close(self) -> None:
        """Ends this direction: the referee sees it after all that was sent."""
        self._out.put(None)

    def items(self) -> Iterator[pb.ServerItem]:
        """Yields what comes, until the stream ends in whatever way."""
        for data in self.call:
            yield from pb.PlayResponse.FromString(data).items

    def close(self) -> None:
        """Cuts the stream off."""
        self.call.cancel()
        self._channel.close()


def reason_of(error: Any) -> str:
    """Returns the referee's reason for ending a stream; `-` when the library gave none."""
    details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    found = re.search(rb"ErrorInfo\x12.\n.([A-Z_]+)", details, re.DOTALL)
    return found.group(1).decode() if found else "-"


class Zoo:
    """An agent that keeps to the protocol; its subclasses do not."""

    hello: ClassVar[dict[str, Any]] = {}

    def __init__(self, address: str, name: str, credential: str, *more: str) -> None:
        self.address, self.name, self.credential, self.more = address, name, credential, more

    def run(self) -> None:
        """Plays until the stream ends."""
        self.stream = self.open()
        self.greet(self.stream)
        self.read(self.stream)

    def open(self, **options: Any) -> Stream:
        return Stream(self.address, self.credential, **options)

    def greet(self, stream: Stream) -> None:
        hello = pb.Hello(protocol_version=1, name=self.name, **self.hello)
        stream.send(pb.ClientItem(hello=hello))

    def read(self, stream: Stream) -> None:
        for item in stream.items():
            self.took(item)

    def took(self, item: pb.ServerItem) -> None:
        match item.WhichOneof("item"):
            case "welcome":
                say("welcome")
                self.welcomed()
            case "match_offered":
                say("offered", item.match_offered.match_id)
                self.offered(item.match_offered)
            case "decision":
                say("decision", item.decision.match_id, item.decision.decision_id)
                self.decided(item.decision)
            case "verdict":
                verdict = item.verdict
                status = event_pb2.AnswerStatus.Name(verdict.status).removeprefix("ANSWER_STATUS_")
                say("verdict", verdict.match_id, verdict.decision_id, status, verdict.action or "-")
                self.judged(verdict)
            case "match_over":
                reason = match_pb2.EndReason.Name(item.match_over.result.reason).removeprefix("END_REASON_")
                say("over", item.match_over.match_id, reason)
                self.ended(item.match_over)
            case "rejected":
                say("rejected", item.rejected.reason, item.rejected.match_id or "-")
            case "ping":
                self.stream.send(pb.ClientItem(pong=pb.Pong(ping_id=item.ping.ping_id)))
            case _:
                pass

    # What happens to it, and what it does then.

    def welcomed(self) -> None:
        pass

    def offered(self, offer: pb.MatchOffered) -> None:
        if not offer.ready:
            self.stream.send(pb.ClientItem(ready=pb.Ready(match_id=offer.match_id)))

    def decided(self, decision: pb.Decision) -> None:
        self.answer(decision, decision.legal[0])

    def judged(self, verdict: pb.Verdict) -> None:
        pass

    def ended(self, over: pb.MatchOver) -> None:
        pass

    def answer(self, decision: pb.Decision, action: str) -> None:
        self.stream.send(answer_item(decision, action))


def answer_item(decision: pb.Decision, action: str, number: int | None = None) -> pb.ClientItem:
    """Returns an answer to a decision, or to another one of its match."""
    number = decision.decision_id if number is None else number
    return pb.ClientItem(answer=pb.Answer(match_id=decision.match_id, decision_id=number, action=action))


def other(decision: pb.Decision) -> str:
    """Returns another legal action than the first one, if there is one."""
    return decision.legal[-1]


def main(kind: type[Zoo]) -> None:
    """Runs a program of the zoo."""
    agent = kind(*sys.argv[1:])
    try:
        agent.run()
        say("end OK -")
    except grpc.RpcError as error:
        say("end", error.code().name, reason_of(error))
    sys.stdout.flush()
    # The library's threads are not waited for: a bad agent may have left them in any state.
    os._exit(0)


def later(seconds: float, act: Any, *args: Any) -> None:
    """Does something later, while the agent goes on reading."""
    timer = threading.Timer(seconds, act, args)
    timer.daemon = True
    timer.start()
