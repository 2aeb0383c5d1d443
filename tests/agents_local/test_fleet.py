"""The fleet: starts in turn, failures in words, restarts by policy, output by match."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

import pytest

from agents_local.kit import Yard
from e2e.kit import PATIENCE_S
from referee_server.agents.fleet import Fleet, Program, Running, StartFailure
from referee_server.agents.isolation import Probe
from referee_server.agents.launcher import KEEP
from referee_server.agents.local import LocalAgents


async def test_an_agent_is_started_when_it_said_hello_and_its_isolation_can_be_logged(each: Yard) -> None:
    running = await each.started("plays")
    assert running.isolation.startswith(each.tier)
    assert running.process in each.agents.pids


async def test_an_agent_finds_nothing_of_the_referee_in_its_environment(
    each: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFEREE_DATA", str(each.data))
    await each.started("tells", SEAT="2")
    told = await each.heard()
    names = set(told["env"]) - {"LC_CTYPE", "PWD"}
    own = {"HELLO", "KEY", "REFEREE_TEST_MARK", "SEAT"}
    assert names == {"PATH", "LANG", "HOME", "TMPDIR", "REFEREE_AGENT"} | own
    assert not any(str(each.data) in value for value in told["env"].values())
    assert told["cwd"] == told["env"]["HOME"]


async def test_a_folder_that_is_given_is_where_an_agent_runs_and_stays(each: Yard, tmp_path: Path) -> None:
    (tmp_path / "anna").mkdir()
    await each.started(each.program("tells", cwd=tmp_path / "anna"))
    assert (await each.heard())["cwd"] == str(tmp_path / "anna")
    await each.fleet.stop("anna")
    assert (tmp_path / "anna").exists()


async def test_a_fresh_folder_goes_with_its_process(yard: Yard) -> None:
    await yard.started("tells")
    folder = (await yard.heard())["cwd"]
    assert [Path(folder).name] == yard.scratch()
    await yard.fleet.stop("anna")
    assert yard.scratch() == []


async def test_where_there_is_no_room_for_a_fresh_folder_the_start_fails_in_words(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device", "/tmp/referee-1")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    text = "anna could not be started: No space left on device: /tmp/referee-1"
    assert await yard.failed("plays") == StartFailure("not_started", text)


async def test_fresh_folders_are_made_anew_when_somebody_tidied_them_up(yard: Yard) -> None:
    await yard.started("plays")
    await yard.fleet.stop("anna")
    await asyncio.to_thread(shutil.rmtree, str(yard.fleet._scratch))
    await yard.started("plays")
    assert len(yard.scratch()) == 1


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ("no-such-program", "anna could not be started: No such file or directory: no-such-program"),
        ("/etc/passwd", "anna could not be started: Permission denied: /etc/passwd"),
        ("nul\0byte", "anna could not be started: embedded null byte: nul\0byte"),
    ],
)
async def test_what_cannot_be_started_is_told_in_words(yard: Yard, argv: str, says: str) -> None:
    assert await yard.failed(Program("anna", (argv,))) == StartFailure("not_started", says)


async def test_a_folder_that_does_not_exist_is_named(yard: Yard) -> None:
    failure = await yard.failed(Program("anna", ("true",), cwd=Path("/no/such/folder")))
    expected = "anna could not be started: No such file or directory: /no/such/folder"
    assert failure == StartFailure("not_started", expected)


async def test_isolation_that_does_not_work_is_refused_with_its_reason(yard: Yard) -> None:
    refused = Probe("bubblewrap", works=False, why="user namespaces are switched off")
    fleet = Fleet(yard.agents, probes={"bubblewrap": refused}, on_exit=lambda *_: None, hidden=())
    for tier, why in (("bubblewrap", "user namespaces are switched off"), ("process", "it was not probed")):
        failure = await fleet.start(yard.program("plays", tier=tier), "anna", {})
        assert failure == StartFailure("refused", f"anna: isolation {tier} does not work here: {why}")
    assert not yard.agents.pids


@pytest.mark.parametrize("given", [{"argv": ()}, {"restarts": -1}, {"restarts": 21}])
def test_a_program_that_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="anna: "):
        Program(**{"name": "anna", "argv": ("bot",), **given})


def test_a_fleet_that_starts_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one start at a time"):
        Fleet(cast("LocalAgents", None), probes={}, on_exit=lambda *_: None, hidden=(), start_at_once=0)


async def test_who_never_says_hello_is_ended_when_its_time_is_over(each: Yard) -> None:
    start = asyncio.ensure_future(each.start("never_hello"))
    await each.waits(60.0)
    await until_printed(each)
    each.clock.advance(60.0)
    text = "anna did not say hello within 60 seconds; the last it printed:\nloading"
    assert await start == StartFailure("no_hello", text)
    await each.clean()


async def until_printed(yard: Yard) -> None:
    """Returns when the one agent that is starting has printed something."""
    running = yard.fleet._slots["anna"].running
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while (await running.mark()).at == 0:
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.01)


async def test_no_more_starts_run_at_once_than_are_allowed_and_those_that_wait_lose_no_time(yard: Yard) -> None:
    yard.says_hello = False
    starts = {key: asyncio.ensure_future(yard.start("plays", key)) for key in "abcd"}
    for key in "ab":
        await yard.heard(key)
    yard.clock.advance(50.0)
    yard.fleet.connected("a")
    assert isinstance(await starts["a"], Running)
    await yard.heard("c")
    # b has ten seconds left; c has all its sixty, though it was asked for when b was.
    await yard.waits(10.0)
    assert yard.clock.sleeping() == [10.0, 60.0]
    assert len(yard.agents.pids) == 3
    yard.clock.advance(10.0)
    failure = await starts["b"]
    assert isinstance(failure, StartFailure)
    assert failure.kind == "no_hello"
    await yard.heard("d")
    for key in "cd":
        yard.fleet.connected(key)
        assert isinstance(await starts[key], Running)


async def test_a_hundred_cold_starts_that_take_25_seconds_each_are_all_in_time(yard: Yard) -> None:
    program = Program("anna", ("/bin/sleep", "3600"))
    starts = {key: asyncio.ensure_future(yard.start(program, key)) for key in map(str, range(100))}
    connected: list[str] = []
    while len(connected) < len(starts):
        await asyncio.sleep(0)
        # In the order in which they were started.
        under_way = [key for name in yard.agents.pids if (key := name.partition("#")[0]) not in connected]
        assert len(under_way) <= 2
        for key in under_way[:1]:
            yard.clock.advance(25.0)
            yard.fleet.connected(key)
            assert isinstance(await starts[key], Running)
            connected.append(key)
    assert yard.clock.time == 2500.0


async def test_a_key_is_taken_until_it_is_stopped(yard: Yard) -> None:
    await yard.started("plays")
    with pytest.raises(ValueError, match="anna has been started"):
        await yard.start("plays")
    await yard.fleet.stop("anna")
    await yard.started("plays")


async def test_an_agent_can_say_goodbye_when_it_is_stopped(each: Yard) -> None:
    running = await each.started("goodbye")
    mark = await running.mark()
    await each.fleet.stop("anna")
    assert await running.output_since(mark) == "goodbye\n"
    assert each.exits.empty()


async def test_who_crashes_again_and_again_is_started_again_after_longer_and_longer_waits_and_then_given_up(
    yard: Yard,
) -> None:
    await yard.started(yard.program("leaves", restarts=3))
    for wait_s in (0.5, 1.0, 2.0):
        await yard.heard()
        yard.tell()
        assert (await yard.ended())[2] is True
        await yard.waits(wait_s)
        yard.clock.advance(wait_s)
    await yard.heard()
    yard.tell()
    assert (await yard.ended())[2] is False
    await yard.clean()
    await yard.started("plays")


async def test_a_restart_that_does_not_get_as_far_as_a_hello_is_a_crash_too(yard: Yard) -> None:
    await yard.started(yard.program("leaves", restarts=1))
    await yard.heard()
    yard.says_hello = False
    yard.tell()
    assert (await yard.ended())[2] is True
    await yard.waits(0.5)
    yard.clock.advance(0.5)
    await yard.heard()
    await yard.waits(60.0)
    yard.clock.advance(60.0)
    key, gone, again = await yard.ended()
    assert (key, gone.code, again) == ("anna", -signal.SIGTERM, False)
    await yard.clean()


async def test_who_is_stopped_while_it_waits_for_its_restart_does_not_come_back(yard: Yard) -> None:
    await yard.started("leaves")
    await yard.heard()
    yard.tell()
    await yard.ended()
    await yard.waits(0.5)
    await yard.fleet.stop("anna")
    assert yard.clock.sleeping() == []
    assert not yard.agents.pids


@pytest.mark.parametrize("steps", [0, 1, 5])
async def test_a_start_that_is_stopped_at_once_says_so(yard: Yard, steps: int) -> None:
    start = asyncio.ensure_future(yard.start("plays"))
    for _ in range(steps + 2):
        await asyncio.sleep(0)
    await yard.fleet.stop("anna")
    assert await start == StartFailure("stopped", "anna was stopped")
    await yard.clean()


async def test_a_start_that_nobody_waits_for_any_more_is_stopped(yard: Yard) -> None:
    start = asyncio.ensure_future(yard.start("never_hello"))
    await yard.waits(60.0)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    await yard.clean()


async def test_closing_ends_starts_that_wait_and_agents_that_play_and_starts_nothing_more(yard: Yard) -> None:
    await yard.started("plays", "playing")
    starts = [asyncio.ensure_future(yard.start("never_hello", str(number))) for number in range(4)]
    await yard.waits(60.0)
    await yard.fleet.close()
    assert {failure.kind for failure in await asyncio.gather(*starts) if isinstance(failure, StartFailure)} == {
        "stopped"
    }
    await yard.clean()
    assert (await yard.failed("plays", "late")).kind == "stopped"


async def test_the_output_of_a_match_is_what_was_printed_since_its_mark(each: Yard) -> None:
    running = await each.started("prints")
    await each.heard()
    marks = []
    for _ in range(3):
        marks.append(await running.mark())
        each.tell()
        await each.heard()
    assert await running.output_since(marks[0]) == "turn 0\nturn 1\nturn 2\n"
    assert await running.output_since(marks[2]) == "turn 2\n"
    await each.fleet.stop("anna")
    assert await running.output_since(marks[1]) == "turn 1\nturn 2\n"


async def test_of_a_matchs_output_the_last_64_kib_are_told(yard: Yard) -> None:
    start = asyncio.ensure_future(yard.start("floods"))
    running = yard_running = await start
    assert isinstance(yard_running, Running)
    mark = await running.mark()  # type: ignore[union-attr]
    early = type(mark)(mark.process, 1_000_000)
    text = await yard_running.output_since(early)
    gap = f"\n… {mark.at - 1_000_000 - KEEP} bytes left out …\n"
    assert text == gap + "x" * (KEEP - len("\nend\n") + 1) + "end\n"


async def test_orders_and_news_never_wait_for_each_other(yard: Yard) -> None:
    # Much output is on its way to a loop that is busy giving orders: more of both than the pipes take.
    for number in range(3):
        yard.agents.start(f"loud {number}", [sys.executable, "-S", "-c", "print('x' * 200_000)"])
    for number in range(1000):
        yard.agents.start(f"none {number}", ["no-such-program"], {"WORDS": "x" * 1000})
    exits = [await asyncio.wait_for(yard.agents.exits.get(), PATIENCE_S) for _ in range(1003)]
    assert sum(gone.code for gone in exits) == 127 * 1000


async def test_killing_an_agent_from_outside_is_told_by_its_signal(each: Yard) -> None:
    running = await each.started("plays")
    # In a sandbox that is the program that keeps it, and the agent dies with that.
    os.kill(each.agents.pids[running.process], signal.SIGKILL)
    assert (await each.ended())[1].words() == "was ended by SIGKILL"
    await each.clean()
