"""`referee serve`."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import structlog

from referee_server.cli.client import check_address
from referee_server.cli.data import DataFolder
from referee_server.cli.logs import configure
from referee_server.cli.output import Failure
from referee_server.cli.service import Service, ServiceSettings, TlsFiles
from referee_server.journal import Durability
from referee_server.rpc.server import Patience
from referee_server.tables.hall import HallSettings
from referee_server.tables.steps import STEP_BUDGET_S

_log = structlog.get_logger(__name__)


def run_service(
    *,
    listen: str,
    data: str,
    practice: bool,
    open_registration: bool,
    durability: Durability,
    tls: tuple[str | None, str | None, str | None],
    insecure: bool,
    log_level: str,
    log_json: bool | None,
    patience: Patience,
    step_budget_s: float = STEP_BUDGET_S,
) -> None:
    """Runs the service until SIGTERM, Ctrl-C, or a failure of the storage.

    Raises:
        Failure: it cannot start, or the storage failed.
    """
    files = tls_files(*tls)
    check_exposed(listen, encrypted=files is not None, insecure=insecure)
    configure(log_level, as_json=log_json)
    settings = ServiceSettings(
        address=listen,
        open_registration=open_registration,
        durability=durability,
        tls=files,
        hall=HallSettings(practice=practice, durable_power=durability == "power", step_budget_s=step_budget_s),
        patience=patience,
    )
    asyncio.run(_serve(DataFolder(data), settings))


def check_exposed(listen: str, *, encrypted: bool, insecure: bool) -> None:
    """Refuses to listen where others could listen in, unless the host says outright that the network is his.

    Raises:
        Failure: that, or it is no address.
    """
    check_address(listen)
    if not encrypted and not insecure and not _is_local(listen):
        raise Failure(
            f"{listen} can be reached from other machines, and the connection is not encrypted: credentials and "
            "hands could be read on the way; give --tls-cert and --tls-key, or say --insecure if the network is yours"
        )


def tls_files(certificate: str | None, key: str | None, client_ca: str | None) -> TlsFiles | None:
    """Returns what encryption needs, as it was named on the command line; None where nothing was.

    Raises:
        Failure: part of it is missing.
    """
    if certificate is None and key is None and client_ca is None:
        return None
    if certificate is None or key is None:
        raise Failure("--tls-cert and --tls-key come together, and --tls-client-ca only with them")
    return TlsFiles(Path(certificate), Path(key), Path(client_ca) if client_ca is not None else None)


async def _serve(data: DataFolder, settings: ServiceSettings) -> None:
    stop = StopSignals()
    async with Service(data, settings) as service:
        tournaments = service.tournaments.resume_all()
        _log.info(
            "listening",
            address=service.address,
            data=str(data.path),
            practice=settings.hall.practice,
            resumed=service.resumed,
            tournaments=tournaments,
        )
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            asyncio.get_running_loop().add_signal_handler(number, _tell_standing, service)
        await _first(stop.wait(1), service.hall.stopped.wait())
        _log.info("stopping", running=len(service.hall.matches.running))
        if service.hall.committer.failed is None:
            # The first signal drains; a second one does not wait.
            await _first(service.drain(), stop.wait(2))


class StopSignals:
    """Counts the signals that tell the service to stop, from now on."""

    def __init__(self) -> None:
        self._count = 0
        self._came = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            # What `nohup` has ignored stays so: the service is to outlive its terminal.
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self._take)
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            loop.add_signal_handler(number, lambda: None)  # until there is something to tell

    def _take(self) -> None:
        self._count += 1
        self._came.set()

    async def wait(self, count: int) -> None:
        """Waits until so many have come."""
        while self._count < count:
            self._came.clear()
            await self._came.wait()


async def _first(*things: Coroutine[Any, Any, object]) -> None:
    """Waits for the first of several things, and calls the others off."""
    tasks = [asyncio.ensure_future(thing) for thing in things]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    for task in done:
        task.result()


def _tell_standing(service: Service) -> None:
    hall = service.hall
    _log.info(
        "standing",
        matches=len(hall.matches.running),
        agents=len(hall.presence.sessions),
        lateness_ms=hall.meter.total_us() // 1_000,
        storage_away=hall.committer.stalled,
    )


def _is_local(address: str) -> bool:
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
