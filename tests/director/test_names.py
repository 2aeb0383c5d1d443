"""Names of programs, where agents of the same name come at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from director.kit import Club, cup
from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import match_pb2
from referee_server.agents.local import LocalAgents
from referee_server.director.executor import Order, TableKey
from referee_server.director.orders import player_of
from referee_server.director.programs import LocalPrograms, Place
from referee_server.journal import AgentRow, Journal, MemoryJournal, SqliteJournal
from referee_server.match.errors import RefusedError
from referee_server.rpc.gate import Caller, Gate
from referee_server.tournament.book import Book
from referee_server.tournament.model import Table
from tables.kit import Bytes

NAME = "sly"
PROGRAM = f'[[entrant]]\nname = "{NAME}"\ncommand = ["/there/is/no/such/program"]'


class House:
    """A hall with a tournament, one of whose entrants is a program, and a door for agents that come by themselves."""

    def __init__(self, journal: Journal, folder: Path) -> None:
        self.club = Club(journal)
        self.hall = self.club.hall
        self.gate = Gate(self.hall, "0" * 64, Bytes(b"gate"), open_registration=True)
        self._agents = LocalAgents()
        self._folder = folder

    async def open(self) -> None:
        tournament_id = await self.club.tournaments.create(cup("first", extra=PROGRAM))
        self._book = self.club.tournaments.book(tournament_id)
        place = Place(self._folder, self._folder, "127.0.0.1:1")
        self._programs = LocalPrograms(self.hall, self._book.cup, tournament_id, self._agents, place)

    async def program(self) -> str:
        """Brings the program to a table; returns the id of the agent that it is."""
        return (await self._programs.seat(order_of(self._book), 0)).agent_id

    async def stranger(self) -> AgentRow | RefusedError:
        """Says Hello under the name of the program."""
        try:
            return await self.gate.admit(Caller(credential_hash=b"s" * 32), NAME)
        except RefusedError as refused:
            return refused

    async def close(self) -> None:
        await self._programs.close()
        await self._agents.close()
        await self.club.close()


def order_of(book: Book) -> Order:
    return Order(
        key=TableKey(book.tournament_id, 0, 0, 1),
        table=Table(0, 1, 0, 0, (1, 0)),
        match_id="m" * 26,
        deal_id="deal",
        secret=bytes(32),
        unsealed=False,
        held_back=False,
        spec=match_pb2.MatchSpec().SerializeToString(),
        players=(player_of(book, 1), player_of(book, 0)),
        commitment="",
        nonces=(),
        trust_memory=False,
    )


@pytest.fixture(params=["memory", "sqlite"])
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[House]:
    journal = MemoryJournal() if request.param == "memory" else SqliteJournal(tmp_path / "journal.db")
    made = House(journal, tmp_path)
    await made.open()
    yield made
    await made.close()
    journal.close()


async def test_a_stranger_that_comes_just_after_a_program_of_its_name_is_refused_it(house: House) -> None:
    agent_id, stranger = await asyncio.gather(house.program(), house.stranger())
    assert isinstance(stranger, RefusedError)
    assert stranger.reason == reason_pb.ERROR_REASON_NAME_TAKEN
    assert [(row.agent_id, row.name) for row in house.hall.journal.agents()] == [(agent_id, NAME)]
    assert house.hall.committer.failed is None


async def test_a_program_that_comes_just_after_a_stranger_of_its_name_gets_another(house: House) -> None:
    stranger, agent_id = await asyncio.gather(house.stranger(), house.program())
    assert isinstance(stranger, AgentRow)
    rows = {row.agent_id: row.name for row in house.hall.journal.agents()}
    assert rows == {stranger.agent_id: NAME, agent_id: f"{NAME} #2"}
    assert house.hall.committer.failed is None
