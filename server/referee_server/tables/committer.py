"""Group commit: everything that happened in one turn of the loop is stored in one transaction, then told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

import structlog

from referee.v1 import agent_service_pb2 as agent_pb
from referee_server import failpoints
from referee_server.journal import (
    Journal,
    LogError,
    Record,
    RefusedError,
    StorageBusyError,
    StorageError,
    StorageFullError,
)

_log = structlog.get_logger(__name__)

RETRY_S: Final = 1.0
"""How often storage that is away is tried again, in seconds."""


class Receiver(Protocol):
    """Whoever is told something once it is stored."""

    def push(self, item: agent_pb.ServerItem) -> None:
        """Takes one item; must neither block nor raise."""


class Committer:
    """The only writer of the journal, and the only way out for what depends on it: commit before you speak.

    Attributes:
        failed: the storage error that stopped it; None while it works. Once it has failed nothing is stored or told.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        in_thread: bool,
        on_failure: Callable[[StorageError], None],
        on_stall: Callable[[bool], None],
        on_refused: Callable[[str, Exception], None],
    ) -> None:
        """Makes a committer.

        Args:
            journal: where to write.
            in_thread: whether a commit is slow (waits for the disk) and is done in a thread.
            on_failure: called once, when the storage has failed.
            on_stall: called with True when the storage is away, and with False when it is back.
            on_refused: called with a match of which the journal did not take what was to be stored, and why. Nothing
                that was to follow from it is told, and what is stored of the match is as it was before.
        """
        self._journal = journal
        self._in_thread = in_thread
        self._on_failure = on_failure
        self._on_stall = on_stall
        self._on_refused = on_refused
        self._pending = _Batch()
        self._scheduled = False
        self._task: asyncio.Task[None] | None = None
        self._stall: StorageError | None = None
        self.failed: StorageError | None = None

    @property
    def stalled(self) -> bool:
        """Whether the storage is away for now, full or locked: what was to be stored waits, and is not told."""
        return self._stall is not None

    def store(self, record: Record) -> None:
        """Stores a record with the next commit."""
        if self.failed is None:
            self._pending.records.append(record)
            self._schedule()

    def tell(self, receiver: Receiver, item: agent_pb.ServerItem, match_id: str = "") -> None:
        """Gives an item to a receiver after the next commit, in the order of calls; see `then`."""
        self.then(lambda: receiver.push(item), match_id)

    def then(self, callback: Callable[[], None], match_id: str = "") -> None:
        """Calls back after the next commit, in the order of calls.

        Args:
            callback: what to call.
            match_id: the match of whose records it tells, if it is about one: not called where those are refused.
        """
        if self.failed is None:
            self._pending.told.append((match_id, callback))
            self._schedule()

    async def settled(self) -> None:
        """Waits until all that was stored so far is committed and told.

        Raises:
            StorageError: the storage has failed, or is away for now.
        """
        error = self.failed or self._stall
        if error is not None:
            raise error
        if self._pending.records or self._pending.told or self._task is not None:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._pending.waiters.append(done)
            self._schedule()
            await done

    def fail(self, error: StorageError) -> None:
        """Takes note that the storage turned out to have failed: nothing more is stored or told."""
        if self.failed is None:
            self._fail(_Batch(), error)

    def _schedule(self) -> None:
        if not self._scheduled and self._task is None and self._stall is None and self.failed is None:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        batch, self._pending = self._pending, _Batch()
        if self._in_thread and batch.records:
            self._task = asyncio.ensure_future(self._commit_in_thread(batch))
        else:
            self._settle(batch, self._attempt(batch))

    async def _commit_in_thread(self, batch: _Batch) -> None:
        error = await asyncio.shield(asyncio.to_thread(self._attempt, batch))
        self._task = None
        self._settle(batch, error)
        # Who began to wait during the commit waits for the next one, even when there is nothing to store in it.
        if self._pending.records or self._pending.told or self._pending.waiters:
            self._schedule()

    def _attempt(self, batch: _Batch) -> Exception | None:
        try:
            if batch.records:
                failpoints.hit("commit.before")
                self._journal.commit(batch.records)
                batch.stored = True
                failpoints.hit("commit.after")
        except (RefusedError, LogError) as error:
            return self._commit_each(batch, error)
        except Exception as error:
            return error
        return None

    def _commit_each(self, batch: _Batch, refused: Exception) -> Exception | None:
        """Commits a batch that was refused match by match, to find out which one is at fault: a bug of ours, or damage.

        What belongs to no match comes first, since matches may depend on it; where that is refused, all is.
        """
        groups: dict[str, list[Record]] = {"": []}
        for record in batch.records:
            groups.setdefault(getattr(record, "match_id", ""), []).append(record)
        if len(groups) == 1:
            return refused
        while groups:
            match_id, records = next(iter(groups.items()))
            try:
                if records:
                    self._journal.commit(records)
                    batch.stored = True
            except (RefusedError, LogError) as error:
                if not match_id:
                    return error
                batch.refused[match_id] = error
            except Exception as error:
                return error
            del groups[match_id]
            batch.records = [record for group in groups.values() for record in group]
        return None

    def _settle(self, batch: _Batch, error: Exception | None) -> None:
        for match_id, refused in batch.refused.items():
            # What was decided since follows from what is not stored.
            batch.forget(match_id)
            self._pending.forget(match_id)
            self._call(partial(self._on_refused, match_id, refused))
        if isinstance(error, StorageFullError | StorageBusyError):
            self._wait(batch, error)
            return
        if error is not None:
            self._fail(batch, error)
            return
        if self._stall is not None and batch.stored:
            self._stall = None
            _log.info("storage_back")
            self._on_stall(False)
            self._schedule()
        failpoints.hit("tell.before")
        for _, callback in batch.told:
            self._call(callback)
        failpoints.hit("tell.after")
        batch.wake(None)

    def _call(self, callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception:
            # One that fails is a fault of ours, and must not keep the others from what is theirs.
            _log.exception("telling_failed")

    def _wait(self, batch: _Batch, error: StorageError) -> None:
        """Keeps what could not be stored, and tries again; whoever waits for it is told that it is not stored yet."""
        batch.wake(error)
        self._pending.records[:0] = batch.records
        self._pending.told[:0] = batch.told
        if self._stall is None:
            _log.error("storage_away", error=type(error).__name__)
            self._stall = error
            self._on_stall(True)
        asyncio.get_running_loop().call_later(RETRY_S, self._flush)

    def _fail(self, batch: _Batch, cause: Exception) -> None:
        # A batch that the journal refuses is a fault of ours; what was to be stored is lost all the same, so stop.
        _log.error("storage_failed", error=type(cause).__name__, exc_info=not isinstance(cause, StorageError))
        error = cause if isinstance(cause, StorageError) else StorageError("the journal refused a batch")
        if error is not cause:
            error.__cause__ = cause
        self.failed = error
        batch.wake(error)
        self._pending.wake(error)
        self._pending = _Batch()
        self._on_failure(error)


class _Batch:
    """What is stored together, and what happens then."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.told: list[tuple[str, Callable[[], None]]] = []
        self.refused: dict[str, Exception] = {}
        self.stored = False
        self.waiters: list[asyncio.Future[None]] = []

    def forget(self, match_id: str) -> None:
        """Drops what is of a match, since what came before it was refused."""
        self.records = [record for record in self.records if getattr(record, "match_id", "") != match_id]
        self.told = [(of, callback) for of, callback in self.told if of != match_id]

    def wake(self, error: StorageError | None) -> None:
        for waiter in self.waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)
        self.waiters.clear()
