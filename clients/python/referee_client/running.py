"""The two ways to start an agent: `run` for a script or a notebook, `play` inside async code.

gRPC is imported when one of them is called and not before: who only plays locally needs none.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from referee_client.agent import Agent
from referee_client.tls import Tls
from referee_client.values import Result, new_results


async def play(
    agent: Agent,
    address: str,
    *,
    credential: str | Path | None = None,
    matches: int | None = None,
    tls: Tls | None = None,
    connect_timeout: float | None = 60.0,
) -> list[Result]:
    """Connects an agent to a referee and plays whatever it is offered.

    Lost connections are taken up again by themselves. Cancelling the task says goodbye to the referee first.

    Args:
        agent: the agent.
        address: host and port of the referee, such as `localhost:7431`.
        credential: path of the credential file, or the credential itself as 64 hex digits. By default
            `<name>.token` under `$XDG_CONFIG_HOME/referee` or `~/.config/referee`; made if it does not exist.
        matches: how many matches to play before leaving; None plays until stopped. Matches that never started do not
            count. Offers beyond that number are declined.
        tls: whom to trust (`Tls`); None for a connection without encryption.
        connect_timeout: for how long, in seconds, the referee may be away, at the start or later; None waits for ever.

    Returns:
        the results in the order the matches ended; the newest 1,000 where `matches` is None.

    Raises:
        CredentialError: the credential file cannot be used, or the referee refuses the credential.
        NameTakenError: another agent has the name.
        NotReachableError: nobody answered for as long as `connect_timeout` says.
        ProtocolVersionError: there is no referee at that address, or none that speaks this version.
        SupersededError: the same agent has connected a second time.
        RefereeError: the referee refused something else.
        Exception: whatever the agent raises; the referee has then been told goodbye.
    """
    client = _client()
    results: list[Result] = await client.play(
        agent,
        address,
        credential=credential,
        matches=matches,
        tls=tls,
        connect_timeout=connect_timeout,
    )
    return results


def run(
    agent: Agent,
    address: str,
    *,
    credential: str | Path | None = None,
    matches: int | None = None,
    tls: Tls | None = None,
    connect_timeout: float | None = 60.0,
) -> list[Result]:
    """Connects an agent to a referee and plays whatever it is offered, until it is done or stopped by Ctrl-C.

    Also works where an event loop is running already, as in a notebook: it then plays in a thread of its own, and
    blocks all the same. Arguments and errors are those of `play`.

    Returns:
        the results so far; Ctrl-C says goodbye to the referee and returns them too.
    """
    results = new_results(matches)

    async def main() -> None:
        await _client().play(
            agent,
            address,
            credential=credential,
            matches=matches,
            tls=tls,
            connect_timeout=connect_timeout,
            results=results,
        )

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        looping = False
    else:
        looping = True
    with contextlib.suppress(KeyboardInterrupt):
        if looping:
            _run_in_thread(main())
        else:
            asyncio.run(main())
    return list(results)


def _run_in_thread(main: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine in a loop and thread of their own, and hands on its exception and Ctrl-C."""
    started: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
    errors: list[BaseException] = []
    ended = threading.Event()

    async def body() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        started.put(lambda: loop.call_soon_threadsafe(task.cancel))
        await main

    def work() -> None:
        try:
            asyncio.run(body())
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    threading.Thread(target=work, name="referee-run", daemon=True).start()
    stop = started.get()
    try:
        # Not `Thread.join`: once that has been interrupted it takes the thread for ended and never waits again.
        ended.wait()
    except KeyboardInterrupt:
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself just now
            stop()
        ended.wait()
        raise
    if errors:
        raise errors[0]


def _client() -> Any:
    if "grpc" not in sys.modules:
        # Must be set before the import: fork handlers that are unreliable, and chatter at ordinary endings.
        os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
        os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from referee_client import client

    return client
