"""What an agent is examined in over several connections: what it does when one ends, and how it ends itself."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import Final

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee_server.cli.conformance.agent import Wrong
from referee_server.cli.conformance.board import Board
from referee_server.cli.conformance.exam import Exam

BACK_S: Final = 15.0
"""How long an agent may take to come back, in seconds."""
END_S: Final = 5.0
"""How long it may take to end, in seconds."""
_COME_BACK: Final = "reconnect, with growing waits, and begin with Hello"


async def _come_back(exam: Exam, board: Board) -> None:
    """Takes the agent's next stream and tells it how its match stands, as after every reconnect."""
    await exam.connect(BACK_S, _COME_BACK)
    named = [position.match_id for position in exam.hello.positions]
    if any(match_id not in exam.ledger.matches for match_id in named):
        raise Wrong("Hello names a match that it was not offered", "name the matches believed to be running")
    await exam.talk.send(board.offer())


async def cut_open(exam: Exam) -> None:
    """Comes back after its stream was cut with a decision open, and answers that same decision, once."""
    await exam.connect()
    board = exam.board()
    await exam.offer(board)
    await exam.play(board, most=2)
    exam.ledger.may_repeat = True
    question = exam.put(board)
    assert question is not None
    await exam.talk.send(question)
    exam.cut()
    await _come_back(exam, board)
    again = exam.put(board)
    assert again is not None
    await exam.talk.send(again)
    action = await exam.answer(board)
    await exam.talk.send(board.answer(action))
    await exam.play(board, most=5)


async def cut_answered(exam: Exam) -> None:
    """Comes back after its stream was cut between its answer and the verdict, and goes on with what is asked then."""
    await exam.connect()
    board = exam.board()
    await exam.offer(board)
    await exam.play(board, most=1)
    exam.ledger.may_repeat = True
    question = exam.put(board)
    assert question is not None
    await exam.talk.send(question)
    board.answer(await exam.answer(board))
    exam.cut()
    await _come_back(exam, board)
    await exam.play(board, most=5)


async def cut_welcome(exam: Exam) -> None:
    """Comes back after its stream was cut before the welcome, and after one without a reason."""
    await exam.greet()
    exam.cut()
    await exam.greet(BACK_S, _COME_BACK)
    exam.talk.end()
    await exam.connect(BACK_S, _COME_BACK)
    board = exam.board()
    await exam.offer(board)
    await exam.play(board, most=2)


async def cut_over(exam: Exam) -> None:
    """Takes the word, after a reconnect, that its match has ended meanwhile, and plays the next one."""
    await exam.connect()
    board = exam.board()
    await exam.offer(board)
    await exam.play(board, most=1)
    exam.ledger.may_repeat = True
    question = exam.put(board)
    assert question is not None
    await exam.talk.send(question)
    exam.cut()
    board.stop()
    await exam.connect(BACK_S, _COME_BACK)
    await exam.talk.send(board.end())
    following = exam.board(1)
    await exam.offer(following)
    await exam.play(following, most=2)


async def restart(exam: Exam) -> None:
    """Answers what is open after GoingAway, and comes back when the referee is there again, to the same match."""
    await exam.connect()
    board = exam.board()
    await exam.offer(board)
    await exam.play(board, most=1)
    exam.ledger.may_repeat = True
    question = exam.put(board)
    assert question is not None
    await exam.talk.send(question, pb.ServerItem(going_away=pb.GoingAway(grace_ms=10_000)))
    action = await exam.answer(board)
    await exam.talk.send(board.answer(action))
    await exam.peer.stop()
    await asyncio.sleep(1.0 if exam.setting.quick else 3.0)
    await exam.peer.start()
    await _come_back(exam, board)
    await exam.play(board, most=4)


async def superseded(exam: Exam) -> None:
    """Stays away after SUPERSEDED: the newer connection of the same agent plays on."""
    await exam.connect()
    board = exam.board()
    await exam.offer(board)
    exam.talk.end(reason_pb.ERROR_REASON_SUPERSEDED, "a newer stream of this agent took over; do not reconnect")
    await _stays_away(exam, "SUPERSEDED", "do not reconnect, or the two would throw each other out for ever")


async def refused(exam: Exam) -> None:
    """Stays away once its credential is refused: asking again does not help."""
    await exam.greet()
    exam.talk.end(reason_pb.ERROR_REASON_CREDENTIAL_REVOKED, "this credential has been revoked")
    await _stays_away(exam, "CREDENTIAL_REVOKED", "end, and say why")


async def _stays_away(exam: Exam, reason: str, right: str) -> None:
    coming = asyncio.ensure_future(exam.peer.talks.get())
    wait_s = 3.0 if exam.setting.quick else 8.0
    await asyncio.wait((coming, exam.agent.watch), timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
    coming.cancel()
    if coming.done() and not coming.cancelled():
        raise Wrong(f"it came back after {reason}", right)


async def back_off(exam: Exam) -> None:
    """Waits longer and longer between attempts while the referee keeps failing: ten at most in five seconds."""
    await exam.greet()
    until = time.monotonic() + 5.0
    exam.cut()
    count = 0
    while (left := until - time.monotonic()) > 0:
        try:
            await exam.stream(left, _COME_BACK)
        except Wrong:
            if exam.agent.exit is not None:
                raise
            break
        count += 1
        exam.cut()
        if count > 10:
            raise Wrong(
                f"it connected {count} times within {5.0 - left:.1f} s while its streams were cut at once",
                "wait between attempts: doubling, with chance in it, some seconds at most",
            )
    if count == 0:
        raise Wrong("it did not come back within 5 s", _COME_BACK)


async def sigterm(exam: Exam) -> None:
    """Ends within five seconds of SIGTERM, in mid-match as anywhere."""
    await exam.connect()
    board = exam.board()
    await exam.offer(board)
    await exam.play(board, most=2)
    exam.agent.signal(signal.SIGTERM)
    await asyncio.wait((exam.agent.watch,), timeout=END_S)
    if exam.agent.exit is None:
        raise Wrong(
            f"it was still there {END_S:g} s after SIGTERM", "say Leave, or not, but end; who is slow is killed then"
        )
    code = exam.agent.exit.code
    if code not in (0, 128 + signal.SIGTERM, -signal.SIGTERM, 130):
        raise Wrong(f"it ended {exam.agent.how()}", "exit code 0, or the one of SIGTERM itself")
