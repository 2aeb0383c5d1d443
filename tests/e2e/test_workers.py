"""Work shared out to processes: in order, a little ahead, and nothing left at the end."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from referee_server.cli import workers
from referee_server.cli.output import ExitCode, Failure
from referee_server.cli.workers import in_order


def done(*jobs: str, processes: int = 2) -> list[Any]:
    return list(in_order("e2e.worker", [], jobs, processes))


def test_answers_come_in_the_order_of_the_jobs_whichever_is_done_first(tmp_path: Path) -> None:
    jobs = [f"await {tmp_path / 'x'}", "print", "a", "b", "\udcff", f"make {tmp_path / 'x'}", "c"]
    assert done(*jobs) == jobs


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_there_may_be_more_processes_than_jobs_and_none_at_all(processes: int) -> None:
    assert done("a", "b", processes=processes) == ["a", "b"]
    assert done(processes=processes) == []


def test_what_a_process_cannot_do_comes_in_its_turn() -> None:
    answers = in_order("e2e.worker", [], ["a", "b", "fail", "c"], 2)
    assert [next(answers), next(answers)] == ["a", "b"]
    with pytest.raises(Failure) as failed:
        next(answers)
    assert (failed.value.message, failed.value.code) == ("it does not work", ExitCode.STORAGE)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_process_that_ends_is_named_by_its_job(processes: int) -> None:
    with pytest.raises(Failure, match="looked at end ended with exit code 3") as failed:
        done("a", "end", "b", processes=processes)
    assert failed.value.code is ExitCode.UNFIT


def test_jobs_are_taken_only_a_little_ahead_of_the_answer_that_is_due(tmp_path: Path) -> None:
    taken = 0

    def jobs() -> Iterator[str]:
        nonlocal taken
        for number in count():
            taken = number + 1
            yield str(number)

    answers: Generator[str, None, None] = in_order("e2e.worker", [], jobs(), 2)
    with closing(answers):
        assert list(islice(answers, 300)) == [str(number) for number in range(300)]
        assert taken <= 300 + workers._AHEAD


def test_without_a_process_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers.sys, "executable", "/there/is/no/such/program")  # type: ignore[attr-defined]
    with pytest.raises(Failure, match="try with --jobs 1"):
        done("a")
