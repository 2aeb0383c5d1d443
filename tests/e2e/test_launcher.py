"""The launcher of agent processes: what it keeps, how it ends them, and that nothing gets away."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from referee_server.agents.launcher import KEEP
from referee_server.agents.local import Exit, LocalAgents

from .kit import Home, until

PYTHON = sys.executable
FOREVER = "import time\nwhile True: time.sleep(60)"


@pytest.fixture
async def agents(home: Home, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalAgents]:
    for name, value in home.env.items():
        monkeypatch.setenv(name, value)
    agents = LocalAgents()
    yield agents
    await agents.close()


async def ended(agents: LocalAgents) -> Exit:
    return await asyncio.wait_for(agents.exits.get(), 30)


def script(agents: LocalAgents, code: str, name: str = "one") -> None:
    agents.start(name, [PYTHON, "-S", "-c", code])


async def word(path: Path) -> str:
    """Returns what a process has written to a file, once it has."""
    return str(await asyncio.to_thread(until, lambda: path.exists() and path.read_text(encoding="utf-8")))


async def test_what_a_process_prints_comes_with_its_exit_code(agents: LocalAgents) -> None:
    script(agents, "import sys\nprint('out'); sys.stdout.flush(); print('err', file=sys.stderr); sys.exit(7)")
    assert await ended(agents) == Exit("one", 7, "out\nerr\n")


async def test_a_process_that_ends_well_has_code_0(agents: LocalAgents) -> None:
    script(agents, "pass")
    assert await ended(agents) == Exit("one", 0, "")


async def test_the_signal_that_ended_a_process_is_told(agents: LocalAgents) -> None:
    script(agents, "import os; os.kill(os.getpid(), 11)")
    assert (await ended(agents)).code == -signal.SIGSEGV


async def test_a_command_that_does_not_exist_ends_with_127(agents: LocalAgents) -> None:
    agents.start("one", ["no-such-program"])
    gone = await ended(agents)
    assert (gone.code, gone.output) == (127, "No such file or directory: no-such-program")


async def test_a_folder_that_does_not_exist_ends_with_127(agents: LocalAgents) -> None:
    agents.start("one", [PYTHON], cwd="/no/such/folder")
    assert (await ended(agents)).code == 127


async def test_of_much_output_the_beginning_the_end_and_the_number_of_bytes_between_are_kept(
    agents: LocalAgents,
) -> None:
    script(agents, "print('begin', 'x' * 3_000_000, 'end', sep='', end='')")
    output = (await ended(agents)).output
    gap = f"\n… {3_000_000 + 8 - 2 * KEEP} bytes left out …\n"
    assert output == "begin" + "x" * (KEEP - 5) + gap + "x" * (KEEP - 3) + "end"


async def test_control_characters_of_a_process_do_not_reach_a_terminal(agents: LocalAgents) -> None:
    script(agents, r"print('a\x1b[2Jb\x00c\td\x9be\u202ef', end='')")
    assert (await ended(agents)).output == "a\ufffd[2Jb\ufffdc\td\ufffde\ufffdf"


async def test_bytes_that_are_no_text_are_marked(agents: LocalAgents) -> None:
    script(agents, r"import os; os.write(1, b'\xff\xfeok')")
    assert (await ended(agents)).output == "\ufffd\ufffdok"


async def test_a_process_has_an_empty_standard_input(agents: LocalAgents) -> None:
    script(agents, "import sys; print(repr(sys.stdin.read()), end='')")
    assert (await ended(agents)).output == "''"


async def test_a_process_that_heeds_sigterm_can_say_goodbye(agents: LocalAgents, tmp_path: Path) -> None:
    code = "import pathlib, signal, sys\nsignal.signal(15, lambda *_: (print('goodbye', end=''), sys.exit(3)))\n"
    script(agents, code + f"pathlib.Path({str(tmp_path / 'up')!r}).write_text('up')\n" + FOREVER)
    await word(tmp_path / "up")
    agents.stop("one")
    assert await ended(agents) == Exit("one", 3, "goodbye")


async def test_a_process_that_ignores_sigterm_is_killed(agents: LocalAgents, tmp_path: Path) -> None:
    code = f"import pathlib, signal\nsignal.signal(15, signal.SIG_IGN)\npathlib.Path({str(tmp_path / 'up')!r})"
    script(agents, code + ".write_text('up')\n" + FOREVER)
    await word(tmp_path / "up")
    agents.stop("one")
    assert (await ended(agents)).code == -signal.SIGKILL


GRANDCHILD = """
import os, pathlib, signal, time
signal.signal(15, signal.SIG_IGN)
if os.fork() == 0:
    {before}
    pathlib.Path({path!r}).write_text(str(os.getpid()))
    while True: time.sleep(60)
