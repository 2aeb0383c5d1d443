"""The programs of a tournament's entrants: brought to a table when it is their turn, and taken away again.

An entrant has as many copies of its program as its tables at play need. Each copy has a credential of its own, kept in
the data folder, so that a match that was interrupted finds its agents again.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import structlog

from referee.v1 import match_pb2
from referee_server.agents.fleet import Fleet, Mark, Program, Running, StartFailure
from referee_server.agents.isolation import Probe, Tier, probe
from referee_server.agents.limits import Limits
from referee_server.agents.local import Exit, LocalAgents
from referee_server.agents.outputs import store_output
from referee_server.director.executor import ExecutorError, Order
from referee_server.director.local import Seated
from referee_server.match.names import MAX_LENGTH
from referee_server.tables.credentials import hash_credential
from referee_server.tables.hall import Hall
from referee_server.tournament.cup import Cup

_log = structlog.get_logger(__name__)

_SHOWN: Final = 400
"""How many characters of the end of a program's output are told with a failure."""
_TRIES: Final = 3
"""How many failed starts in a row a program has; then it is not tried again until the referee is."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where programs find the referee, and where they and what they print are kept.

    Attributes:
        data: the data folder.
        folder: where the paths of the tournament's file start from.
        address: where the referee listens.
        socket: its Unix socket, by which all programs find it then; None for none.
    """

    data: Path
    folder: Path
    address: str
    socket: Path | None = None


