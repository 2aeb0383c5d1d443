"""Who the agents are, those included whose registration is on its way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from referee.v1 import error_reason_pb2 as reason_pb
from referee_server.journal import MemoryJournal, Record, StorageError, StorageFullError
from referee_server.match.errors import RefusedError
from referee_server.rpc.gate import Caller, Gate
from tables.kit import Bytes, Room

HASH, OTHER = b"h" * 32, b"o" * 32


class Disk(MemoryJournal):
    """A journal whose disk can be full."""

    full = False

    def commit(self, batch: Sequence[Record]) -> None:
        if self.full:
            raise StorageFullError("no space is left")
        super().commit(batch)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
async def room(disk: Disk) -> AsyncIterator[Room]:
    made = Room(disk)
    yield made
    await made.close()


@pytest.mark.parametrize("stored", [False, True], ids=["on its way", "stored"])
@pytest.mark.parametrize("name", ["Anna", "ANNA", "an na"])
async def test_a_name_that_reads_like_another_agents_is_taken(room: Room, name: str, stored: bool) -> None:
    room.hall.roster.register("1", "Anna", HASH)
    if stored:
        await room.quiet()
    assert room.hall.roster.has_name(name)
    with pytest.raises(RefusedError) as refused:
        room.hall.roster.register("2", name, OTHER)
    assert refused.value.reason == reason_pb.ERROR_REASON_NAME_TAKEN
    await room.quiet()
    assert [row.agent_id for row in room.journal.agents()] == ["1"]


@pytest.mark.parametrize("stored", [False, True], ids=["on its way", "stored"])
async def test_a_credential_is_one_agents(room: Room, stored: bool) -> None:
    row = room.hall.roster.register("1", "anna", HASH)
    if stored:
        await room.quiet()
    assert room.hall.roster.with_hash(HASH) == row
    with pytest.raises(RefusedError) as refused:
        room.hall.roster.register("2", "bert", HASH)
    assert refused.value.reason == reason_pb.ERROR_REASON_FIELD_INVALID
    assert not room.hall.roster.has_name("bert")


async def test_an_invalid_name_takes_nothing(room: Room) -> None:
    with pytest.raises(RefusedError) as refused:
        room.hall.roster.register("1", " anna", HASH)
    assert refused.value.reason == reason_pb.ERROR_REASON_NAME_INVALID
    assert room.hall.roster.with_hash(HASH) is None


async def test_while_the_disk_is_full_a_registration_keeps_its_name_and_credential(room: Room, disk: Disk) -> None:
    disk.full = True
    row = room.hall.roster.register("1", "anna", HASH)
    with pytest.raises(StorageError):
        await room.hall.committer.settled()
    assert room.hall.roster.with_hash(HASH) == row
    with pytest.raises(RefusedError):
        room.hall.roster.register("2", "anna", OTHER)
    disk.full = False
    await room.until(lambda: not room.hall.committer.stalled)
    assert room.journal.agents() == [row]


async def test_who_comes_again_while_the_disk_is_full_is_registered_once(room: Room, disk: Disk) -> None:
    gate = Gate(room.hall, "0" * 64, Bytes(b"gate"), open_registration=True)
    disk.full = True
    for _ in range(3):
        with pytest.raises(StorageError):
            await gate.admit(Caller(credential_hash=HASH), "anna")
    disk.full = False
    await room.until(lambda: not room.hall.committer.stalled)
    row = await gate.admit(Caller(credential_hash=HASH), "anna")
    assert room.journal.agents() == [row]
