"""RegistryService: who may play."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import registry_service_pb2 as pb
from referee_server.journal import AgentRevoked, AgentRow
from referee_server.match.errors import RefusedError
from referee_server.rpc.gate import Caller, Gate
from referee_server.tables.hall import Hall


class RegistryService:
    """Serves `referee.v1.RegistryService`."""

    def __init__(self, hall: Hall, gate: Gate) -> None:
        self._hall = hall
        self._gate = gate

    async def ListAgents(self, request: pb.ListAgentsRequest, caller: Caller) -> pb.ListAgentsResponse:  # noqa: N802
        """Lists the agents."""
        self._gate.check_host(caller)
        return pb.ListAgentsResponse(agents=[self._message(row) for row in self._hall.journal.agents()])

    async def AddAgent(self, request: pb.AddAgentRequest, caller: Caller) -> pb.AddAgentResponse:  # noqa: N802
        """Registers an agent under a credential that the host passes on."""
        self._gate.check_host(caller)
        if len(request.credential_hash) != 32:
            raise RefusedError(
                reason_pb.ERROR_REASON_FIELD_INVALID,
                "a credential's hash has 32 bytes, and no other agent has it",
                field="credential_hash",
            )
        row = await self._gate.register(request.credential_hash, request.name)
        return pb.AddAgentResponse(agent=self._message(row))

    async def RevokeAgent(self, request: pb.RevokeAgentRequest, caller: Caller) -> pb.RevokeAgentResponse:  # noqa: N802
        """Revokes an agent's credential."""
        self._gate.check_host(caller)
        row = self._hall.roster.find(request.agent)
        self._hall.committer.store(AgentRevoked(row.agent_id))
        await self._hall.committer.settled()
        why = RefusedError(reason_pb.ERROR_REASON_CREDENTIAL_REVOKED, "this credential has been revoked")
        self._hall.shut_out(row.agent_id, why)
        revoked = self._hall.journal.agent(row.agent_id)
        assert revoked is not None
        return pb.RevokeAgentResponse(agent=self._message(revoked))

    def _message(self, row: AgentRow) -> pb.RegisteredAgent:
        return pb.RegisteredAgent(
            agent_id=row.agent_id,
            name=row.name,
            create_time=Timestamp(seconds=row.create_time_ms // 1_000, nanos=row.create_time_ms % 1_000 * 1_000_000),
            revoked=row.revoked,
            connected=self._hall.presence.session_of(row.agent_id) is not None,
        )
