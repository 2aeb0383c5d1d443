"""A thread for agents that think long, so that the event loop stays free to answer the referee."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any


class AgentThread:
    """Runs calls one after the other in a thread of its own.

    Not an executor of the standard library: the interpreter waits for those at its exit, and an agent that hangs must
    not keep the program from ending.

    Attributes:
        pending: how many calls are waiting or running.
    """

    def __init__(self) -> None:
        self.pending = 0
        self._loop = asyncio.get_running_loop()
        self._calls: queue.SimpleQueue[tuple[asyncio.Future[Any], Callable[..., Any], tuple[Any, ...]] | None] = (
            queue.SimpleQueue()
        )
        threading.Thread(target=self._work, name="referee-agent", daemon=True).start()

    def submit(self, call: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Returns a future of the call. One that is cancelled before its turn is never made."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self.pending += 1
        self._calls.put((future, call, args))
        return future

    def close(self) -> None:
        """Lets the thread end after the call it is in, if any."""
        self._calls.put(None)

    def _work(self) -> None:
        while (entry := self._calls.get()) is not None:
            future, call, args = entry
            result: Any = None
            error: BaseException | None = None
            if not future.cancelled():
                try:
                    result = call(*args)
                except BaseException as caught:  # it is the caller's, whatever it is
                    error = caught
            try:
                self._loop.call_soon_threadsafe(self._done, future, result, error)
            except RuntimeError:
                return  # the loop has been closed: nobody is waiting any more

    def _done(self, future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        self.pending -= 1
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)
        elif isinstance(error, StopIteration):
            wrapped = RuntimeError("the agent raised StopIteration")  # a future cannot hold that one
            wrapped.__cause__ = error
            future.set_exception(wrapped)
        else:
            future.set_exception(error)
