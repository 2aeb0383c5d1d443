"""Programs that are brought to tables and taken away again: which process plays what."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from director.kit import Club, cup, settle
from director.test_names import PROGRAM, order_of
from referee_server.agents.fleet import Mark
from referee_server.agents.local import LocalAgents
from referee_server.director import programs as room
from referee_server.director.programs import LocalPrograms, Place


class Process:
    async def mark(self) -> Mark:
        return Mark("process", 0)

    async def output_since(self, mark: Mark) -> str:
        return ""


class SlowToEnd:
    """A fleet whose processes come at once, and go when a test lets them."""

    def __init__(self, *_: object, **__: object) -> None:
        self.started: list[str] = []
        self.running: set[str] = set()
        self.may_end = asyncio.Event()

    async def start(self, _program: object, key: str, _env: object, **_: object) -> Process:
        assert key not in self.running
        self.started.append(key)
        self.running.add(key)
        return Process()

    async def stop(self, key: str) -> None:
        if key in self.running:
            await self.may_end.wait()
            self.running.discard(key)

    async def close(self) -> None:
        self.running.clear()


class Seats:
    """A program's seats at tables with numbers."""

    def __init__(self, programs: LocalPrograms, fleet: SlowToEnd, book: Any) -> None:
        self.fleet = fleet
        self._programs = programs
        self._book = book

    def _order(self, number: int) -> Any:
        return replace(order_of(self._book), match_id=f"{number:026d}")

    async def take(self, number: int) -> str:
        return (await self._programs.seat(self._order(number), 0)).agent_id

    async def leave(self, number: int) -> None:
        await self._programs.free(self._order(number), 0, failed=False)


@pytest.fixture
async def seats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Seats]:
    fleet = SlowToEnd()
    monkeypatch.setattr(room, "Fleet", lambda *_, **__: fleet)
    club = Club()
    tournament_id = await club.tournaments.create(cup("first", extra=PROGRAM))
    book = club.tournaments.book(tournament_id)
    agents = LocalAgents()
    programs = LocalPrograms(club.hall, book.cup, tournament_id, agents, Place(tmp_path, tmp_path, "127.0.0.1:1"))
    yield Seats(programs, fleet, book)
    await programs.close()
    await agents.close()
    await club.close()


async def test_a_process_that_is_about_to_end_is_given_to_no_other_table(seats: Seats) -> None:
    first = await seats.take(1)
    going = asyncio.ensure_future(seats.leave(1))
    await settle()
    second = await seats.take(2)
    assert second != first
    assert len(seats.fleet.started) == 2
    seats.fleet.may_end.set()
    await going
    assert seats.fleet.running == {seats.fleet.started[1]}


async def test_once_it_has_ended_the_next_table_gets_a_new_process_for_the_same_agent(seats: Seats) -> None:
    seats.fleet.may_end.set()
    first = await seats.take(1)
    await seats.leave(1)
    assert await seats.take(2) == first
    assert len(seats.fleet.started) == 2


async def test_where_nobody_waited_for_its_end_the_next_table_does(seats: Seats) -> None:
    await seats.take(1)
    going = asyncio.ensure_future(seats.leave(1))
    await settle()
    going.cancel()
    await asyncio.wait([going])
    coming = asyncio.ensure_future(seats.take(2))
    await settle()
    assert len(seats.fleet.started) == 1
    seats.fleet.may_end.set()
    await coming
    assert len(seats.fleet.started) == 2
