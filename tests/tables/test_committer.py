"""Commit before you speak."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from referee.v1 import agent_service_pb2 as pb
from referee_server.journal import (
    AgentAdded,
    DuplicateError,
    EventsAdded,
    MatchAdded,
    MemoryJournal,
    Record,
    StorageBusyError,
    StorageCorruptError,
    StorageError,
    StorageFullError,
    StorageIOError,
)
from referee_server.tables.committer import Committer


class Listener:
    def __init__(self) -> None:
        self.heard: list[int] = []

    def push(self, item: pb.ServerItem) -> None:
        self.heard.append(item.ping.ping_id)


def says(number: int) -> pb.ServerItem:
    return pb.ServerItem(ping=pb.Ping(ping_id=number))


def agent(number: int) -> AgentAdded:
    return AgentAdded(f"id-{number}", f"a{number}", f"a{number}", b"%32d" % number, 0)


class GatedJournal(MemoryJournal):
    """Commits only when it is let, and fails when it is told to."""

    def __init__(self, *, open_: bool = True) -> None:
        super().__init__()
        self.gate = threading.Event()
        if open_:
            self.gate.set()
        self.error: Exception | None = None
        self.batches: list[int] = []
        self.began = threading.Event()

    def commit(self, batch: Sequence[Record]) -> None:
        self.began.set()
        assert self.gate.wait(10)
        if self.error is not None:
            raise self.error
        super().commit(batch)
        self.batches.append(len(batch))


def make(journal: MemoryJournal, *, in_thread: bool) -> tuple[Committer, list[StorageError]]:
    failures: list[StorageError] = []
    committer = Committer(
        journal,
        in_thread=in_thread,
        on_failure=failures.append,
        on_stall=lambda stalled: None,
        on_refused=lambda match_id, error: None,
    )
    return committer, failures


both = pytest.mark.parametrize("in_thread", [False, True], ids=["in the loop", "in a thread"])


@both
async def test_nothing_is_told_before_it_is_committed(in_thread: bool) -> None:
    journal = GatedJournal()
    committer, _ = make(journal, in_thread=in_thread)
    stored_when_told: list[bool] = []
    committer.store(agent(1))
    committer.then(lambda: stored_when_told.append(journal.agent("id-1") is not None))
    assert stored_when_told == []
    await committer.settled()
    assert stored_when_told == [True]


@both
async def test_all_of_one_turn_of_the_loop_is_one_commit(in_thread: bool) -> None:
    journal = GatedJournal()
    committer, _ = make(journal, in_thread=in_thread)
    for number in range(10):
        committer.store(agent(number))
    await committer.settled()
    assert journal.batches == [10]


@both
async def test_things_are_told_in_the_order_of_calls(in_thread: bool) -> None:
    committer, _ = make(GatedJournal(), in_thread=in_thread)
    listener = Listener()
    for number in range(50):
        committer.store(agent(number))
        committer.tell(listener, says(number))
        if number % 7 == 0:
            await asyncio.sleep(0)
    await committer.settled()
    assert listener.heard == list(range(50))


async def test_what_is_queued_during_a_commit_in_a_thread_waits_for_the_next() -> None:
    journal = GatedJournal(open_=False)
    committer, _ = make(journal, in_thread=True)
    listener = Listener()
    committer.store(agent(1))
    committer.tell(listener, says(1))
    await asyncio.to_thread(journal.began.wait)
    committer.store(agent(2))
    committer.tell(listener, says(2))
    committer.tell(listener, says(3))
    for _ in range(5):
        await asyncio.sleep(0)
    assert listener.heard == []
    journal.gate.set()
    await committer.settled()
    assert listener.heard == [1, 2, 3]
    assert journal.batches == [1, 1]


async def test_who_begins_to_wait_during_a_commit_in_a_thread_is_woken() -> None:
    journal = GatedJournal(open_=False)
    committer, _ = make(journal, in_thread=True)
    committer.store(agent(1))
    await asyncio.to_thread(journal.began.wait)
    waiting = asyncio.ensure_future(committer.settled())
    await asyncio.sleep(0)
    journal.gate.set()
    await asyncio.wait_for(waiting, 5)
    assert journal.agent("id-1") is not None


@both
@pytest.mark.parametrize("error", [StorageCorruptError("torn"), StorageIOError("gone")])
async def test_after_a_storage_failure_nothing_is_told_any_more(in_thread: bool, error: StorageError) -> None:
    journal = GatedJournal()
    committer, failures = make(journal, in_thread=in_thread)
    listener = Listener()
    journal.error = error
    committer.store(agent(1))
    committer.tell(listener, says(1))
    with pytest.raises(type(error)):
        await committer.settled()
    journal.error = None
    committer.store(agent(2))
    committer.tell(listener, says(2))
    with pytest.raises(type(error)):
        await committer.settled()
    assert listener.heard == []
    assert failures == [error]
    assert journal.agents() == []


async def test_who_waits_for_the_next_commit_is_told_of_the_failure_of_this_one() -> None:
    journal = GatedJournal(open_=False)
    journal.error = StorageIOError("gone")
    committer, _ = make(journal, in_thread=True)
    committer.store(agent(1))
    await asyncio.to_thread(journal.began.wait)
    waiting = asyncio.ensure_future(committer.settled())
    await asyncio.sleep(0)
    journal.gate.set()
    with pytest.raises(StorageIOError):
        await asyncio.wait_for(waiting, 5)


@both
async def test_a_batch_that_the_journal_refuses_stops_everything_and_leaves_nobody_waiting(in_thread: bool) -> None:
    committer, failures = make(GatedJournal(), in_thread=in_thread)
    listener = Listener()
    committer.store(agent(1))
    committer.store(agent(1))
    committer.tell(listener, says(1))
    with pytest.raises(StorageError) as failed:
        await asyncio.wait_for(committer.settled(), 5)
    assert isinstance(failed.value.__cause__, DuplicateError)
    assert listener.heard == []
    assert len(failures) == 1


def match(match_id: str) -> MatchAdded:
    return MatchAdded(match_id, "high_card", "", bytes(32), b"", 0, "WAITING")


@both
async def test_of_a_batch_that_is_refused_only_the_match_at_fault_is_left_out(in_thread: bool) -> None:
    journal = GatedJournal()
    failures: list[StorageError] = []
    refused: list[str] = []
    committer = Committer(
        journal,
        in_thread=in_thread,
        on_failure=failures.append,
        on_stall=lambda stalled: None,
        on_refused=lambda match_id, error: refused.append(f"{match_id} {type(error).__name__}"),
    )
    journal.commit([match("twice")])
    told: list[str] = []
    for match_id in ("one", "twice", "other"):
        committer.store(match(match_id))
        committer.store(EventsAdded(match_id, (b"event",)))
        committer.then(lambda match_id=match_id: told.append(match_id), match_id)  # type: ignore[misc]
    committer.store(agent(1))
    committer.then(lambda: told.append("nobody's"))
    await asyncio.wait_for(committer.settled(), 5)
    assert told == ["one", "other", "nobody's"]
    assert refused == ["twice DuplicateError"]
    assert [journal.read(match_id) for match_id in ("one", "twice", "other")] == [[b"event"], [], [b"event"]]
    assert journal.agent("id-1") is not None
    assert failures == []


async def test_what_follows_from_what_was_refused_is_dropped_too() -> None:
    journal = GatedJournal(open_=False)
    committer, failures = make(journal, in_thread=True)
    told: list[str] = []
    committer.store(match("one"))
    committer.store(EventsAdded("nowhere", (b"first",)))
    assert await asyncio.to_thread(journal.began.wait, 10)
    committer.store(EventsAdded("nowhere", (b"second",)))
    committer.then(lambda: told.append("nowhere"), "nowhere")
    committer.store(EventsAdded("one", (b"first",)))
    committer.then(lambda: told.append("one"), "one")
    journal.gate.set()
    await asyncio.wait_for(committer.settled(), 5)
    assert told == ["one"]
    assert journal.read("one") == [b"first"]
    assert failures == []


@both
async def test_one_who_fails_to_listen_keeps_nothing_from_the_others(in_thread: bool) -> None:
    committer, failures = make(GatedJournal(), in_thread=in_thread)
    listener = Listener()

    def broken() -> None:
        raise RuntimeError("deaf")

    committer.store(agent(1))
    committer.then(broken)
    committer.tell(listener, says(1))
    await asyncio.wait_for(committer.settled(), 5)
    assert listener.heard == [1]
    assert failures == []


@both
@pytest.mark.parametrize("error", [StorageFullError("no space"), StorageBusyError("locked")])
async def test_what_could_not_be_stored_waits_and_is_told_when_the_storage_is_back(
    in_thread: bool, error: StorageError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("referee_server.tables.committer.RETRY_S", 0.0)
    journal = GatedJournal()
    stalls: list[bool] = []
    failures: list[StorageError] = []
    committer = Committer(
        journal,
        in_thread=in_thread,
        on_failure=failures.append,
        on_stall=stalls.append,
        on_refused=lambda match_id, error: None,
    )
    back = asyncio.Event()
    told: list[int] = []
    journal.error = error
    committer.store(agent(1))
    committer.then(lambda: told.append(1))
    with pytest.raises(type(error)):
        await committer.settled()
    assert (committer.stalled, stalls, told, failures) == (True, [True], [], [])
    with pytest.raises(type(error)):
        await committer.settled()
    committer.store(agent(2))
    committer.then(lambda: told.append(2))
    committer.then(back.set)
    journal.error = None
    await asyncio.wait_for(back.wait(), 5)
    assert told == [1, 2]
    assert (committer.stalled, stalls) == (False, [True, False])
    assert [row.agent_id for row in journal.agents()] == ["id-1", "id-2"]
