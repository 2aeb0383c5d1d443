"""`referee cups` as a host types it, with the tournaments of a real service."""

from __future__ import annotations

from typing import Any

import pytest

from .kit import Home, until
from .test_cup import cup, program, write

GUEST = '[[entrant]]\nname = "guest"\nremote = "guest"\n[[entrant]]\nname = "greedy"\nbot = "greedy"\n'


@pytest.fixture(scope="module")
def host(shared: Home) -> Home:
    """A host whose service runs."""
    shared.serve()
    return shared


def named(text: str, name: str) -> str:
    return text.replace("Test cup", name).replace('seed = "', '# seed = "')


def waiting(name: str) -> str:
    """Returns the file of a tournament that waits for an agent until the test is over."""
    text = named(cup(sets=2, entrants=GUEST, extra='[duplicate]\nmode = "none"\n'), name)
    return text.replace("guillotine", "regicide").replace("deals_per_dealer = 1", "max_deals = 1")


def listed(host: Home, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(row for row in host.ok("cups", "list", "--json").rows() if row["name"] == name)
    return found


def test_a_tournament_is_created_started_listed_and_over(host: Home) -> None:
    path = write(host, named(cup(), "Whole"), "whole.toml")
    made = host.ok("cups", "create", path).out
    assert made.startswith("Whole (")
    assert "waiting, 0 of 8 tables ended, bound to " in made
    assert host.ok("cups", "start", "whole").out.startswith("Whole (")
    until(lambda: listed(host, "Whole")["state"] == "finished", what="the tournament is over")
    row = listed(host, "Whole")
    assert (row["ended"], row["tables"], row["playing"], row["game"]) == (8, 8, 0, "guillotine")
    assert row["commitment"] in made
    assert row["tournament_id"] in host.ok("cups", "list").out


def test_the_same_file_again_is_the_same_tournament(host: Home) -> None:
    path = write(host, waiting("Twice"), "twice.toml")
    first = host.ok("cups", "create", path).out
    assert host.ok("cups", "create", path).out == first
    assert [row["name"] for row in host.ok("cups", "list", "--json").rows()].count("Twice") == 1


def test_a_tournament_that_waits_is_paused_entered_left_and_cancelled(host: Home) -> None:
    path = write(host, waiting("Steered"), "steered.toml")
    assert "starting, 0 of 2 tables ended" in host.ok("cups", "create", path, "--start").out
    tournament_id = listed(host, "Steered")["tournament_id"]
    assert "paused" in host.ok("cups", "pause", tournament_id).out
    assert "starting" in host.ok("cups", "start", "Steered").out
    assert host.ok("cups", "enter", "Steered", "late", "--bot", "first").out.startswith("entered late in Steered (")
    assert host.ok("cups", "enter", "Steered", "later", "--agent", "a").out.startswith("entered later in Steered (")
    assert host.ok("cups", "withdraw", "Steered", "late").out.startswith("withdrew late from Steered (")
    assert "cancelled" in host.ok("cups", "cancel", "Steered").out
    assert host.run("cups", "start", "Steered").code == 2


def test_everything_wrong_with_a_file_is_said_a_line_each(host: Home) -> None:
    many = 'name = "Wrong"\ngame = "chess"\n' + '[[entrant]]\nname = ""\nbot = "?"\n' * 60
    path = write(host, many, "wrong.toml")
    by_service, by_run = host.run("cups", "create", path), host.run("run", path, "--data", host.path / "other")
    assert by_service.code == by_run.code == 78
    assert by_service.err == by_run.err
    assert len(by_service.err.splitlines()) == 50


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("= =", "not TOML"),
        ("#" * 70_000, "up to 64 KiB"),
        (cup(entrants=program("p", ["./p"])), "a running service starts no programs"),
    ],
)
def test_a_file_that_a_service_cannot_take_is_refused_in_one_line(host: Home, text: str, word: str) -> None:
    done = host.run("cups", "create", write(host, text, "refused.toml"))
    assert done.code == 78
    assert word in done.err
    assert len(done.err.splitlines()) == 1


def test_a_name_of_several_has_to_be_an_id(host: Home) -> None:
    for number in (1, 2):
        host.ok("cups", "create", write(host, waiting("Same") + f"# {number}\n", "same.toml"))
    ids = [row["tournament_id"] for row in host.ok("cups", "list", "--json").rows() if row["name"] == "Same"]
    done = host.run("cups", "cancel", "Same")
    assert done.code == 2
    assert all(one in done.err for one in ids)
    assert "cancelled" in host.ok("cups", "cancel", ids[0]).out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("create", "nowhere.toml"), 66, "cannot be read"),
        (("start", "Nobody's"), 66, "there is no tournament Nobody's"),
        (("pause", "Rest"), 2, "is not running"),
        (("enter", "Rest", "x"), 2, "--bot BOT"),
        (("enter", "Rest", "x", "--bot", "first", "--agent", "a"), 2, "--bot BOT"),
        (("enter", "Rest", "x", "--bot", "?"), 2, "there is no house bot"),
        (("withdraw", "Rest", "x"), 2, "no entrant is called"),
        (("list", "--data", "none"), 73, ""),
        (("list", "--connect", "127.0.0.1:1"), 69, "no referee answers"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(host: Home, words: tuple[str, ...], code: int, said: str) -> None:
    if "Rest" in words:
        host.ok("cups", "create", write(host, waiting("Rest"), "rest.toml"))
    done = host.run("cups", *words)
    assert done.code == code
    assert said in done.err
    assert len(done.err.splitlines()) == 1
