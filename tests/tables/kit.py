"""A hall without a network around it: agents are objects, time is a number, randomness is counted out."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from match.driver import spec_of
from referee.v1 import agent_service_pb2 as pb
from referee.v1 import event_pb2, match_pb2
from referee_server.journal import AgentAdded, Journal, MemoryJournal, StorageError
from referee_server.match import inputs
from referee_server.match.names import fold_name
from referee_server.match.verify import Report, parse, verify
from referee_server.tables.hall import Hall, HallSettings
from referee_server.tables.session import Session
from referee_server.tables.table import Table
from tables.fake_clock import FakeClock

MS = 1_000
S = 1_000_000
GIVEN = bytes(range(32))
GAME = "high_card"

Spec = match_pb2.MatchSpec


class Bytes:
    """A generator of bytes that are always the same ones."""

    def __init__(self, seed: bytes = b"") -> None:
        self._seed = seed
        self._calls = 0

    def __call__(self, count: int) -> bytes:
        self._calls += 1
        data = b""
        while len(data) < count:
            data += sha256(self._seed + b"%d/%d" % (self._calls, len(data))).digest()
        return data[:count]


def duel(*seats: str, **fields: Any) -> Spec:
    """Returns a match of the smallest game there is."""
    return spec_of(GAME, *(seats or ("anna", "bert")), **fields)


class Player:
    """One stream of one agent. What it was sent is in `got`; it says only what a test has it say."""

    def __init__(self, room: Room, session: Session) -> None:
        self.session = session
        self.got: list[pb.ServerItem] = []
        self.unanswered: deque[pb.Decision] = deque()
        self._room = room
        self._reader = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        while items := await self.session.next_items():
            self.got += items
            self.unanswered += [item.decision for item in items if item.HasField("decision")]

    def of(self, kind: str, match_id: str = "") -> list[Any]:
        """Returns what it was sent of one kind."""
        found = [getattr(item, kind) for item in self.got if item.WhichOneof("item") == kind]
        return [one for one in found if not match_id or one.match_id == match_id]

    def kinds(self) -> list[str | None]:
        return [item.WhichOneof("item") for item in self.got]

    @property
    def question(self) -> Any:
        """The question it was sent last."""
        return self.of("decision")[-1]

    def ready(self, match_id: str, nonce: bytes = b"") -> None:
        table = self.session.tables[match_id]
        table.feed(inputs.Ready(table.seats_of(self.session.agent_id)[0], nonce))

    def answer(
        self, action: str | None = None, *, question: Any = None, at_us: int | None = None, **fields: Any
    ) -> None:
        """Answers its last question, by default with the first legal action."""
        asked = question if question is not None else self.question
        if asked in self.unanswered:
            self.unanswered.remove(asked)
        text = asked.legal[0] if action is None else action
        fields = {"match_id": asked.match_id, "decision_id": asked.decision_id, "action": text, **fields}
        received_us = self._room.clock.now_us() if at_us is None else at_us
        self.session.tables[asked.match_id].answer(self.session, pb.Answer(**fields), received_us, lambda: True)

    def gone(self) -> None:
        """Its stream is lost."""
        self._room.hall.detach(self.session)
        self.session.finish()

    def leave(self) -> None:
        self._room.hall.leave(self.session)
        self.session.finish()

    def events(self, match_id: str) -> list[event_pb2.MatchEvent]:
        """Returns all events it was sent of a match, in the order in which they came."""
        return [event for piece in self.of("events", match_id) for event in piece.events]

    async def stop(self) -> None:
        self._reader.cancel()
        await asyncio.wait((self._reader,))


class Room:
    """A hall with its journal and clock, and those who play there."""

    def __init__(
        self,
        journal: Journal | None = None,
        clock: FakeClock | None = None,
        settings: HallSettings | None = None,
        seed: bytes = b"",
    ) -> None:
        self.journal = journal or MemoryJournal()
        self.clock = clock or FakeClock()
        self.hall = Hall(self.journal, self.clock, Bytes(seed), settings)
        self.players: list[Player] = []

    def register(self, *names: str) -> None:
        for name in names:
            if self.journal.agent(f"id-{name}") is None:
                self.journal.commit(
                    [AgentAdded(f"id-{name}", name, fold_name(name), sha256(name.encode()).digest(), 0)]
                )

    async def connect(self, name: str, positions: dict[str, int] | None = None, **hello: Any) -> Player:
        """Brings an agent in, registered if it is new."""
        self.register(name)
        said = pb.Hello(protocol_version=1, name=name, **hello)
        for match_id, after in (positions or {}).items():
            said.positions.add(match_id=match_id, after_sequence=after)
        session = Session(f"id-{name}", name, said, self.clock.now_us())
        player = Player(self, session)
        self.players.append(player)
        await self.hall.attach(session)
        await self.quiet()
        return player

    async def quiet(self) -> None:
        """Waits until everything that follows by itself has happened."""
        for _ in range(3):
            with contextlib.suppress(StorageError):
                await self.hall.committer.settled()
            for _ in range(8):
                await asyncio.sleep(0)

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not true():
                await self.quiet()

    async def pass_time(self, us: int) -> None:
        self.clock.advance(us)
        await self.quiet()

    async def started(self, spec: Spec, *players: Player, request_id: str = "") -> str:
        """Creates a match and lets its players be ready."""
        match_id = self.hall.matches.create(spec, request_id)
        await self.quiet()
        for player in players:
            player.ready(match_id)
        await self.quiet()
        return match_id

    async def play_out(self, *match_ids: str, think_us: int = 1_000) -> None:
        """Lets every agent answer at once what it is asked, until these matches are over."""
        async with asyncio.timeout(5):
            while any(match_id in self.hall.matches.running for match_id in match_ids):
                for player in self.players:
                    while player.unanswered:
                        asked = player.unanswered.popleft()
                        if asked.match_id in player.session.tables:
                            self.clock.advance(think_us)
                            player.answer(question=asked)
                await self.quiet()

    def table(self, match_id: str) -> Table:
        return self.hall.matches.running[match_id]

    def log(self, match_id: str) -> list[event_pb2.MatchEvent]:
        return parse(self.journal.read(match_id))

    def of_log(self, match_id: str, kind: str) -> list[Any]:
        """Returns the payloads of one kind that a match's log has."""
        return [getattr(event, kind) for event in self.log(match_id) if event.WhichOneof("payload") == kind]

    def check(self, match_id: str) -> Report:
        """Verifies what is stored of a match."""
        return verify(self.log(match_id))

    async def close(self) -> None:
        for player in self.players:
            await player.stop()
