"""Encrypted connections: who is let in, and who is not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from referee_client import Agent, Decision, NotReachableError, Tls, play
from referee_server.cli.data import DataFolder
from referee_server.cli.output import Failure
from referee_server.cli.serve import run_service
from referee_server.cli.service import Service, ServiceSettings, TlsFiles
from referee_server.rpc.server import Patience
from referee_server.tables.hall import HallSettings

LOCAL = "127.0.0.1:0"


class First(Agent):
    name = "first"

    def choose(self, decision: Decision) -> str:
        return decision.legal[0]


@dataclass(frozen=True)
class Papers:
    """Certificates in files: of the service, of a client, and of the authority behind both."""

    ca: Path
    server: TlsFiles
    mutual: TlsFiles
    client: tuple[Path, Path]


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    return make_papers(tmp_path_factory.mktemp("papers"))


def make_papers(folder: Path, expires: datetime | None = None) -> Papers:
    authority = trustme.CA()
    ca = folder / "ca.pem"
    authority.cert_pem.write_to_path(ca)
    server = _issue(authority, folder, "server", "127.0.0.1", expires)
    client = _issue(authority, folder, "client", "agent.example", expires)
    return Papers(ca, TlsFiles(*server), TlsFiles(*server, client_ca=ca), client)


def _issue(
    authority: trustme.CA, folder: Path, name: str, identity: str, expires: datetime | None
) -> tuple[Path, Path]:
    issued = authority.issue_cert(identity, not_after=expires)
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    key.chmod(0o600)
    return certificate, key


@asynccontextmanager
async def service(tmp_path: Path, tls: TlsFiles | None) -> AsyncIterator[Service]:
    settings = ServiceSettings(address=LOCAL, tls=tls, hall=HallSettings(practice=True))
    async with Service(DataFolder(tmp_path / "data"), settings) as running:
        yield running


async def plays(running: Service, tmp_path: Path, tls: Tls | None) -> int:
    """Returns how many matches an agent gets to play, one at most."""
    patience = 60.0 if tls is not None else 1.0
    results = await play(
        First(), running.address, credential=tmp_path / "first.token", matches=1, tls=tls, connect_timeout=patience
    )
    return len(results)


async def is_refused(running: Service, tmp_path: Path, tls: Tls | None) -> None:
    with pytest.raises(NotReachableError):
        await play(First(), running.address, credential=tmp_path / "t", matches=1, tls=tls, connect_timeout=1.0)


async def test_an_agent_that_trusts_the_service_plays(tmp_path: Path, papers: Papers) -> None:
    async with service(tmp_path, papers.server) as running:
        assert await plays(running, tmp_path, Tls(ca=papers.ca)) == 1


async def test_an_agent_with_a_certificate_of_the_authority_plays(tmp_path: Path, papers: Papers) -> None:
    async with service(tmp_path, papers.mutual) as running:
        assert await plays(running, tmp_path, Tls(papers.ca, *papers.client)) == 1


async def test_an_agent_without_a_certificate_is_refused_where_one_is_asked_for(tmp_path: Path, papers: Papers) -> None:
    async with service(tmp_path, papers.mutual) as running:
        await is_refused(running, tmp_path, Tls(ca=papers.ca))


async def test_a_certificate_of_another_authority_is_refused(tmp_path: Path, papers: Papers) -> None:
    (tmp_path / "other").mkdir()
    other = make_papers(tmp_path / "other")
    async with service(tmp_path, papers.mutual) as running:
        await is_refused(running, tmp_path, Tls(papers.ca, *other.client))


async def test_an_expired_certificate_is_refused(tmp_path: Path, papers: Papers) -> None:
    (tmp_path / "old").mkdir()
    old = make_papers(tmp_path / "old", expires=datetime.now(UTC) - timedelta(days=1))
    mutual = TlsFiles(papers.server.certificate, papers.server.key, client_ca=old.ca)
    async with service(tmp_path, mutual) as running:
        await is_refused(running, tmp_path, Tls(papers.ca, *old.client))


async def test_an_agent_does_not_talk_to_a_service_it_does_not_trust(tmp_path: Path, papers: Papers) -> None:
    (tmp_path / "other").mkdir()
    other = make_papers(tmp_path / "other")
    async with service(tmp_path, papers.server) as running:
        await is_refused(running, tmp_path, Tls(ca=other.ca))


async def test_a_service_under_another_name_is_not_trusted(tmp_path: Path, papers: Papers) -> None:
    elsewhere = TlsFiles(*papers.client)  # a certificate of the same authority, for another name
    async with service(tmp_path, elsewhere) as running:
        await is_refused(running, tmp_path, Tls(ca=papers.ca))


async def test_a_plain_connection_to_an_encrypted_service_is_closed(tmp_path: Path, papers: Papers) -> None:
    async with service(tmp_path, papers.server) as running:
        await is_refused(running, tmp_path, None)


async def test_an_encrypted_connection_to_a_plain_service_is_closed(tmp_path: Path, papers: Papers) -> None:
    async with service(tmp_path, None) as running:
        await is_refused(running, tmp_path, Tls(ca=papers.ca))


async def test_a_web_browser_is_hung_up_on_and_others_play_on(tmp_path: Path, papers: Papers) -> None:
    async with service(tmp_path, papers.server) as running:
        host, _, port = running.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port), family=socket.AF_INET)
        writer.write(b"GET / HTTP/1.1\r\nHost: referee\r\n\r\n")
        await writer.drain()
        await reader.read()
        writer.close()
        await writer.wait_closed()
        assert await plays(running, tmp_path, Tls(ca=papers.ca)) == 1


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    papers = make_papers(tmp_path)
    papers.server.key.chmod(0o644)
    with pytest.raises(Failure, match="readable by others"):
        papers.server.read()


@pytest.mark.parametrize(
    ("listen", "tls", "words"),
    [
        ("0.0.0.0:0", (None, None, None), "not encrypted"),
        ("[::]:0", (None, None, None), "not encrypted"),
        ("referee.example:0", (None, None, None), "not encrypted"),
        ("127.0.0.1:0", ("cert.pem", None, None), "come together"),
        ("127.0.0.1:0", (None, None, "ca.pem"), "come together"),
        ("127.0.0.1:0", ("no.pem", "no.key", None), "cannot be read"),
    ],
)
def test_a_service_does_not_start_half_secured(
    tmp_path: Path, listen: str, tls: tuple[str | None, str | None, str | None], words: str
) -> None:
    with pytest.raises(Failure, match=words):
        run_service(
            listen=listen,
            data=str(tmp_path / "data"),
            practice=False,
            open_registration=True,
            durability="process",
            tls=tls,
            patience=Patience(),
            insecure=False,
            log_level="error",
            log_json=None,
        )
