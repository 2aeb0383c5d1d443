"""An event loop without time, threads or sockets of its own: its turns and its clock are what the simulation says.

Handles run one by one. Each takes a little time, and whatever becomes due meanwhile waits, as on a real loop; a stall
is a handle that takes long. Work for threads is done by the world, beside the loop, at a moment that the world draws.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import random
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Final, TypeVar

from referee_server.tables.lateness import BEAT_US, LatenessMeter

T = TypeVar("T")

_COST_BITS: Final = 5
"""A handle takes from 1 to 2 to the power of this many microseconds."""


class SimLoop(asyncio.AbstractEventLoop):
    """What asyncio needs of a loop, on simulated time.

    Attributes:
        now_us: the loop's own time: when what runs now runs, or when it will be free again.
        tasks: those that have not ended.
    """

    def __init__(
        self,
        now_us: int,
        chance: random.Random,
        on_error: Callable[[dict[str, Any]], None],
        in_thread: Callable[[Callable[[], None]], None],
        others_us: Callable[[], int],
    ) -> None:
        """Makes a loop.

        Args:
            now_us: the time now.
            chance: draws what handles cost, and which of two timers of one moment comes first.
            on_error: told of exceptions that nobody took.
            in_thread: does something beside the loop, some time later.
            others_us: returns when something happens that is not the loop's.
        """
        self.now_us = now_us
        self.tasks: list[asyncio.Task[Any]] = []
        self._chance = chance
        self._on_error = on_error
        self._in_thread = in_thread
        self._others_us = others_us
        self._ready: deque[asyncio.Handle] = deque()
        self._turn = 0
        self._timers: list[tuple[int, float, int, asyncio.TimerHandle]] = []
        self._count = 0
        self._closed = False
        self._many = 100

    # What the world does with it.

    def next_us(self) -> int | None:
        """Returns when it has something to run, or None."""
        while self._timers and self._timers[0][3].cancelled():
            heapq.heappop(self._timers)
        if self._ready:
            return self.now_us
        if not self._timers:
            return None
        if isinstance(_owner(self._timers[0][3]), LatenessMeter):
            self._skip_beats()
        return max(self.now_us, self._timers[0][0])

    def _skip_beats(self) -> None:
        """Leaves out the beats of the lateness meter, all on time, in which nothing else happens."""
        when_us, tie, count, handle = self._timers[0]
        others_us = [timer[0] for timer in self._timers[1:3]]
        beats = (min([self._others_us(), *others_us]) - when_us) // BEAT_US - 1
        if beats > 1 and self.now_us <= when_us:
            when_us += beats * BEAT_US
            _owner(handle)._due_us = when_us
            heapq.heapreplace(self._timers, (when_us, tie, count, handle))

    def run_next(self) -> None:
        """Runs the next handle. A turn takes in the timers that are due when it begins, behind what is ready."""
        if self._turn == 0:
            next_us = self.next_us()
            assert next_us is not None
            self.now_us = next_us
            while self._timers and self._timers[0][0] <= self.now_us:
                self._ready.append(heapq.heappop(self._timers)[3])
            self._turn = len(self._ready)
        self._turn -= 1
        handle = self._ready.popleft()
        if not handle.cancelled():
            self.now_us += 1 + self._chance.getrandbits(_COST_BITS)
            handle._run()

    def reach(self, now_us: int) -> None:
        """Lets time pass in which it had nothing to run; what is made ready now runs no earlier."""
        self.now_us = max(self.now_us, now_us)

    def stall(self, now_us: int, duration_us: int) -> None:
        """Keeps it from running anything for a while from now on."""
        self.now_us = max(self.now_us, now_us) + duration_us

    def dispose(self) -> None:
        """Ends every task, whatever it waits for; what they do about it is of no effect to anybody."""
        self._timers.clear()
        for _ in range(20):
            for task in [task for task in self.tasks if not task.done()]:
                task.cancel()
            for _ in range(10_000):
                self._turn = len(self._ready)
                if not self._turn:
                    break
                self.run_next()
        self._closed = True
        self.tasks = [task for task in self.tasks if not task.done()]

    def finalize(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Closes an asynchronous generator that nobody holds any more, as loops do."""
        if not self._closed:
            self.call_soon(self.create_task, generator.aclose())

    # What asyncio does with it.

    def time(self) -> float:
        return self.now_us / 1_000_000

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Any = None) -> asyncio.Handle:  # type: ignore[override]
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at_us(self.now_us + -int(-delay * 1_000_000 // 1), callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at_us(-int(-when * 1_000_000 // 1), callback, *args, context=context)

    def call_at_us(
        self, when_us: int, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Calls back at a time in whole microseconds."""
        handle = asyncio.TimerHandle(when_us / 1_000_000, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when_us, self._chance.random(), self._count, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass  # passed over when its time comes

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coroutine[Any, Any, T], **options: Any) -> asyncio.Task[T]:  # type: ignore[override]
        task = asyncio.Task(coro, loop=self, **options)
        self.tasks.append(task)
        if len(self.tasks) > self._many:
            self.tasks = [task for task in self.tasks if not task.done()]
            self._many = 100 + 2 * len(self.tasks)
        return task

    def run_in_executor(self, executor: object, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        future: asyncio.Future[T] = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except Exception as error:
                self.call_soon(_settle, future, None, error)
            else:
                self.call_soon(_settle, future, result, None)

        self._in_thread(work)
        return future

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self._closed

    def is_closed(self) -> bool:
        return self._closed

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self._on_error(context)


def _owner(handle: Any) -> Any:
    """Returns whose method a handle calls, or None."""
    return getattr(handle._callback, "__self__", None)


def _settle(future: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


class SimClock:
    """The referee's clock: the loop's time, which moves on a little whenever it is looked at."""

    def __init__(self, loop: SimLoop, chance: random.Random, wall_ns: int) -> None:
        self._loop = loop
        self._chance = chance
        self._wall_ns = wall_ns

    def now_us(self) -> int:
        self._loop.now_us += self._chance.getrandbits(1)
        return self._loop.now_us

    def call_at(self, when_us: int, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_at_us(when_us, callback)

    def wall_ns(self) -> int:
        # People may set it back at any time.
        return self._wall_ns + self._chance.randrange(-(10**12), 10**12)
