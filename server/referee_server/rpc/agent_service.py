"""AgentService: an agent's stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import grpc
import structlog

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import event_pb2
from referee_server import failpoints
from referee_server.match import inputs
from referee_server.match.errors import RefusedError
from referee_server.rpc.gate import Caller, Gate
from referee_server.rpc.register import WRITE_DEADLINE_S, Context, parse
from referee_server.tables.clock import Clock
from referee_server.tables.creation import SERVER_VERSION
from referee_server.tables.hall import Hall
from referee_server.tables.rates import MESSAGES_PER_S, REFUSALS
from referee_server.tables.session import MAX_ITEMS, MAX_MATCHES, MAX_REQUEST_BYTES, Session
from referee_server.tables.table import Table

_log = structlog.get_logger(__name__)

PROTOCOL_VERSION: Final = 1
HELLO_DEADLINE_S: Final = 10.0
"""How long a stream may take to begin, in seconds."""
_LONGEST_ID: Final = 64
_MAX_POSITIONS: Final = MAX_MATCHES


class AgentService:
    """Serves `referee.v1.AgentService`."""

    def __init__(self, hall: Hall, gate: Gate, hello_deadline_s: float = HELLO_DEADLINE_S) -> None:
        self._hall = hall
        self._gate = gate
        self._hello_deadline_s = hello_deadline_s

    async def Play(self, context: Context, caller: Caller) -> None:  # noqa: N802  named in the protocol
        """Plays: one stream for all of an agent's seats."""
        if caller.credential_hash is None and not caller.host:
            # Who has no credential need not say Hello to be told so.
            await self._gate.admit(caller, "")
        items, index = await self._first_items(context)
        received_us = self._hall.clock.now_us()
        hello = items[0].hello
        _check_hello(hello)
        agent = await self._gate.admit(caller, hello.name)
        self._hall.presence.check_stream(agent.agent_id)
        structlog.contextvars.bind_contextvars(agent_id=agent.agent_id)
        session = Session(agent.agent_id, agent.name, hello, self._hall.clock.now_us())
        session.push(
            pb.ServerItem(
                welcome=pb.Welcome(
                    protocol_version=PROTOCOL_VERSION,
                    server_version=SERVER_VERSION,
                    agent_id=agent.agent_id,
                    name=agent.name,
                    max_items=MAX_ITEMS,
                    max_message_size=MAX_REQUEST_BYTES,
                    max_matches=session.max_matches,
                    max_open_decisions=session.max_open,
                )
            )
        )
        reader = writer = closed = None
        try:
            await self._hall.attach(session)
            stream = _Stream(self._hall, session)
            writer = asyncio.ensure_future(_write(context, session, self._hall.clock))
            if stream.take(items[1:], index, received_us):
                reader = asyncio.ensure_future(self._read(context, stream))
                closed = asyncio.ensure_future(session.wait_closed())
                done, _ = await asyncio.wait((reader, writer, closed), return_when=asyncio.FIRST_COMPLETED)
                for ended in (reader, writer):
                    if ended in done:
                        ended.result()
        finally:
            self._hall.detach(session)
            # A lost client shows as the end of what it sends, and then cancels this very call: whatever is not
            # cancelled before the first wait would be left behind.
            _drop(reader, closed)
            try:
                if session.left and writer is not None and not writer.done():
                    # What is on its way is still told: verdicts of the last answers, the end of matches.
                    await self._hall.committer.settled()
                    session.finish()
                    await asyncio.wait((writer,), timeout=WRITE_DEADLINE_S)
            finally:
                _drop(writer)
                _log.info("stream_ended", left=session.left, reason=session.closed.name if session.closed else "")
            if writer is not None:
                await asyncio.wait((writer,))
        if session.closed is not None:
            raise session.closed

    async def _first_items(self, context: Context) -> tuple[list[pb.ClientItem], int]:
        reading = asyncio.ensure_future(context.read())
        try:
            done, _ = await asyncio.wait((reading,), timeout=self._hello_deadline_s)
        finally:
            _drop(reading)
        data = reading.result() if done else grpc.aio.EOF
        items = _items(data) if isinstance(data, bytes) else []
        if not items or items[0].WhichOneof("item") != "hello":
            raise RefusedError(
                reason_pb.ERROR_REASON_NO_HELLO,
                f"a stream begins with Hello, within {self._hello_deadline_s:g} seconds",
            )
        return items, 1

    async def _read(self, context: Context, stream: _Stream) -> None:
        read: Callable[[], object] = context.read
        clock = self._hall.clock
        while True:
            data = await read()  # type: ignore[misc]  # a coroutine function
            received_us = clock.now_us()
            if not isinstance(data, bytes):
                return  # EOF is not goodbye: only Leave is
            failpoints.hit("read.after")
            items = _items(data)
            failpoints.hit("parse.after")
            if not stream.take(items, 0, received_us):
                return


