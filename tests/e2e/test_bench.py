"""`referee bench`: that it measures, and says what and on what. How fast things are is no matter of tests."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from .kit import Home, until

KEYS = ["key", "what", "budget", "measured", "value", "ok", "note", "verdict"]


@pytest.fixture(scope="module")
def rows(shared: Home) -> list[Any]:
    return shared.ok("bench", "--quick", "--json", "--only", "b", "--only", "c", "--only", "g").rows()


def test_it_says_on_what_machine_and_with_what_versions_it_measured(rows: list[Any]) -> None:
    assert {"machine", "processors", "load", "referee", "python", "sqlite", "grpcio", "protobuf"} <= set(rows[0])
    assert rows[0]["quick"] is True


def test_each_figure_is_a_line_with_its_budget_and_how_it_came_about(rows: list[Any]) -> None:
    assert [row["key"] for row in rows[1:]] == ["b", "c", "g", "g"]
    for row in rows[1:]:
        assert list(row) == KEYS
        assert row["note"]


def test_a_verdict_follows_from_the_figure(rows: list[Any]) -> None:
    for row in rows[1:]:
        assert row["verdict"] == {True: "ok", False: "over", None: "-"}[row["ok"]]
        if row["key"] == "g":
            assert row["ok"] == (row["value"] <= 0.4)


def test_without_something_to_compare_with_there_is_no_verdict(rows: list[Any]) -> None:
    [row] = [row for row in rows[1:] if row["key"] == "c"]
    assert (row["value"] is None) == ("not installed" in row["note"])


def test_an_unknown_figure_is_refused(shared: Home) -> None:
    done = shared.run("bench", "--only", "z")
    assert (done.code, done.err) == (2, "referee: no figure 'z'; there are a, b, c, d, e, f, g\n")


def test_nothing_is_left_of_a_bench_that_is_interrupted(home: Home) -> None:
    bench = home.start("bench", "--quick", "--only", "d")
    until(lambda: len(home.alive()) >= 7)
    assert bench.stop(signal.SIGINT) == 130
    until(lambda: not home.alive(), 5, "processes are left")
    assert "Traceback" not in bench.output
