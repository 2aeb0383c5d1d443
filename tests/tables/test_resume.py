"""The referee goes down and comes back: every match goes on as if nothing had been."""

from __future__ import annotations

from collections.abc import Sequence

from referee.v1 import match_pb2
from referee_server.journal import EventsAdded, MatchAdded, MemoryJournal, Record, SummaryChanged
from tables.fake_clock import FakeClock
from tables.kit import MS, Player, Room, S, duel

CLOCK = match_pb2.Clock(allowance_ms=200, bank_ms=0)


async def begun(room: Room, **fields: object) -> tuple[str, Player, Player]:
    anna, bert = await room.connect("anna"), await room.connect("bert")
    match_id = await room.started(duel(clock=CLOCK, options={"deals": 4}, **fields), anna, bert)
    return match_id, anna, bert


def restarted(room: Room, *, down_us: int = 1_000 * S) -> Room:
    """Returns a new referee on the same journal, as after a kill: nothing was said, nothing more was stored."""
    return Room(room.journal, FakeClock(room.clock.now_us() % S + down_us))


async def test_every_match_goes_on(room: Room) -> None:
    anna, bert = await room.connect("anna", max_matches=3), await room.connect("bert", max_matches=3)
    ids = [await room.started(duel(), anna, bert) for _ in range(3)]
    again = restarted(room)
    assert again.hall.matches.resume_all() == 3
    await again.quiet()
    await again.connect("anna", max_matches=3)
    await again.connect("bert", max_matches=3)
    await again.play_out(*ids)
    for match_id in ids:
        report = again.check(match_id)
        assert report.ended
        assert not report.sealed


async def test_the_same_question_is_put_again_with_the_same_cards(room: Room) -> None:
    match_id, _, bert = await begun(room)
    again = restarted(room)
    again.hall.matches.resume_all()
    await again.quiet()
    back = await again.connect("bert")
    assert (back.question.decision_id, back.question.legal) == (bert.question.decision_id, bert.question.legal)
    assert back.question.generic == bert.question.generic
    assert len(again.of_log(match_id, "cards_dealt")) == 1


async def test_what_is_played_after_a_restart_is_what_would_have_been_played(room: Room) -> None:
    fields = {"given_secret": bytes(32), "clock": CLOCK, "options": {"deals": 4}}
    whole = Room()
    one = await whole.started(duel(**fields), await whole.connect("anna"), await whole.connect("bert"))
    await whole.play_out(one)
    match_id = await room.started(duel(**fields), await room.connect("anna"), bert := await room.connect("bert"))
    bert.answer()
    await room.quiet()
    again = restarted(room)
    again.hall.matches.resume_all()
    await again.connect("anna")
    await again.connect("bert")
    await again.play_out(match_id)
    assert again.of_log(match_id, "cards_dealt") == whole.of_log(one, "cards_dealt")
    assert [a.action for a in again.of_log(match_id, "action_applied")] == [
        a.action for a in whole.of_log(one, "action_applied")
    ]
    await whole.close()


async def test_down_time_is_free(room: Room) -> None:
    match_id, _, _ = await begun(room)
    await room.pass_time(150 * MS)
    again = restarted(room)
    again.hall.matches.resume_all()
    back = await again.connect("bert")
    assert back.question.allowance_us == 200 * MS
    assert again.of_log(match_id, "match_resumed")
    assert again.log(match_id)[-1].match_time_us < S


async def test_a_clock_starts_only_when_its_agent_is_back(room: Room) -> None:
    match_id, _, _ = await begun(room)
    again = restarted(room)
    again.hall.matches.resume_all()
    await again.pass_time(20 * S)
    back = await again.connect("bert")
    assert back.question.allowance_us == 200 * MS
    assert again.of_log(match_id, "fault_ruled") == []
    await again.pass_time(200 * MS)
    assert [ruled.kind for ruled in again.of_log(match_id, "fault_ruled")] == [match_pb2.FAULT_KIND_TIMEOUT]


async def test_who_does_not_come_back_after_a_restart_is_replaced_when_the_grace_is_over(room: Room) -> None:
    match_id, _, _ = await begun(room)
    again = restarted(room)
    again.hall.matches.resume_all()
    await again.quiet()
    await again.connect("anna")
    await again.pass_time(30 * S - 1)
    assert again.of_log(match_id, "seat_replaced") == []
    await again.pass_time(1)
    assert [one.seat for one in again.of_log(match_id, "seat_replaced")] == [1]
    await again.play_out(match_id)
    assert again.check(match_id).ended


