"""The journal of a simulated referee: what is committed outlives it; failing and dying can be arranged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from referee_server.journal import MemoryJournal, Record, StorageError, StorageFullError


class Vault:
    """A journal as one run of the referee has it open.

    Attributes:
        kept: where what is committed lies, whoever has it open.
        gone: whether the run is dead: nothing is written any more.
        full: whether there is no space at the moment.
        broken: whether writing has failed for good.
    """

    def __init__(self, kept: MemoryJournal, on_commit: Callable[[Sequence[Record]], None]) -> None:
        """Opens it.

        Args:
            kept: where what is committed lies.
            on_commit: told of a batch once it is committed.
        """
        self.kept = kept
        self.gone = False
        self.full = False
        self.broken = False
        self.before_commit: Callable[[], None] = lambda: None
        self.after_commit: Callable[[], None] = lambda: None
        self._on_commit = on_commit

    def commit(self, batch: Sequence[Record]) -> None:
        if self.gone:
            raise StorageError("this run is over")
        self.before_commit()
        if self._over():
            raise StorageError("the disk failed")
        if self.full:
            raise StorageFullError("no space")
        self.kept.commit(batch)
        self._on_commit(batch)
        self.after_commit()

    def _over(self) -> bool:
        return self.gone or self.broken

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kept, name)
