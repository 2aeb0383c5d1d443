"""A game from outside whose rules never return, in a real service."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from .kit import Home, until

GAMES = [Path(__file__).parents[1] / folder for folder in ("tiny_game", "endless_game")]


@pytest.fixture
def with_games(home: Home) -> Home:
    """A corner in which both games from outside are installed."""
    home.env["PYTHONPATH"] = os.pathsep.join([*map(str, GAMES), *filter(None, [os.environ.get("PYTHONPATH")])])
    return home


@pytest.mark.parametrize("where", ["legal", "apply"])
def test_rules_that_never_return_end_their_own_match_and_cost_no_other_any_time(with_games: Home, where: str) -> None:
    home = with_games
    service = home.serve("--step-budget", "0.5", "--log-format", "json")
    for name in ("anna", "bert"):
        home.agent("first", service.address, name)
    until(lambda: len(home.ok("agents", "list", "--json").rows()) == 2)
    # Less time than the loop is held up for, and no second chance.
    tight = ("--allowance", "0.2", "--bank", "0")
    seats = ("--seat", "agent:anna", "--seat", "agent:bert", "--seat", "first", "--seat", "first")
    beside = home.start("match", "guillotine", *seats, *tight, "--matches", "20", "--json")
    done = home.run("match", "endless", "--seat", "first", "--seat", "first", "--option", f"where={where}", "--json")
    [row] = done.rows()
    assert (row["end"], row["totals"]) == ("referee_fault", [])
    assert beside.wait() == 0, beside.output
    assert [json.loads(line)["end"] for line in beside.lines] == ["completed"] * 20
    assert "fault_ruled" not in home.ok("export", "--all", "--format", "jsonl").out
    said = json.loads(service.wait_for('"event": "step_too_long"'))
    assert said["interrupted"] is True
    assert service.wait_for("match_failed")
    assert home.ok("verify", "--all").code == 0
    assert service.stop() == 0
