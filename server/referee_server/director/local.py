"""The executor of one process: tables are matches of the hall in the same event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import structlog

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import event_pb2, match_pb2
from referee_server.director.executor import Entry, ExecutorError, Offer, Order, Played, Player
from referee_server.journal import LogError as DamageError
from referee_server.match.errors import RefusedError
from referee_server.match.verify import LogError, parse
from referee_server.tables.creation import Origin
from referee_server.tables.hall import Hall
from referee_server.tables.revealing import ENDED, end_digest
from referee_server.tournament.harvest import outcome_of
from referee_server.tournament.model import Outcome

_log = structlog.get_logger(__name__)

_STORAGE_LOOK_S: Final = 0.2
_NOT_NOW: Final = (reason_pb.ERROR_REASON_STORAGE, reason_pb.ERROR_REASON_DRAINING)


@dataclass(frozen=True, slots=True)
class Seated:
    """A program at a seat.

    Attributes:
        agent_id: the agent that it plays as.
        failure: why it did not come, in words; empty if it is there.
    """

    agent_id: str
    failure: str = ""


class Programs(Protocol):
    """Programs of entrants, as the executor needs them."""

    def tiers(self) -> dict[int, str]:
        """Returns how the program of each entrant that has one is kept apart from the machine.

        Raises:
            ExecutorError: it cannot be kept apart as asked.
        """

    async def seat(self, order: Order, seat: int) -> Seated:
        """Brings a program to a seat, connected until `free`, or says why it does not come."""

    async def free(self, order: Order, seat: int, *, failed: bool) -> str:
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
        self._tiers: dict[int, str] = {}
        hall.on_ended.append(self._ended)

    async def prepare(self, players: Sequence[Player], offer: Offer | None) -> tuple[Entry, ...]:
        """See `Executor.prepare`."""
        if any(player.kind == "program" for player in players):
            if self._programs is None:
                raise ExecutorError("this referee starts no programs; let the entrants connect by themselves")
            self._tiers = self._programs.tiers()
        agents = [player.name for player in players if player.kind == "agent"]
        ids = [await self._connected(name) for name in agents]
        nonces: dict[str, bytes] = {}
        if offer is not None:
            # Only now that all are there: none of them is to know how long the others have known the commitment.
            told = agent_pb.TournamentOffered(
                tournament_id=offer.tournament_id, name=offer.name, game=offer.game, commitment=offer.commitment
            )
            found = await asyncio.gather(*(self._hall.entering.nonce(agent_id, told) for agent_id in ids))
            nonces = dict(zip(agents, found, strict=True))
        return tuple(
            Entry(self._tiers.get(player.entrant, ""), nonces.get(player.name, b"") if player.kind == "agent" else b"")
            for player in players
        )

    async def _connected(self, name: str) -> str:
        """Waits until an agent is there; returns its id."""
        said = False
        while True:
            with contextlib.suppress(RefusedError):
                agent_id = self._hall.roster.find(name).agent_id
                if self._hall.presence.session_of(agent_id) is not None:
                    return agent_id
            if not said:
                _log.info("waiting_for_agent", agent=name)
                said = True
            await self._hall.presence.somebody_came()

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
        if row is not None and row.state in ENDED:
            return self._harvest(order, {})
        seated: dict[int, Seated] = {}
        try:
            await self._seat_programs(order, seated)
            await self._open(order, seated)
            await self._end_of(order.match_id)
        finally:
            said = await self._free_programs(order, seated)
        return self._harvest(order, said)

    async def _seat_programs(self, order: Order, seated: dict[int, Seated]) -> None:
        """Brings the programs of a table in, taking note of them one by one."""
        for seat, player in enumerate(order.players):
            if player.kind == "program" and self._programs is not None:
                seated[seat] = Seated("")
                seated[seat] = await self._programs.seat(order, seat)

    async def _free_programs(self, order: Order, seated: Mapping[int, Seated]) -> dict[int, str]:
        """Takes the programs away; returns by seat what there is to say of those that failed."""
        said: dict[int, str] = {}
        if self._programs is None:
            return said
        for seat, program in seated.items():
            printed = await self._programs.free(order, seat, failed=self._failed(order.match_id, seat))
            if program.failure or printed:
                said[seat] = program.failure or printed
        return said

    def _failed(self, match_id: str, seat: int) -> bool:
        row = self._hall.journal.match(match_id)
        result = match_pb2.Match.FromString(row.summary).result if row is not None else match_pb2.MatchResult()
        return seat < len(result.fault_counts) and result.fault_counts[seat] > 0

    async def _open(self, order: Order, seated: Mapping[int, Seated]) -> None:
        asked = match_pb2.MatchSpec.FromString(order.spec)
        for seat, player in enumerate(order.players):
            if player.kind == "bot":
                asked.seats.add(bot=player.name, bot_seed=player.seed)
            else:
                asked.seats.add(agent=seated[seat].agent_id if seat in seated else player.name)
        tournament = event_pb2.TournamentTable(
            tournament_id=order.key.tournament_id,
            commitment=order.commitment,
            held_back=order.held_back,
            board=order.key.board,
            nonces=order.nonces if order.held_back else (),
            trust_memory=order.trust_memory,
            isolation=[self._tiers.get(player.entrant, "") for player in order.players] if seated else (),
        )
        origin = Origin(order.match_id, order.deal_id, order.secret, given=order.unsealed, tournament=tournament)
        while True:
            try:
                self._hall.matches.create_table(asked, origin)
            except RefusedError as error:
                if error.reason not in _NOT_NOW:
                    raise ExecutorError(error.message) from None
                await asyncio.sleep(_STORAGE_LOOK_S)  # until there is space again, or the end of the process
            else:
                break
        self._hall.matches.wake(order.match_id)
        for program in seated.values():
            if program.failure:
                self._hall.absent(order.match_id, program.agent_id)

    async def _end_of(self, match_id: str) -> None:
        """Waits until a match has ended and its end is stored."""
        while match_id in self._hall.matches.running:
            done = self._ends.get(match_id)
            if done is None:
                done = self._ends[match_id] = asyncio.get_running_loop().create_future()
            await done

    def _ended(self, match_id: str) -> None:
        done = self._ends.pop(match_id, None)
        if done is not None and not done.done():
            done.set_result(None)

    def _harvest(self, order: Order, said: Mapping[int, str]) -> Played:
        """Returns what came of a table. `said`: by seat, what there is to say of programs that failed."""
        match_id = order.match_id
        row = self._hall.journal.match(match_id)
        if row is None or row.state not in ENDED:
            return Played(order.key, _unreadable(order))  # the journal did not take it, and it was let go
        try:
            records = self._hall.journal.read(match_id)
            events = parse(records)
        except (DamageError, LogError) as error:
            _log.error("match_damaged", match_id=match_id, error=str(error))
            return Played(order.key, _unreadable(order))
        outcome = outcome_of(order.table, match_id, events, end_digest(match_id, records))
        if said:
            outcome = replace(outcome, said=tuple(said.get(seat, "") for seat in range(len(order.players))))
        return Played(order.key, outcome)

    async def cancel(self, match_ids: Sequence[str]) -> None:
        """See `Executor.cancel`."""
        for match_id in match_ids:
            with contextlib.suppress(RefusedError):
                self._hall.matches.cancel(match_id, "the tournament has ended")

    async def close(self) -> None:
        """See `Executor.close`."""
        self._hall.on_ended.remove(self._ended)
        if self._programs is not None:
            await self._programs.close()


def _unreadable(order: Order) -> Outcome:
    """Returns the outcome of a table whose match cannot be read, or gone on with: nobody's fault but the referee's."""
    nothing: tuple[dict[str, int], ...] = tuple({} for _ in order.players)
    return Outcome(
        table=order.table,
        match_id=order.match_id,
        reason="referee_fault",
        sides=tuple(range(len(nothing))),
        totals=(),
        places=(),
        faults=nothing,
        substituted=(0,) * len(nothing),
        losses=("",) * len(nothing),
        deals=(),
    )
