"""A running service: journal, hall, gate and gRPC server put together."""

from __future__ import annotations

import asyncio
import os
import resource
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import grpc
import structlog

from referee_server.agents.local import LocalAgents
from referee_server.cli.data import DataFolder
from referee_server.cli.output import ExitCode, Failure
from referee_server.director.local import LocalExecutor
from referee_server.director.programs import LocalPrograms, Place
from referee_server.director.tournaments import Tournaments
from referee_server.journal import Durability, StorageError
from referee_server.rpc.gate import Gate
from referee_server.rpc.server import AddressError, Patience, ServerTls, add_services, listen, options, set_serving
from referee_server.tables.clock import MonotonicClock
from referee_server.tables.hall import Hall, HallSettings
from referee_server.tournament.book import Book

_log = structlog.get_logger(__name__)

LEAST_DESCRIPTORS: Final = 64
"""How many descriptors a service has to be allowed; a third of it is in use before anybody connects."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files with what encryption needs, PEM.

    Attributes:
        certificate: the service's certificate chain.
        key: its key.
        client_ca: the authority whose certificates clients must show; None asks for none.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def read(self) -> ServerTls:
        """Returns their content.

        Raises:
            Failure: a file cannot be read, or the key is readable by others.
        """
        try:
            if self.key.stat().st_mode & 0o077:
                raise Failure(f"{self.key} is readable by others; chmod 600 it", ExitCode.DATA)
            return ServerTls(
                self.certificate.read_bytes(),
                self.key.read_bytes(),
                self.client_ca.read_bytes() if self.client_ca is not None else None,
            )
        except OSError as error:
            raise Failure(f"{error.filename} cannot be read: {error.strerror}", ExitCode.DATA) from None


@dataclass(frozen=True, slots=True)
class ProgramSettings:
    """How programs of tournaments are started.

    Attributes:
        agents: the launcher, made before gRPC is in use; its owner closes it.
        folder: where paths in the tournament's file start from.
        socket: whether they find the service by a Unix socket of its own, not encrypted, instead of its address.
    """

    agents: LocalAgents
    folder: Path
    socket: bool


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """How a service is run.

    Attributes:
        address: host and port to listen on; port 0 takes a free one.
        open_registration: whether unknown credentials register themselves.
        durability: what a commit survives.
        tls: encryption of the connections; None for none.
        hall: how the hall behaves.
        drain_s: how long agents may take at the stop to answer what is open, in seconds.
        grace_s: how long calls may take to end at the stop, in seconds.
        patience: how long it bears with a silent peer.
        programs: how programs of tournaments are started; None where it starts none.
    """

    address: str = "127.0.0.1:7431"
    open_registration: bool = True
    durability: Durability = "process"
    tls: TlsFiles | None = None
    hall: HallSettings = field(default_factory=HallSettings)
    drain_s: float = 10.0
    grace_s: float = 1.0
    patience: Patience = field(default_factory=Patience)
    programs: ProgramSettings | None = None


def check_descriptors(allowed: int) -> None:
    """Refuses to start with so few descriptors that the library would end the process.

    Args:
        allowed: how many the process may have open, negative for as many as it likes.

    Raises:
        Failure: that.
    """
    if 0 <= allowed < LEAST_DESCRIPTORS:
        raise Failure(
            f"only {allowed} files and connections may be open at once; allow at least {LEAST_DESCRIPTORS}, and more "
            "for many agents: ulimit -n 4096",
            ExitCode.UNFIT,
        )


class Service:
    """Opens on entering, stops on leaving.

    Attributes:
        hall: all matches and agents.
        tournaments: all tournaments.
        address: where it listens.
        resumed: how many matches were taken up again at the start.
    """

    hall: Hall
    tournaments: Tournaments
    address: str
    resumed: int

    def __init__(self, data: DataFolder, settings: ServiceSettings) -> None:
        self._data = data
        self._settings = settings
        self._socket: Path | None = None
        self._told: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        settings = self._settings
        check_descriptors(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        host, _, _ = settings.address.rpartition(":")
        tls = settings.tls.read() if settings.tls is not None else None
        journal = self._data.open(settings.durability)
        self.hall = Hall(journal, MonotonicClock(), os.urandom, settings.hall)
        try:
            self.tournaments = Tournaments(self.hall, os.urandom, self._executor)
            gate = Gate(
                self.hall,
                self._data.host_token(make=True),
                os.urandom,
                open_registration=settings.open_registration,
            )
            self._server = grpc.aio.server(options=options(settings.patience))
            self._healthy = add_services(
                self._server, self.hall, gate, self.tournaments, hello_deadline_s=settings.patience.hello_s
            )
            self.address = f"{host}:{listen(self._server, settings.address, tls)}"
            if settings.programs is not None and settings.programs.socket:
                self._listen_for_programs(settings.programs)
            self.hall.steps.start()
            self.resumed = self.hall.start()
            self.hall.on_serving = self._on_serving
            await self._server.start()
            await set_serving(self._healthy, serving=True)
        except AddressError as error:
            journal.close()
            raise Failure(str(error), ExitCode.IN_USE) from None
        except BaseException:
            self.hall.steps.close()
            journal.close()
            raise
        self._data.say_address(self.address, settings.tls.certificate if settings.tls is not None else None)
        # Not before: where it cannot start, the one line that says why is enough.
        for note in self._data.notes:
            _log.warning("storage", note=note)
        return self

    def _executor(self, book: Book) -> LocalExecutor:
        given = self._settings.programs
        if given is None or all(entrant.command is None for entrant in book.cup.entrant):
            return LocalExecutor(self.hall)
        place = Place(self._data.path, given.folder, self.address, self._socket)
        return LocalExecutor(self.hall, LocalPrograms(self.hall, book.cup, book.tournament_id, given.agents, place))

    def _listen_for_programs(self, programs: ProgramSettings) -> None:
        """Listens where programs of this machine find the service; the path has to be short, and nobody else's."""
        folder = Path(tempfile.mkdtemp(prefix="referee-"))
        programs.agents.remove_at_end(folder)
        self._socket = folder / "socket"
        listen(self._server, f"unix:{self._socket}", None)

    def _on_serving(self, serving: bool) -> None:
        task = asyncio.ensure_future(set_serving(self._healthy, serving=serving))
        self._told.add(task)
        task.add_done_callback(self._told.discard)

    async def drain(self) -> None:
        """Says that it is not to be had, asks nothing new, and waits for the answers to what is open."""
        await set_serving(self._healthy, serving=False)
        await self.tournaments.close()
        await self.hall.drain(self._settings.drain_s)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._data.forget_address()
        try:
            await set_serving(self._healthy, serving=False)
            await self.tournaments.close()
            try:
                await self.hall.close()
            finally:
                await self._server.stop(self._settings.grace_s)
            # What the streams left behind when they ended.
            await self.hall.committer.settled()
            self.hall.journal.checkpoint()
        except StorageError as failed:
            if error is None:
                raise Failure(
                    f"the storage failed, and the referee stopped: {failed}; nobody was told what is not stored",
                    ExitCode.STORAGE,
                ) from None
        finally:
            self.hall.steps.close()
            self.hall.journal.close()
