"""A referee in a process of its own, which a test starts, asks, stops and kills."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import grpc
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from referee.v1 import match_pb2
from referee.v1 import match_service_pb2 as pb
from referee.v1.match_service_pb2_grpc import MatchServiceStub
from referee_server.failpoints import VARIABLE

ROOT = Path(__file__).parents[2]
PATIENCE_S = 30.0
"""How long to wait for something that is sure to come, on a busy machine."""
_ROOTS = ("server", "clients/python", "protos/gen/python", "tests")

T = TypeVar("T")


def environment(**more: str) -> dict[str, str]:
    """Returns the environment of a child: this checkout's code and no other's."""
    path = os.pathsep.join(str(ROOT / root) for root in _ROOTS)
    kept = {key: value for key, value in os.environ.items() if key != VARIABLE}
    return kept | {"PYTHONPATH": path, "GRPC_VERBOSITY": "NONE", "PYTHONUNBUFFERED": "1"} | more


def until(condition: Callable[[], T], what: str, seconds: float = PATIENCE_S, every_s: float = 0.005) -> T:
    """Waits for something that can only be asked for, and returns it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(every_s)
    return found


class Child:
    """A process whose standard error is read line by line as it comes."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._fresh: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.popen = subprocess.Popen(
            argv,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stderr is not None
        with contextlib.suppress(ValueError):  # closed under our hands
            for line in self.popen.stderr:
                self.lines.append(line.rstrip("\n"))
                self._fresh.put(line)
        self._fresh.put(None)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def pid(self) -> int:
        return self.popen.pid

    def wait_for(self, word: str, seconds: float = PATIENCE_S) -> str | None:
        """Returns the next line, of those not waited for yet, that holds a word; None if the process ended first."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self._fresh.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"nobody said {word!r}:\n{self.text[-4000:]}") from None
            if line is None or word in line:
                return line

    def wait(self, seconds: float = PATIENCE_S) -> int:
        """Waits for the end; returns the exit code, negative for a signal."""
        code = self.popen.wait(seconds)
        self._reader.join(PATIENCE_S)
        return code

    def send(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = PATIENCE_S) -> int:
        self.send(number)
        return self.wait(seconds)

    def close(self) -> None:
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGCONT)
            self.popen.kill()
        self.popen.wait()
        self._reader.join(PATIENCE_S)
        if self.popen.stderr is not None:
            self.popen.stderr.close()


class Referee(Child):
    """`referee serve`.

    Args:
        data: its data folder.
        listen: where it is to listen; by default on a port of its choice.
        failpoints: what REFEREE_FAILPOINTS holds.
        options: more options of the command.
        prefix: a command to run it under.
    """

    address: str
    resumed: int

    def __init__(
        self,
        data: Path,
        listen: str = "127.0.0.1:0",
        failpoints: str = "",
        options: Sequence[str] = (),
        prefix: Sequence[str] = (),
    ) -> None:
        argv = [*prefix, sys.executable, "-m", "referee_server.entry", "serve", "--listen", listen]
        argv += ["--data", str(data), "--log-format", "json", "--log-level", "warning", *options]
        env = environment(**({VARIABLE: failpoints} if failpoints else {}))
        self.data = data
        self.started = time.monotonic()
        super().__init__([*argv, "--log-level", "info"], env)

    def listening(self, seconds: float = PATIENCE_S) -> bool:
        """Waits until it says that it listens; returns False if it ended instead."""
        line = self.wait_for('"listening"', seconds)
        if line is None:
            return False
        said = json.loads(line)
        self.address, self.resumed = said["address"], said["resumed"]
        self.up_s = time.monotonic() - self.started
        return True

    @property
    def token(self) -> str:
        return (self.data / "host.token").read_text().strip()

    def fired(self) -> list[str]:
        """Returns the names of the failpoints that did something."""
        return [line.split()[1] for line in self.lines if line.startswith("failpoint ")]

    @contextlib.contextmanager
    def host(self) -> Iterator[Host]:
        with grpc.insecure_channel(self.address) as channel:
            yield Host(channel, self.token)


class Host:
    """The host's calls to a referee."""

    def __init__(self, channel: grpc.Channel, token: str) -> None:
        self._matches = MatchServiceStub(channel)
        self._health: Any = health_pb2_grpc.HealthStub(channel)
        self.metadata = (("authorization", f"Bearer {token}"),)

    def create(self, spec: match_pb2.MatchSpec, request_id: str = "", seconds: float = 10.0) -> str:
        request = pb.CreateMatchRequest(spec=spec, request_id=request_id)
        response = self._matches.CreateMatch(request, metadata=self.metadata, timeout=seconds)
        return response.match.match_id

    def get(self, match_id: str) -> match_pb2.Match:
        return self._matches.GetMatch(pb.GetMatchRequest(match_id=match_id), metadata=self.metadata, timeout=10.0).match

    def list(self) -> list[match_pb2.Match]:
        """Returns all matches, the newest first."""
        found: list[match_pb2.Match] = []
        token = ""
        while True:
            request = pb.ListMatchesRequest(page_size=1000, page_token=token)
            page = self._matches.ListMatches(request, metadata=self.metadata, timeout=30.0)
            found += page.matches
            token = page.next_page_token
            if not token:
                return found

    def watch(self, match_id: str, seconds: float | None = None) -> Any:
        view = pb.View(all=pb.AllView())
        request = pb.WatchMatchRequest(match_id=match_id, view=view)
        return self._matches.WatchMatch(request, metadata=self.metadata, timeout=seconds)

    def serving(self) -> bool:
        response = self._health.Check(health_pb2.HealthCheckRequest(), timeout=10.0)
        return bool(response.status == health_pb2.HealthCheckResponse.SERVING)


def reason_of(error: grpc.RpcError) -> tuple[str, str]:
    """Returns status code and reason of a failed call."""
    assert isinstance(error, grpc.Call)
    status = rpc_status.from_call(error)
    reason = ""
    for detail in status.details if status is not None else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            reason = info.reason
    return error.code().name, reason
