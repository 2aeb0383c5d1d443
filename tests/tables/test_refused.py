"""The journal does not take what was decided in one match: the referee's fault, in that match alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from referee.v1 import match_pb2
from referee_server.journal import DamagedLogError, EventsAdded, LimitError, MatchAdded, MemoryJournal, Record
from tables.kit import Player, Room, duel


class Strict(MemoryJournal):
    """Refuses whole batches that hold a record of a kind; nothing of them is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.refuses: Callable[[Record], Exception | None] = lambda record: None

    def commit(self, batch: Sequence[Record]) -> None:
        for record in batch:
            error = self.refuses(record)
            if error is not None:
                raise error
        super().commit(batch)


@pytest.fixture
def journal() -> Strict:
    return Strict()


async def two(journal: Strict) -> tuple[Room, str, Player, Player, str]:
    """Returns a match of anna and bert, and another that is played beside it."""
    room = Room(journal)
    anna, bert = await room.connect("anna", wants_events=True), await room.connect("bert")
    match_id = await room.started(duel(options={"deals": 5}), anna, bert)
    cleo = await room.connect("cleo")
    return room, match_id, anna, bert, await room.started(duel("cleo", "bot:first"), cleo)


def refuses_once(match_id: str) -> Callable[[Record], Exception | None]:
    """Refuses the next events of a match, in the whole batch and by themselves."""
    left = [2]

    def refuses(record: Record) -> Exception | None:
        if isinstance(record, EventsAdded) and record.match_id == match_id and left[0]:
            left[0] -= 1
            return LimitError("the match has too many events")
        return None

    return refuses


async def test_the_match_ends_as_the_referees_fault_from_what_is_stored(journal: Strict) -> None:
    room, match_id, anna, bert, other = await two(journal)
    before = len(room.log(match_id))
    told = len(anna.events(match_id))
    journal.refuses = refuses_once(match_id)
    bert.answer()
    await room.quiet()
    await room.quiet()
    events = room.log(match_id)
    assert [event.WhichOneof("payload") for event in events[before:]] == ["match_ended", "secret_revealed"]
    assert events[before].match_ended.result.reason == match_pb2.END_REASON_REFEREE_FAULT
    assert bert.of("verdict") == []
    for player in (anna, bert):
        assert [over.result.reason for over in player.of("match_over")] == [match_pb2.END_REASON_REFEREE_FAULT]
        assert player.session.open_count == 0
    assert len(anna.events(match_id)) == told + 2
    assert room.check(match_id).ended
    await room.play_out(other)
    assert room.check(other).match.state == match_pb2.MATCH_STATE_FINISHED
    assert not room.hall.stopped.is_set()
    await room.close()


async def test_its_agents_play_their_next_match(journal: Strict) -> None:
    room, match_id, anna, bert, _ = await two(journal)
    journal.refuses = refuses_once(match_id)
    bert.answer()
    await room.quiet()
    following = await room.started(duel(), anna, bert)
    await room.play_out(following)
    assert room.check(following).match.state == match_pb2.MATCH_STATE_FINISHED
    await room.close()


async def test_a_match_that_takes_no_events_at_all_is_let_go_and_keeps_nobody_from_playing(journal: Strict) -> None:
    room, match_id, anna, bert, other = await two(journal)
    before = room.log(match_id)

    def damaged(record: Record) -> Exception | None:
        ours = isinstance(record, EventsAdded) and record.match_id == match_id
        return DamagedLogError(3, "it is damaged at event 3") if ours else None

    journal.refuses = damaged
    bert.answer()
    await room.quiet()
    assert match_id not in room.hall.matches.running
    assert room.log(match_id) == before
    following = await room.started(duel(), anna, bert)
    await room.play_out(following, other)
    assert room.check(following).match.state == match_pb2.MATCH_STATE_FINISHED
    await room.close()


async def test_a_match_that_cannot_be_created_does_not_exist(journal: Strict) -> None:
    room, match_id, _, _, other = await two(journal)
    journal.refuses = lambda record: LimitError("too many matches") if isinstance(record, MatchAdded) else None
    lost = room.hall.matches.create(duel("bot:first", "bot:first"))
    await room.quiet()
    assert set(room.hall.matches.running) == {match_id, other}
    assert journal.match(lost) is None
    await room.close()
