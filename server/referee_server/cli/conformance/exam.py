"""One check's examination of one agent process: what it says is taken down, and held against the protocol."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, Self

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee_games import registry
from referee_server.agents.local import LocalAgents
from referee_server.cli.conformance.agent import Agent, NotMeant, Setting, Wrong
from referee_server.cli.conformance.board import Board
from referee_server.cli.conformance.ledger import MAX_BYTES, MAX_ITEMS, Ledger, Playing
from referee_server.cli.conformance.peer import Message, Peer, Talk

PONG_S: Final = 2.0


class Exam:
    """An agent, the scripted referee it talks to, and what was said.

    Attributes:
        setting: how agents are examined.
        agent: the process.
        peer: the referee.
        talk: the stream of the agent that is open.
        hello: what it said of itself on it.
        ledger: what was said so far.
    """

    talk: Talk
    hello: pb.Hello

    def __init__(self, agents: LocalAgents, setting: Setting) -> None:
        self.setting = setting
        self.peer = Peer()
        self.ledger = Ledger()
        self._agents = agents
        self._ping_number = 0
        self._items: list[tuple[pb.ClientItem, float]] = []

    async def __aenter__(self) -> Self:
        await self.peer.start()
        self.agent = Agent(self._agents, self.setting, self.peer.address)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.peer.stop()
        await self.agent.stop()

    # Streams.

    async def stream(self, within: float, right: str) -> Talk:
        """Waits for the agent's next stream."""
        coming = asyncio.ensure_future(self.peer.talks.get())
        await asyncio.wait((coming, self.agent.watch), timeout=within, return_when=asyncio.FIRST_COMPLETED)
        if coming.done():
            self.talk = coming.result()
            self._items.clear()
            self.ledger.pings.clear()
            self.ledger.max_items, self.ledger.max_bytes = MAX_ITEMS, MAX_BYTES
            return self.talk
        coming.cancel()
        if self.agent.exit is not None:
            raise Wrong(f"its process ended {self.agent.how()}", right)
        raise Wrong(f"it did not connect within {within:g} s", right)

    async def greet(self, within: float | None = None, right: str = "connect, and begin with Hello") -> pb.Hello:
        """Waits for the next stream and its Hello, and checks it."""
        within = self.setting.start_s if within is None else within
        talk = await self.stream(within, right)
        if talk.authorization.removeprefix("Bearer ").removeprefix("bearer ") != self.agent.credential:
            raise Wrong(
                "the call does not carry the credential it was given",
                "send `authorization: Bearer CREDENTIAL` as metadata with the call",
            )
        item = await self.item(
            min(within, 10.0), "it connected and said nothing", "begin each stream with Hello, within 10 s", hello=True
        )
        if item.WhichOneof("item") != "hello":
            raise Wrong(f"its stream began with {item.WhichOneof('item')}", "begin each stream with Hello")
        self.hello = item.hello
        return self.hello

    async def connect(self, within: float | None = None, right: str = "connect, and begin with Hello") -> None:
        """Takes the next stream's Hello and welcomes the agent."""
        await self.greet(within, right)
        await self.talk.send(self.welcome())

    def welcome(self, *, max_items: int = MAX_ITEMS, max_bytes: int = MAX_BYTES) -> pb.ServerItem:
        """Returns a welcome with these limits, which hold from now on."""
        self.ledger.max_items, self.ledger.max_bytes = max_items, max_bytes
        matches = self.hello.max_matches or 1
        return pb.ServerItem(
            welcome=pb.Welcome(
                protocol_version=1,
                server_version="referee conformance",
                agent_id="0" * 20,
                name=self.agent.name,
                max_items=max_items,
                max_message_size=max_bytes,
                max_matches=matches,
                max_open_decisions=self.hello.max_open_decisions or matches,
            )
        )

    def games(self) -> list[str]:
        """Returns the games that this agent is to play."""
        named = list(self.hello.games) or registry.names()
        games = [game for game in named if not self.setting.games or game in self.setting.games]
        if not games:
            raise NotMeant(f"it plays {', '.join(named)}")
        return games

    def board(self, number: int = 0, game: str = "", allowance_ms: int | None = None) -> Board:
        """Returns a new match."""
        allowance_ms = round(self.setting.answer_s * 1_000) if allowance_ms is None else allowance_ms
        board = Board(game or self.games()[number % len(self.games())], number, allowance_ms)
        self.ledger.matches[board.match_id] = Playing(board)
        return board

    # What the agent says.

    async def item(self, within: float, what: str, right: str, *, hello: bool = False) -> pb.ClientItem:
        """Waits for the agent's next item but pongs, and checks what holds for it at any time.

        Args:
            within: how long to wait, in seconds.
            what: what is wrong if it does not come.
            right: what would be right then.
            hello: whether it has to be Hello.
        """
        until = time.monotonic() + within
        while True:
            while self._items:
                item, at = self._items.pop(0)
                self.ledger.check(item, at, hello=hello)
                return item
            message = await self._message(until - time.monotonic(), f"{what} within {within:g} s", right)
            self.ledger.check_message(message)
            for item in message.items:
                if item.HasField("pong"):
                    self.ledger.check_pong(item.pong.ping_id, message.at)
            self._items += [(item, message.at) for item in message.items if not item.HasField("pong")]

    async def _message(self, within: float, what: str, right: str) -> Message:
        coming = asyncio.ensure_future(self.talk.inbox.get())
        await asyncio.wait((coming, self.agent.watch), timeout=max(0.0, within), return_when=asyncio.FIRST_COMPLETED)
        if not coming.done() and self.agent.exit is not None:
            # What it said last may still be on its way through the loop.
            await asyncio.wait((coming,), timeout=0.5)
        if coming.done():
            message = coming.result()
            if message is not None:
                return message
            await asyncio.wait((self.agent.watch,), timeout=0.5)
            if self.agent.exit is None:
                raise Wrong("it ended its stream", "keep the stream until Leave; EOF is not goodbye")
        coming.cancel()
        if self.agent.exit is not None:
            raise Wrong(f"its process ended {self.agent.how()}", f"stay until told to end; {right}")
        raise Wrong(what, right)

    async def quiet(self, seconds: float, right: str) -> None:
        """Waits while the agent is to say nothing but pongs."""
        try:
            item = await self.item(seconds, "", "")
        except Wrong as wrong:
            if wrong.what.startswith(" within"):
                return
            raise
        raise Wrong(f"it sent {item.WhichOneof('item')} unasked", right)

    # What the referee says.

    async def ping(self) -> None:
        """Sends a ping."""
        self._ping_number += 1
        self.ledger.pings[self._ping_number] = time.monotonic()
        await self.talk.send(pb.ServerItem(ping=pb.Ping(ping_id=self._ping_number)))

    async def pongs(self) -> None:
        """Waits until every ping has been answered, and checks that this was soon."""
        right = f"answer each Ping at once, also while thinking: within {PONG_S:g} s"
        until = time.monotonic() + PONG_S
        while self.ledger.pings:
            message = await self._message(until - time.monotonic(), f"no Pong within {PONG_S:g} s", right)
            for item in message.items:
                if item.HasField("pong"):
                    self.ledger.check_pong(item.pong.ping_id, message.at)
                else:
                    self._items.append((item, message.at))
        if self.ledger.slowest_pong_s > PONG_S:
            raise Wrong(f"a Ping was answered after {self.ledger.slowest_pong_s:.1f} s", right)

    def put(self, board: Board) -> pb.ServerItem | None:
        """Returns the board's next question, or the open one again, and takes down that it was put."""
        question = board.ask()
        if question is not None:
            playing = self.ledger.matches[board.match_id]
            number = question.decision.decision_id
            playing.asks[number] = playing.asks.get(number, 0) + 1
            playing.put_at.setdefault(number, time.monotonic())
        return question

    async def offer(self, *boards: Board) -> None:
        """Offers matches and waits until the agent is ready for all of them."""
        await self.talk.send(*(board.offer() for board in boards))
        while not all(board.ready for board in boards):
            await self.item(
                self.setting.start_s, "no Ready for a match that was offered", "answer MatchOffered by Ready"
            )

    async def answer(self, board: Board) -> str:
        """Waits for the answer to the open decision of a match and returns its action."""
        assert board.asked is not None
        number = board.asked.decision_id
        while True:
            item = await self.item(
                self.setting.answer_s, f"no answer to decision {number}", "answer each decision within its time"
            )
            answer = item.answer
            if item.HasField("answer") and (answer.match_id, answer.decision_id) == (board.match_id, number):
                return answer.action

    async def play(
        self, *boards: Board, most: int | None = None, along: Callable[[Board], list[pb.ServerItem]] | None = None
    ) -> None:
        """Plays matches at once to their end, or until each had `most` decisions.

        Args:
            boards: the matches; the agent is ready for them.
            most: how many decisions of each at most.
            along: what is sent with each question besides.
        """
        going = {board.match_id: board for board in boards}
        due = list(boards)
        while going:
            items: list[pb.ServerItem] = []
            for board in due:
                question = None if most is not None and board.decisions >= most else self.put(board)
                if question is not None:
                    items += [*(along(board) if along is not None else ()), question]
                else:
                    del going[board.match_id]
                    if board.over:
                        items.append(board.end())
            for start in range(0, len(items), MAX_ITEMS):
                await self.talk.send(*items[start : start + MAX_ITEMS])
            due = []
            while going and not due:
                item = await self.item(
                    self.setting.answer_s, "no answer to a decision", "answer each decision within its time"
                )
                found = going.get(item.answer.match_id) if item.HasField("answer") else None
                if found is not None and found.asked is not None and found.asked.decision_id == item.answer.decision_id:
                    await self.talk.send(found.answer(item.answer.action))
                    due.append(found)

    def cut(self) -> None:
        """Cuts the stream as a failing network does."""
        self.talk.end(reason_pb.ERROR_REASON_BUSY, "cut by the conformance test")