"""
DOUBLE_FORK = "os.setsid()\n    if os.fork(): os._exit(0)\n    os.environ['X'] = ''"


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


@pytest.mark.parametrize("before", ["pass", "os.setsid()", DOUBLE_FORK], ids=["child", "own session", "daemon"])
async def test_what_a_process_leaves_behind_goes_with_it(agents: LocalAgents, tmp_path: Path, before: str) -> None:
    path = tmp_path / "pid"
    wait = f"while not pathlib.Path({str(path)!r}).exists(): time.sleep(0.01)"
    script(agents, GRANDCHILD.format(before=before, path=str(path)) + wait)
    pid = int(await word(path))
    assert (await ended(agents)).code == 0
    await asyncio.to_thread(until, lambda: not alive(pid), 5, "the grandchild lives")


@pytest.mark.parametrize("before", ["pass", "os.setsid()", DOUBLE_FORK], ids=["child", "own session", "daemon"])
async def test_what_a_process_started_is_stopped_with_it(agents: LocalAgents, tmp_path: Path, before: str) -> None:
    path = tmp_path / "pid"
    script(agents, GRANDCHILD.format(before=before, path=str(path)) + FOREVER)
    pid = int(await word(path))
    agents.stop("one")
    assert (await ended(agents)).code == -signal.SIGKILL
    await asyncio.to_thread(until, lambda: not alive(pid), 5, "the grandchild lives")


async def test_what_another_agent_put_aside_is_let_be(agents: LocalAgents, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    script(agents, GRANDCHILD.format(before=DOUBLE_FORK, path=str(path)) + FOREVER, "keeper")
    pid = int(await word(path))
    for number in range(3):
        script(agents, "pass", str(number))
        await ended(agents)
    assert alive(pid)


async def test_a_chain_of_processes_is_killed_to_the_last(agents: LocalAgents, tmp_path: Path, home: Home) -> None:
    code = f"""
import os, pathlib, signal, time
for signal_ in (1, 2, 15): signal.signal(signal_, signal.SIG_IGN)
for depth in range(6):
    if os.fork(): break
    os.setsid()
else:
    pathlib.Path({str(tmp_path / "deep")!r}).write_text("deep")
{FOREVER}
"""
    script(agents, code)
    await word(tmp_path / "deep")
    assert len(home.alive()) >= 8
    await agents.close()
    assert await asyncio.to_thread(home.alive) == []


async def test_zombies_are_taken_away_while_agents_play(agents: LocalAgents, tmp_path: Path) -> None:
    # The orphan lives until it is told to end, and by then the launcher is its parent.
    path, end = tmp_path / "pid", tmp_path / "end"
    orphan = f"pathlib.Path({str(path)!r}).write_text(str(os.getpid()))\n"
    orphan += f"        while not pathlib.Path({str(end)!r}).exists(): time.sleep(0.01)\n        os._exit(0)"
    code = f"""
import os, pathlib, time
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        {orphan}
    os._exit(0)
os.wait()
"""
    script(agents, code + FOREVER)
    pid = int(await word(path))
    end.touch()
    await asyncio.to_thread(until, lambda: not Path(f"/proc/{pid}").exists(), 5, "a zombie is left")


async def test_closing_ends_every_process(agents: LocalAgents, home: Home) -> None:
    for number in range(3):
        script(agents, FOREVER, str(number))
    await agents.close()
    assert {agents.exits.get_nowait().code for _ in range(3)} == {-signal.SIGTERM}
    assert home.alive() == []


async def test_killing_without_a_loop_ends_every_process(agents: LocalAgents, home: Home, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    script(agents, GRANDCHILD.format(before="os.setsid()", path=str(path)) + FOREVER)
    await word(path)
    await asyncio.to_thread(agents.kill)
    assert home.alive() == []


async def test_a_launcher_that_is_killed_is_reported_for_each_process(agents: LocalAgents, home: Home) -> None:
    script(agents, "print('up')\n" + FOREVER)
    os.kill(agents._process.pid, signal.SIGKILL)
    gone = await ended(agents)
    assert (gone.name, gone.code) == ("one", -signal.SIGKILL)
    assert "launcher was killed" in gone.output


def test_every_process_is_gone_two_seconds_after_the_service_was_killed(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    stubborn = GRANDCHILD.format(before=DOUBLE_FORK, path=str(path)) + FOREVER
    parent = f"""
import asyncio
from referee_server.agents.local import LocalAgents
async def main():
    agents = LocalAgents()
    for number in range(4):
        agents.start(str(number), [{PYTHON!r}, "-S", "-c", {stubborn!r}])
    await asyncio.sleep(3600)
asyncio.run(main())
"""
    process = home.spawn([PYTHON, "-c", parent])
    # The parent, the launcher, four agents and what each of them put aside.
    until(lambda: len(home.alive()) >= 10)
    process.stop(signal.SIGKILL)
    until(lambda: not home.alive(), 2, "processes are left")


def test_the_launcher_never_imports_grpc(home: Home) -> None:
    code = "import sys, referee_server.agents.launcher\nprint([name for name in sys.modules if 'grpc' in name])"
    done = subprocess.run([PYTHON, "-c", code], env=home.env, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