@dataclass(slots=True)
class _Copy:
    """One process of an entrant's, and the agent that it is."""

    key: str
    name: str
    agent_id: str
    token: str = field(repr=False)
    running: Running | None = None
    marks: dict[str, Mark | None] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class LocalPrograms:
    """Implements `Programs` with processes of this machine.

    Args:
        hall: where they play.
        cup: the tournament.
        tournament_id: its id.
        agents: the launcher; its owner closes it.
        place: where everything is.
    """

    def __init__(self, hall: Hall, cup: Cup, tournament_id: str, agents: LocalAgents, place: Place) -> None:
        self._hall = hall
        self._cup = cup
        self._place = place
        self._tokens = place.data / "agents" / tournament_id
        self._copies: dict[int, list[_Copy]] = {}
        self._failures: dict[int, list[str]] = {}
        self._probes: dict[Tier, Probe] = {
            entrant.isolation: probe(entrant.isolation) for entrant in cup.entrant if entrant.command is not None
        }
        self._lent = Path(tempfile.mkdtemp(prefix="referee-cup-"))
        agents.remove_at_end(self._lent)
        self._fleet = Fleet(
            agents,
            probes=self._probes,
            on_exit=self._on_exit,
            hidden=(place.data.resolve(),),
            start_at_once=cup.running.start_at_once,
        )
        hall.presence.on_attached.append(self._on_attached)

    def tiers(self) -> dict[int, str]:
        """See `Programs.tiers`."""
        tiers = {}
        for number, entrant in enumerate(self._cup.entrant):
            if entrant.command is not None:
                tried = self._probes[entrant.isolation]
                if not tried.works:
                    raise ExecutorError(f"entrant.{number}: isolation {entrant.isolation} does not work: {tried.why}")
                tiers[number] = tried.label
        return tiers

    async def seat(self, order: Order, seat: int) -> Seated:
        """See `Programs.seat`."""
        entrant = order.players[seat].entrant
        copy = self._choose(entrant, order.match_id)
        copy.marks[order.match_id] = None
        async with copy.lock:
            failure = await self._start(entrant, copy) if copy.running is None else ""
            if copy.running is not None:
                copy.marks[order.match_id] = await copy.running.mark()
        return Seated(copy.agent_id, failure)

    async def free(self, order: Order, seat: int, *, failed: bool) -> str:
        """See `Programs.free`."""
        entrant, match_id = order.players[seat].entrant, order.match_id
        copy = next((one for one in self._copies.get(entrant, ()) if match_id in one.marks), None)
        if copy is None:
            return ""
        said = ""
        async with copy.lock:
            try:
                mark = copy.marks[match_id]
                if copy.running is not None and mark is not None:
                    said = (await copy.running.output_since(mark)).strip()
                    if said:
                        self._keep(match_id, seat, said)
                if self._cup.is_fresh(entrant):
                    copy.running = None
                    await self._fleet.stop(copy.key)
            finally:
                # Only now another match may have this copy: before, it would be given a process that is about to end.
                del copy.marks[match_id]
        return said[-_SHOWN:] if failed else ""

    def _keep(self, match_id: str, seat: int, said: str) -> None:
        try:
            store_output(self._place.data, match_id, seat, said)
        except OSError as error:
            # The match is what counts; what a program prints beside it is not worth stopping for.
            _log.warning("output_not_kept", match_id=match_id, seat=seat, error=error.strerror)

    async def close(self) -> None:
        """See `Programs.close`."""
        self._hall.presence.on_attached.remove(self._on_attached)
        await self._fleet.close()
        await asyncio.to_thread(shutil.rmtree, self._lent, ignore_errors=True)

    # Copies.

    def _choose(self, entrant: int, match_id: str) -> _Copy:
        """Returns the copy that plays a match: the one that began it, one with room, or a new one."""
        copies = self._copies.setdefault(entrant, [])
        row = self._hall.journal.match(match_id)
        if row is not None:
            began = {seat.agent_id for seat in match_pb2.Match.FromString(row.summary).seats}
            while not any(copy.agent_id in began for copy in copies) and self._has_token(entrant, len(copies)):
                copies.append(self._copy(entrant, len(copies)))
            for copy in copies:
                if copy.agent_id in began:
                    return copy
        for copy in copies:
            if len(copy.marks) < self._room(entrant, copy):
                return copy
        copies.append(self._copy(entrant, len(copies)))
        return copies[-1]

    def _room(self, entrant: int, copy: _Copy) -> int:
        """Returns how many matches a copy can play at once."""
        session = self._hall.presence.session_of(copy.agent_id)
        return 1 if session is None or self._cup.is_fresh(entrant) else session.max_matches

    def _copy(self, entrant: int, number: int) -> _Copy:
        token = self._token(entrant, number)
        hashed = hash_credential(token)
        row = self._hall.roster.with_hash(hashed)
        if row is None:
            name = self._free_name(self._cup.entrant[entrant].name, number)
            row = self._hall.roster.register(secrets.token_hex(10), name, hashed)
        return _Copy(f"{entrant}-{number}", row.name, row.agent_id, token)

    def _free_name(self, wanted: str, number: int) -> str:
        """Returns a name that no agent has yet: the entrant's own, or that with a number."""
        for suffix in range(number, number + 100_000):
            tail = f" #{suffix + 1}" if suffix else ""
            name = wanted[: MAX_LENGTH - len(tail)] + tail
            if not self._hall.roster.has_name(name):
                return name
        raise ExecutorError(f"there are far too many agents that are called like {wanted!r}")

    def _has_token(self, entrant: int, number: int) -> bool:
        return self._token_path(entrant, number).exists()

    def _token_path(self, entrant: int, number: int) -> Path:
        return self._tokens / f"{entrant}-{number}.token"

    def _token(self, entrant: int, number: int) -> str:
        """Returns the credential of a copy; makes it when there is none."""
        path = self._token_path(entrant, number)
        try:
            if path.exists():
                found = path.read_text(encoding="ascii").strip()
                if found:
                    return found
            token = secrets.token_hex(32)
            self._tokens.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_secret(path, token)
        except OSError as error:
            raise ExecutorError(f"{path} cannot be written: {error.strerror}") from None
        return token

    # Processes.

    async def _start(self, entrant: int, copy: _Copy) -> str:
        """Starts a copy and waits until it has connected; returns why it did not, empty if it did."""
        await self._fleet.stop(copy.key)  # the last one may still be on its way out, where nobody waited for that
        await self._hall.committer.settled()  # it is known before it comes
        failures = self._failures.setdefault(entrant, [])
        if len(failures) >= _TRIES:
            return f"not tried again after {_TRIES} failed starts in a row; the last: {failures[-1]}"
        lent = self._lent / f"{copy.key}.token"
        _write_secret(lent, copy.token)
        program = self._program(entrant, copy, lent)
        extra = {
            "REFEREE_ADDRESS": self._address,
            "REFEREE_NAME": copy.name,
            "REFEREE_CREDENTIAL": str(lent),
        }
        socket = self._place.socket if program.tier != "process" else None
        started = await self._fleet.start(program, copy.key, extra, socket=socket)
        if isinstance(started, StartFailure):
            failures.append(started.text)
            if started.kind == "refused":
                raise ExecutorError(started.text)
            return started.text
        failures.clear()
        copy.running = started
        return ""

    def _program(self, entrant: int, copy: _Copy, lent: Path) -> Program:
        described = self._cup.entrant[entrant]
        assert described.command is not None
        limits = described.limits.model_dump(exclude_none=True)
        folder = self._place.folder / described.folder if described.folder is not None else None
        values = {"{address}": self._address, "{name}": copy.name, "{credential}": str(lent)}
        return Program(
            name=described.name,
            argv=tuple(_filled(described.command, values)),
            cwd=folder if folder is not None else self._place.folder,
            # What a program prints is wanted at once, and not lost when it is ended.
            env={"PYTHONUNBUFFERED": "1", **described.env},
            limits=replace(Limits(), **limits),
            tier=described.isolation,
            reads=(lent, *(self._place.folder / path for path in described.reads)),
        )

    @property
    def _address(self) -> str:
        return f"unix:{self._place.socket}" if self._place.socket is not None else self._place.address

    def _on_attached(self, agent_id: str) -> None:
        for copies in self._copies.values():
            for copy in copies:
                if copy.agent_id == agent_id:
                    self._fleet.connected(copy.key)

    def _on_exit(self, key: str, gone: Exit, follows: bool) -> None:
        for entrant, copies in self._copies.items():
            for copy in copies:
                if copy.key == key:
                    name = self._cup.entrant[entrant].name
                    _log.warning("program_ended", entrant=name, how=gone.words(), started_again=follows)
                    self._hall.crashed(copy.agent_id)
                    if not follows:
                        copy.running = None


def _filled(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    filled = []
    for word in command:
        for placeholder, value in values.items():
            word = word.replace(placeholder, value)
        filled.append(word)
    return filled


def _write_secret(path: Path, token: str) -> None:
    """Writes a credential, readable by its owner only, whole or not at all."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(token + "\n")
    part.replace(path)
