"""The connection to a referee: channel, stream, reconnecting. The one module of the package that imports gRPC."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Coroutine
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc
import grpc.aio

from referee.v1 import agent_service_pb2 as pb
from referee.v1.agent_service_pb2_grpc import AgentServiceStub
from referee_client import credential as credentials
from referee_client.agent import Agent, name_of
from referee_client.errors import (
    CredentialError,
    NameInvalidError,
    NameTakenError,
    NotReachableError,
    ProtocolVersionError,
    RefusedError,
    RegistrationClosedError,
    SupersededError,
)
from referee_client.session import PROTOCOL_VERSION, Session
from referee_client.status import DETAILS_KEY, reason_of
from referee_client.tls import Tls
from referee_client.values import Result

if TYPE_CHECKING:
    from referee.v1.agent_service_pb2_grpc import AgentServiceAsyncStub

    Call: TypeAlias = grpc.aio.StreamStreamCall[pb.PlayRequest, pb.PlayResponse]


WELCOME_TIMEOUT = 20.0
"""How long a connection may take until the referee's welcome, in seconds."""
LEAVE_TIMEOUT = 2.0
"""How long the referee may take to close the stream after a goodbye, in seconds."""
SETTLED_AFTER = 10.0
"""A connection that has lasted this long, in seconds, was a good one: the next wait begins small again."""

OPTIONS: list[tuple[str, Any]] = [
    # A link that went dead without a word is noticed within 30 s. Of the two timeouts the second is the one that acts.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", 1024 * 1024),
    ("grpc.max_send_message_length", 64 * 1024),
    # The waits between attempts are ours; the channel is not to add long ones of its own.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
]

log = logging.getLogger("referee_client")


class _LostError(Exception):
    """The connection ended in a way that makes it worth coming back."""


class Backoff:
    """Waits between attempts: doubling, and random so that the agents of a referee do not come back all at once.

    Args:
        first: the first wait in seconds, at most.
        longest: no wait is longer, in seconds.
        rng: returns numbers from 0 to below 1.
    """

    def __init__(self, first: float = 0.25, longest: float = 5.0, rng: Callable[[], float] = random.random) -> None:
        self._first = first
        self._longest = longest
        self._rng = rng
        self._tries = 0

    def next(self) -> float:
        """Returns how long to wait now: between half of the present wait and all of it."""
        wait: float = min(self._longest, self._first * 2 ** min(self._tries, 30))
        self._tries += 1
        return wait * (0.5 + self._rng() / 2)

    def reset(self) -> None:
        """Begins with the first wait again."""
        self._tries = 0


def _verdict_on(error: grpc.aio.AioRpcError, name: str) -> Exception:
    """Returns what a failed stream means: a `_LostError` if coming back makes sense, else what to tell the author."""
    code, text = error.code(), (error.details() or "").rstrip(".")
    reason = ""
    for key, value in error.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            reason = reason_of(value)
    status = grpc.StatusCode
    match code, reason:
        case _, "SUPERSEDED":
            return SupersededError(f"agent {name} has connected a second time, and the newer connection plays on")
        case _, "NAME_TAKEN":
            return NameTakenError(f"the name {name} is taken by another agent; choose another one ({text})")
        case _, "NAME_INVALID":
            return NameInvalidError(f"the referee does not take the name {name!r}: {text}")
        case _, "PROTOCOL_VERSION":
            return ProtocolVersionError(
                f"this package speaks protocol version {PROTOCOL_VERSION} and the referee does not: {text}"
            )
        case _, "REGISTRATION_CLOSED":
            return RegistrationClosedError(f"the referee takes no new agents; ask its host to add {name} ({text})")
        case status.UNAUTHENTICATED, _:
            return CredentialError(f"the referee refuses the credential of {name}: {text}")
        case status.PERMISSION_DENIED, _:
            return CredentialError(f"the referee does not let the credential of {name} play: {text}")
        case status.UNIMPLEMENTED, _:
            return ProtocolVersionError(f"there is no referee at that address: {text}")
        case _, "MESSAGE_TOO_LARGE" | "TOO_MANY_MATCHES":
            return RefusedError(f"the referee refuses this agent: {reason}: {text}", reason)
        case (
            status.INVALID_ARGUMENT
            | status.FAILED_PRECONDITION
            | status.NOT_FOUND
            | status.ALREADY_EXISTS
            | status.OUT_OF_RANGE,
            _,
        ):
            return RefusedError(f"the referee refuses this agent: {reason or code.name}: {text}", reason)
    return _LostError(f"{code.name}: {text}" if text else code.name)


def package_version() -> str:
    """Returns name and version of this package as the referee shows them."""
    try:
        return f"referee-python/{version('referee')}"
    except PackageNotFoundError:  # run from a checkout
        return "referee-python"


