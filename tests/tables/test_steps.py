"""Steps that take too long are interrupted, and nothing else is."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from referee.v1 import match_pb2
from referee_games import registry
from referee_server.tables.steps import LOOKS, StepBudget, StepTooLongError
from tables.kit import Room, duel

HighCardState: Any = type(registry.find("high_card").start({"deals": 1}, 0))


@pytest.fixture
def steps() -> Iterator[StepBudget]:
    """A budget whose thread does not come to look for a very long time: here the steps do it themselves."""
    budget = StepBudget(1e6)
    budget.start()
    yield budget
    budget.close()


def test_a_step_returns_what_it_returns_and_raises_what_it_raises() -> None:
    steps = StepBudget()
    assert steps.run(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        steps.run(lambda: 1 // 0)


def test_a_step_that_is_there_at_every_look_is_interrupted(steps: StepBudget) -> None:
    looks: list[int] = []

    def forever() -> None:
        while True:
            looks.append(len(looks))
            steps.look()

    with pytest.raises(StepTooLongError):
        steps.run(forever)
    assert len(looks) == LOOKS + 1  # the first one only takes note


def test_a_step_that_ends_before_the_last_look_is_left_alone(steps: StepBudget) -> None:
    def long() -> str:
        for _ in range(LOOKS):
            steps.look()
        return "done"

    assert [steps.run(lambda: long()) for _ in range(3)] == ["done"] * 3


def test_short_steps_one_after_the_other_are_not_one_long_step(steps: StepBudget) -> None:
    for _ in range(10 * LOOKS):
        steps.run(lambda: steps.look())


def test_between_steps_nothing_is_interrupted(steps: StepBudget) -> None:
    for _ in range(10 * LOOKS):
        steps.look()
    signal.raise_signal(signal.SIGURG)


def test_a_signal_that_comes_late_interrupts_no_other_step(steps: StepBudget, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(signal, "pthread_kill", lambda thread, number: sent.append(number))

    def long() -> None:
        for _ in range(LOOKS + 1):
            steps.look()

    steps.run(lambda: long())
    assert sent == [signal.SIGURG]
    steps.run(lambda: signal.raise_signal(sent[0]))


def test_a_step_that_does_not_want_to_be_interrupted_is_interrupted_again(steps: StepBudget) -> None:
    caught: list[BaseException] = []

    def stubborn() -> None:
        while True:
            try:
                steps.look()
            except BaseException as error:
                caught.append(error)
                if len(caught) == 3:
                    raise

    with pytest.raises(StepTooLongError):
        steps.run(stubborn)


def test_the_next_step_runs_after_one_that_was_interrupted(steps: StepBudget) -> None:
    def forever() -> None:
        while True:
            steps.look()

    for _ in range(2):
        with pytest.raises(StepTooLongError):
            steps.run(lambda: forever())
        assert steps.run(lambda: "next") == "next"


def test_the_thread_looks_by_itself() -> None:
    steps = StepBudget(0.05)
    steps.start()
    try:
        with pytest.raises(StepTooLongError):
            steps.run(lambda: threading.Event().wait())
    finally:
        steps.close()


def test_outside_the_main_thread_nothing_is_interrupted(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[str] = []

    def serve() -> None:
        steps = StepBudget(1e6)
        steps.start()

        def long() -> str:
            for _ in range(3 * LOOKS):
                steps.look()
            return "done"

        done.append(steps.run(long))
        steps.close()

    thread = threading.Thread(target=serve)
    thread.start()
    thread.join()
    assert done == ["done"]
    said = capsys.readouterr().out
    assert "steps_not_interrupted" in said
    assert "step_too_long" in said


def test_closing_gives_the_signal_back(steps: StepBudget) -> None:
    assert signal.getsignal(signal.SIGURG) is not signal.SIG_DFL
    steps.close()
    assert signal.getsignal(signal.SIGURG) is signal.SIG_DFL


@pytest.mark.parametrize("method", ["apply", "legal", "view", "forced"])
async def test_rules_that_never_return_end_their_own_match(
    room: Room, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    room.hall.steps = StepBudget(1e6)
    room.hall.steps.start()
    anna, bert = await room.connect("anna"), await room.connect("bert")
    match_id = await room.started(duel(options={"deals": 5}), anna, bert)
    cleo = await room.connect("cleo")
    other = await room.started(duel("cleo", "bot:first"), cleo)

    def forever(self: Any, *args: object) -> None:
        while True:
            room.hall.steps.look()

    with monkeypatch.context() as patched:
        patched.setattr(HighCardState, method, forever)
        bert.answer()
        await room.quiet()
    room.hall.steps.close()
    [ended] = room.of_log(match_id, "match_ended")
    assert ended.result.reason == match_pb2.END_REASON_REFEREE_FAULT
    assert ended.note.startswith("the referee failed; incident ")
    assert room.check(match_id).ended
    await room.play_out(other)
    assert room.check(other).match.state == match_pb2.MATCH_STATE_FINISHED
