"""An instant agent without the SDK: answers in the message it was asked in, and reports in JSON lines.

Run as `python -m load.agent ADDRESS NAME REPORT HOLD`. HOLD is the number of the decision from which on it leaves
questions open, so that matches stay in the middle; 0 for never.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import grpc

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import event_pb2
from referee.v1.agent_service_pb2_grpc import AgentServiceStub

REPORT_S = 0.2
_ITEMS = 256
_OPTIONS = [
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 100),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.http2.max_pings_without_data", 0),
]


class Report:
    """What an agent has seen, since its start and on its present stream."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.decisions = 0
        self.accepted = 0
        self.other = 0
        self.over = 0
        self.faults = 0
        self.new_stream()
        self.ways: list[float] = []

    def new_stream(self) -> None:
        self.offered: set[str] = set()
        self.asked: set[str] = set()
        self.settled = 0.0

    def write(self) -> None:
        ways = sorted(self.ways)
        self.ways.clear()
        line = {
            "at": time.monotonic(),
            "decisions": self.decisions,
            "accepted": self.accepted,
            "other": self.other,
            "over": self.over,
            "faults": self.faults,
            "offered": len(self.offered),
            "asked": len(self.asked),
            "settled": self.settled,
            "ways": [ways[len(ways) * part // 100] for part in (50, 99)] + ways[-1:] if ways else [],
        }
        os.write(self._fd, json.dumps(line).encode() + b"\n")


async def _stream(stub: Any, token: str, name: str, hold: int, report: Report) -> None:
    call = stub.Play(metadata=(("authorization", f"Bearer {token}"),))
    hello = pb.Hello(protocol_version=1, name=name, max_matches=4_096, takes_open_seats=False)
    await call.write(pb.PlayRequest(items=[pb.ClientItem(hello=hello)]))
    report.new_stream()
    draw = random.Random(name).random
    sent: dict[str, float] = {}
    while (response := await call.read()) is not grpc.aio.EOF:
        now = time.monotonic()
        out = []
        for item in response.items:
            match item.WhichOneof("item"):
                case "decision":
                    asked = item.decision
                    report.decisions += 1
                    if hold and asked.decision_id >= hold:
                        report.asked.add(asked.match_id)
                        report.settled = now
                        continue
                    action = asked.legal[int(draw() * len(asked.legal))]
                    answer = pb.Answer(match_id=asked.match_id, decision_id=asked.decision_id, action=action)
                    out.append(pb.ClientItem(answer=answer))
                    sent[asked.match_id] = now
                case "verdict":
                    report.ways.append(now - sent.get(item.verdict.match_id, now))
                    if item.verdict.status == event_pb2.ANSWER_STATUS_ACCEPTED:
                        report.accepted += 1
                    else:
                        report.other += 1
                case "match_offered":
                    report.offered.add(item.match_offered.match_id)
                    report.settled = now
                    if not item.match_offered.ready:
                        out.append(pb.ClientItem(ready=pb.Ready(match_id=item.match_offered.match_id)))
                case "match_over":
                    over = item.match_over
                    report.over += 1
                    report.offered.discard(over.match_id)
                    sent.pop(over.match_id, None)
                    report.faults += over.result.fault_counts[over.seat] if over.result.fault_counts else 0
                case "ping":
                    out.append(pb.ClientItem(pong=pb.Pong(ping_id=item.ping.ping_id)))
        for start in range(0, len(out), _ITEMS):
            await call.write(pb.PlayRequest(items=out[start : start + _ITEMS]))


async def _main(address: str, name: str, path: str, hold: str) -> None:
    report = Report(Path(path))
    token = os.urandom(32).hex()
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)

    async def play() -> None:
        async with grpc.aio.insecure_channel(address, options=_OPTIONS) as channel:
            stub: Any = AgentServiceStub(channel)
            while True:
                try:
                    await _stream(stub, token, name, int(hold), report)
                except grpc.aio.AioRpcError:
                    await asyncio.sleep(0.05)

    async def tell() -> None:
        while True:
            report.write()
            await asyncio.sleep(REPORT_S)

    tasks = [asyncio.ensure_future(play()), asyncio.ensure_future(tell()), asyncio.ensure_future(stopped.wait())]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    report.write()


if __name__ == "__main__":
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    asyncio.run(_main(*sys.argv[1:]))
