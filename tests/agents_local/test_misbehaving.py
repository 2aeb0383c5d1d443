"""Agents that misbehave, in every tier: what becomes of them is told in words, and nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from agents_local.kit import HERE, Yard
from e2e.kit import Home, until
from referee_server.agents.launcher import KEEP
from referee_server.agents.limits import Limits


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("crash_at_start", "ended with exit code 1 before it said hello; the last it printed:\nno model file"),
        ("exit_at_start", "ended with exit code 0 before it said hello; it printed nothing"),
    ],
)
async def test_who_ends_at_once_is_told_with_the_end_of_his_output(each: Yard, how: str, says: str) -> None:
    failure = await each.failed(how)
    assert (failure.kind, failure.text) == ("exited", f"anna {says}")
    await each.clean()


@pytest.mark.parametrize(("how", "code"), [("leaves", 0), ("crashes", 1)])
async def test_who_ends_while_it_plays_is_told_and_started_again(each: Yard, how: str, code: int) -> None:
    running = await each.started(how)
    mark = await running.mark()
    each.tell()
    key, gone, again = await each.ended()
    assert (key, gone.code, again) == ("anna", code, True)
    assert ("RuntimeError: out of cards" in await running.output_since(mark)) == bool(code)
    await each.clean()


@pytest.mark.parametrize("how", ["plays", "ignores_sigterm", "daemon", "floods", "breeds"])
async def test_whatever_it_does_all_of_it_is_gone_after_a_stop(each: Yard, how: str) -> None:
    await each.started(how)
    assert each.alive()
    await each.fleet.stop("anna")
    await each.clean()
    assert each.scratch() == []


async def test_who_spins_is_ended_at_its_limit_of_processor_time(each: Yard) -> None:
    await each.started(each.program("spins", limits=Limits(cpu_s=1)))
    each.tell()
    gone = (await each.ended())[1]
    assert gone.words() == "was ended by SIGXCPU: it used more processor time than its limit"
    await each.clean()


async def test_who_eats_memory_is_refused_more_of_it(each: Yard) -> None:
    running = await each.started(each.program("eats", limits=Limits(memory_mb=256)))
    mark = await running.mark()
    each.tell()
    assert (await each.ended())[1].code == 1
    assert (await running.output_since(mark)).strip().endswith("MemoryError")
    await each.clean()


async def test_who_fills_its_folder_is_stopped_at_the_largest_file_it_may_write(each: Yard) -> None:
    running = await each.started(each.program("fills", limits=Limits(file_mb=8)))
    mark = await running.mark()
    each.tell()
    assert (await each.ended())[1].code == 1
    assert "File too large" in await running.output_since(mark)
    await each.clean()


async def test_a_flood_is_read_to_its_end_and_its_two_ends_are_kept(each: Yard) -> None:
    running = await each.started("floods")
    mark = await running.mark()
    assert mark.at == len("begin\nend\n") + 50_000_000
    await each.fleet.stop("anna")
    kept = running._last[1]
    assert len(kept.text().encode()) < 2 * KEEP + 100
    assert kept.text().startswith("begin\n")
    assert kept.text().endswith("end\n")


async def test_stopping_one_leaves_the_others_alone(each: Yard) -> None:
    await each.started("plays", "anna")
    await each.started("daemon", "berta")
    await each.fleet.stop("berta")
    assert each.exits.empty()
    assert [name.partition("#")[0] for name in each.agents.pids] == ["anna"]


async def test_when_the_launcher_is_killed_its_agents_and_what_they_put_aside_die(each: Yard) -> None:
    for how in ("plays", "daemon", "breeds"):
        await each.started(each.program(how, restarts=0), how)
    os.kill(each.agents._process.pid, signal.SIGKILL)
    gone = [await each.ended() for _ in range(3)]
    assert {(key, end.code, again) for key, end, again in gone} == {
        ("plays", -signal.SIGKILL, False),
        ("daemon", -signal.SIGKILL, False),
        ("breeds", -signal.SIGKILL, False),
    }
    await each.clean()


async def test_without_a_launcher_a_start_fails_in_words(yard: Yard) -> None:
    await yard.started(yard.program("plays", restarts=0))
    os.kill(yard.agents._process.pid, signal.SIGKILL)
    await yard.ended()
    failure = await yard.failed("plays", "berta")
    assert failure.kind == "not_started"
    assert "the launcher was killed" in failure.text


@pytest.mark.parametrize("number", [signal.SIGPIPE, signal.SIGINT])
async def test_the_launcher_does_not_mind_a_broken_pipe_or_an_interrupt(yard: Yard, number: signal.Signals) -> None:
    running = await yard.started("plays")
    os.kill(yard.agents._process.pid, number)
    assert (await running.mark()).at == 0


OWNER = """
import asyncio, json, os, sys
from pathlib import Path
from referee_server.agents.fleet import Fleet, Program
from referee_server.agents.isolation import probe, this_python
from referee_server.agents.local import LocalAgents

async def main(here, socket, tier, mark):
    tried = probe(tier)
    agents = LocalAgents()
    fleet = Fleet(agents, probes={tier: tried}, on_exit=print, hidden=(), start_at_once=16)
    def start(key, how):
        argv = (sys.executable, "-S", "-B", here + "/misbehave.py", how)
        program = Program("anna", argv, tier=tier, reads=(*this_python(), Path(here)))
        given = {"HELLO": socket, "KEY": key, "REFEREE_TEST_MARK": mark}
        return fleet.start(program, key, given, socket=Path(socket))
    hows = ["plays", "ignores_sigterm", "daemon", "floods"] * 4
    await asyncio.gather(*(start(str(number), how) for number, how in enumerate(hows)))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def owner_home(tmp_path: Path, each: Yard) -> Home:
    home = each.home
    home.env["TMPDIR"] = str(tmp_path / "scratch")
    (tmp_path / "scratch").mkdir()
    return home


async def test_when_the_owner_is_killed_sixteen_agents_are_gone_two_seconds_later(
    each: Yard, owner_home: Home, tmp_path: Path
) -> None:
    argv = [sys.executable, "-c", OWNER, str(HERE), str(each.socket), each.tier, each.home.mark]
    owner = await asyncio.to_thread(owner_home.spawn, argv)
    for number in range(16):
        assert await each.heard(str(number)) == "hello"
    assert len(owner_home.alive()) >= 18
    await asyncio.to_thread(owner.stop, signal.SIGKILL)
    await asyncio.to_thread(until, lambda: not owner_home.alive(), 2, "processes are left")
    assert list((tmp_path / "scratch").iterdir()) == []
