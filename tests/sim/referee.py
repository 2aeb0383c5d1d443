"""One run of the referee, from its start to its end or its death, on a loop of its own."""

from __future__ import annotations

import asyncio
import asyncio.events
import random
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message

from referee.v1 import event_pb2
from referee_server.director.local import LocalExecutor
from referee_server.director.tournaments import Tournaments
from referee_server.match import inputs
from referee_server.match.machine import Machine
from referee_server.rpc.gate import Gate
from referee_server.tables.hall import Hall, HallSettings
from sim.ledger import check, fingerprint
from sim.loop import SimClock, SimLoop
from sim.vault import Vault
from sim.wire import Call, handlers

if TYPE_CHECKING:
    from sim.world import World

HOST_TOKEN = "ab" * 32


class FailingMachine:
    """A machine whose next step fails when it has been half done; the one after that does not."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._failed = False

    def step(self, given: inputs.Input, now_us: int) -> list[event_pb2.MatchEvent]:
        events = self._machine.step(given, now_us)
        if not self._failed:
            self._failed = True
            raise RuntimeError("a bug in the rules")
        return events

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)


class Referee:
    """A run of the referee.

    Attributes:
        loop: its loop.
        vault: its journal.
        hall: its tables.
        muted: whether it is dead: nothing that it does counts any more.
        draining: whether it was told to end.
        closed: whether it has ended in good order.
    """

    def __init__(self, world: World, chance: random.Random, *, power: bool) -> None:
        self.world = world
        self.muted = False
        self.draining = False
        self.closed = False
        # What of a loop it lacks nobody here uses.
        self.loop = SimLoop(  # type: ignore[abstract]
            world.now_us, chance, self._error, self._in_thread, world.next_us
        )
        self.vault = Vault(world.journal, world.committed)
        self._chance = chance
        self._power = power
        asyncio.events._set_running_loop(self.loop)
        sys.set_asyncgen_hooks(finalizer=self.loop.finalize)
        clock = SimClock(self.loop, chance, 1_700_000_000 * 10**9)
        self.hall = Hall(self.vault, clock, chance.randbytes, HallSettings(durable_power=power))
        gate = Gate(self.hall, HOST_TOKEN, chance.randbytes, open_registration=True)
        self.tournaments = Tournaments(self.hall, chance.randbytes, lambda book: LocalExecutor(self.hall))
        self.handlers = handlers(self.hall, gate, self.tournaments)
        self.resumed = self.hall.start()

    def _error(self, context: dict[str, Any]) -> None:
        if not self.muted:
            error = context.get("exception")
            self.world.fail(f"{context.get('message')}: {type(error).__name__} {error}")

    def _in_thread(self, work: Callable[[], None]) -> None:
        # Waiting for the disk takes milliseconds, and now and then much longer.
        slow = self._power and self._chance.random() < 0.01
        takes_us = self._chance.randrange(200_000) if slow else self._chance.randrange(3_000)

        def do() -> None:
            if not self.muted:
                work()

        self.world.at(self.loop.now_us + takes_us, do)

    def call(self, method: str, request: Message, then: Callable[[Call, list[bytes]], None]) -> Call:
        """Makes a call as the host and hands on what it came to."""
        got: list[bytes] = []
        call: Call

        def ended() -> None:
            if not self.muted:
                then(call, got)

        call = Call(HOST_TOKEN, got.append, ended)
        return call.start(self.loop, self.handlers[method], request.SerializeToString())

    def kill(self) -> None:
        """Kills it: whatever was not committed is lost, and nobody hears from it again."""
        self.muted = True
        self.vault.gone = True
        self.loop.dispose()
        asyncio.events._set_running_loop(None)

    def drain(self, grace_s: float) -> None:
        """Ends it in good order, as the service does."""
        self.draining = True

        async def end() -> None:
            await self.tournaments.close()
            await self.hall.drain(grace_s)
            if self.hall.committer.failed is None and not self.hall.committer.stalled:
                self.compare()
            try:
                await self.hall.close()
            finally:
                self.closed = True

        task = self.loop.create_task(end())
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    @property
    def idle(self) -> bool:
        """Whether memory holds nothing that the journal does not."""
        committer = self.hall.committer
        pending = committer._pending.records or committer._task is not None or committer._scheduled
        return not pending and not committer.stalled and committer.failed is None

    def compare(self) -> None:
        """Holds every match in memory against what its committed events tell."""
        if not self.idle:
            return
        for match_id, table in self.hall.matches.running.items():
            if match_id in self.world.failed:
                continue
            told = self.world.ledger.matches[match_id]
            same = fingerprint(table.match) == fingerprint(told.match)
            check(same, f"{match_id} in memory is not what the journal tells")
