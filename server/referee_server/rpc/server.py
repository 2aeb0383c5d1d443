"""The gRPC server: options, services, health, reflection."""

from __future__ import annotations

import resource
from dataclasses import dataclass, field
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from referee.v1 import (
    agent_service_pb2,
    game_service_pb2,
    log_service_pb2,
    match_service_pb2,
    registry_service_pb2,
    tournament_service_pb2,
)
from referee_server.director.tournaments import Tournaments
from referee_server.rpc.agent_service import HELLO_DEADLINE_S, AgentService
from referee_server.rpc.game_service import GameService
from referee_server.rpc.gate import Gate
from referee_server.rpc.log_service import LogService
from referee_server.rpc.match_service import HEARTBEAT_S, MatchService
from referee_server.rpc.register import add_service
from referee_server.rpc.registry_service import RegistryService
from referee_server.rpc.tournament_service import TournamentService
from referee_server.tables.hall import Hall
from referee_server.tables.session import MAX_REQUEST_BYTES


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the server bears with a silent peer, in seconds.

    Attributes:
        hello_s: how long a stream may take to begin with Hello.
        keepalive_s: after how long without a byte a connection is probed.
        ping_timeout_s: how long the probe may go unanswered; a dead peer is noticed after both together.
        handshake_s: how long a connection may take to begin, and to acknowledge the server's settings.
        idle_s: after how long without a call a connection is closed.
    """

    hello_s: float = HELLO_DEADLINE_S
    keepalive_s: float = 20.0
    ping_timeout_s: float = 10.0
    handshake_s: float = 10.0
    idle_s: float = 300.0


_MOST: Final = 2**31 - 1
"""The largest number that the library takes."""


def most_connections(descriptors: int) -> int:
    """Returns how many connections are let in at once: a quarter of the descriptors is left for everything else.

    Without such a limit connections would take the last one, and the referee could neither read a log nor start an
    agent. Whoever comes when there are as many is closed at once, and may come again.

    Args:
        descriptors: how many the process may have open, negative for as many as it likes.
    """
    return _MOST if descriptors < 0 else max(1, min(_MOST, descriptors * 3 // 4))


def options(patience: Patience) -> tuple[tuple[str, int], ...]:
    """Returns the channel arguments of the server."""
    return (
        # On by default, it lets a second referee bind the same port without an error and take half of the agents.
        ("grpc.so_reuseport", 0),
        ("grpc.max_allowed_incoming_connections", most_connections(resource.getrlimit(resource.RLIMIT_NOFILE)[0])),
        ("grpc.max_concurrent_streams", 64),
        # The last byte over the limit is ours to refuse with a reason; the library refuses the rest.
        ("grpc.max_receive_message_length", MAX_REQUEST_BYTES + 1),
        ("grpc.max_send_message_length", 1024 * 1024),
        ("grpc.max_metadata_size", 4 * 1024),
        ("grpc.absolute_max_metadata_size", 8 * 1024),
        # Identity only: nobody makes the referee inflate anything.
        ("grpc.compression_enabled_algorithms_bitset", 1),
        ("grpc.keepalive_time_ms", round(patience.keepalive_s * 1_000)),
        ("grpc.keepalive_timeout_ms", round(patience.ping_timeout_s * 1_000)),
        # The one that acts on a frozen peer; the option above has no effect in the versions tried.
        ("grpc.http2.ping_timeout_ms", round(patience.ping_timeout_s * 1_000)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.http2.max_ping_strikes", 2),
        ("grpc.max_connection_idle_ms", round(patience.idle_s * 1_000)),
        ("grpc.server_handshake_timeout_ms", round(patience.handshake_s * 1_000)),
        ("grpc.http2.settings_timeout", round(patience.handshake_s * 1_000)),
        ("grpc.server_max_unrequested_time_in_server", 10),
        ("grpc.enable_channelz", 0),
    )


_SERVICES: Final = (
    agent_service_pb2.DESCRIPTOR.services_by_name["AgentService"],
    match_service_pb2.DESCRIPTOR.services_by_name["MatchService"],
    log_service_pb2.DESCRIPTOR.services_by_name["LogService"],
    game_service_pb2.DESCRIPTOR.services_by_name["GameService"],
    registry_service_pb2.DESCRIPTOR.services_by_name["RegistryService"],
    tournament_service_pb2.DESCRIPTOR.services_by_name["TournamentService"],
)


class AddressError(Exception):
    """The address to listen on is not one, or is taken."""


def add_services(
    server: grpc.aio.Server,
    hall: Hall,
    gate: Gate,
    tournaments: Tournaments,
    *,
    hello_deadline_s: float = HELLO_DEADLINE_S,
    heartbeat_s: float = HEARTBEAT_S,
) -> health.aio.HealthServicer:
    """Puts every service on a server, with health and reflection, and returns the health servicer.

    Args:
        server: the server, not yet started.
        hall: all matches and agents.
        gate: who is let in.
        tournaments: all tournaments.
        hello_deadline_s: how long an agent's stream may take to begin, in seconds.
        heartbeat_s: how often a watcher hears something, in seconds.
    """
    servicers = (
        AgentService(hall, gate, hello_deadline_s),
        MatchService(hall, gate, heartbeat_s),
        LogService(hall, gate),
        GameService(hall, gate),
        RegistryService(hall, gate),
        TournamentService(tournaments, gate),
    )
    for descriptor, servicer in zip(_SERVICES, servicers, strict=True):
        add_service(server, descriptor, servicer, gate)
    healthy = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    names = [descriptor.full_name for descriptor in _SERVICES]
    reflection.enable_server_reflection((*names, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    return healthy


async def set_serving(healthy: health.aio.HealthServicer, *, serving: bool) -> None:
    """Says whether the services are to be had."""
    state = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
    for name in ("", *(descriptor.full_name for descriptor in _SERVICES)):
        await healthy.set(name, state)


@dataclass(frozen=True, slots=True)
class ServerTls:
    """Encryption of a service's connections.

    Attributes:
        certificate: the service's certificate chain, PEM.
        key: its key, PEM.
        client_ca: PEM of the authority whose certificates clients must show; None asks for none.
    """

    certificate: bytes
    key: bytes = field(repr=False)
    client_ca: bytes | None = None

    def credentials(self) -> grpc.ServerCredentials:
        """Returns gRPC's credentials."""
        return grpc.ssl_server_credentials(
            [(self.key, self.certificate)],
            root_certificates=self.client_ca,
            require_client_auth=self.client_ca is not None,
        )


def listen(server: grpc.aio.Server, address: str, tls: ServerTls | None = None) -> int:
    """Binds a server to an address and returns its port.

    Raises:
        AddressError: the port is taken, or the address is not one of this machine's.
    """
    try:
        port = server.add_secure_port(address, tls.credentials()) if tls else server.add_insecure_port(address)
    except RuntimeError:
        port = 0
    if port == 0:
        raise AddressError(
            f"cannot listen on {address}: the port is taken or the address is not this machine's; "
            "choose another with --listen"
        )
    return port
