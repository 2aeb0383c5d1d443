"""Who is calling: credentials, roles and registration."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from referee.v1 import error_reason_pb2 as reason_pb
from referee_server import failpoints
from referee_server.journal import AgentRow
from referee_server.match.errors import RefusedError
from referee_server.tables.credentials import hash_credential
from referee_server.tables.hall import Hall
from referee_server.tables.rates import STRANGERS_PER_S, Strangers
from referee_server.tables.watchers import HOST

_log = structlog.get_logger(__name__)

_BEARER: Final = re.compile(r"[Bb]earer ([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a call.

    Attributes:
        host: whether it holds the host's credential.
        agent: the agent whose credential it holds, if it is a registered one that has not been revoked.
        credential_hash: hash of a well-formed credential; None when there is none. Never to be shown.
        revoked: whether the credential is an agent's that has been revoked.
        address: where it calls from, without the port.
    """

    host: bool = False
    agent: AgentRow | None = None
    credential_hash: bytes | None = None
    revoked: bool = False
    address: str = ""

    @property
    def who(self) -> str:
        """Whom its calls are counted for: the host, the agent, or all strangers of one address."""
        if self.host:
            return HOST
        return self.agent.agent_id if self.agent is not None else f"from {self.address}"


class Gate:
    """Tells who calls, and lets agents in."""

    def __init__(
        self, hall: Hall, host_token: str, random_bytes: Callable[[int], bytes], *, open_registration: bool
    ) -> None:
        """Makes a gate.

        Args:
            hall: where agents are known.
            host_token: the host's credential, 64 hex digits.
            random_bytes: the operating system's generator, for ids.
            open_registration: whether an unknown credential registers itself by its first Hello.
        """
        self.open_registration = open_registration
        self._hall = hall
        self._host_hash = hash_credential(host_token)
        self._random_bytes = random_bytes
        self._strangers = Strangers()

    def identify(self, authorization: str | bytes | None, peer: str = "") -> Caller:
        """Returns who holds the credential of an `authorization` header; anybody may come without one.

        Args:
            authorization: the header; None where there is none.
            peer: where the call comes from, as gRPC says it.

        Raises:
            RefusedError: CREDENTIAL_UNKNOWN, for a header that holds no credential.
        """
        if authorization is None:
            return Caller(address=_address(peer))
        found = _BEARER.fullmatch(authorization) if isinstance(authorization, str) else None
        if found is None:
            raise unknown_credential()
        hashed = hash_credential(found.group(1))
        if hmac.compare_digest(hashed, self._host_hash):
            return Caller(host=True)
        return self._caller(hashed, _address(peer))

    def _caller(self, hashed: bytes, address: str) -> Caller:
        row = self._hall.roster.with_hash(hashed)
        if row is None:
            return Caller(credential_hash=hashed, address=address)
        if row.revoked:
            return Caller(credential_hash=hashed, revoked=True, address=address)
        return Caller(agent=row, credential_hash=hashed)

    def turned_away(self, refused: RefusedError, peer: str) -> RefusedError:
        """Returns what a caller without a good credential is told: soon only that it comes too often.

        Args:
            refused: why it is turned away.
            peer: where it calls from, as gRPC says it; ports do not count.
        """
        bucket = self._strangers.take(_address(peer), self._hall.clock.now_us())
        if bucket is None:
            return refused
        return RefusedError(
            reason_pb.ERROR_REASON_RATE,
            f"more than {STRANGERS_PER_S} calls a second without a good credential",
            retry_ms=bucket.wait_ms(),
        )

    def check_host(self, caller: Caller) -> None:
        """Refuses who is not the host (HOST_ONLY; CREDENTIAL_UNKNOWN for who is nobody)."""
        if caller.host:
            return
        if caller.agent is None:
            raise unknown_credential()
        raise RefusedError(reason_pb.ERROR_REASON_HOST_ONLY, "this needs the host's credential")

    async def admit(self, caller: Caller, name: str) -> AgentRow:
        """Returns the agent that says Hello, registered now if it is new.

        Raises:
            RefusedError: it has no credential or a revoked one, registration is closed, or the name is not to be had.
        """
        if caller.host:
            raise RefusedError(
                reason_pb.ERROR_REASON_AGENT_ONLY, "the host's credential does not play; use one of the agent's own"
            )
        if caller.credential_hash is None:
            raise unknown_credential()
        # Looked up again: between the start of the call and its Hello the credential may have registered elsewhere.
        caller = self._caller(caller.credential_hash, caller.address)
        if caller.revoked:
            raise RefusedError(reason_pb.ERROR_REASON_CREDENTIAL_REVOKED, "this credential has been revoked")
        if caller.agent is not None:
            await self._hall.committer.settled()  # it may be on its way to the journal still
            return caller.agent
        assert caller.credential_hash is not None
        if not self.open_registration:
            raise RefusedError(
                reason_pb.ERROR_REASON_REGISTRATION_CLOSED,
                "registration is closed; ask the host for a credential",
            )
        return await self.register(caller.credential_hash, name)

    async def register(self, credential_hash: bytes, name: str) -> AgentRow:
        """Registers an agent and returns it once that is stored.

        Raises:
            RefusedError: NAME_INVALID, NAME_TAKEN, or FIELD_INVALID where another agent has the credential.
        """
        row = self._hall.roster.register(self._random_bytes(10).hex(), name, credential_hash)
        await self._hall.committer.settled()
        failpoints.hit("agent.register")
        _log.info("agent_registered", agent_id=row.agent_id)
        return row


def _address(peer: str) -> str:
    """Returns where a call comes from; ports do not count."""
    return peer.rpartition(":")[0]


def unknown_credential() -> RefusedError:
    """Returns the refusal of who has no credential, in the same words for every cause."""
    return RefusedError(
        reason_pb.ERROR_REASON_CREDENTIAL_UNKNOWN,
        "no valid credential: send `authorization: Bearer` and 64 hex digits",
    )
