from __future__ import annotations

import pytest

from referee.v1 import error_reason_pb2 as reason_pb
from referee_server.match.errors import RefusedError
from tables.kit import GIVEN, Room, duel


async def test_a_repeat_with_the_same_request_id_returns_the_first_match(room: Room) -> None:
    first = room.hall.matches.create(duel("bot:first", "bot:first"), "r1")
    await room.quiet()
    assert room.hall.matches.create(duel("bot:first", "bot:first"), "r1") == first
    await room.quiet()
    assert len(room.journal.matches()) == 1


async def test_a_repeat_before_the_first_is_stored_returns_the_first_match(room: Room) -> None:
    first = room.hall.matches.create(duel("bot:first", "bot:first"), "r1")
    assert room.hall.matches.create(duel("bot:first", "bot:first"), "r1") == first
    await room.quiet()
    assert room.hall.committer.failed is None
    assert len(room.journal.matches()) == 1


async def test_a_repeat_long_after_the_end_returns_the_first_match(room: Room) -> None:
    first = room.hall.matches.create(duel("bot:first", "bot:first"), "r1")
    await room.until(lambda: first not in room.hall.matches.running)
    await room.until(lambda: not room.hall.housekeeper.busy)
    assert room.hall.matches.create(duel("bot:first", "bot:first"), "r1") == first


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize(
    "other",
    [
        duel("bot:first", "bot:greedy"),
        duel("bot:first", "bot:first", label="another"),
        duel("bot:first", "bot:first", options={"deals": 2}),
        duel("bot:first", "bot:first", given_secret=GIVEN),
    ],
    ids=["seats", "label", "options", "secret"],
)
async def test_a_request_id_is_not_for_another_request(room: Room, *, stored: bool, other: object) -> None:
    room.hall.matches.create(duel("bot:first", "bot:first"), "r1")
    if stored:
        await room.quiet()
    with pytest.raises(RefusedError) as refused:
        room.hall.matches.create(other, "r1")  # type: ignore[arg-type]
    assert refused.value.reason == reason_pb.ERROR_REASON_REQUEST_ID_REUSED


async def test_without_a_request_id_every_call_is_a_new_match(room: Room) -> None:
    first = room.hall.matches.create(duel("bot:first", "bot:first"))
    assert room.hall.matches.create(duel("bot:first", "bot:first")) != first


@pytest.mark.parametrize("stored", [True, False])
async def test_a_match_of_a_given_secret_is_played_once(room: Room, *, stored: bool) -> None:
    room.hall.matches.create(duel("bot:first", "bot:first", given_secret=GIVEN))
    if stored:
        await room.quiet()
    with pytest.raises(RefusedError) as refused:
        room.hall.matches.create(duel("bot:first", "bot:first", given_secret=GIVEN))
    assert refused.value.field == "spec.given_secret"
    await room.quiet()
    assert room.hall.committer.failed is None


async def test_an_agent_named_by_name_and_by_id_is_one_agent(room: Room) -> None:
    room.register("anna")
    with pytest.raises(RefusedError) as refused:
        room.hall.matches.create(duel("anna", "id-anna"))
    assert refused.value.reason == reason_pb.ERROR_REASON_AGENT_REPEATED


async def test_an_agent_is_found_under_any_spelling_of_its_name(room: Room) -> None:
    room.register("Anna", "bert")
    match_id = room.hall.matches.create(duel("ANNA", "bert"))
    assert room.table(match_id).match.seats[0].agent_id == "id-Anna"


async def test_a_refused_match_leaves_nothing_behind(room: Room) -> None:
    with pytest.raises(RefusedError):
        room.hall.matches.create(duel("nobody", "bot:first"), "r1")
    await room.quiet()
    assert not room.hall.matches.running
    assert room.journal.matches() == []
    room.hall.matches.create(duel("bot:first", "bot:first"), "r1")


async def test_match_ids_are_26_characters_that_say_nothing(room: Room) -> None:
    ids = {room.hall.matches.create(duel("bot:first", "bot:first")) for _ in range(20)}
    assert len(ids) == 20
    assert all(len(one) == 26 and set(one) <= set("abcdefghijklmnopqrstuvwxyz234567") for one in ids)
    assert len({one[:4] for one in ids}) > 15
