"""Tournaments in a hall without a network, and cups to play there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from referee_server.director.executor import Entry, Executor, Offer, Order, Played, Player
from referee_server.director.local import LocalExecutor
from referee_server.director.tournaments import Tournaments
from referee_server.journal import Journal
from referee_server.tables.hall import Hall
from referee_server.tournament.book import Book
from referee_server.tournament.model import Outcome
from tables.fake_clock import FakeClock
from tables.kit import Bytes, Room

SEED = "00" * 31 + "01"


def cup(*bots: str, extra: str = "", game: str = "high_card", seed: str | None = SEED, **parts: str) -> str:
    """Returns the file of a tournament between house bots; `parts` are tables of it, such as `format`."""
    lines = ['name = "cup"', f'game = "{game}"']
    if seed is not None:
        lines.append(f'seed = "{seed}"')
    lines += [f"[{part}]\n{text}" for part, text in parts.items()]
    lines += [f'[[entrant]]\nname = "e{n}"\nbot = "{bot}"' for n, bot in enumerate(bots)]
    return "\n".join([*lines, extra])


class _Watched(Tournaments):
    """Tournaments that tell what they reveal."""

    def __init__(self, revealed: list[str], hall: Hall, random_bytes: Bytes, make: Callable[[Book], Executor]) -> None:
        super().__init__(hall, random_bytes, make)
        self._told = revealed

    still_at_play: frozenset[str] = frozenset()

    def begun(self, match_ids: Sequence[str]) -> set[str]:
        return super().begun(match_ids) | (self.still_at_play & set(match_ids))

    async def reveal(self, match_ids: Sequence[str]) -> None:
        self._told += match_ids
        await super().reveal(match_ids)


class Club:
    """A hall with its tournaments."""

    def __init__(self, journal: Journal | None = None, make: Callable[[Book], Executor] | None = None) -> None:
        self.room = Room(journal, FakeClock())
        self.hall = self.room.hall
        self.journal = self.room.journal
        self.revealed: list[str] = []
        self.tournaments = _Watched(
            self.revealed, self.hall, Bytes(b"club"), make or (lambda book: LocalExecutor(self.hall))
        )

    async def play(self, toml: str) -> Book:
        """Plays a tournament to its end."""
        tournament_id = await self.tournaments.create(toml)
        self.tournaments.start(tournament_id)
        async with asyncio.timeout(60):
            await self.tournaments.wait(tournament_id)
        return self.tournaments.book(tournament_id)

    async def close(self) -> None:
        await self.tournaments.close()
        await self.room.close()


class Stand:
    """An executor that plays nothing: a test says what comes of each table, and when."""

    def __init__(self) -> None:
        self.orders: dict[int, Order] = {}
        self.cancelled: list[str] = []
        self.at_once = 0
        self.closed = False
        self._results: dict[int, asyncio.Future[Outcome]] = {}

    async def prepare(self, players: Sequence[Player], offer: Offer | None) -> tuple[Entry, ...]:
        return (Entry(),) * len(players)

    async def play(self, batch: Sequence[Order]) -> AsyncGenerator[Played, None]:
        for order in batch:
            self.orders[order.key.number] = order
            self._results[order.key.number] = asyncio.get_running_loop().create_future()
        self.at_once = max(self.at_once, len(self.open))
        waiting = {self._results[order.key.number]: order for order in batch}
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for result in done:
                yield Played(waiting.pop(result).key, result.result())

    async def cancel(self, match_ids: Sequence[str]) -> None:
        self.cancelled += match_ids
        for number in self.open:
            if self.orders[number].match_id in match_ids:
                self.end(number, "cancelled")

    async def close(self) -> None:
        self.closed = True

    @property
    def open(self) -> list[int]:
        """Tables at play."""
        return [number for number, result in self._results.items() if not result.done()]

    def end(self, number: int, reason: str = "completed", places: tuple[int, ...] = ()) -> None:
        """Ends a table: by default whoever has the lower number wins."""
        order = self.orders[number]
        seats = order.table.seats
        ranked = places or tuple(1 + sum(other < mine for other in seats) for mine in seats)
        scored = reason in ("completed", "forfeited")
        outcome = Outcome(
            table=order.table,
            match_id=order.match_id,
            reason=reason,
            sides=tuple(range(len(seats))),
            totals=tuple(10 - place for place in ranked) if scored else (),
            places=ranked if scored else (),
            faults=tuple({} for _ in seats),
            substituted=(0,) * len(seats),
            losses=("",) * len(seats),
            deals=(),
        )
        self._results[number].set_result(outcome)


async def settle() -> None:
    """Lets everything happen that follows by itself."""
    for _ in range(30):
        await asyncio.sleep(0)