async def test_an_answer_that_was_stored_is_not_asked_for_again(room: Room) -> None:
    match_id, _, bert = await begun(room)
    bert.answer()
    await room.quiet()
    again = restarted(room)
    again.hall.matches.resume_all()
    back = await again.connect("bert")
    assert back.of("decision") == []
    first = await again.connect("anna")
    assert first.question.match_id == match_id


async def test_a_match_that_waits_for_its_agents_goes_on_waiting(room: Room) -> None:
    anna = await room.connect("anna")
    room.register("bert")
    match_id = room.hall.matches.create(duel())
    await room.quiet()
    anna.ready(match_id, b"7" * 32)
    await room.pass_time(29 * S)
    again = restarted(room)
    again.hall.matches.resume_all()
    await again.pass_time(29 * S)
    await again.connect("anna")
    bert = await again.connect("bert")
    bert.ready(match_id)
    await again.quiet()
    await again.play_out(match_id)
    assert again.check(match_id).ended
    assert again.of_log(match_id, "secret_revealed")[0].nonces[0] == b"7" * 32


async def test_a_match_that_was_just_created_goes_on(room: Room) -> None:
    """Killed after the commit of the creation and before that of its consequences."""
    room.hall.matches.create(duel("bot:first", "bot:first"))
    await room.until(lambda: bool(room.journal.matches()))
    [row] = room.journal.matches()
    first = room.journal.read(row.match_id)[0]
    cut = MemoryJournal()
    cut.commit(
        [
            MatchAdded(row.match_id, row.game, "", room.journal.secret(row.match_id), row.summary, 0, "WAITING"),
            EventsAdded(row.match_id, (first,)),
        ]
    )
    again = Room(cut)
    again.hall.matches.resume_all()
    await again.until(lambda: row.match_id not in again.hall.matches.running)
    assert again.check(row.match_id).ended


async def test_a_match_cut_after_any_commit_verifies_and_goes_on(room: Room) -> None:
    """Every state of the journal that a kill can leave, of a match between an agent and a house bot."""
    batches: list[Sequence[Record]] = []
    commit = room.journal.commit

    def watched(batch: Sequence[Record]) -> None:
        batches.append(list(batch))
        commit(batch)

    room.journal.commit = watched  # type: ignore[method-assign]
    anna = await room.connect("anna")
    match_id = await room.started(duel("anna", "bot:random", options={"deals": 12}, clock=CLOCK), anna)
    await room.play_out(match_id)
    first = next(n for n, batch in enumerate(batches) if any(isinstance(one, MatchAdded) for one in batch))
    assert len(batches) > first + 10
    for end in range(first + 1, len(batches)):
        cut = MemoryJournal()
        for batch in batches[:end]:
            cut.commit(batch)
        again = Room(cut)
        again.hall.matches.resume_all()
        back = await again.connect("anna")
        if match_id in again.hall.matches.running and not again.table(match_id).match.seats[0].ready:
            back.ready(match_id)
            await again.quiet()
        await again.play_out(match_id)
        assert again.check(match_id).ended, end
        await again.close()


async def test_a_match_that_cannot_be_followed_does_not_hold_up_the_others(room: Room) -> None:
    match_id, _, _ = await begun(room)
    room.journal.commit(
        [
            MatchAdded("alien", "bridge", "", bytes(32), b"", 0, "RUNNING"),
            EventsAdded("alien", (b"\x08\x01",)),
            SummaryChanged("alien", "RUNNING", b""),
        ]
    )
    again = restarted(room)
    assert again.hall.matches.resume_all() == 1
    assert list(again.hall.matches.running) == [match_id]


async def test_two_restarts_are_as_good_as_one(room: Room) -> None:
    match_id, _, _ = await begun(room)
    for _ in range(3):
        again = restarted(room)
        again.hall.matches.resume_all()
        await again.quiet()
    await again.connect("anna")
    await again.connect("bert")
    await again.play_out(match_id)
    assert again.check(match_id).ended
