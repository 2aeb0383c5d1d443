"""An agent's side of the protocol: what it was asked, what it answered, what it still has to say.

Knows messages and the event loop, but neither gRPC nor the network: a connection hands in what arrives (`receive`) and
sends what the outbox holds whenever `to_send` is set. A session outlives its connections, so a question that is put
again after a reconnect is answered from memory.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import event_pb2
from referee_client import convert, plain
from referee_client.agent import Agent, name_of
from referee_client.outbox import Outbox
from referee_client.thread import AgentThread
from referee_client.values import Result, new_results

PROTOCOL_VERSION = 1

_YIELD_AFTER = 0.005
"""For how long at most, in seconds, instant answers keep the loop from reading and writing."""
_SLOW_CHOICE = 0.05
"""A plain `choose` that takes longer than this, in seconds, gets its author a word of advice."""
_MAX_ACTION = 1_000
"""No action of a game has more characters."""
_MAX_HELLO = 60_000

log = logging.getLogger("referee_client")


class _Table:
    """One match as the agent knows it.

    Attributes:
        started: whether `on_match_start` is through.
        number: number of the newest decision; -1 before the first.
        action: the answer to it; None while there is none.
        asking: the `choose` that is at work on it.
        epoch: the connection on which it was put last.
        asked: when that was.
        left: how much time it had then, in seconds.
        sequence: number of the last event that has been passed on.
        busy: whether a hook is at work; then everything else waits in the backlog, so that an agent hears things in
            the order they happened.
    """

    __slots__ = (
        "action", "asked", "asking", "backlog", "busy", "epoch", "game", "left", "match_id", "nonce", "number",
        "seat", "sequence", "started",
    )  # fmt: skip

    def __init__(self, match_id: str, game: str, seat: int, nonce: bytes) -> None:
        self.match_id = match_id
        self.game = game
        self.seat = seat
        self.nonce = nonce
        self.started = False
        self.number = -1
        self.action: str | None = None
        self.asking: asyncio.Task[None] | None = None
        self.epoch = 0
        self.asked = 0.0
        self.left = math.inf
        self.sequence = 0
        self.busy = False
        self.backlog: deque[Callable[[], None]] = deque()


class Session:
    """Plays an agent's matches over any number of connections.

    Attributes:
        outbox: what is to be sent on the present connection.
        to_send: set when the outbox has to be emptied now.
        welcomed: set while a connection is up.
        done: the results, once the session is over; or what ended it.
    """

    def __init__(
        self,
        agent: Agent,
        matches: int | None = None,
        *,
        client_version: str = "",
        results: deque[Result] | None = None,
    ) -> None:
        self.outbox = Outbox()
        self.to_send = asyncio.Event()
        self.welcomed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[list[Result]] = self._loop.create_future()
        self._agent = agent
        self._matches = matches
        self._client_version = client_version
        self._clock = self._loop.time
        self._inbox: deque[tuple[pb.PlayResponse, float]] = deque()
        self._wake = asyncio.Event()
        self._epoch = 0
        self._tables: dict[str, _Table] = {}
        self._nonces: dict[str, bytes] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._taken = 0
        self._over = 0
        self._results: deque[Result] = new_results(matches) if results is None else results
        self._thread = AgentThread() if agent.slow else None
        self._advised = False
        self._choose = self._placed(agent.choose)
        self._on_start = self._hook("on_match_start")
        self._on_event = self._hook("on_event")
        self._on_verdict = self._hook("on_verdict")
        self._on_over = self._hook("on_match_over")

    # What a connection does.

    def hello(self) -> pb.PlayRequest:
        """Begins a new connection and returns its first message. What the old one had not sent is forgotten."""
        self._epoch += 1
        self.welcomed.clear()
        self.to_send.clear()
        self.outbox.clear()
        agent = self._agent
        hello = pb.Hello(
            protocol_version=PROTOCOL_VERSION,
            name=name_of(agent),
            client_version=self._client_version,
            games=agent.games,
            max_matches=agent.max_matches if self._matches is None else min(agent.max_matches, self._matches),
            max_open_decisions=agent.max_open_decisions,
            takes_open_seats=agent.takes_open_seats,
            wants_events=agent.wants_events,
        )
        size = hello.ByteSize()
        for table in self._tables.values():
            # Named even where no events are wanted, so that the referee can tell of a match that ended meanwhile.
            position = pb.Position(match_id=table.match_id, after_sequence=table.sequence)
            size += position.ByteSize() + 4
            if size > _MAX_HELLO:
                break
            hello.positions.append(position)
        return pb.PlayRequest(items=[pb.ClientItem(hello=hello)])

    def receive(self, response: pb.PlayResponse) -> None:
        """Takes in a message. Pings are answered at once; the rest is left to `work`."""
        for item in response.items:
            if item.HasField("ping"):
                self._send(pb.ClientItem(pong=pb.Pong(ping_id=item.ping.ping_id)))
                self.to_send.set()
            elif item.HasField("welcome"):
                welcome = item.welcome
                self.outbox.max_items = min(self.outbox.max_items, welcome.max_items or self.outbox.max_items)
                self.outbox.max_bytes = min(self.outbox.max_bytes, welcome.max_message_size or self.outbox.max_bytes)
                self.welcomed.set()
        self._inbox.append((response, self._clock()))
        self._wake.set()

    def leave(self) -> None:
        """Says goodbye: nothing that is still waiting is sent any more."""
        self.outbox.clear()
        self._send(pb.ClientItem(leave=pb.Leave()))
        self.to_send.set()

    def close(self) -> None:
        """Gives up whatever is still at work."""
        for task in self._tasks:
            task.cancel()
        if self._thread is not None:
            self._thread.close()

    def fail(self, error: BaseException) -> None:
        """Ends the session with an exception."""
        if not self.done.done():
            if isinstance(error, StopIteration):
                wrapped = RuntimeError("the agent raised StopIteration")  # a future cannot hold that one
                wrapped.__cause__ = error
                error = wrapped
            self.done.set_exception(error)

    async def work(self) -> None:
        """Handles what arrives, until it is cancelled or the agent raises something, which `done` then holds."""
        try:
            await self._work()
        except Exception as error:
            self.fail(error)

    async def _work(self) -> None:
        clock, inbox, outbox = self._clock, self._inbox, self.outbox
        yielded = clock()
        while not self.done.done():
            if not inbox:
                timer = self._settle()
                await self._wake.wait()
                self._wake.clear()
                if timer is not None:
                    timer.cancel()
                yielded = clock()
                continue
            response, arrived = inbox.popleft()
            for item in response.items:
                self._handle(item, arrived)
                now = clock()
                if outbox.full or outbox.deadline <= now:
                    self.to_send.set()
                    now = yielded + 1  # the writer needs the loop
                if now - yielded > _YIELD_AFTER:
                    await asyncio.sleep(0)
                    yielded = clock()
            if len(self._tables) > 1:
                # The next message may have come already; then its answers go with these.
                await asyncio.sleep(0)

    def _settle(self) -> asyncio.TimerHandle | None:
        """Sends what there is, unless there are still questions to answer; then returns a timer for when it must."""
        if not self.outbox:
            return None
        if self._thread is None or self._thread.pending == 0 or self.outbox.deadline <= self._clock():
            self.to_send.set()
            return None
        return self._loop.call_at(self.outbox.deadline, self._wake.set)

    # What arrives.

    def _handle(self, item: pb.ServerItem, arrived: float) -> None:
        match item.WhichOneof("item"):
            case "decision":
                self._decision(item.decision, arrived)
            case "verdict":
                self._verdict(item.verdict)
            case "events":
                self._events(item.events)
            case "match_offered":
                self._offered(item.match_offered)
            case "match_over":
                self._match_over(item.match_over)
            case "tournament_offered":
                self._enter(item.tournament_offered)
            case "going_away":
                log.info("the referee closes in %d ms; will reconnect", item.going_away.grace_ms)
                self.to_send.set()
            case "rejected":
                rejected = item.rejected
                log.warning("the referee rejected an item: %s %s", plain.reason_word(rejected.reason), rejected.message)
            case _:
                pass  # answered in `receive`, or newer than this package

    def _offered(self, message: pb.MatchOffered) -> None:
        table = self._tables.get(message.match_id)
        if table is not None:
            if table.started and not message.ready:
                self._say_ready(table)
            return
        if not message.ready and self._matches is not None and self._taken >= self._matches:
            self._send(pb.ClientItem(decline=pb.Decline(match_id=message.match_id)))
            return
        nonce = secrets.token_bytes(32) if message.nonces_taken and not message.ready else b""
        table = _Table(message.match_id, message.game, message.seat, nonce)
        self._tables[message.match_id] = table
        self._taken += 1
        log.info("match %s: seat %d of a match of %s", message.match_id, message.seat, message.game)

        def start() -> None:
            table.started = True
            if not message.ready:
                self._say_ready(table)

        share = nonce or self._nonces.get(message.tournament_id, b"")
        offer = plain.offer_from(message, share) if self._on_start is not None else None
        self._run(table, self._on_start, (offer,), start)

    def _enter(self, message: pb.TournamentOffered) -> None:
        """Adds a share to the cards of a tournament; asked again after a reconnect, it gives the same."""
        nonce = self._nonces.setdefault(message.tournament_id, secrets.token_bytes(32))
        log.info("entered in tournament %s", message.tournament_id)
        self._send(pb.ClientItem(enter=pb.Enter(tournament_id=message.tournament_id, nonce=nonce)))

    def _say_ready(self, table: _Table) -> None:
        self._send(pb.ClientItem(ready=pb.Ready(match_id=table.match_id, nonce=table.nonce)))

    def _decision(self, message: pb.Decision, arrived: float) -> None:
        table = self._tables.get(message.match_id)
        if table is None:
            # A referee offers a match again before it asks again; should it not, the view tells the game.
            game = message.WhichOneof("view") or ""
            table = _Table(message.match_id, game, message.seat, b"")
            table.started = True
            self._tables[message.match_id] = table
            self._taken += 1
        if table.busy:
            table.backlog.append(lambda: self._decision(message, arrived))
            return
        number = message.decision_id
        if number < table.number:
            return  # closed long ago
        table.epoch = self._epoch
        table.asked = arrived
        # Where only the bank is left an answer does not wait for others at all.
        table.left = math.inf if message.untimed else message.allowance_us / 1e6
        if number == table.number:
            if table.action is not None:
                self._send_answer(table)
                return
            if table.asking is not None:
                return
        elif table.asking is not None:
            table.asking.cancel()  # its decision ran out of time
            table.asking = None
        table.number = number
        table.action = None
        decision = convert.decision_from(message, table.game)
        began = self._clock()
        answer = self._choose(decision)
        if type(answer) is str:
            self._answered(table, number, answer)
            if not self._advised and self._clock() - began > _SLOW_CHOICE:
                self._advised = True
                log.warning(
                    "choose took %.0f ms in the event loop; set `slow = True` in %s, so that it runs in a thread",
                    (self._clock() - began) * 1e3,
                    type(self._agent).__name__,
                )
        elif inspect.isawaitable(answer):
            table.asking = self._spawn(self._await_answer(table, number, answer))
        else:
            self._answered(table, number, answer)

    async def _await_answer(self, table: _Table, number: int, answer: Awaitable[Any]) -> None:
        try:
            action = await answer
            if table.number == number and self._tables.get(table.match_id) is table:
                table.asking = None
                self._answered(table, number, action)
        except Exception as error:
            self.fail(error)
        self._wake.set()

    def _answered(self, table: _Table, number: int, action: Any) -> None:
        if not isinstance(action, str):
            raise TypeError(f"choose returned {type(action).__name__}, not the text of an action")
        if len(action) > _MAX_ACTION:
            raise ValueError(f"choose returned {len(action):,} characters for decision {number}, which is no action")
        table.action = action
        if table.epoch == self._epoch:
            self._send_answer(table)

    def _send_answer(self, table: _Table) -> None:
        if self.welcomed.is_set():
            answer = pb.Answer(match_id=table.match_id, decision_id=table.number, action=table.action or "")
            self.outbox.add(pb.ClientItem(answer=answer), self._clock(), table.asked, table.left)

    def _verdict(self, message: pb.Verdict) -> None:
        table = self._tables.get(message.match_id)
        if message.status in (event_pb2.ANSWER_STATUS_FAULTED, event_pb2.ANSWER_STATUS_TIMED_OUT):
            verdict = plain.verdict_from(message)
            log.warning(
                "match %s, decision %d: the answer was ruled %s; on record is %s",
                verdict.match_id, verdict.number, verdict.fault or verdict.status, verdict.action or "nothing yet",
            )  # fmt: skip
        if table is None:
            return
        if message.asked_again and table.number == message.decision_id and table.asking is None:
            table.number -= 1  # the same question comes once more, and wants another answer
            table.action = None
        if self._on_verdict is not None:
            self._run(table, self._on_verdict, (plain.verdict_from(message),))

    def _events(self, message: pb.SeatEvents) -> None:
        table = self._tables.get(message.match_id)
        if table is None or self._on_event is None:
            return
        if table.busy:
            table.backlog.append(lambda: self._events(message))
            return
        for event in message.events:
            if event.sequence > table.sequence:
                table.sequence = event.sequence
                self._run(table, self._on_event, (message.match_id, message.seat, plain.event_from(event)))

    def _match_over(self, message: pb.MatchOver) -> None:
        table = self._tables.get(message.match_id)
        if table is None:
            return
        if table.busy:
            table.backlog.append(lambda: self._match_over(message))
            return
        del self._tables[message.match_id]
        if table.asking is not None:
            table.asking.cancel()
        result = plain.result_from(message, table.game)
        log.info("match %s is over: %s, totals %s", result.match_id, result.reason, result.totals)
        self._run(table, self._on_over, (result,), lambda: self._count(result))

    def _count(self, result: Result) -> None:
        if result.reason == "not_started":
            self._taken -= 1
            return
        self._results.append(result)
        self._over += 1
        if self._matches is not None and self._over >= self._matches and not self.done.done():
            self.done.set_result(list(self._results))

    # How the agent is called.

    def _placed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a method so that calling it runs it where the agent wants it."""
        thread = self._thread
        if thread is None or inspect.iscoroutinefunction(method):
            return method
        return lambda *args: thread.submit(method, *args)

    def _hook(self, name: str) -> Callable[..., Any] | None:
        method = getattr(self._agent, name)
        if getattr(method, "__func__", None) is getattr(Agent, name):
            return None  # not written: not called
        return self._placed(method)

    def _run(
        self,
        table: _Table,
        hook: Callable[..., Any] | None,
        args: tuple[Any, ...],
        then: Callable[[], None] | None = None,
    ) -> None:
        """Calls a hook, then something else; in the background and in order if it takes its time."""
        if table.busy:
            table.backlog.append(lambda: self._run(table, hook, args, then))
            return
        result = hook(*args) if hook is not None else None
        if inspect.isawaitable(result):
            table.busy = True
            self._spawn(self._finish(table, result, then))
        elif then is not None:
            then()

    async def _finish(self, table: _Table, result: Awaitable[Any], then: Callable[[], None] | None) -> None:
        try:
            await result
            if then is not None:
                then()
            table.busy = False
            while table.backlog and not table.busy:
                table.backlog.popleft()()
        except Exception as error:
            self.fail(error)
        self._wake.set()

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._loop.create_task(work)
        self._tasks.add(task)  # the loop alone would let go of it
        task.add_done_callback(self._tasks.discard)
        return task

    def _send(self, item: pb.ClientItem) -> None:
        if self.welcomed.is_set():
            self.outbox.add(item, self._clock())