class _Stream:
    """Takes the items of one agent's stream."""

    def __init__(self, hall: Hall, session: Session) -> None:
        self._hall = hall
        self._session = session
        self._bucket = hall.presence.bucket_of(session)
        self._refused = 0

    def take(self, items: list[pb.ClientItem], first_index: int, received_us: int) -> bool:
        """Takes items in their order. Returns False once the agent has said goodbye."""
        if not items and first_index == 0:
            self._may_reply(received_us)  # an empty message; one with Hello alone is none
        for index, item in enumerate(items, first_index):
            kind = item.WhichOneof("item")
            try:
                match kind:
                    case "answer":
                        self._answer(item.answer, received_us)
                    case "ready":
                        self._ready(item.ready)
                    case "decline":
                        self._decline(item.decline)
                    case "pong":
                        if not self._session.pong(item.pong.ping_id, received_us):
                            self._may_reply(received_us)
                    case "enter":
                        self._hall.entering.take(self._session.agent_id, item.enter)
                    case "leave":
                        self._hall.leave(self._session)
                        return False
                    case "hello":
                        raise RefusedError(reason_pb.ERROR_REASON_HELLO_REPEATED, "Hello comes once, first")
                    case _:
                        raise RefusedError(
                            reason_pb.ERROR_REASON_UNKNOWN_VARIANT,
                            f"an item has nothing set that this referee ({SERVER_VERSION}) knows",
                            server_version=SERVER_VERSION,
                        )
            except RefusedError as error:
                if self._may_reply(received_us):
                    self._reject(error, index)
        return True

    def _may_reply(self, now_us: int) -> bool:
        """Charges the agent for something that it was not asked for; returns False once it gets no reply any more.

        What it is asked for costs nothing, so an agent that keeps to the protocol never meets this limit.
        """
        if self._bucket.take(now_us):
            self._refused = 0
            return True
        self._refused += 1
        wait_ms = self._bucket.wait_ms()
        why = RefusedError(
            reason_pb.ERROR_REASON_RATE,
            f"more than {MESSAGES_PER_S} items a second that nobody asked for; they get no reply for now",
            retry_ms=wait_ms,
        )
        if self._refused == 1:
            self._reject(why, 0)
        elif self._refused > REFUSALS:
            self._hall.flooded(self._session, why)
        return False

    def _reject(self, error: RefusedError, index: int) -> None:
        rejected = pb.Rejected(
            reason=error.reason,
            message=error.message,
            match_id=error.metadata.get("match_id", "")[:_LONGEST_ID],
            item_index=index,
        )
        self._hall.committer.tell(self._session, pb.ServerItem(rejected=rejected))

    def _answer(self, answer: pb.Answer, received_us: int) -> None:
        table = self._session.tables.get(answer.match_id)
        if table is not None:
            table.answer(self._session, answer, received_us, lambda: self._may_reply(received_us))
            return
        if not self._may_reply(received_us):
            return
        over = self._hall.held_seats(answer.match_id, self._session.agent_id)
        status = event_pb2.ANSWER_STATUS_MATCH_OVER if over else event_pb2.ANSWER_STATUS_NO_SEAT
        # What cannot be an id is not sent back in full: an agent is not to fill its queue with its own words.
        match_id = answer.match_id[:_LONGEST_ID]
        verdict = pb.Verdict(match_id=match_id, decision_id=answer.decision_id, status=status)
        self._hall.committer.tell(self._session, pb.ServerItem(verdict=verdict))

    def _ready(self, ready: pb.Ready) -> None:
        table = self._table(ready.match_id)
        if len(ready.nonce) not in (0, 32):
            raise RefusedError(
                reason_pb.ERROR_REASON_NONCE_LENGTH,
                f"a nonce has 32 bytes, not {len(ready.nonce)}",
                match_id=ready.match_id,
            )
        try:
            table.feed(inputs.Ready(table.seats_of(self._session.agent_id)[0], ready.nonce))
        except inputs.NotNowError as error:
            raise RefusedError(reason_pb.ERROR_REASON_ALREADY_READY, str(error), match_id=ready.match_id) from None

    def _decline(self, decline: pb.Decline) -> None:
        table = self._table(decline.match_id)
        try:
            table.feed(inputs.Decline(table.seats_of(self._session.agent_id)[0]))
        except inputs.NotNowError as error:
            raise RefusedError(reason_pb.ERROR_REASON_ALREADY_READY, str(error), match_id=decline.match_id) from None

    def _table(self, match_id: str) -> Table:
        table = self._session.tables.get(match_id)
        if table is None or table.match.over:
            if table is not None or self._hall.held_seats(match_id, self._session.agent_id):
                raise RefusedError(reason_pb.ERROR_REASON_MATCH_OVER, "the match has ended", match_id=match_id)
            raise RefusedError(
                reason_pb.ERROR_REASON_NO_SEAT, "this agent has no seat in such a match", match_id=match_id
            )
        return table


