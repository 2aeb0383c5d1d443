"""`referee serve`."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
from pathlib import Path

import structlog

from referee_server.cli.client import check_address
from referee_server.cli.data import DataFolder
from referee_server.cli.logs import configure
from referee_server.cli.output import ExitCode, Failure
from referee_server.cli.service import Service, ServiceSettings, TlsFiles
from referee_server.journal import Durability
from referee_server.tables.hall import HallSettings

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
) -> None:
    """Runs the service until SIGTERM, Ctrl-C, or a failure of the storage.

    Raises:
        Failure: it cannot start, or the storage failed.
    """
    check_address(listen)
    files = _tls_files(*tls)
    if files is None and not insecure and not _is_local(listen):
        raise Failure(
            f"{listen} can be reached from other machines, and the connection is not encrypted: credentials and "
            "hands could be read on the way; give --tls-cert and --tls-key, or say --insecure if the network is yours"
        )
    configure(log_level, as_json=log_json)
    settings = ServiceSettings(
        address=listen,
        open_registration=open_registration,
        durability=durability,
        tls=files,
        hall=HallSettings(practice=practice, durable_power=durability == "power"),
    )
    asyncio.run(_serve(DataFolder(data), settings))


def _tls_files(certificate: str | None, key: str | None, client_ca: str | None) -> TlsFiles | None:
    if certificate is None and key is None and client_ca is None:
        return None
    if certificate is None or key is None:
        raise Failure("--tls-cert and --tls-key come together, and --tls-client-ca only with them")
    return TlsFiles(Path(certificate), Path(key), Path(client_ca) if client_ca is not None else None)


async def _serve(data: DataFolder, settings: ServiceSettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with Service(data, settings) as service:
        _log.info(
            "listening",
            address=service.address,
            data=str(data.path),
            practice=settings.hall.practice,
            resumed=service.resumed,
        )
        stopping = asyncio.ensure_future(stop.wait())
        broken = asyncio.ensure_future(service.hall.stopped.wait())
        await asyncio.wait((stopping, broken), return_when=asyncio.FIRST_COMPLETED)
        failed = service.hall.committer.failed
        _log.info("stopping", running=len(service.hall.running))
        if failed is None:
            # The first signal drains; a second one does not wait.
            stop.clear()
            draining = asyncio.ensure_future(service.drain())
            again = asyncio.ensure_future(stop.wait())
            await asyncio.wait((draining, again), return_when=asyncio.FIRST_COMPLETED)
            draining.cancel()
            again.cancel()
        stopping.cancel()
        broken.cancel()
    if failed is not None:
        raise Failure(f"the storage failed, and the referee stopped: {failed}", ExitCode.STORAGE)


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
