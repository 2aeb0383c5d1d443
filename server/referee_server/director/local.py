"""The executor of one process: tables are matches of the hall in the same event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol

import structlog

from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import event_pb2, match_pb2
from referee_server.director.executor import ExecutorError, Order, Played, Player
from referee_server.journal import LogError as DamageError
from referee_server.match.errors import RefusedError
from referee_server.match.verify import LogError, parse
from referee_server.tables.creation import Origin
from referee_server.tables.hall import Hall
from referee_server.tables.revealing import ENDED
from referee_server.tournament.harvest import outcome_of
from referee_server.tournament.model import Outcome

_log = structlog.get_logger(__name__)

_STORAGE_LOOK_S: Final = 0.2
_NOT_NOW: Final = (reason_pb.ERROR_REASON_STORAGE, reason_pb.ERROR_REASON_DRAINING)


class StartError(Exception):
    """A program did not come to play; the message is what is known of the cause.

    Attributes:
        player: whose program it is.
        kind: the kind of fault, such as `crash` or `no_show`.
    """

    def __init__(self, player: Player, kind: str, message: str) -> None:
        super().__init__(message)
        self.player = player
        self.kind = kind


class Programs(Protocol):
    """Programs of entrants, as the executor needs them."""

    def tiers(self) -> dict[int, str]:
        """Returns how the program of each entrant that has one is kept apart from the machine.

        Raises:
            ExecutorError: it cannot be kept apart as asked.
        """

    async def seat(self, player: Player, match_id: str) -> str:
        """Returns the id of an agent that plays for an entrant, connected, until `free`.

        Raises:
            StartError: the program did not come.
        """

    async def free(self, player: Player, match_id: str, *, failed: bool) -> str:
        """Takes note that a match has ended; returns the last of what the program printed, if something failed."""

    async def close(self) -> None:
        """Ends all programs."""


class LocalExecutor:
    """Plays tables in the hall of this process.

    Args:
        hall: where.
        programs: programs of entrants; None where the referee starts none.
    """

    def __init__(self, hall: Hall, programs: Programs | None = None) -> None:
        self._hall = hall
        self._programs = programs
        self._ends: dict[str, asyncio.Future[None]] = {}
        hall.on_ended.append(self._ended)

    async def prepare(self, players: Sequence[Player]) -> tuple[str, ...]:
        """See `Executor.prepare`."""
        tiers: dict[int, str] = {}
        if any(player.kind == "program" for player in players):
            if self._programs is None:
                raise ExecutorError("this referee starts no programs; let the entrants connect by themselves")
            tiers = self._programs.tiers()
        for player in players:
            if player.kind == "agent":
                await self._connected(player.name)
        return tuple(tiers.get(player.entrant, "") for player in players)

    async def _connected(self, name: str) -> None:
        said = False
        while True:
            with contextlib.suppress(RefusedError):
                if self._hall.session_of(self._hall.find_agent(name).agent_id) is not None:
                    return
            if not said:
                _log.info("waiting_for_agent", agent=name)
                said = True
            await self._hall.somebody_came()

    async def play(self, batch: Sequence[Order]) -> AsyncGenerator[Played, None]:
        """See `Executor.play`."""
        tasks = [asyncio.ensure_future(self._play(order)) for order in batch]
        try:
            for next_one in asyncio.as_completed(tasks):
                yield await next_one
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _play(self, order: Order) -> Played:
        row = self._hall.journal.match(order.match_id)
        if row is None or row.state not in ENDED:
            seated: list[Player] = []
            try:
                if self._programs is not None:
                    agents = await self._seat_programs(order, seated)
                else:
                    agents = {}
                await self._open(order, agents)
                await self._end_of(order.match_id)
            except StartError as error:
                return self._not_started(order, error)
            finally:
                notes = await self._free_programs(order, seated)
        else:
            notes = {}
        return self._harvest(order, notes)

    async def _seat_programs(self, order: Order, seated: list[Player]) -> dict[int, str]:
        """Brings the programs of a table in; returns their agents by seat."""
        assert self._programs is not None
        agents = {}
        for seat, player in enumerate(order.players):
            if player.kind == "program":
                seated.append(player)
                agents[seat] = await self._programs.seat(player, order.match_id)
        return agents

    async def _free_programs(self, order: Order, seated: Sequence[Player]) -> dict[int, str]:
        notes = {}
        if self._programs is not None:
            for player in seated:
                failed = self._failed(order.match_id, order.players.index(player))
                said = await self._programs.free(player, order.match_id, failed=failed)
                if said:
                    notes[player.entrant] = said
        return notes

    def _failed(self, match_id: str, seat: int) -> bool:
        row = self._hall.journal.match(match_id)
        result = match_pb2.Match.FromString(row.summary).result if row is not None else match_pb2.MatchResult()
        return seat < len(result.fault_counts) and result.fault_counts[seat] > 0

    async def _open(self, order: Order, agents: dict[int, str]) -> None:
        asked = match_pb2.MatchSpec.FromString(order.spec)
        for seat, player in enumerate(order.players):
            if player.kind == "bot":
                asked.seats.add(bot=player.name, bot_seed=player.seed)
            else:
                asked.seats.add(agent=agents.get(seat, player.name))
        tournament = event_pb2.TournamentTable(
            tournament_id=order.key.tournament_id,
            commitment=order.commitment,
            held_back=order.held_back,
            board=order.key.board,
            nonces=order.nonces if order.held_back else (),
            trust_memory=order.trust_memory,
            isolation=[player.isolation for player in order.players] if agents else (),
        )
        origin = Origin(order.match_id, order.deal_id, order.secret, given=order.unsealed, tournament=tournament)
        while True:
            try:
                self._hall.create_table(asked, origin)
            except RefusedError as error:
                if error.reason not in _NOT_NOW:
                    raise ExecutorError(error.message) from None
                await asyncio.sleep(_STORAGE_LOOK_S)  # until there is space again, or the end of the process
            else:
                return

    async def _end_of(self, match_id: str) -> None:
        """Waits until a match has ended and its end is stored."""
        while match_id in self._hall.running:
            done = self._ends.get(match_id)
            if done is None:
                done = self._ends[match_id] = asyncio.get_running_loop().create_future()
            await done

    def _ended(self, match_id: str) -> None:
        done = self._ends.pop(match_id, None)
        if done is not None and not done.done():
            done.set_result(None)

    def _harvest(self, order: Order, notes: dict[int, str]) -> Played:
        match_id = order.match_id
        row = self._hall.journal.match(match_id)
        try:
            events = parse(self._hall.journal.read(match_id))
        except (DamageError, LogError) as error:
            _log.error("match_damaged", match_id=match_id)
            return Played(order.key, _nothing(order, "referee_fault"), f"its log is damaged: {error}")
        assert row is not None
        if row.state not in ENDED:
            return Played(order.key, _nothing(order, "referee_fault"), "it could not be gone on with")
        note = "\n".join(f"entrant {entrant}: {said}" for entrant, said in sorted(notes.items()))
        return Played(order.key, outcome_of(order.table, match_id, events, row.digest), note)

    def _not_started(self, order: Order, error: StartError) -> Played:
        outcome = _nothing(order, "not_started", {order.players.index(error.player): error.kind})
        return Played(order.key, outcome, str(error))

    async def cancel(self, match_ids: Sequence[str]) -> None:
        """See `Executor.cancel`."""
        for match_id in match_ids:
            with contextlib.suppress(RefusedError):
                self._hall.cancel(match_id, "the tournament has ended")
        await self._stored()

    async def reveal(self, match_ids: Sequence[str]) -> None:
        """See `Executor.reveal`."""
        for match_id in match_ids:
            try:
                self._hall.reveal(match_id)
            except (DamageError, LogError):
                _log.error("match_damaged", match_id=match_id)  # what is left of it stays as it is
        await self._stored()

    async def _stored(self) -> None:
        """Waits until what was ordered is stored, however long the storage is away."""
        stored = asyncio.Event()
        self._hall.committer.then(stored.set)
        await stored.wait()

    async def close(self) -> None:
        """See `Executor.close`."""
        self._hall.on_ended.remove(self._ended)
        if self._programs is not None:
            await self._programs.close()


def _nothing(order: Order, reason: str, faults: Mapping[int, str] = MappingProxyType({})) -> Outcome:
    """Returns the outcome of a table of which no match came about, or none that can be read.

    Args:
        order: the table.
        reason: why.
        faults: by seat, the kind of fault that kept it from starting.
    """
    seats = range(len(order.players))
    return Outcome(
        table=order.table,
        match_id=order.match_id if reason == "referee_fault" else "",
        reason=reason,
        sides=tuple(seats),
        totals=(),
        places=(),
        faults=tuple({faults[seat]: 1} if seat in faults else {} for seat in seats),
        substituted=(0,) * len(seats),
        losses=tuple(f"{faults[seat]}: not started" if seat in faults else "" for seat in seats),
        deals=(),
    )
