"""The rules of a game raise: the referee's fault, in one match, and nobody is told what it was about."""

from __future__ import annotations

from typing import Any

import pytest

from referee.v1 import event_pb2, match_pb2
from referee_games import registry
from referee_server.tables import table as tables
from tables.kit import Player, Room, duel

HighCardState: Any = type(registry.find("high_card").start({"deals": 1}, 0))
SECRET = "seat 1 holds 7S"
FAULT = match_pb2.END_REASON_REFEREE_FAULT


@pytest.fixture(params=["apply", "legal", "view", "forced"])
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One of the engine's methods, made to raise once the list says so."""
    raising = [False]
    original = getattr(HighCardState, request.param)

    def maybe(self: Any, *args: object) -> object:
        if raising[0]:
            raise RuntimeError(SECRET)
        return original(self, *args)

    monkeypatch.setattr(HighCardState, request.param, maybe)
    return raising


async def two(room: Room) -> tuple[str, Player, Player]:
    anna, bert = await room.connect("anna"), await room.connect("bert")
    return await room.started(duel(options={"deals": 5}), anna, bert), anna, bert


async def test_the_match_ends_as_the_referees_fault_with_an_incident_id(room: Room, broken: list[bool]) -> None:
    match_id, anna, bert = await two(room)
    broken[0] = True
    bert.answer()
    await room.quiet()
    broken[0] = False
    [ended] = room.of_log(match_id, "match_ended")
    assert ended.result.reason == FAULT
    assert list(ended.result.official_places) == []
    assert ended.note.startswith("the referee failed; incident ")
    for player in (anna, bert):
        assert player.of("match_over")[0].result.reason == FAULT
    assert room.check(match_id).ended


async def test_nothing_of_what_was_raised_is_stored_or_told(room: Room, broken: list[bool]) -> None:
    match_id, anna, bert = await two(room)
    broken[0] = True
    bert.answer()
    await room.quiet()
    assert all(SECRET.encode() not in event for event in room.journal.read(match_id))
    assert all(SECRET not in str(item) for item in (*anna.got, *bert.got))


async def test_other_matches_go_on(room: Room, broken: list[bool]) -> None:
    match_id, _, bert = await two(room)
    cleo, dora = await room.connect("cleo"), await room.connect("dora")
    other = await room.started(duel("cleo", "dora"), cleo, dora)
    broken[0] = True
    bert.answer()
    await room.quiet()
    broken[0] = False
    await room.play_out(other)
    assert match_id not in room.hall.matches.running
    assert room.check(other).match.state == match_pb2.MATCH_STATE_FINISHED


async def test_agents_of_a_broken_match_can_play_the_next_one(room: Room, broken: list[bool]) -> None:
    _, anna, bert = await two(room)
    broken[0] = True
    bert.answer()
    await room.quiet()
    broken[0] = False
    assert (anna.session.open_count, bert.session.open_count) == (0, 0)
    following = await room.started(duel(), anna, bert)
    await room.play_out(following)
    assert room.check(following).match.state == match_pb2.MATCH_STATE_FINISHED


async def test_an_answer_over_which_the_referee_fails_is_not_called_accepted(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    match_id, _, bert = await two(room)

    def raises(self: Any, action: int) -> object:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(HighCardState, "apply", raises)
    bert.answer()
    bert.answer(question=bert.question)
    await room.quiet()
    assert [verdict.status for verdict in bert.of("verdict")] == [event_pb2.ANSWER_STATUS_MATCH_OVER] * 2
    assert room.of_log(match_id, "action_applied") == []


@pytest.mark.parametrize("method", ["deal", "apply", "legal"])
async def test_rules_that_raise_in_a_match_of_house_bots_keep_nobody_waiting(
    room: Room, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def raises(*args: object) -> object:
        raise RuntimeError(SECRET)

    with monkeypatch.context() as patched:
        patched.setattr(HighCardState, method, raises)
        match_id = room.hall.matches.create(duel("bot:first", "bot:first"))
        await room.until(lambda: match_id not in room.hall.matches.running)
    assert room.of_log(match_id, "match_ended")[0].result.reason == FAULT


async def test_a_house_bot_that_raises_is_the_referees_fault_too(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    from referee_games import bots

    class Broken:
        name = "first"

        def choose(self, decision: object) -> str:
            raise RuntimeError(SECRET)

    monkeypatch.setattr(bots, "make", lambda name, seed: Broken())
    anna = await room.connect("anna")
    match_id = await room.started(duel("anna", "bot:first"), anna)
    await room.quiet()
    assert room.of_log(match_id, "match_ended")[0].result.reason == FAULT
    assert anna.of("match_over")[0].result.reason == FAULT


async def test_a_match_is_stopped_before_its_log_is_longer_than_a_log_may_be(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_MOST_EVENTS", 100)
    match_id = room.hall.matches.create(duel("bot:first", "bot:first", options={"deals": 100}))
    await room.until(lambda: match_id not in room.hall.matches.running)
    [ended] = room.of_log(match_id, "match_ended")
    assert ended.result.reason == FAULT
    assert "longer than a log" in ended.note
    assert room.check(match_id).ended


async def test_a_broken_match_can_neither_be_cancelled_nor_joined(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    match_id, _, bert = await two(room)
    with monkeypatch.context() as patched:
        patched.setattr(HighCardState, "apply", lambda self, action: 1 / 0)
        bert.answer()
        assert room.table(match_id).broken
        bert.gone()
        await room.connect("bert")
    assert match_id not in room.hall.matches.running
    assert room.check(match_id).ended
