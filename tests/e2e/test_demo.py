"""`referee demo` as a newcomer types it, and what becomes of its processes whatever happens to it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from games.play import referee_again

from . import recheck
from .kit import Done, Home, until

HOUSE = "referee_client.house"


@pytest.fixture(scope="module")
def demo(shared: Home) -> Done:
    """One demo of both games that the tests below look at."""
    return shared.ok("demo", "--json", "--matches", 2)


def test_a_demo_plays_both_games_without_a_fault(demo: Done) -> None:
    rows = demo.rows()
    assert {row["game"] for row in rows} == {"guillotine", "regicide"}
    assert sum(row["matches"] for row in rows if row["game"] == "guillotine") == 2 * 4
    assert sum(row["matches"] for row in rows if row["game"] == "regicide") == 2 * 2
    assert [row["faults"] for row in rows] == [0] * len(rows)


def test_everybody_in_a_demo_is_an_agent_process(demo: Done, shared: Home) -> None:
    exported = shared.ok("export", "--all", "--format", "jsonl")
    seats = [
        seat["kind"]
        for line in exported.out.splitlines()
        if (event := json.loads(line)).get("match_created")
        for seat in event["match_created"]["seats"]
    ]
    assert seats
    assert set(seats) == {"SEAT_KIND_AGENT"}


def test_the_logs_of_a_demo_verify(demo: Done, shared: Home) -> None:
    rows = shared.ok("verify", "--all", "--json").rows()
    assert [row["outcome"] for row in rows] == ["verified"] * 4


def test_the_records_of_a_demo_are_dealt_and_refereed_again_by_others(demo: Done, shared: Home) -> None:
    records = shared.ok("export", "--all", "--format", "record").rows()
    assert len(records) == 4
    for record in records:
        assert list(record) == recheck.KEYS
        recheck.deal_again(record)
        referee_again(record)
        assert record["official_places"] == record["places"]
        assert record["rulings"] == []
        assert record["first_dealer_drawn"] is True


def test_as_many_matches_are_played_as_asked_for(home: Home) -> None:
    home.ok("demo", "--game", "regicide", "--matches", 8)
    assert len(home.ok("matches", "--json").rows()) == 8


def test_a_demo_tells_a_person_who_played_and_what_to_type_next(home: Home) -> None:
    done = home.ok("demo", "--game", "regicide", "--matches", 1)
    assert "4 agents connected over gRPC" in done.out
    assert "1 of 1 matches" in done.out
    assert "verified all 1 logs" in done.out
    last = home.ok("matches", "--json").rows()[0]["match"]
    assert f"referee replay {last}" in done.out


def test_nothing_of_a_demo_is_left_when_it_is_done(home: Home) -> None:
    home.ok("demo", "--game", "regicide", "--matches", 1)
    assert home.alive() == []


def test_ctrl_c_ends_a_demo_with_130_and_all_its_processes(home: Home) -> None:
    demo = home.start("demo", "--game", "guillotine", "--matches", 5_000)
    demo.wait_for("agents connected")
    assert len(home.alive()) >= 6
    assert demo.stop(signal.SIGINT) == 130
    until(lambda: not home.alive(), 5, "processes are left")
    assert "Traceback" not in demo.output


def test_ctrl_c_while_the_agents_start_leaves_nothing_either(home: Home) -> None:
    demo = home.start("demo", "--game", "guillotine", "--matches", 5_000)
    demo.wait_for("listens on")
    assert demo.stop(signal.SIGINT) == 130
    until(lambda: not home.alive(), 5, "processes are left")


def test_no_agent_outlives_a_demo_that_is_killed(home: Home) -> None:
    demo = home.start("demo", "--game", "guillotine", "--matches", 5_000)
    demo.wait_for("agents connected")
    assert demo.stop(signal.SIGKILL) == -signal.SIGKILL
    until(lambda: not home.alive(), 2, "processes are left")


def sabotaged(home: Home, code: str) -> dict[str, str]:
    """Returns an environment in which the agent `stride` runs some code before anything else."""
    folder = home.path / "sabotage"
    folder.mkdir()
    guard = f"import sys\nif {HOUSE!r} in sys.orig_argv and 'stride' in sys.orig_argv:\n"
    body = "".join(f"    {line}\n" for line in code.splitlines())
    (folder / "sitecustomize.py").write_text(guard + body, encoding="utf-8")
    paths = [str(folder), *filter(None, [home.env.get("PYTHONPATH", "")])]
    return {**home.env, "PYTHONPATH": ":".join(paths)}


def test_an_agent_that_cannot_start_is_named_with_what_it_said(home: Home) -> None:
    env = sabotaged(home, "raise SystemExit('no \\x1b[31mmodel file here')")
    done = home.run("demo", "--matches", 1, env=env)
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "agent stride did not start" in done.err
    assert "with code 1" in done.err
    assert "model file here" in done.err
    assert "\x1b" not in done.err
    assert home.alive() == []


CRASH = """
import referee_games.bots as bots
made = bots.make
def make(name, seed=0):
    bot, asked = made(name, seed), []
    class Crashing:
        def choose(self, decision):
            asked.append(decision)
            if len(asked) > 20:
                raise RuntimeError("the tensor has the wrong shape")
            return bot.choose(decision)
    return Crashing()
bots.make = make
"""


def test_an_agent_that_crashes_while_it_plays_is_named_with_what_it_said(home: Home) -> None:
    done = home.run("demo", "--game", "guillotine", "--matches", 5, env=sabotaged(home, CRASH.strip()))
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "agent stride ended with code 1" in done.err
    assert "the tensor has the wrong shape" in done.err
    assert home.alive() == []


def test_a_demo_can_be_repeated_on_the_same_data(home: Home) -> None:
    home.ok("demo", "--game", "regicide", "--matches", 1)
    home.ok("demo", "--game", "regicide", "--matches", 1)
    assert len(home.ok("matches", "--json").rows()) == 2


def test_a_demo_does_not_read_the_credentials_of_who_runs_it(home: Home) -> None:
    home.ok("demo", "--game", "regicide", "--matches", 1)
    assert not (home.path / "config").exists()
    assert {path.name for path in Path(home.data / "agents").iterdir()} == {
        f"{bot}.token" for bot in ("greedy", "random", "stride", "first")
    }
