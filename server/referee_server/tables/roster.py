"""The roster: who the agents are, and the one place where they are registered."""

from __future__ import annotations

from referee.v1 import error_reason_pb2 as reason_pb
from referee_games.contract import shown
from referee_server.journal import AgentAdded, AgentRow, Journal
from referee_server.match.errors import RefusedError
from referee_server.match.names import check_name, fold_name
from referee_server.tables.clock import Clock
from referee_server.tables.committer import Committer


class Roster:
    """All agents, with those whose registration is on its way to the journal.

    The journal refuses a name or a credential that is there already, and with it everything that was to be stored
    beside it. So whoever registers an agent does it here, where what is on its way counts like what is stored.
    """

    def __init__(self, journal: Journal, committer: Committer, clock: Clock) -> None:
        self._journal = journal
        self._committer = committer
        self._clock = clock
        # On their way, until they are stored: while the storage is away that can take long.
        self._coming: dict[bytes, AgentRow] = {}
        self._coming_names: set[str] = set()

    def with_hash(self, credential_hash: bytes) -> AgentRow | None:
        """Returns the agent whose credential has that hash, revoked or not; it may not be stored yet."""
        return self._coming.get(credential_hash) or self._journal.agent_by_hash(credential_hash)

    def has_name(self, name: str) -> bool:
        """Tells whether an agent has that name, or one that reads the same."""
        folded = fold_name(name)
        return folded in self._coming_names or self._journal.agent_by_name(folded) is not None

    def find(self, name: str) -> AgentRow:
        """Returns the agent with that id or name, once it is stored.

        Raises:
            RefusedError: AGENT_UNKNOWN.
        """
        row = self._journal.agent(name) or self._journal.agent_by_name(fold_name(name))
        if row is None or row.revoked:
            raise RefusedError(
                reason_pb.ERROR_REASON_AGENT_UNKNOWN,
                f"there is no agent {shown(name)}; an agent is known once it has connected",
                agent=shown(name),
            )
        return row

    def register(self, agent_id: str, name: str, credential_hash: bytes) -> AgentRow:
        """Registers an agent with the next commit. From now on nobody else gets its name or its credential.

        Args:
            agent_id: its id, a new one.
            name: the name that it wants.
            credential_hash: hash of its credential.

        Raises:
            RefusedError: NAME_INVALID, NAME_TAKEN, or FIELD_INVALID where another agent has the credential.
        """
        if self.with_hash(credential_hash) is not None:
            raise RefusedError(
                reason_pb.ERROR_REASON_FIELD_INVALID,
                "a credential's hash has 32 bytes, and no other agent has it",
                field="credential_hash",
            )
        name = check_name(name)
        if self.has_name(name):
            raise RefusedError(
                reason_pb.ERROR_REASON_NAME_TAKEN, "another agent has that name, or one that reads the same"
            )
        row = AgentRow(
            agent_id=agent_id,
            name=name,
            folded_name=fold_name(name),
            create_time_ms=self._clock.wall_ns() // 10**6,
            revoked=False,
        )
        self._coming[credential_hash] = row
        self._coming_names.add(row.folded_name)
        self._committer.store(AgentAdded(agent_id, row.name, row.folded_name, credential_hash, row.create_time_ms))
        self._committer.then(lambda: self._arrived(credential_hash))
        return row

    def _arrived(self, credential_hash: bytes) -> None:
        self._coming_names.remove(self._coming.pop(credential_hash).folded_name)
