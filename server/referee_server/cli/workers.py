"""Work that is shared out to processes of this program, and comes back in order.

A worker is a program of its own: it gets jobs as lines of JSON on its standard input and answers each with one line on
its standard output. So nothing of this process is forked, and a worker imports no more than it needs.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from queue import SimpleQueue
from typing import Any, Final, NoReturn

from referee_server.cli.output import ExitCode, Failure

_AHEAD: Final = 256
"""How many jobs may be done or at work before the answer that is due: so much waits in memory at most."""


def usable_cores() -> int:
    """Returns on how many cores this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(module: str, arguments: list[str], jobs: Iterable[str], count: int) -> Generator[Any, None, None]:
    """Yields the answers to jobs in their order. When it ends or is closed, no worker is left.

    Args:
        module: what the workers run; it calls `work`.
        arguments: what they are given on their command line.
        jobs: what is to be done. They are taken as they are needed.
        count: how many workers there are at most, 1 or more.

    Raises:
        Failure: a worker ended or could not be started, or says so itself.
    """
    jobs = iter(jobs)
    workers: list[_Worker] = []
    idle: deque[_Worker] = deque()
    answers: dict[int, Any] = {}
    given = due = 0
    last = False
    with selectors.DefaultSelector() as selector:
        try:
            while True:
                while not last and given - due < _AHEAD and (idle or len(workers) < count):
                    job = next(jobs, None)
                    if job is None:
                        last = True
                        break
                    if not idle:
                        workers.append(_Worker(module, arguments))
                        selector.register(workers[-1].output, selectors.EVENT_READ, workers[-1])
                        idle.append(workers[-1])
                    idle.popleft().give(given, job)
                    given += 1
                if due in answers:
                    yield _answer(answers.pop(due))
                    due += 1
                elif last and due == given:
                    return
                else:
                    for key, _ in selector.select():
                        worker: _Worker = key.data
                        answer = worker.take()
                        answers[worker.place] = answer
                        idle.append(worker)
        finally:
            for worker in workers:
                worker.kill()


def _answer(answer: dict[str, Any]) -> Any:
    if "failure" in answer:
        raise Failure(answer["failure"], ExitCode(answer["code"]))
    return answer["done"]


class _Worker:
    """One process.

    Attributes:
        place: the number of its job.
    """

    def __init__(self, module: str, arguments: list[str]) -> None:
        # What this process finds is what it finds, and nothing of the folder that it happens to be started in.
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=env,
                start_new_session=True,  # a Ctrl-C is for this process, which ends its workers
            )
        except OSError as error:
            raise Failure(f"cannot start a process: {error.strerror}; try with --jobs 1", ExitCode.UNFIT) from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self.output = self._process.stdin, self._process.stdout
        self.place = -1
        self._job = ""

    def give(self, place: int, job: str) -> None:
        """Gives it its next job."""
        self.place, self._job = place, job
        try:
            self._input.write(json.dumps(job).encode() + b"\n")
            self._input.flush()
        except BrokenPipeError:
            self._ended()

    def take(self) -> dict[str, Any]:
        """Returns its answer, which has begun to come."""
        line = self.output.readline()
        if not line.endswith(b"\n"):
            self._ended()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _ended(self) -> NoReturn:
        code = self._process.wait()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        advice = "; if there is too little memory, try with fewer --jobs" if code == -signal.SIGKILL else ""
        raise Failure(f"the process that looked at {self._job} {how}{advice}", ExitCode.UNFIT)

    def kill(self) -> None:
        """Ends it, whatever it is doing, and waits until it is gone."""
        self._process.kill()
        self.output.close()
        with contextlib.suppress(BrokenPipeError):  # it may have been gone before it had read what was written
            self._input.close()
        self._process.wait()


def work(do: Callable[[str], Any]) -> NoReturn:
    """Answers jobs, as a worker; the process ends at once when whoever gives them is gone.

    Args:
        do: returns the answer to a job, or raises Failure.
    """
    # What anything else prints is no answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for job in _jobs():
        try:
            answer = {"done": do(job)}
        except Failure as failure:
            answer = {"failure": failure.message, "code": int(failure.code)}
        try:
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()
        except BrokenPipeError:
            break  # nobody is there to hear it
    os._exit(0)


def _jobs() -> Iterator[str]:
    """Yields jobs as they come. Somebody else reads, who ends the process at the end, whatever it is doing."""
    jobs: SimpleQueue[str] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin.buffer:
            jobs.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield jobs.get()
