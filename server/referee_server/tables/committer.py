"""Group commit: everything that happened in one turn of the loop is stored in one transaction, then told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import structlog

from referee.v1 import agent_service_pb2 as agent_pb
from referee_server.journal import Journal, Record, StorageError

_log = structlog.get_logger(__name__)


class Receiver(Protocol):
    """Whoever is told something once it is stored."""

    def push(self, item: agent_pb.ServerItem) -> None:
        """Takes one item; must neither block nor raise."""


class Committer:
    """The only writer of the journal, and the only way out for what depends on it: commit before you speak.

    Attributes:
        failed: the storage error that stopped it; None while it works. Once it has failed nothing is stored or told.
    """

    def __init__(self, journal: Journal, *, in_thread: bool, on_failure: Callable[[StorageError], None]) -> None:
        """Makes a committer.

        Args:
            journal: where to write.
            in_thread: whether a commit is slow (waits for the disk) and is done in a thread.
            on_failure: called once, when the storage has failed.
        """
        self._journal = journal
        self._in_thread = in_thread
        self._on_failure = on_failure
        self._records: list[Record] = []
        self._told: list[Callable[[], None]] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._scheduled = False
        self._task: asyncio.Task[None] | None = None
        self.failed: StorageError | None = None

    def store(self, record: Record) -> None:
        """Stores a record with the next commit."""
        self._records.append(record)
        self._schedule()

    def tell(self, receiver: Receiver, item: agent_pb.ServerItem) -> None:
        """Gives an item to a receiver after the next commit, in the order of calls."""
        self._told.append(lambda: receiver.push(item))
        self._schedule()

    def then(self, callback: Callable[[], None]) -> None:
        """Calls back after the next commit, in the order of calls."""
        self._told.append(callback)
        self._schedule()

    async def settled(self) -> None:
        """Waits until all that was stored so far is committed and told.

        Raises:
            StorageError: the storage has failed.
        """
        if self.failed is not None:
            raise self.failed
        if self._records or self._told or self._task is not None:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(done)
            self._schedule()
            await done

    def _schedule(self) -> None:
        if not self._scheduled and self._task is None and self.failed is None:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        records, told, waiters = self._records, self._told, self._waiters
        self._records, self._told, self._waiters = [], [], []
        if self._in_thread and records:
            self._task = asyncio.ensure_future(self._commit_in_thread(records, told, waiters))
            return
        try:
            if records:
                self._journal.commit(records)
        except Exception as error:
            self._fail(error, waiters)
        else:
            self._tell_all(told, waiters)

    async def _commit_in_thread(
        self, records: list[Record], told: list[Callable[[], None]], waiters: list[asyncio.Future[None]]
    ) -> None:
        try:
            await asyncio.shield(asyncio.to_thread(self._journal.commit, records))
        except Exception as error:
            self._task = None
            self._fail(error, waiters)
            return
        self._task = None
        self._tell_all(told, waiters)
        if self._records or self._told:
            self._schedule()

    def _tell_all(self, told: list[Callable[[], None]], waiters: list[asyncio.Future[None]]) -> None:
        for callback in told:
            try:
                callback()
            except Exception:
                # One that fails is a fault of ours, and must not keep the others from what is theirs.
                _log.exception("telling_failed")
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _fail(self, cause: Exception, waiters: list[asyncio.Future[None]]) -> None:
        # A batch that the journal refuses is a fault of ours; what was to be stored is lost all the same, so stop.
        _log.error("storage_failed", error=type(cause).__name__, exc_info=not isinstance(cause, StorageError))
        error = cause if isinstance(cause, StorageError) else StorageError("the journal refused a batch")
        self.failed = error
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(error)
        self._on_failure(error)
