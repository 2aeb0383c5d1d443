"""`referee run`, `init` and `standings` as a host types them, killed and fed nonsense."""

from __future__ import annotations

import json
import signal
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from referee_server.cli.data import DataFolder

from .kit import SEED, Home, until
from .test_tls import make_papers

HOUSE = [sys.executable, "-m", "referee_client.house"]
WHERE = ["--connect", "{address}", "--name", "{name}", "--credential", "{credential}"]
BOTS = ("greedy", "random", "first", "stride")


def write(home: Home, text: str, name: str = "cup.toml") -> Path:
    path = home.path / name
    path.write_text(text, encoding="utf-8")
    return path


def cup(*, sets: int = 2, extra: str = "", entrants: str | None = None, seed: str = SEED) -> str:
    bots = "".join(f'[[entrant]]\nname = "{bot}"\nbot = "{bot}"\n' for bot in BOTS)
    return (
        f'name = "Test cup"\ngame = "guillotine"\nseed = "{seed}"\n[options]\ndeals_per_dealer = 1\n'
        f"[format]\nsets = {sets}\n{extra}\n{bots if entrants is None else entrants}"
    )


def results(home: Home, *args: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(home.ok("standings", "--format", "json", *args).out)
    return found


def program(name: str, command: list[str], *more: str) -> str:
    return "\n".join([f'[[entrant]]\nname = "{name}"\ncommand = {json.dumps(command)}', *more]) + "\n"


def test_the_example_runs_as_it_is_written(home: Home) -> None:
    home.ok("init", "first.toml")
    done = home.ok("run", "first.toml", "--json")
    told = json.loads(done.out)
    assert told["state"] == "finished"
    assert told["tables_scored"] == 8
    assert told["standings"][0]["name"] == "greedy"
    assert home.run("init", "first.toml").code == 2


def test_a_cup_that_is_killed_again_and_again_ends_like_one_that_was_not(home: Home) -> None:
    path = write(home, cup(sets=8).replace("deals_per_dealer = 1", ""))
    whole = home.path / "whole"
    home.ok("run", path, "--data", whole)
    for _ in range(4):
        run = home.start("run", path)
        run.wait_for("of 32 tables")
        run.popen.send_signal(signal.SIGKILL)
        run.wait()
    home.ok("run", path)
    undisturbed, killed = results(home, "--data", whole), results(home)
    assert killed["standings"] == undisturbed["standings"]
    assert killed["crosstable"] == undisturbed["crosstable"]
    # The very same matches with the very same cards; only digests differ, because they hold times.
    for table in (*undisturbed["tables"], *killed["tables"]):
        del table["digest"]
    assert killed["tables"] == undisturbed["tables"]
    assert len(home.ok("matches", "--json").rows()) == killed["tables_ended"] == 8 * 4
    assert {row["outcome"] for row in home.ok("verify", "--all", "--json").rows()} == {"verified"}


def test_ctrl_c_lets_tables_at_play_finish_and_the_next_run_goes_on(home: Home) -> None:
    path = write(home, cup(sets=24).replace("deals_per_dealer = 1", ""))
    run = home.start("run", path)
    run.wait_for("0 of 96 tables")
    run.wait_for("of 96 tables")
    assert run.stop(signal.SIGINT) == 130
    assert "go on with" in run.output
    before = results(home)
    assert 0 < before["tables_ended"] < 24 * 4
    assert before["state"] == "running"
    home.ok("run", path)
    after = results(home)
    assert after["state"] == "finished"
    assert after["tables_ended"] == 24 * 4


def test_a_cup_that_has_ended_is_only_shown_again(home: Home) -> None:
    path = write(home, cup())
    home.ok("run", path)
    before = home.ok("matches", "--json").out
    assert "Finished" in home.ok("run", path).out
    assert home.ok("matches", "--json").out == before


@pytest.mark.parametrize(
    ("new", "word", "code"),
    [
        (cup(sets=3), "format.sets was 2 and is 3", 78),
        (cup(seed="ab" * 32), "seed was", 78),
        (cup(extra="[clock]\nbank_ms = 5"), "clock.bank_ms was left out and is 5", 78),
        (cup().replace("Test cup", "Other cup"), "another tournament that has not ended", 73),
    ],
)
def test_a_file_that_changed_is_not_gone_on_with_unasked(home: Home, new: str, word: str, code: int) -> None:
    path = write(home, cup(entrants=program("slow", ["sleep", "1000"]) + cup().partition("sets = 2")[2]))
    run = home.start("run", path)
    run.wait_for(" a minute")
    run.popen.send_signal(signal.SIGKILL)
    run.wait()
    bots = new.partition("[[entrant]]")
    entrants = program("slow", ["sleep", "1000"])
    done = home.run("run", write(home, bots[0] + entrants + bots[1] + bots[2]))
    assert done.code == code
    assert word in done.err
    assert "Traceback" not in done.err


def test_changes_that_leave_the_cards_alone_are_taken_if_the_host_says_so(home: Home) -> None:
    path = write(home, cup(sets=24))
    run = home.start("run", path)
    run.wait_for("of 96 tables")
    run.popen.send_signal(signal.SIGKILL)
    run.wait()
    changed = write(home, cup(sets=24, extra="[running]\nconcurrency = 3"))
    assert "say --accept-changes" in home.run("run", changed).err
    home.ok("run", changed, "--accept-changes")
    assert results(home)["state"] == "finished"


def test_everything_wrong_with_a_file_is_said_at_once(home: Home) -> None:
    path = write(home, 'name = ""\ngame = "chess"\nx = 1\n[[entrant]]\nname = "a"\nbot = "?"\n')
    done = home.run("run", path)
    assert done.code == 78
    assert [line.split(": ")[1 if n < 3 else 2] for n, line in enumerate(done.err.splitlines())] == [
        "name",
        "entrant.0.bot",
        "x",
        "game",
    ]


@pytest.mark.parametrize(
    ("text", "code", "word"),
    [
        (b"\xff\xfe", 78, "not text"),
        (b"= =", 78, "not TOML"),
        (b"", 78, "name: it is needed"),
        (cup(entrants='[[entrant]]\nname = "a"\nbot = "first"').encode(), 78, "1 entrants cannot fill a table"),
    ],
)
def test_nonsense_is_refused_in_words(home: Home, text: bytes, code: int, word: str) -> None:
    path = home.path / "cup.toml"
    path.write_bytes(text)
    done = home.run("run", path)
    assert done.code == code
    assert word in done.err
    assert "Traceback" not in done.err


def test_a_file_that_is_not_there_is_named(home: Home) -> None:
    assert home.run("run", "nowhere.toml").code == 66


def test_programs_play_beside_house_bots_and_none_is_left_behind(home: Home) -> None:
    entrants = (
        program("kept", [*HOUSE, "greedy", *WHERE], "fresh = false")
        + program("fresh", [*HOUSE, "random", *WHERE])
        + "".join(f'[[entrant]]\nname = "{bot}"\nbot = "{bot}"\n' for bot in BOTS[2:])
    )
    extra = "[duplicate]\ntrust_memory = true\n"
    home.ok("run", write(home, cup(sets=1, extra=extra, entrants=entrants)))
    told = results(home)
    assert told["tables_scored"] == 4
    assert {row["name"]: sum(row["faults"].values()) for row in told["standings"]} == {
        "kept": 0,
        "fresh": 0,
        "first": 0,
        "stride": 0,
    }
    assert any("TRUSTED" in note for note in told["notes"])
    assert any("Kept apart from the machine by process: kept, fresh." in note for note in told["notes"])
    assert until(lambda: not still_there(str(home.path)), what="everything has ended")


def test_a_remote_entrant_connects_adds_to_the_cards_and_plays(home: Home) -> None:
    entrants = '[[entrant]]\nname = "guest"\nremote = "guest"\n' + "".join(
        f'[[entrant]]\nname = "{bot}"\nbot = "{bot}"\n' for bot in BOTS[:3]
    )
    run = home.start("run", write(home, cup(entrants=entrants)), "--listen", "127.0.0.1:0")
    address = run.wait_for("listens on").rpartition(" ")[2]
    home.agent("greedy", address, "guest")
    assert run.wait() == 0
    told = results(home)
    assert told["tables_scored"] == told["tables_ended"] == 2
    first = json.loads(home.ok("export", "--all", "--format", "jsonl").out.splitlines()[0])
    nonces = first["match_created"]["tournament"]["nonces"]
    assert [bool(nonce) for nonce in nonces] == [True, False, False, False]


def test_remote_entrants_connect_encrypted_and_programs_play_beside_them(home: Home) -> None:
    papers = make_papers(home.path)
    entrants = (
        '[[entrant]]\nname = "guest"\nremote = "guest"\n'
        + program("near", [*HOUSE, "random", *WHERE])
        + "".join(f'[[entrant]]\nname = "{bot}"\nbot = "{bot}"\n' for bot in BOTS[2:])
    )
    path = write(home, cup(sets=1, entrants=entrants, extra='[duplicate]\nmode = "none"\n'))
    files = papers.server
    run = home.start("run", path, "--listen", "127.0.0.1:0", "--tls-cert", files.certificate, "--tls-key", files.key)
    address = run.wait_for("listens on").rpartition(" ")[2]
    home.agent("greedy", address, "guest", "--tls-ca", str(papers.ca))
    assert run.wait() == 0
    told = results(home)
    assert told["tables_scored"] == 1
    assert all(not row["faults"] for row in told["standings"])


def still_there(word: str) -> list[str]:
    """Returns the command lines of processes that hold a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line:
            found.append(line)
    return found


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        (["./no-such-program"], "No such file"),
        (["/bin/sh", "-c", "echo out of order; exit 3"], "out of order"),
    ],
)
def test_a_program_that_does_not_start_fails_its_tables_with_the_cause(
    home: Home, command: list[str], cause: str
) -> None:
    entrants = program("broken", command) + "".join(f'[[entrant]]\nname = "{b}"\nbot = "{b}"\n' for b in BOTS[:3])
    home.ok("run", write(home, cup(sets=1, entrants=entrants)))
    told = results(home)
    assert told["tables_scored"] == 0
    assert {table["reason"] for table in told["tables"]} == {"not_started"}
    broken = next(row for row in told["standings"] if row["name"] == "broken")
    assert broken["losses"] == {"no_show: cancel": 4}
    assert cause in told["tables"][0]["seats"][told["tables"][0]["seats"].index(seat_of(told, "broken"))]["said"]
    assert "Programs that failed" in home.ok("standings").out
    assert {row["outcome"] for row in home.ok("verify", "--all", "--json").rows()} == {"verified"}


def seat_of(told: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(seat for seat in told["tables"][0]["seats"] if seat["name"] == name)
    return found


def test_where_the_policy_says_so_a_house_bot_sits_in_for_a_program_that_does_not_start(home: Home) -> None:
    entrants = program("broken", ["false"]) + "".join(f'[[entrant]]\nname = "{b}"\nbot = "{b}"\n' for b in BOTS[:3])
    extra = '[faults]\nno_show = { action = "replace" }\n'
    home.ok("run", write(home, cup(sets=1, extra=extra, entrants=entrants)))
    told = results(home)
    assert told["tables_scored"] == 4
    assert [row["name"] for row in told["standings"]][-1] == "broken"


def test_agents_of_a_cup_that_is_killed_are_gone_and_come_back_with_it(home: Home) -> None:
    entrants = program("one", [*HOUSE, "greedy", *WHERE]) + "".join(
        f'[[entrant]]\nname = "{b}"\nbot = "{b}"\n' for b in BOTS[:3]
    )
    path = write(home, cup(sets=6, entrants=entrants, extra="[running]\nconcurrency = 2"))
    run = home.start("run", path)
    run.wait_for("0 of 24 tables")
    run.wait_for("of 24 tables")
    run.popen.send_signal(signal.SIGKILL)
    run.wait()
    token = "--name one"
    assert until(lambda: not still_there(token), what="its agents have ended") is True
    home.ok("run", path)
    told = results(home)
    assert told["tables_scored"] == 24
    assert sum(sum(row["faults"].values()) for row in told["standings"]) == 0


def at_play(home: Home) -> list[str]:
    """Returns the matches in which cards have been played, and that have not ended."""
    with closing(DataFolder(home.data).read()) as journal:
        rows = journal.matches(after_number=0, limit=100)
        return [row.match_id for row in rows if row.state == "RUNNING" and row.event_count > 20]


def test_after_a_kill_matches_wait_for_programs_however_long_their_start_takes(home: Home) -> None:
    slow = ["sh", "-c", 'sleep 1; exec "$0" "$@"', *HOUSE, "greedy", *WHERE]
    entrants = program("slow", slow, "fresh = false") + "".join(
        f'[[entrant]]\nname = "{b}"\nbot = "{b}"\n' for b in BOTS[:3]
    )
    extra = (
        '[running]\nconcurrency = 4\n[duplicate]\nmode = "none"\n[clock]\nconnect_ms = 50\nreconnect_grace_ms = 50\n'
    )
    path = write(home, cup(sets=8, entrants=entrants, extra=extra).replace("deals_per_dealer = 1\n", ""))
    run = home.start("run", path)
    run.wait_for("0 of 8 tables")
    until(lambda: at_play(home))
    run.popen.send_signal(signal.SIGKILL)
    run.wait()
    stopped = at_play(home)
    assert stopped
    home.ok("run", path)
    told = results(home)
    assert told["tables_scored"] == len(told["tables"]) == 8
    assert sum(sum(row["faults"].values()) for row in told["standings"]) == 0
    resumed = [json.loads(line) for line in home.ok("export", *stopped, "--format", "jsonl").out.splitlines()]
    assert sum("match_resumed" in event for event in resumed) == len(stopped)


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ("text", "Standings"),
        ("csv", "rank,entrant,name"),
        ("markdown", "| rank |"),
        ("html", "<svg"),
        ("json", '"standings"'),
    ],
)
def test_standings_come_in_every_form(finished: Home, form: str, word: str) -> None:
    assert word in finished.ok("standings", "--format", form).out
    out = finished.path / f"out.{form}"
    finished.ok("standings", "Test cup", "--format", form, "-o", out)
    assert out.stat().st_size > 100


def test_standings_go_to_parquet(finished: Home) -> None:
    finished.ok("standings", "--format", "parquet", "-o", finished.path / "pq")
    assert {path.name for path in (finished.path / "pq").iterdir()} == {"tables.parquet", "deals.parquet"}


def test_standings_of_nothing_are_refused(finished: Home) -> None:
    assert finished.run("standings", "Nobody's").code == 66
    assert finished.run("standings", "--data", finished.path / "none").code == 73


@pytest.fixture(scope="module")
def finished(shared: Home) -> Home:
    """A data folder with a small tournament."""
    shared.ok("run", write(shared, cup(sets=1)))
    return shared
