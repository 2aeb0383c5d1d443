"""What signals do to a referee."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from referee.v1 import match_pb2

from .referee import Referee, environment, reason_of, until
from .silent import Hand
from .world import World


@pytest.fixture
def referee(tmp_path: Path) -> Iterator[Referee]:
    referee = Referee(tmp_path / "data")
    assert referee.listening()
    yield referee
    referee.close()


@pytest.fixture
def asked(referee: Referee) -> Iterator[Hand]:
    """An agent that has been asked and does not answer."""
    with contextlib.closing(Hand(referee.address, "mute")) as hand:
        spec = match_pb2.MatchSpec(game="regicide")
        spec.seats.add(agent="mute")
        spec.seats.add(bot="first")
        with referee.host() as host:
            host.create(spec)
        hand.wait_for("decision")
        yield hand


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_waits_for_the_answer_to_what_is_open_and_ends_well(
    referee: Referee, asked: Hand, number: signal.Signals
) -> None:
    referee.send(number)
    asked.wait_for("going_away")
    assert referee.popen.poll() is None
    asked.answer(asked.wait_for("decision").decision)
    asked.wait_for("verdict")
    assert referee.wait(5) == 0
    assert "Traceback" not in referee.text


def test_nothing_new_is_asked_once_it_is_told_to_stop(referee: Referee, asked: Hand) -> None:
    referee.send(signal.SIGTERM)
    asked.wait_for("going_away")
    asked.answer(asked.wait_for("decision").decision)
    asked.wait_end()
    assert len(list(asked.found("decision"))) == 1
    assert asked.error is not None
    assert reason_of(asked.error) == ("UNAVAILABLE", "DRAINING")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_waits_for_nobody(referee: Referee, asked: Hand, number: signal.Signals) -> None:
    referee.send(number)
    asked.wait_for("going_away")
    told = time.monotonic()
    assert referee.stop(number) == 0
    assert time.monotonic() - told < 3
    assert "Traceback" not in referee.text


def test_a_third_signal_changes_nothing(referee: Referee, asked: Hand) -> None:
    referee.send(signal.SIGINT)
    asked.wait_for("going_away")
    for _ in range(2):
        referee.send(signal.SIGINT)
    assert referee.wait() == 0
    assert "Traceback" not in referee.text


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE])
def test_other_signals_do_not_end_it(referee: Referee, number: signal.Signals) -> None:
    referee.send(number)
    with referee.host() as host:
        until(host.serving, "it serves")
    assert referee.stop() == 0
    assert "Traceback" not in referee.text


def test_usr1_has_it_say_where_things_stand(referee: Referee, asked: Hand) -> None:
    referee.send(signal.SIGUSR1)
    line = referee.wait_for('"standing"')
    assert line is not None
    assert '"matches": 1' in line


def test_a_log_that_nobody_reads_any_more_does_not_end_it(tmp_path: Path) -> None:
    read, write = os.pipe()
    argv = [sys.executable, "-m", "referee_server.entry", "serve", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*argv, "--data", str(tmp_path / "data")], env=environment(), stdin=subprocess.DEVNULL, stderr=write
    )
    try:
        os.close(write)
        address = tmp_path / "data" / "address"
        where = until(lambda: address.exists() and address.read_text().strip(), "it listens")
        assert isinstance(where, str)
        os.close(read)
        for name in ("one", "two"):  # what comes and goes is logged
            Hand(where, name).close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def test_a_referee_that_was_frozen_charges_nobody(tmp_path: Path) -> None:
    world = World(tmp_path, 1, short=True)
    try:
        world.start()
        assert world.listening()
        world.at_play()
        world.referee.send(signal.SIGSTOP)
        time.sleep(3.5)  # more than any decision has
        world.referee.send(signal.SIGCONT)
        found = world.finish()
        assert found.good, found.details()
    finally:
        world.close()
