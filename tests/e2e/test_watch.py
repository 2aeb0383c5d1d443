"""`referee watch`: a match as it happens, for whoever may see it, and through restarts of the service."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from referee_client import Agent, Decision, client
from referee_client.credential import default_path

from .kit import BOTS4, REFEREE, Home, Process, Service, until
from .test_restart import free_port

REGICIDE = ("match", "regicide", "--seat", "greedy", "--seat", "first", "--option", "target=10", "--json")
GUILLOTINE = ("match", "guillotine", *BOTS4, "--option", "deals_per_dealer=1", "--json")
WAITING = ("match", "regicide", "--seat", "open", "--seat", "first", "--option", "target=10", "--no-wait")


@pytest.fixture(scope="module")
def service(shared: Home) -> Service:
    return shared.serve()


@pytest.fixture(scope="module")
def ended(shared: Home, service: Service) -> str:
    """A match of Guillotine that has ended."""
    match_id: str = shared.ok(*GUILLOTINE).rows()[0]["match"]
    return match_id


@pytest.fixture(scope="module")
def waiting(shared: Home, service: Service) -> str:
    """A match that waits for an agent that does not come."""
    return shared.ok(*WAITING).out.strip()


@pytest.fixture
def stranger(shared: Home, service: Service, tmp_path: Path) -> Callable[..., Any]:
    """Runs `referee watch` where there is no credential of the host."""

    def run(*args: object) -> Any:
        env = {**shared.env, "REFEREE_DATA": str(tmp_path / "nothing")}
        return shared.run("watch", *args, "--connect", service.address, env=env)

    return run


@pytest.fixture
def other_host(tmp_path: Path) -> Path:
    """The data folder of another service."""
    token = tmp_path / "host.token"
    token.write_text("0" * 64, encoding="ascii")
    token.chmod(0o600)
    return tmp_path


def watched(process: Process) -> str:
    """Returns what a watch that has ended printed, without what it said about the connection."""
    assert process.wait() == 0, process.output
    return "".join(f"{line}\n" for line in process.lines if not line.startswith("referee: "))


# The whole of a match.


@pytest.mark.parametrize("played", [GUILLOTINE, REGICIDE], ids=lambda played: played[1])
@pytest.mark.usefixtures("service")
def test_a_match_that_has_ended_is_told_as_replay_tells_it(shared: Home, played: tuple[object, ...]) -> None:
    [row] = shared.ok(*played).rows()
    assert shared.ok("watch", row["match"]).out == shared.ok("replay", row["match"]).out


def test_with_json_it_tells_events_as_export_does(shared: Home, ended: str) -> None:
    assert shared.ok("watch", ended, "--json").out == shared.ok("export", ended, "--format", "jsonl").out


def test_a_match_that_was_cancelled_is_told_to_its_end(shared: Home, service: Service) -> None:
    match_id = shared.ok(*WAITING).out.strip()
    watch = shared.start("watch", match_id)
    watch.wait_for("(open)")
    shared.ok("cancel", match_id, "--note", "rain")
    assert watched(watch) == shared.ok("replay", match_id).out
    assert any("cancelled by the host, no result, 0 deals (rain)" in line for line in watch.lines)


def test_who_comes_before_the_players_sees_it_begin_go_on_and_end(shared: Home, service: Service) -> None:
    match_id = shared.ok(*WAITING).out.strip()
    watch = shared.start("watch", match_id)
    watch.wait_for("0 (open)")
    agent = shared.agent("greedy", service.address, "early", "--matches", "1")
    watch.wait_for("0 early takes the open seat")
    assert watched(watch) == shared.ok("replay", match_id).out
    assert agent.wait() == 0


# Through restarts.


class Pausing(Agent):
    """Plays, and stops over one decision until it may go on."""

    name = "anna"

    def __init__(self, number: int) -> None:
        self.number = number
        self.stopped = asyncio.Event()
        self.go_on = asyncio.Event()

    async def choose(self, decision: Decision) -> str:
        if decision.number == self.number:
            self.stopped.set()
            await self.go_on.wait()
        return decision.legal[0]


@pytest.mark.parametrize(
    ("number", "view"), [(signal.SIGKILL, "all"), (signal.SIGKILL, "public"), (signal.SIGTERM, "all")]
)
async def test_a_restart_of_the_service_is_bridged_and_nothing_told_twice_or_left_out(
    home: Home, number: signal.Signals, view: str
) -> None:
    service = await asyncio.to_thread(home.serve, listen=f"127.0.0.1:{free_port()}")
    anna = Pausing(20)
    backoff = client.Backoff(0.05, 0.2)
    player = asyncio.create_task(client.play(anna, service.address, credential="a1" * 32, matches=1, backoff=backoff))
    await asyncio.to_thread(until, lambda: "connected" in home.ok("agents", "list").out)
    seats = ("--seat", "agent:anna", "--seat", "first", "--untimed", "--option", "max_deals=2")
    created = await asyncio.to_thread(home.ok, "match", "regicide", *seats, "--no-wait")
    match_id = created.out.strip()
    watch = home.start("watch", match_id, "--view", view)
    await asyncio.wait_for(anna.stopped.wait(), 60)
    # A line is there once its trick is, though nobody plays on.
    await asyncio.to_thread(watch.wait_for, "  trick  5 ")
    await asyncio.to_thread(service.stop, number)
    await asyncio.to_thread(watch.wait_for, "referee: lost the service")
    await asyncio.to_thread(home.serve, listen=service.address)
    await asyncio.to_thread(watch.wait_for, "the referee was started again")
    anna.go_on.set()
    assert len(await asyncio.wait_for(player, 60)) == 1
    told = await asyncio.to_thread(watched, watch)
    assert told == (await asyncio.to_thread(home.ok, "watch", match_id, "--view", view)).out
    if view == "all":
        assert told == (await asyncio.to_thread(home.ok, "replay", match_id)).out
    assert len([line for line in watch.lines if line.startswith("referee: ")]) == 1


def test_a_service_that_stays_away_is_given_up_after_the_time_said(home: Home) -> None:
    service = home.serve()
    match_id = home.ok(*WAITING).out.strip()
    watch = home.start("watch", match_id, "--patience", "0.5")
    watch.wait_for("(open)")
    assert service.stop() == 0
    assert watch.wait() == 69
    lost, gave_up = [line for line in watch.lines if line.startswith("referee: ")]
    assert lost == f"referee: lost the service at {service.address}; trying again for 0.5 s"
    assert gave_up.startswith(f"referee: no referee at {service.address} for 0.5 s; once it is back, watch again")


# Who may see what.


def test_a_stranger_is_told_what_is_open_to_all_and_no_card_before_it_is_played(
    shared: Home, ended: str, stranger: Callable[..., Any]
) -> None:
    done = stranger(ended)
    assert done.code == 0
    lines = done.out.splitlines()
    hands = [line for line in lines if line.endswith(" hidden")]
    assert len(hands) == 4 * 4
    assert {line.split()[-2:] == ["8", "hidden"] for line in hands} == {True}
    whole = shared.ok("replay", ended).out.splitlines()
    assert [line for line in lines if line not in hands] == [line for line in whole if line not in whole_hands(whole)]


def whole_hands(lines: list[str]) -> list[str]:
    """Returns the lines with the hands of four."""
    starts = [number for number, line in enumerate(lines) if line.startswith("  hands ")]
    return [line for start in starts for line in lines[start : start + 4]]


def test_a_stranger_sees_the_public_events(ended: str, stranger: Callable[..., Any]) -> None:
    events = stranger(ended, "--json").rows()
    hands = [hand for event in events for hand in event.get("cards_dealt", {}).get("hands", [])]
    assert [hand.get("cards") for hand in hands] == [None] * 16
    assert [int(event["sequence"]) for event in events] == list(range(1, len(events) + 1))


def test_the_host_of_another_service_is_a_stranger_here(
    shared: Home, service: Service, ended: str, other_host: Path, stranger: Callable[..., Any]
) -> None:
    done = shared.ok("watch", ended, "--data", other_host, "--connect", service.address)
    assert done.out == stranger(ended).out


def test_an_agent_sees_its_own_hand_and_no_other(shared: Home, service: Service, stranger: Callable[..., Any]) -> None:
    match_id = shared.ok(*WAITING).out.strip()
    assert shared.agent("greedy", service.address, "own", "--matches", "1").wait() == 0
    path = Path(shared.env["XDG_CONFIG_HOME"]) / "referee" / default_path("own").name
    until(lambda: "finished" in shared.ok("matches", "--json").out.split(match_id)[1].split("\n")[0])
    events = stranger(match_id, "--view", "seat:0", "--credential", path, "--json").rows()
    hands = [hand for event in events for hand in event.get("cards_dealt", {}).get("hands", [])]
    assert {bool(hand.get("cards")): hand.get("seat", 0) for hand in hands} == {True: 0, False: 1}
    told = stranger(match_id, "--view", "seat:0", "--credential", path).out.splitlines()
    start = told.index(next(line for line in told if line.startswith("  hands ")))
    assert "hidden" not in told[start]
    assert told[start + 1] == "              1 first   9 hidden"
    assert (stranger(match_id, "--view", "seat:1", "--credential", path)).code == 77


# What goes wrong.


def one_line(done: Any, code: int, words: str) -> None:
    assert (done.code, done.err.count("\n")) == (code, 1), done
    assert words in done.err
    assert "Traceback" not in done.err + done.out


CASES = [
    (2, "--view", "seat", "--view is all, public or seat:K, such as seat:0, not 'seat'"),
    (2, "--view", "seat:-1", "--view is all, public or seat:K"),
    (66, "--credential", "none.token", "no credential file 'none.token' that can be read; name that of the agent"),
    (77, "--view", "all", "before the end, only the host sees all; say --view public, or name the service's data"),
    (77, "--view", "seat:0", "does not know this credential"),
]


@pytest.mark.parametrize(("code", "option", "value", "words"), CASES)
def test_what_a_stranger_may_not_or_cannot_watch_is_said_in_one_line(
    waiting: str, stranger: Callable[..., Any], code: int, option: str, value: str, words: str
) -> None:
    one_line(stranger(waiting, option, value), code, words)


def test_a_match_that_is_not_there_ends_with_66(shared: Home, stranger: Callable[..., Any]) -> None:
    for done in (shared.run("watch", "a" * 26), stranger("a" * 26), stranger("a" * 1_000)):
        one_line(done, 66, "there is no match 'aaa")


def test_a_seat_that_is_not_there_is_named(shared: Home, waiting: str) -> None:
    one_line(shared.run("watch", waiting, "--view", "seat:2"), 2, "the match has seats 0 to 1")


def test_without_a_service_there_it_ends_with_69(shared: Home) -> None:
    one_line(shared.run("watch", "a" * 26, "--connect", "127.0.0.1:1"), 69, "no referee answers at 127.0.0.1:1; start")


def test_the_credential_of_another_host_is_no_hosts_credential(
    shared: Home, service: Service, waiting: str, other_host: Path
) -> None:
    done = shared.run("watch", waiting, "--data", other_host, "--connect", service.address, "--view", "all")
    one_line(done, 77, "only the host sees all")


def test_bytes_that_are_not_text_are_no_match(shared: Home, service: Service) -> None:
    one_line(shared.run("watch", "x\udcff"), 2, "is not text in UTF-8")


def test_ctrl_c_ends_it_quietly(shared: Home, waiting: str) -> None:
    watch = shared.start("watch", waiting)
    watch.wait_for("* takes the trick")
    header = watch.output
    assert watch.stop(signal.SIGINT) == 130
    assert watch.output.rstrip() == header


@pytest.mark.parametrize("json_", [(), ("--json",)])
def test_a_closed_pipe_ends_it_quietly(shared: Home, ended: str, json_: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [*REFEREE, "watch", ended, *json_]
    done = subprocess.run(command, env=shared.env, stdout=write, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_lines_come_through_a_pipe_at_once(shared: Home, waiting: str) -> None:
    env = {name: value for name, value in shared.env.items() if name != "PYTHONUNBUFFERED"}
    watch = shared.start("watch", waiting, "--json", env=env)
    assert json.loads(watch.wait_for("match_created"))["match_id"] == waiting