class _Stream:
    """One `Play` stream, from Hello to its end."""

    def __init__(self, stub: AgentServiceAsyncStub, token: str, session: Session, name: str) -> None:
        self._session = session
        self._name = name
        self._hello = session.hello()
        self._call: Call = stub.Play(metadata=(("authorization", f"Bearer {token}"),))
        self._reader = asyncio.create_task(self._read())
        self._writer = asyncio.create_task(self._write())

    async def live(self, patience: float) -> None:
        """Returns when the session is done.

        Raises:
            _LostError: the connection ended and it makes sense to come back.
            RefereeError: it ended for good.
        """
        session = self._session
        try:
            welcomed = asyncio.create_task(session.welcomed.wait())
            try:
                await self._until(welcomed, session.done, patience=patience)
            finally:
                welcomed.cancel()
            if not session.done.done():
                if not session.welcomed.is_set():
                    raise _LostError("no answer")
                await self._until(session.done)
            await self._leave()
        except asyncio.CancelledError:
            # Whoever stops the run is not to leave the others at the table waiting for a lost agent.
            await self._leave()
            raise
        finally:
            session.welcomed.clear()
            # The order matters: tasks end before the call they wait in is cancelled, and that before the channel.
            self._reader.cancel()
            self._writer.cancel()
            await asyncio.gather(self._reader, self._writer, return_exceptions=True)
            self._call.cancel()

    async def _until(self, *others: asyncio.Future[Any], patience: float | None = None) -> None:
        """Waits for one of the others; the end of the stream raises, and so does an end of the writer."""
        await asyncio.wait({self._reader, self._writer, *others}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        if any(other.done() for other in others):
            return
        if self._writer.done() and not self._reader.done():
            # Only the reader is told why the stream has ended.
            await asyncio.wait({self._reader}, timeout=1)
        if self._reader.done():
            error = self._reader.exception()
            if isinstance(error, grpc.aio.AioRpcError):
                raise _verdict_on(error, self._name)
            if error is not None:
                raise error
            raise _LostError("the referee closed the stream")
        if self._writer.done():
            raise _LostError(f"cannot write: {self._writer.exception()}")

    async def _leave(self) -> None:
        """Says goodbye and gives the referee a moment to hear it."""
        if self._reader.done() or self._writer.done() or not self._session.welcomed.is_set():
            return
        self._session.leave()
        await asyncio.wait({self._reader}, timeout=LEAVE_TIMEOUT)

    async def _read(self) -> None:
        receive, read, eof = self._session.receive, self._call.read, grpc.aio.EOF
        while (response := await read()) is not eof:
            receive(response)  # type: ignore[arg-type] # the stubs do not tell the end marker from a message

    async def _write(self) -> None:
        session, write = self._session, self._call.write
        outbox, to_send = session.outbox, session.to_send
        await write(self._hello)
        while True:
            await to_send.wait()
            to_send.clear()
            while items := outbox.take():
                await write(pb.PlayRequest(items=items))
                if items[-1].HasField("leave"):
                    await self._call.done_writing()


async def play(
    agent: Agent,
    address: str,
    *,
    credential: str | Path | None = None,
    matches: int | None = None,
    tls: Tls | None = None,
    connect_timeout: float | None = 60.0,
    backoff: Backoff | None = None,
    results: deque[Result] | None = None,
) -> list[Result]:
    """Plays; see `referee_client.play`.

    Args:
        agent: the agent.
        address: host and port.
        credential: path of the credential file, or the credential.
        matches: how many matches to play.
        tls: whom to trust; None for a connection without encryption.
        connect_timeout: for how long the referee may be away, in seconds.
        backoff: the waits between attempts.
        results: where to put the results as they come; for callers who want them also when the run is cancelled.
    """
    if matches is not None and matches < 1:
        raise ValueError(f"matches is at least 1, not {matches}")
    name = name_of(agent)
    token = credentials.load(name, credential)
    secure = tls.channel_credentials() if tls is not None else None
    session = Session(agent, matches, client_version=package_version(), results=results)
    if secure is None:
        channel = grpc.aio.insecure_channel(address, options=OPTIONS)
    else:
        channel = grpc.aio.secure_channel(address, secure, options=OPTIONS)
    worker = asyncio.create_task(session.work())
    try:
        stub: Any = AgentServiceStub(channel)
        await _keep_connected(
            session,
            lambda: _Stream(stub, token, session, name),
            address,
            connect_timeout,
            backoff or Backoff(),
        )
        return await session.done
    finally:
        worker.cancel()
        session.close()
        await asyncio.gather(worker, return_exceptions=True)
        if session.done.done() and not session.done.cancelled():
            session.done.exception()  # it has been told, or something else has
        await channel.close()


async def _keep_connected(
    session: Session,
    open_stream: Callable[[], _Stream],
    address: str,
    connect_timeout: float | None,
    backoff: Backoff,
) -> None:
    """Connects again and again, until the session is done or the referee refuses for good."""
    clock = asyncio.get_running_loop().time
    missing_since = clock()
    ever = False
    while not session.done.done():
        began = clock()
        patience = WELCOME_TIMEOUT
        if connect_timeout is not None:
            patience = min(patience, max(0.1, missing_since + connect_timeout - began))
        stream = open_stream()
        live: Coroutine[Any, Any, None] = stream.live(patience)
        up = asyncio.create_task(_note_welcome(session, address))
        try:
            await live
            return
        except _LostError as lost:
            ended = clock()
            if up.done() and not up.cancelled():
                ever = True
                missing_since = ended
                if ended - began > SETTLED_AFTER:
                    backoff.reset()
            wait = backoff.next()
            if connect_timeout is not None and ended + wait > missing_since + connect_timeout:
                what = "was lost and is" if ever else "is"
                raise NotReachableError(
                    f"the referee at {address} {what} not reachable within {connect_timeout:g} s ({lost})"
                ) from None
            log.warning("no connection to %s (%s); trying again in %.1f s", address, lost, wait)
        finally:
            up.cancel()
        # A session that ends meanwhile, through an agent's exception, does not wait for the next attempt.
        await asyncio.wait({session.done}, timeout=wait)


async def _note_welcome(session: Session, address: str) -> None:
    await session.welcomed.wait()
    log.info("connected to %s", address)
