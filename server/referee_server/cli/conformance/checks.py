"""What an agent is examined in over one connection. Each check is a coroutine; its docstring says what it means."""

from __future__ import annotations

import asyncio
import time

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import event_pb2
from referee_games.contract import shown
from referee_server.cli.conformance.agent import NotMeant, Wrong
from referee_server.cli.conformance.board import Board, verdict
from referee_server.cli.conformance.exam import Exam

_NEWER = b"\xa2\x06\x05newer"
"""A field that no message of version 1 has."""
_MOST = 4096


async def hello(exam: Exam) -> None:
    """Connects in time, carries its credential, and says a Hello that the referee can take."""
    said = await exam.greet()
    if said.protocol_version < 1:
        raise Wrong(f"Hello says protocol_version {said.protocol_version}", "1, the version it was written for")
    if said.name and said.name != exam.agent.name:
        raise Wrong(f"Hello says the name {shown(said.name)}", f"the name it was given: {exam.agent.name}")
    for name in ("max_matches", "max_open_decisions"):
        value = getattr(said, name)
        if not 0 <= value <= _MOST:
            raise Wrong(f"Hello says {name} {value}", f"from 1 to {_MOST}, or 0 for the default")
    if said.positions:
        raise Wrong("its first Hello names running matches", "name only matches that it was offered")
    exam.games()
    await exam.talk.send(exam.welcome())
    await exam.quiet(0.5, "wait for an offer")


async def ready(exam: Exam) -> None:
    """Answers an offer by Ready, in time and once, with no nonce or one of 32 bytes."""
    await exam.connect()
    board = exam.board()
    await exam.offer(board)
    await exam.quiet(0.5, "wait for the first decision")


async def answers(exam: Exam) -> None:
    """Plays a match of each of its games: every decision answered once, in time, with one of its legal actions."""
    await exam.connect()
    for game in exam.games():
        board = exam.board(game=game)
        await exam.offer(board)
        await exam.play(board)
        await exam.quiet(0.2, "nothing follows on MatchOver")


async def at_once(exam: Exam) -> None:
    """Plays as many matches at once as it says it takes (16 at most), with all of their decisions in one message."""
    await exam.connect()
    count = min(exam.hello.max_matches or 1, 4 if exam.setting.quick else 16)
    if count == 1:
        raise NotMeant("its Hello says that it plays one match at a time")
    boards = [exam.board(number) for number in range(count)]
    await exam.offer(*boards)
    await exam.play(*boards, most=6)


async def limits(exam: Exam) -> None:
    """Keeps to the limits of Welcome, which may be tighter than usual: two items and 256 bytes a message."""
    await exam.greet()
    await exam.talk.send(exam.welcome(max_items=2, max_bytes=256))
    boards = [exam.board(number) for number in range(min(exam.hello.max_matches or 1, 8))]
    await exam.offer(*boards)
    await exam.play(*boards, most=4)


async def pings(exam: Exam) -> None:
    """Answers pings within two seconds, also while it thinks."""
    await exam.connect()
    board = exam.board()
    await exam.offer(board)
    stop = asyncio.Event()

    async def pinging() -> None:
        while not stop.is_set():
            await exam.ping()
            await asyncio.wait((asyncio.ensure_future(stop.wait()),), timeout=0.25)

    task = asyncio.ensure_future(pinging())
    try:
        await exam.play(board, most=5)
    finally:
        stop.set()
        await task
    await exam.pongs()


async def unknown(exam: Exam) -> None:
    """Passes over what is newer than it: items, fields and enum values that it does not know."""
    await exam.greet()
    await exam.talk.send(exam.welcome(), pb.ServerItem(), raw=_NEWER)
    board = exam.board()
    await exam.offer(board)

    def newer(playing: Board) -> list[pb.ServerItem]:
        odd = verdict(playing.match_id, 0, event_pb2.ANSWER_STATUS_UNSPECIFIED)
        odd.verdict.MergeFromString(b"\x18\x63\x20\x63")  # status 99, fault 99
        reason = pb.ServerItem(rejected=pb.Rejected(message="of a kind that is newer than you"))
        reason.rejected.MergeFromString(b"\x08\xe7\x07")  # reason 999
        return [pb.ServerItem.FromString(_NEWER), odd, reason]

    await exam.play(board, most=3, along=newer)
    question = exam.put(board)
    if question is not None:
        question.decision.MergeFromString(_NEWER)
        await exam.talk.send(question, raw=_NEWER)
        await exam.answer(board)