def _items(data: bytes) -> list[pb.ClientItem]:
    if len(data) > MAX_REQUEST_BYTES:
        raise RefusedError(
            reason_pb.ERROR_REASON_MESSAGE_TOO_LARGE,
            f"a message has at most {MAX_REQUEST_BYTES} bytes",
            limit=MAX_REQUEST_BYTES,
        )
    items = list(parse(pb.PlayRequest, data).items)
    if len(items) > MAX_ITEMS:
        raise RefusedError(
            reason_pb.ERROR_REASON_MESSAGE_TOO_LARGE, f"a message has at most {MAX_ITEMS} items", limit=MAX_ITEMS
        )
    return items


def _check_hello(hello: pb.Hello) -> None:
    if hello.protocol_version < PROTOCOL_VERSION:
        raise RefusedError(
            reason_pb.ERROR_REASON_PROTOCOL_VERSION,
            f"this referee speaks protocol version {PROTOCOL_VERSION}; Hello says {hello.protocol_version}",
            oldest=PROTOCOL_VERSION,
            newest=PROTOCOL_VERSION,
        )
    for field in ("max_matches", "max_open_decisions"):
        value = getattr(hello, field)
        if not 0 <= value <= MAX_MATCHES:
            raise RefusedError(
                reason_pb.ERROR_REASON_FIELD_INVALID,
                f"{field} is from 0 to {MAX_MATCHES}, not {value}",
                field=f"hello.{field}",
            )
    if len(hello.positions) > _MAX_POSITIONS or len(hello.games) > 64 or len(hello.client_version) > 200:
        raise RefusedError(
            reason_pb.ERROR_REASON_FIELD_INVALID, "Hello holds more than it may", field="hello.positions"
        )
    for place, position in enumerate(hello.positions):
        if position.after_sequence < 0:
            raise RefusedError(
                reason_pb.ERROR_REASON_FIELD_INVALID,
                "after_sequence is 0 or more",
                field=f"hello.positions[{place}].after_sequence",
            )


async def _write(context: Context, session: Session, clock: Clock) -> None:
    loop = asyncio.get_running_loop()
    too_slow = RefusedError(
        reason_pb.ERROR_REASON_SLOW_CONSUMER, "the agent reads too slowly; it may reconnect and go on"
    )
    while items := await session.next_items():
        ping = session.ping_due(clock.now_us())
        if ping is not None:
            items.append(ping)
        watchdog = loop.call_later(WRITE_DEADLINE_S, session.close, too_slow)
        try:
            failpoints.hit("write.before")
            await context.write(pb.PlayResponse(items=items).SerializeToString())
            failpoints.hit("write.after")
        finally:
            watchdog.cancel()


def _drop(*tasks: asyncio.Future[object] | asyncio.Future[None] | None) -> None:
    """Cancels tasks; what they raise is not of interest any more."""
    for task in tasks:
        if task is not None:
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            task.cancel()
