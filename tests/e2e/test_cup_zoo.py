"""Tournaments of bad agents: each kind of fault ends the tables that it must, and none of them the tournament."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from .kit import Home

AGENTS = Path(__file__).parents[1] / "agents"
KINDS = {
    # Program: what its tables are lost for.
    "good": "",
    "crash_at_start": "no_show: replace",
    "slow_start": "start_timeout: replace",
    "silent": "timeout: replaced after too many strikes",
    "illegal": "illegal: replaced after too many strikes",
    "malformed": "malformed: replaced after too many strikes",
    "flood": "flood: replace",
    "disconnect": "crash: replace",  # it ends with its stream; with less haste it would be a disconnect
}
CUP = """
name = "Zoo"
game = "regicide"
[options]
max_deals = 3
[duplicate]
mode = "once"
fillers = ["first"]
[clock]
allowance_ms = 800
bank_ms = 0
ready_ms = 3000
reconnect_grace_ms = 20000
[faults]
no_show = { action = "replace" }
start_timeout = { action = "replace" }
[running]
concurrency = 4
"""


MORE = {"disconnect": "sent ready 1"}


def program(name: str) -> str:
    told = '"$REFEREE_ADDRESS" "$REFEREE_NAME" "$(cat "$REFEREE_CREDENTIAL")"'
    script = f'exec "{sys.executable}" "{AGENTS / name}.py" {told} {MORE.get(name, "")}'
    command = ["/bin/sh", "-c", script]
    return f'[[entrant]]\nname = "{name}"\ncommand = {json.dumps(command)}\n'


def results(home: Home) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(home.ok("standings", "--format", "json").out)
    return found


def test_a_cup_with_every_kind_of_fault_ends_and_says_the_cause_of_every_loss(home: Home) -> None:
    path = home.path / "zoo.toml"
    path.write_text(CUP + "".join(map(program, KINDS)), encoding="utf-8")
    home.ok("run", path)
    told = results(home)
    assert told["state"] == "finished"
    assert told["tables_ended"] == told["tables_scored"] == len(KINDS)
    assert {row["name"]: next(iter(row["losses"]), "") for row in told["standings"]} == KINDS
    # Whoever was ruled last is last, whatever the house bot that took over won.
    points = {row["name"]: row["place_points"] for row in told["standings"]}
    assert {name for name in KINDS if points[name] > 0} <= {"good"}
    assert {row["outcome"] for row in home.ok("verify", "--all", "--json").rows()} == {"verified"}


CRASHES = """
import os, sys
from referee_client import Agent, run

class Crashes(Agent):
    name = os.environ["REFEREE_NAME"]
    asked = 0

    def choose(self, decision):
        Crashes.asked += 1
        if Crashes.asked == 5:
            print("five is enough", flush=True)
            os._exit(3)
        return decision.legal[0]

for _ in run(Crashes(), os.environ["REFEREE_ADDRESS"], credential=os.environ["REFEREE_CREDENTIAL"]):
    pass
"""


def test_a_program_that_crashes_at_a_table_loses_that_one_and_is_there_for_the_next(home: Home) -> None:
    (home.path / "crashes.py").write_text(CRASHES, encoding="utf-8")
    entrants = (
        f'[[entrant]]\nname = "crashes"\ncommand = {json.dumps([sys.executable, "crashes.py"])}\n'
        '[[entrant]]\nname = "first"\nbot = "first"\n'
    )
    path = home.path / "cup.toml"
    path.write_text('name = "Crash"\ngame = "regicide"\n[options]\nmax_deals = 3\n[format]\nsets = 2\n' + entrants)
    home.ok("run", path)
    told = results(home)
    assert told["tables_ended"] == told["tables_scored"] == 4
    crashed = next(row for row in told["standings"] if row["name"] == "crashes")
    assert crashed["faults"] == {"crash": 4}
    assert crashed["losses"] == {"crash: replace": 4}
    assert "five is enough" in home.ok("standings").out
    kept = list((home.data / "outputs").iterdir())
    assert len(kept) == 4
    assert all("five is enough" in file.read_text() for file in kept)
