"""Packing matches that have ended, where the machine has no room for it at the moment."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from referee_server.journal import MemoryJournal, StorageBusyError, StorageFullError, pack
from referee_server.tables import housekeeping
from tables.kit import Room, duel

TROUBLE = [
    MemoryError(),
    OSError(errno.EIO, "input/output error"),
    RuntimeError("can't start new thread"),
    StorageFullError("no space is left"),
    StorageBusyError("locked"),
]


class Trouble:
    """Fails as often as it is told to, then does what it stands in for; the error last raised is kept."""

    def __init__(self, stands_for: Any, error: Exception, times: int) -> None:
        self._stands_for = stands_for
        self._error = error
        self.left = times

    def __call__(self, *arguments: Any) -> Any:
        if self.left:
            self.left -= 1
            raise self._error
        return self._stands_for(*arguments)


@pytest.fixture
async def room(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Room]:
    """A room where nothing that is put off is put off for long, and no task may end in an error that nobody sees."""
    monkeypatch.setattr(housekeeping, "PUT_OFF_S", 0.0)
    unseen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
    made = Room()
    yield made
    await made.close()
    await made.hall.close()
    assert unseen == []


def is_packed(room: Room, match_id: str) -> bool:
    assert isinstance(room.journal, MemoryJournal)
    found = room.journal._matches.get(match_id)
    return found is not None and found.log is not None


async def played(room: Room) -> str:
    match_id = room.hall.matches.create(duel("bot:first", "bot:first"))
    await room.until(lambda: match_id not in room.hall.matches.running)
    return match_id


@pytest.mark.parametrize("error", TROUBLE, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", ["read", "pack"])
async def test_what_cannot_be_packed_now_is_packed_later_and_one_line_says_so(
    room: Room, monkeypatch: pytest.MonkeyPatch, error: Exception, where: str
) -> None:
    at_fault: Any = room.journal if where == "read" else housekeeping
    trouble = Trouble(getattr(at_fault, where), error, times=3)
    monkeypatch.setattr(at_fault, where, trouble)
    with capture_logs() as logs:
        first = await played(room)
        second = await played(room)
        await room.until(lambda: is_packed(room, first) and is_packed(room, second))
    assert trouble.left == 0
    assert [line["error"] for line in logs if line["event"] == "packing_put_off"] == [type(error).__name__]
    assert room.hall.committer.failed is None


async def test_a_match_that_cannot_be_packed_keeps_no_other_from_it(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []

    def picky(match_id: str, events: Any) -> bytes:
        if not refused:
            refused.append(match_id)
        if match_id in refused:
            raise MemoryError
        return pack(match_id, events)

    monkeypatch.setattr(housekeeping, "pack", picky)
    first = await played(room)
    second = await played(room)
    await room.until(lambda: is_packed(room, second))
    assert refused == [first]
    assert not is_packed(room, first)


async def test_a_fault_of_ours_in_one_match_is_told_and_the_next_is_packed(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "pack", Trouble(pack, KeyError("?"), times=1))
    with capture_logs() as logs:
        first = await played(room)
        await room.until(lambda: not room.hall.housekeeper.busy)
        second = await played(room)
        await room.until(lambda: is_packed(room, second))
    assert [line["match_id"] for line in logs if line["event"] == "archive_failed"] == [first]


async def test_what_was_put_off_when_the_service_ends_is_packed_after_the_next_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = Room()
    with monkeypatch.context() as patch:
        patch.setattr(housekeeping, "pack", Trouble(pack, MemoryError(), times=1))
        match_id = await played(room)
        await room.until(lambda: not room.hall.housekeeper.busy)
        await room.hall.close()
    assert not is_packed(room, match_id)
    again = Room(room.journal)
    again.hall.start()
    await again.until(lambda: is_packed(again, match_id))
    await again.hall.close()


async def test_moving_what_was_committed_goes_on_after_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "CHECKPOINT_S", 0.0)
    room = Room()
    trouble = Trouble(room.journal.checkpoint, MemoryError(), times=2)
    moved = asyncio.Event()
    loop = asyncio.get_running_loop()

    def checkpoint() -> int:
        done: int = trouble()
        loop.call_soon_threadsafe(moved.set)
        return done

    monkeypatch.setattr(room.journal, "checkpoint", checkpoint)
    room.hall.housekeeper.start()
    await asyncio.wait_for(moved.wait(), 5)
    await room.hall.close()
