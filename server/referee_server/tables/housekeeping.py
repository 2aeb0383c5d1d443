"""What is done beside the play: moving what was committed to its place, and packing matches that have ended."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

import structlog

from referee_server import failpoints
from referee_server.journal import (
    Journal,
    JournalError,
    LogStored,
    StorageBusyError,
    StorageError,
    StorageFullError,
    pack,
)
from referee_server.journal import LogError as DamageError
from referee_server.tables.committer import Committer

_log = structlog.get_logger(__name__)

CHECKPOINT_S: Final = 0.5
"""How often what was committed is moved to its place, in seconds: often, so that it never takes long."""


class Housekeeper:
    """Keeps the journal in order while matches are played."""

    def __init__(self, journal: Journal, committer: Committer) -> None:
        self._journal = journal
        self._committer = committer
        self._to_pack: deque[str] = deque()
        self._packing: asyncio.Task[None] | None = None
        self._checkpointing: asyncio.Task[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether matches are being packed."""
        return self._packing is not None

    def start(self) -> None:
        """Begins, with what the last run left."""
        self._checkpointing = asyncio.ensure_future(self._checkpoint())
        for row in self._journal.unarchived():
            self.archive(row.match_id)

    def archive(self, match_id: str) -> None:
        """Packs a match that has ended into its log file, aside, when those before it have been packed."""
        self._to_pack.append(match_id)
        if self._packing is None:
            self._packing = asyncio.ensure_future(self._pack_all())

    async def close(self) -> None:
        """Ends, once what is being packed is packed. The rest is packed at the next start."""
        self._to_pack.clear()
        if self._checkpointing is not None:
            self._checkpointing.cancel()
            await asyncio.wait((self._checkpointing,))
        if self._packing is not None:
            await asyncio.wait((self._packing,))

    async def _checkpoint(self) -> None:
        """Moves what was committed. Also when there is nothing to move, since it notices storage that is gone."""
        while self._committer.failed is None:
            await asyncio.sleep(CHECKPOINT_S)
            if self._committer.stalled:
                continue
            try:
                await asyncio.to_thread(self._journal.checkpoint)
            except (StorageFullError, StorageBusyError) as error:
                # What was committed is safe where it is; the next commit finds out whether that still works.
                _log.warning("checkpoint_failed", error=type(error).__name__)
            except StorageError as error:
                self._committer.fail(error)

    async def _pack_all(self) -> None:
        """Packs one match at a time: hundreds may end together, and those at play are not to feel it."""
        try:
            while self._to_pack and self._committer.failed is None:
                await self._archive(self._to_pack.popleft())
        finally:
            self._packing = None

    async def _archive(self, match_id: str) -> None:
        try:
            failpoints.hit("archive.before")
            events = self._journal.read(match_id)
            blob = await asyncio.to_thread(pack, match_id, events)
        except DamageError as error:
            # What is left of it stays where it is, for whoever wants to look; the others are not concerned.
            _log.error("match_damaged", match_id=match_id, place=error.place)
        except StorageError as error:
            self._committer.fail(error)
        except JournalError:
            _log.exception("archive_failed", match_id=match_id)  # it stays as it is
        else:
            failpoints.hit("archive.after")
            self._committer.store(LogStored(match_id, blob))
