"""A service that may not have more: of descriptors, and of memory."""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from rpc.http2 import Peer

from .kit import REFEREE, Home, Process, until

DESCRIPTORS = 128


@pytest.fixture
def held() -> Iterator[ExitStack]:
    """Connections that are held open; to be closed before the end of a test, or else there."""
    with ExitStack() as stack:
        yield stack


def limited(descriptors: int) -> list[str]:
    """Returns the beginning of a command that may have no more than so many descriptors."""
    return ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *REFEREE]


def serve(home: Home) -> tuple[Process, str]:
    """Starts a service with few descriptors, and an agent that plays one match after the other there."""
    # Nobody here answers when a connection is probed.
    service = home.spawn(
        [*limited(DESCRIPTORS), "serve", "--listen", "127.0.0.1:0", "--practice", "--keepalive", "600"]
    )
    address = json.loads(service.wait_for('"event": "listening"'))["address"]
    home.agent("first", address, "anna")
    play_on(service)
    return service, address


def created(service: Process) -> list[str]:
    """Returns the matches that a service has said it created."""
    return [json.loads(line)["match_id"] for line in list(service.lines) if '"event": "match_created"' in line]


def play_on(service: Process) -> None:
    """Waits until some matches more have been created: the agent gets the next when it has played the one before."""
    before = len(created(service))
    until(lambda: len(created(service)) >= before + 3, what="matches go on")


def descriptors(service: Process) -> int:
    return len(list(Path(f"/proc/{service.popen.pid}/fd").iterdir()))


def connect(port: int, held: ExitStack) -> bool:
    """Opens a connection; returns whether it was let in."""
    peer = held.enter_context(Peer(port))
    with suppress(ConnectionError, TimeoutError, AssertionError):
        peer.greet()
        return True
    return False


def served(home: Home, address: str) -> bool:
    return home.run("agents", "list", "--connect", address).code == 0


@pytest.mark.parametrize("few", [16, 63])
def test_with_too_few_descriptors_it_does_not_start_and_says_so(home: Home, few: int) -> None:
    service = home.spawn([*limited(few), "serve", "--listen", "127.0.0.1:0"])
    assert service.wait() == 70
    assert f"only {few} files and connections may be open at once; allow at least 64" in service.output
    assert len(service.lines) == 1


# What the library itself writes, past all logging, of a call that it was about to begin at the very stop. Only that.
LIBRARY_AT_STOP = re.compile(
    r"Traceback \(most recent call last\):\n"
    r'  File "src/python/grpcio/[^"]*/aio/server\.pyx\.pxi", line \d+, in grpc\._cython\.cygrpc\._schedule_rpc_coro\n'
    r"asyncio\.exceptions\.CancelledError"
)


def said(service: Process) -> str:
    return LIBRARY_AT_STOP.sub("", service.output)


def test_connections_leave_descriptors_to_the_rest_and_who_is_one_too_many_is_turned_away(
    home: Home, held: ExitStack
) -> None:
    service, address = serve(home)
    port = int(address.rpartition(":")[2])
    let_in = [connect(port, held) for _ in range(DESCRIPTORS)]
    assert DESCRIPTORS // 2 < sum(let_in) < DESCRIPTORS
    assert descriptors(service) < DESCRIPTORS
    play_on(service)
    done = home.run("agents", "list", "--connect", address)
    assert (done.code, done.err.count("\n")) == (69, 1)
    held.close()
    until(lambda: served(home, address), what="new connections are let in again")
    assert service.stop() == 0
    assert "Traceback" not in said(service)
    assert home.ok("verify", "--all").out


def test_without_a_descriptor_left_matches_go_on_and_new_connections_wait(home: Home, held: ExitStack) -> None:
    service, address = serve(home)
    # Fewer than it was told of at its start, as if something else in it had taken them.
    resource.prlimit(service.popen.pid, resource.RLIMIT_NOFILE, (descriptors(service), DESCRIPTORS))
    waiting = [held.enter_context(Peer(int(address.rpartition(":")[2]))) for _ in range(10)]
    play_on(service)
    resource.prlimit(service.popen.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    for peer in waiting:
        peer.greet()
    assert served(home, address)
    play_on(service)
    held.close()
    assert service.stop() == 0
    assert "Traceback" not in said(service)
    assert home.ok("verify", "--all").out


@pytest.mark.parametrize("limit", [resource.RLIMIT_DATA, resource.RLIMIT_AS], ids=["data", "address space"])
def test_without_memory_it_ends_as_if_killed_and_the_next_start_goes_on(
    home: Home, held: ExitStack, limit: int
) -> None:
    service = home.serve("--practice")
    agent = home.agent("first", service.address, "anna")
    play_on(service)
    # Where it ends depends on who asks for memory first: the journal (which stops the service), or a library.
    resource.prlimit(service.popen.pid, limit, (1, resource.RLIM_INFINITY))
    with suppress(ConnectionError):
        while service.popen.poll() is None:
            connect(int(service.address.rpartition(":")[2]), held)
    assert service.wait() != 0
    held.close()
    again = home.serve("--practice", listen=service.address)
    play_on(again)
    assert agent.popen.poll() is None
    assert again.stop() == 0
    stored = {row["match"]: row["state"] for row in home.ok("matches", "--json").rows()}
    assert {stored[match_id] for match_id in created(service)} == {"finished"}
    assert home.ok("verify", "--all").out