async def events(exam: Exam) -> None:
    """Copes with events of its matches, asked for or not, the same ones once more, and kinds it does not know."""
    await exam.connect()
    board = exam.board()
    await exam.offer(board)

    def told(playing: Board) -> list[pb.ServerItem]:
        newer = event_pb2.MatchEvent(sequence=100_000, ignorable=True)
        newer.MergeFromString(_NEWER)
        later = pb.SeatEvents(match_id=playing.match_id, seat=playing.seat, events=[newer])
        return [playing.events(), playing.events(), *([pb.ServerItem(events=later)] if playing.decisions == 3 else [])]

    await exam.play(board, most=4, along=told)


async def verdicts(exam: Exam) -> None:
    """Takes verdicts that are old, doubled or of other matches for what they are, and does not answer again."""
    await exam.connect()
    board = exam.board()
    await exam.offer(board)

    def stale(playing: Board) -> list[pb.ServerItem]:
        last = max(0, playing.decisions - 2)
        return [
            verdict(playing.match_id, last, event_pb2.ANSWER_STATUS_ACCEPTED),
            verdict(playing.match_id, last, event_pb2.ANSWER_STATUS_REPEATED),
            verdict(playing.match_id, last, event_pb2.ANSWER_STATUS_TIMED_OUT),
            verdict(playing.match_id, 100_000, event_pb2.ANSWER_STATUS_NOT_OPEN),
            verdict("a" * 26, 0, event_pb2.ANSWER_STATUS_NO_SEAT),
        ]

    await exam.play(board, most=4, along=stale)
    await exam.talk.send(*stale(board))
    await exam.quiet(0.5, "a verdict is no question")


async def asked_again(exam: Exam) -> None:
    """Answers a decision once more when the verdict says it is asked again and it comes again."""
    await exam.connect()
    board = exam.board()
    await exam.offer(board)
    question = exam.put(board)
    assert question is not None
    await exam.talk.send(question)
    await exam.answer(board)
    number = question.decision.decision_id
    ruled = verdict(board.match_id, number, event_pb2.ANSWER_STATUS_FAULTED)
    ruled.verdict.asked_again = True
    # What it answered was legal, but how is it to know: the referee's word counts.
    exam.ledger.matches[board.match_id].answers.pop(number)
    exam.ledger.matches[board.match_id].asks.pop(number)
    again = exam.put(board)
    assert again is not None
    await exam.talk.send(ruled, again)
    await exam.answer(board)


async def slow_referee(exam: Exam) -> None:
    """Waits for a referee that takes its time: for the welcome, the offer, the decisions and the verdicts."""
    wait_s = 0.7 if exam.setting.quick else 3.0
    right = "wait; the referee may be slow, and only the keepalive tells whether it is gone"
    await exam.greet()
    await exam.quiet(wait_s, right)
    await exam.talk.send(exam.welcome())
    await exam.quiet(wait_s, right)
    board = exam.board()
    await exam.offer(board)
    for _ in range(2):
        await exam.quiet(wait_s, right)
        question = exam.put(board)
        assert question is not None
        await exam.talk.send(question)
        action = await exam.answer(board)
        await exam.quiet(wait_s, right)
        await exam.talk.send(board.answer(action))


async def time_pressure(exam: Exam) -> None:
    """Answers in half a second when that is all the time there is, and no bank."""
    allowance_s = 0.5
    await exam.connect()
    board = exam.board(allowance_ms=round(allowance_s * 1_000))
    await exam.offer(board)
    slow = 0
    for _ in range(10):
        question = exam.put(board)
        if question is None:
            break
        put = time.monotonic()
        await exam.talk.send(question)
        action = await exam.answer(board)
        took_s = time.monotonic() - put
        # The first answer may find a cold program, and one a busy machine.
        slow += took_s > allowance_s
        if slow > 2:
            raise Wrong(
                f"decision {question.decision.decision_id} took {took_s:.2f} s of {allowance_s} s",
                "think no longer than allowance_us and bank_us say, less the way",
            )
        await exam.talk.send(board.answer(action))


async def cancelled(exam: Exam) -> None:
    """Takes the end of a match with a decision still open for the end, and plays the next one."""
    await exam.connect()
    board = exam.board()
    await exam.offer(board)
    await exam.play(board, most=1)
    question = exam.put(board)
    assert question is not None
    board.stop()
    await exam.talk.send(question, board.end())
    following = exam.board(1)
    await exam.offer(following)
    await exam.play(following, most=2)


async def rejected(exam: Exam) -> None:
    """Goes on after something it sent was rejected."""
    await exam.connect()
    board = exam.board()
    await exam.offer(board)
    refused = pb.Rejected(
        reason=reason_pb.ERROR_REASON_ALREADY_READY, message="the seat is ready already", match_id=board.match_id
    )
    await exam.talk.send(pb.ServerItem(rejected=refused))
    await exam.play(board, most=2)
