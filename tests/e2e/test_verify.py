"""`referee verify` with several processes: the same words in the same order, and a clean end whatever happens."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from referee_server.cli import verify
from referee_server.cli.verify import verify_logs

from .kit import REFEREE, Home, Process, until

MANY = 40
"""More matches than are verified in one process whatever is asked for."""


@pytest.fixture(scope="module")
def many(shared: Home) -> Home:
    """A data folder with short matches, their log files, and a folder in which one of them was tampered with."""
    service = shared.serve()
    short = ("--option", "target=1", "--matches", MANY)
    shared.ok("match", "regicide", "--seat", "greedy", "--seat", "first", *short)
    assert service.stop() == 0
    shared.ok("export", "--all", "-o", shared.path / "logs")
    shutil.copytree(shared.data, shared.path / "tampered")
    with sqlite3.connect(shared.path / "tampered" / "journal.db") as db:
        [(log,)] = db.execute("SELECT log FROM logs WHERE number = ?", (MANY // 2,))
        changed = bytearray(log)
        changed[len(changed) // 2] ^= 1
        db.execute("UPDATE logs SET log = ? WHERE number = ?", (bytes(changed), MANY // 2))
    db.close()
    return shared


@pytest.fixture
def stuck(many: Home, tmp_path: Path) -> Iterator[Process]:
    """A verification that has said all it can say: a process of it waits for a log that nobody writes."""
    pipe = tmp_path / "never.log"
    os.mkfifo(pipe)
    logs = sorted((many.path / "logs").iterdir())
    process = many.start("verify", *logs, pipe, "--jobs", 2)
    process.wait_for(logs[-1].name)
    yield process
    process.close()


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("folder", ["data", "tampered"])
def test_several_processes_say_what_one_says(many: Home, folder: str, form: list[str]) -> None:
    alone, together = (
        many.run("verify", "--all", "--data", many.path / folder, "--jobs", jobs, *form) for jobs in (1, 2)
    )
    assert together == alone
    assert alone.code == (folder == "tampered")
    assert len(alone.out.splitlines()) == MANY
    assert alone.out.count("refuted") == (folder == "tampered")


def test_several_processes_say_what_one_says_of_files_ids_and_what_is_not_there(many: Home) -> None:
    logs = sorted((many.path / "logs").iterdir())
    what = [*logs[:20], "missing.log", *(log.stem for log in logs[20:]), "a" * 26]
    alone, together = (many.run("verify", *what, "--jobs", jobs) for jobs in (1, 2))
    assert together == alone
    assert alone.code == 66
    assert alone.out.count("missing ") == 2


def test_a_process_that_is_killed_ends_it_with_one_line_that_says_so(many: Home, stuck: Process) -> None:
    for pid in set(many.alive()) - {stuck.popen.pid}:
        os.kill(pid, signal.SIGKILL)
    assert stuck.wait() == 70
    assert len(stuck.lines) == MANY + 1
    assert "was killed by SIGKILL; if there is too little memory, try with fewer --jobs" in stuck.lines[-1]
    assert many.alive() == []


def test_ctrl_c_ends_it_at_once_and_leaves_nothing(many: Home, stuck: Process) -> None:
    assert len(many.alive()) == 3
    os.killpg(stuck.popen.pid, signal.SIGINT)
    assert stuck.wait() == 130
    assert not "".join(stuck.lines[MANY:])
    assert many.alive() == []


def test_where_it_is_killed_its_processes_end(many: Home, stuck: Process) -> None:
    stuck.popen.kill()
    until(lambda: many.alive() == [])
    assert stuck.wait() == -signal.SIGKILL
    assert len(stuck.lines) == MANY


def test_whoever_reads_no_more_of_it_ends_it(many: Home) -> None:
    command = [*REFEREE, "verify", "--all", "--jobs", "2"]
    process = subprocess.Popen(command, env=many.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0
    process.stderr.close()
    assert many.alive() == []


def test_a_file_that_looks_like_a_module_is_not_run(many: Home, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(3)", encoding="utf-8")
    script = Path(sys.executable).parent / "referee"
    done = subprocess.run(
        [str(script), "verify", "--all", "--jobs", "2"], env=many.env, cwd=tmp_path, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_few_logs_are_verified_without_other_processes(
    many: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(*arguments: Any) -> Any:
        raise AssertionError(arguments)

    monkeypatch.setattr(verify, "in_order", never)
    logs = [str(log) for log in sorted((many.path / "logs").iterdir())]
    verify_logs(logs[:20], "", everything=False, digest=None, jobs=2, as_json=False)
    verify_logs(logs, "", everything=False, digest=None, jobs=1, as_json=False)
    assert len(capsys.readouterr().out.splitlines()) == 20 + MANY


def test_the_processes_know_no_network() -> None:
    asked = (
        "import sys, referee_server.cli.verify_worker;"
        "print([name for name in sys.modules if name.split('.')[0].startswith('grpc')])"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("jobs", ["0", "-1", "x"])
def test_no_processes_at_all_are_refused(many: Home, jobs: str) -> None:
    done = many.run("verify", "--all", "--jobs", jobs)
    assert (done.code, done.err.count("\n")) == (2, 1)
