"""What a table needs of the hall it stands in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from referee_server.tables.clock import Clock
from referee_server.tables.committer import Committer
from referee_server.tables.lateness import LatenessMeter
from referee_server.tables.session import Session
from referee_server.tables.steps import StepBudget

if TYPE_CHECKING:
    from referee_server.tables.table import Table


class Host(Protocol):
    """The hall, as a table sees it."""

    clock: Clock
    committer: Committer
    meter: LatenessMeter
    steps: StepBudget

    @property
    def halted(self) -> bool:
        """Whether nothing new is asked: the referee shuts down, or its storage is away."""

    def session_of(self, agent_id: str) -> Session | None:
        """Returns the agent's stream, if it has one."""

    def ended(self, table: Table) -> None:
        """Takes note that a match has ended and its end is being stored."""

    def reopened(self, table: Table) -> None:
        """Takes note that a seat of a match is open again, and that this is being stored."""

    def stored_events(self, match_id: str) -> list[bytes]:
        """Returns the events of a match that are committed."""

    def digest(self, match_id: str) -> bytes:
        """Returns the digest of a match's committed events."""

    def later(self, callback: Callable[[], None]) -> None:
        """Calls back in a later turn of the loop."""
