"""A host's calls to a running service, and what their errors mean on a command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from referee.v1.match_service_pb2_grpc import MatchServiceStub
from referee.v1.registry_service_pb2_grpc import RegistryServiceStub
from referee.v1.tournament_service_pb2_grpc import TournamentServiceStub
from referee_client import CredentialError, Tls
from referee_server.cli.data import DataFolder
from referee_server.cli.output import ExitCode, Failure

DEFAULT_ADDRESS: Final = "127.0.0.1:7431"
PATIENCE_S: Final = 60.0
"""How long a service may be away while its matches are waited for or watched, in seconds."""
_CALL_S: Final = 15.0
_CALLS: Final = 16
"""How many calls run at once. The service refuses the 65th of a connection, and counts those that are just ending."""
_OPTIONS: Final = [
    # A service that comes back is found again at once.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # A service that has gone without a word is noticed though nothing is sent to it.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # Everything that is wrong with a tournament's file comes back at once, in the metadata.
    ("grpc.max_metadata_size", 256 * 1024),
    ("grpc.absolute_max_metadata_size", 512 * 1024),
]

_CODES: Final = {
    grpc.StatusCode.UNAUTHENTICATED: ExitCode.FORBIDDEN,
    grpc.StatusCode.PERMISSION_DENIED: ExitCode.FORBIDDEN,
    grpc.StatusCode.NOT_FOUND: ExitCode.NOT_FOUND,
    grpc.StatusCode.UNAVAILABLE: ExitCode.UNREACHABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED: ExitCode.UNREACHABLE,
    grpc.StatusCode.DATA_LOSS: ExitCode.CHECK_FAILED,
}


class RefusedCallError(Failure):
    """The referee refused a call.

    Attributes:
        violations: the fields at fault, such as `toml.name`, each with what is wrong with it.
    """

    def __init__(self, message: str, code: ExitCode, violations: Sequence[tuple[str, str]]) -> None:
        super().__init__(message, code)
        self.violations = tuple(violations)


class HostClient:
    """The host's stubs, with his credential on every call.

    Attributes:
        matches: the stub of MatchService.
        registry: the stub of RegistryService.
        tournaments: the stub of TournamentService.
        metadata: what goes with every call.
        address: where the service is.
    """

    def __init__(self, channel: grpc.Channel, token: str, address: str) -> None:
        self.matches = MatchServiceStub(channel)
        self.registry = RegistryServiceStub(channel)
        self.tournaments = TournamentServiceStub(channel)
        self.metadata = (("authorization", f"Bearer {token}"),)
        self.address = address
        self._gate = BoundedSemaphore(_CALLS)

    def call(self, method: Callable[..., Any], request: Any) -> Any:
        """Calls and returns the response.

        Raises:
            RefusedCallError: the referee refused, or is not there.
        """
        try:
            with self._gate:
                return method(request, metadata=self.metadata, timeout=_CALL_S)
        except grpc.RpcError as error:
            raise failure(error, self.address) from None


def failure(error: grpc.RpcError, address: str) -> RefusedCallError:
    """Returns what a failed call means to who typed the command."""
    code: grpc.StatusCode = error.code()
    details = error.details() or code.name
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED) and not reason_of(error):
        details = f"no referee answers at {address}; start one with `referee serve`, or name it with --connect"
    if code is grpc.StatusCode.UNAUTHENTICATED:
        details = f"the referee at {address} does not know this credential; name its data folder with --data"
    return RefusedCallError(details, _CODES.get(code, ExitCode.USAGE), list(_violations(error)))


def reason_of(error: grpc.RpcError) -> str:
    """Returns the referee's reason for refusing a call, such as `DRAINING`; empty if it was not the referee."""
    found = [info.reason for info in _details(error, error_details_pb2.ErrorInfo) if info.domain == "referee.v1"]
    return found[0] if found else ""


def retry_s(error: grpc.RpcError) -> float:
    """Returns how long the referee asks a caller to wait, in seconds; 0 if it asks for nothing."""
    return sum(info.retry_delay.ToTimedelta().total_seconds() for info in _details(error, error_details_pb2.RetryInfo))


def _violations(error: grpc.RpcError) -> Iterator[tuple[str, str]]:
    for bad in _details(error, error_details_pb2.BadRequest):
        yield from ((one.field, one.description) for one in bad.field_violations)


M = TypeVar("M", bound=Message)


def _details(error: grpc.RpcError, kind: type[M]) -> Iterator[M]:
    """Yields what an error says of one kind."""
    call: Any = error
    try:
        status = rpc_status.from_call(call)
    except ValueError:
        return  # not the answer of a referee
    for detail in status.details if status is not None else ():
        found = kind()
        if detail.Unpack(found):
            yield found


@contextmanager
def host_client(data: str, address: str | None, tls: Tls | None = None) -> Iterator[HostClient]:
    """Connects to the service that keeps its data in a folder, or that listens at an address.

    Args:
        data: the data folder, which holds the host's credential.
        address: where the service listens; None for what the folder says, else the usual address.
        tls: whom to trust; None for what the folder says.

    Raises:
        Failure: the folder holds no credential, the address is not one, or a certificate cannot be read.
    """
    folder = DataFolder(data)
    token = folder.host_token()
    with open_channel(folder, address, tls) as (channel, where):
        yield HostClient(channel, token, where)


@contextmanager
def open_channel(folder: DataFolder, address: str | None, tls: Tls | None) -> Iterator[tuple[grpc.Channel, str]]:
    """Connects as `host_client` does, whoever calls; gives the channel, and the address it leads to.

    Raises:
        Failure: the address is not one, or a certificate cannot be read.
    """
    said = folder.address()
    if tls is None and said is not None and said[1] is not None and address in (None, said[0]):
        tls = Tls(ca=said[1])
    where = check_address(address or (said[0] if said is not None else DEFAULT_ADDRESS))
    try:
        secure = tls.channel_credentials() if tls is not None else None
    except CredentialError as error:
        raise Failure(str(error), ExitCode.DATA) from None
    channel = (
        grpc.secure_channel(where, secure, options=_OPTIONS)
        if secure is not None
        else grpc.insecure_channel(where, options=_OPTIONS)
    )
    with channel:
        yield channel, where


def check_address(address: str) -> str:
    """Returns an address.

    Raises:
        Failure: it is not of the form HOST:PORT, or a Unix socket whose path is too long.
    """
    if address.startswith("unix:"):
        if len(address.removeprefix("unix:").removeprefix("//").encode()) > 107:
            raise Failure(f"the path of a Unix socket has at most 107 bytes: {address[:40]}…")
        return address
    host, colon, port = address.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise Failure(f"{address[:60]!r} is not an address; one looks like 127.0.0.1:7431")
    return address
