"""Bare gRPC to compare with: a server that sends bytes back, and clients that count. Each is a process of its own.

The messages are as large as a decision and an answer and are not parsed by either side: whatever a service does, it
comes on top of this.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import grpc

SERVICE: Final = "referee.bench.PingPong"
DECISION: Final = bytes(600)
ANSWER: Final = bytes(48)
WARM_UP_S: Final = 0.3


async def _unary(_: bytes, __: Any) -> bytes:
    return DECISION


async def _stream(requests: AsyncIterator[bytes], _: Any) -> AsyncIterator[bytes]:
    async for _request in requests:
        yield DECISION


async def serve() -> None:
    """Serves until the input ends; says the port first."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    handlers: dict[str, Any] = {
        "Unary": grpc.unary_unary_rpc_method_handler(_unary),
        "Stream": grpc.stream_stream_rpc_method_handler(_stream),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(0)


async def count(kind: str, port: int, seconds: float, in_flight: int) -> None:
    """Counts round trips for so long; begins when told to, after a warm-up."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        unary: Any = channel.unary_unary(f"/{SERVICE}/Unary")
        stream: Any = channel.stream_stream(f"/{SERVICE}/Stream")
        trips = 0
        end = 0.0

        async def call() -> None:
            nonlocal trips
            while time.perf_counter() < end:
                await unary(ANSWER)
                trips += 1

        async def talk() -> None:
            nonlocal trips
            session: Any = stream()
            while time.perf_counter() < end:
                await session.write(ANSWER)
                await session.read()
                trips += 1
            await session.done_writing()
            session.cancel()

        work = call if kind == "unary" else talk
        end = time.perf_counter() + WARM_UP_S
        await asyncio.gather(*(work() for _ in range(in_flight)))
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        trips = 0
        began = time.perf_counter()
        end = began + seconds
        await asyncio.gather(*(work() for _ in range(in_flight)))
        print(json.dumps({"trips": trips, "seconds": time.perf_counter() - began}), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve())
    else:
        asyncio.run(count(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])))
