"""What is done beside the play: moving what was committed to its place, and packing matches that have ended."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

import structlog

from referee_server import failpoints
from referee_server.journal import (
    Journal,
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
PUT_OFF_S: Final = 5.0
"""How long packing rests after it found no memory, no thread or no storage, in seconds."""
_NOT_NOW: Final = (StorageFullError, StorageBusyError, MemoryError, OSError, RuntimeError)
"""What passes: the machine has no room for now, or (RuntimeError) starts no thread. Nothing is lost by waiting."""


class Housekeeper:
    """Keeps the journal in order while matches are played."""

    def __init__(self, journal: Journal, committer: Committer) -> None:
        self._journal = journal
        self._committer = committer
        self._to_pack: deque[str] = deque()
        self._packing: asyncio.Task[None] | None = None
        self._put_off: asyncio.TimerHandle | None = None
        self._in_trouble = False
        self._closed = False
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
        if self._put_off is None:
            self._go_on()

    def _go_on(self) -> None:
        self._put_off = None
        if self._packing is None and not self._closed:
            self._packing = asyncio.ensure_future(self._pack_all())

    async def close(self) -> None:
        """Ends, once what is being packed is packed. The rest is packed at the next start."""
        self._closed = True
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
            except _NOT_NOW as error:
                # What was committed is safe where it is; the next commit finds out whether that still works.
                _log.warning("checkpoint_failed", error=type(error).__name__)
            except StorageError as error:
                self._committer.fail(error)

    async def _pack_all(self) -> None:
        """Packs one match at a time: hundreds may end together, and those at play are not to feel it."""
        try:
            while self._to_pack and self._committer.failed is None and self._put_off is None:
                await self._archive(self._to_pack.popleft())
        finally:
            self._packing = None

    async def _archive(self, match_id: str) -> None:
        try:
            failpoints.hit("archive.before")
            events = self._journal.read(match_id)
            blob = await asyncio.to_thread(pack, match_id, events)
            failpoints.hit("archive.after")
            self._committer.store(LogStored(match_id, blob))
        except DamageError as error:
            # What is left of it stays where it is, for whoever wants to look; the others are not concerned.
            _log.error("match_damaged", match_id=match_id, place=error.place)
        except _NOT_NOW as error:
            self._rest(match_id, error)
        except StorageError as error:
            self._committer.fail(error)
        except Exception:
            _log.exception("archive_failed", match_id=match_id)  # it stays as it is
        else:
            self._in_trouble = False

    def _rest(self, match_id: str, error: Exception) -> None:
        """Packs nothing for a while, then the others, and this one again. Trouble is told once, when it begins."""
        if not self._in_trouble:
            _log.warning("packing_put_off", match_id=match_id, error=type(error).__name__)
            self._in_trouble = True
        self._to_pack.append(match_id)
        self._put_off = asyncio.get_running_loop().call_later(PUT_OFF_S, self._go_on)
