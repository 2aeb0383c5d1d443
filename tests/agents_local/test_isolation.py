"""Tiers: the sandbox's command line, probing, and refusing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from referee_server.agents import isolation
from referee_server.agents.isolation import IsolationError, Probe, Room, command, environment, probe, require

BWRAP = Probe("bubblewrap", works=True, version="0.8.0", program="/usr/bin/bwrap")

GOLDEN = """\
/usr/bin/bwrap
--unshare-user
--unshare-all
--die-with-parent
--new-session
--cap-drop ALL
--disable-userns
--hostname agent
--ro-bind-try /usr /usr
--ro-bind-try /bin /bin
--ro-bind-try /sbin /sbin
--ro-bind-try /lib /lib
--ro-bind-try /lib64 /lib64
--ro-bind-try /etc/alternatives /etc/alternatives
--ro-bind-try /etc/ld.so.cache /etc/ld.so.cache
--ro-bind-try /etc/localtime /etc/localtime
--ro-bind-try /etc/ssl/certs /etc/ssl/certs
--proc /proc
--dev /dev
--size 33554432
--tmpfs /dev/shm
--size 33554432
--tmpfs /tmp
--ro-bind /srv/model /srv/model
--ro-bind /srv/anna /srv/anna
--tmpfs /srv/anna/data
--ro-bind /srv/anna/data/agents.sock /srv/anna/data/agents.sock
--remount-ro /srv/anna/data
--remount-ro /dev
--remount-ro /
--chdir /srv/anna
-- ./bot --fast
"""

ROOM = Room(
    cwd=Path("/srv/anna"),
    reads=(Path("/srv/model"),),
    hidden=(Path("/srv/anna/data"),),
    socket=Path("/srv/anna/data/agents.sock"),
    tmp_mb=32,
)


def lines(argv: list[str]) -> str:
    """Returns a command line with each of its options on a line of its own."""
    options = argv[: argv.index("--")]
    return " ".join(options).replace(" --", "\n--") + "\n" + " ".join(argv[len(options) :]) + "\n"


def test_the_command_line_of_a_sandbox() -> None:
    assert lines(command(["./bot", "--fast"], BWRAP, ROOM)) == GOLDEN


def test_an_older_version_is_not_asked_for_what_it_does_not_know() -> None:
    older = Probe("bubblewrap", works=True, version="0.7.0", program="/usr/bin/bwrap")
    assert lines(command(["./bot", "--fast"], older, ROOM)) == GOLDEN.replace("--disable-userns\n", "")


def test_without_a_folder_of_its_own_an_agent_runs_in_its_tmp_and_without_a_socket_it_has_no_way_out() -> None:
    argv = command(["bot"], BWRAP, Room())
    assert argv[-4:] == ["--chdir", "/tmp", "--", "bot"]
    assert "--ro-bind" not in argv
    assert not any("sock" in word for word in argv)


def test_a_plain_process_is_run_by_its_own_command() -> None:
    assert command(["./bot", "--fast"], probe("process"), ROOM) == ["./bot", "--fast"]


@pytest.mark.parametrize("cwd", ["data", "data/anna", "link"])
def test_a_folder_within_what_is_hidden_is_refused(tmp_path: Path, cwd: str) -> None:
    (tmp_path / "data" / "anna").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data" / "anna")
    with pytest.raises(IsolationError, match="which no agent may see"):
        command(["bot"], BWRAP, Room(cwd=tmp_path / cwd, hidden=(tmp_path / "data",)))


def test_what_is_hidden_is_covered_where_a_link_shows_it(tmp_path: Path) -> None:
    (tmp_path / "club" / "data").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "club")
    argv = command(["bot"], BWRAP, Room(cwd=tmp_path / "link", hidden=(tmp_path / "club" / "data",)))
    assert argv[argv.index(str(tmp_path / "link" / "data")) - 1] == "--tmpfs"


def test_what_is_hidden_and_not_shown_needs_no_cover() -> None:
    assert "/srv/data" not in command(["bot"], BWRAP, Room(hidden=(Path("/srv/data"),)))


@pytest.mark.parametrize("size", [0, 1_000_001])
def test_a_size_of_tmp_out_of_range_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="from 1 to 1,000,000 MiB"):
        Room(tmp_mb=size)


StandIn = Callable[[str], None]


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Puts a script in the place of `bwrap`, where nothing else can be found."""

    def put(script: str) -> None:
        program = tmp_path / "bwrap"
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path))
    return put


VERSION = '[ "$1" = --version ] && echo bubblewrap 0.9.0 && exit\n'


def test_a_sandbox_that_runs_true_works(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in(f'{VERSION}echo "$@" > {tmp_path / "asked"}')
    tried = probe("bubblewrap")
    assert tried == Probe("bubblewrap", works=True, version="0.9.0", program=str(tmp_path / "bwrap"))
    assert tried.label == "bubblewrap 0.9.0"


def test_what_is_probed_is_what_agents_are_run_with(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in(f'{VERSION}echo "$@" > {tmp_path / "asked"}')
    asked = command(["true"], probe("bubblewrap"), Room())[1:]
    assert (tmp_path / "asked").read_text(encoding="utf-8").split() == asked


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo bubblewrap 0.6.1", "is of version 0.6.1, which cannot limit the size of /tmp; version 0.7 or later can"),
        ("echo hello", "does not tell its version"),
        (f"{VERSION}echo 'bwrap: no luck' >&2; exit 1", "(bwrap: no luck)"),
        (f"{VERSION}exit 3", "(exit code 3)"),
        ("#", "does not tell its version"),
    ],
)
def test_a_sandbox_that_does_not_work_is_told_with_its_reason_in_one_line(
    stand_in: StandIn, script: str, why: str
) -> None:
    stand_in(script)
    tried = probe("bubblewrap")
    assert not tried.works
    assert tried.why.endswith(why)
    assert "\n" not in tried.why


def test_a_sandbox_that_hangs_does_not_work(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "_PROBE_S", 0.2)
    stand_in("while :; do :; done")
    assert "did not run `true`" in probe("bubblewrap").why


def test_where_there_is_no_program_its_package_is_named(stand_in: StandIn) -> None:
    assert probe("bubblewrap").why == "there is no program `bwrap`; install the package bubblewrap"


@pytest.mark.parametrize(
    ("setting", "value", "fix"),
    [
        ("apparmor_restrict_unprivileged_userns", "1", "load its profile bwrap-userns-restrict"),
        ("max_user_namespaces", "0", "set the sysctl user.max_user_namespaces above 0"),
        ("unprivileged_userns_clone", "0", "set the sysctl kernel.unprivileged_userns_clone to 1"),
    ],
)
def test_the_reason_names_the_setting_that_is_in_the_way(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, setting: str, value: str, fix: str
) -> None:
    monkeypatch.setattr(isolation, "_setting", lambda path: value if path.endswith(f"/{setting}") else "")
    stand_in(f"{VERSION}echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    assert probe("bubblewrap").why.endswith(f"{fix} (bwrap: setting up uid map: Permission denied)")


def test_a_tier_that_does_not_work_is_refused_and_not_lowered(stand_in: StandIn) -> None:
    with pytest.raises(IsolationError, match="isolation bubblewrap does not work here: there is no program `bwrap`"):
        require("bubblewrap")
    with pytest.raises(IsolationError, match="isolation bubblewrap does not work here"):
        command(["bot"], probe("bubblewrap"), Room())


def test_a_tier_that_does_not_exist_is_refused_naming_those_that_do() -> None:
    with pytest.raises(IsolationError, match="there is no isolation 'docker'; there are process and bubblewrap"):
        require("docker")


def test_the_environment_is_what_is_named_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFEREE_DATA", "/srv/data")
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    plain = environment({"REFEREE_ADDRESS": "unix:/s"}, probe("process"), Path("/srv/anna"), Path("/tmp/1"))
    assert plain == {
        "PATH": "/usr/bin",
        "LANG": "de_DE.UTF-8",
        "HOME": "/srv/anna",
        "TMPDIR": "/tmp/1",
        "REFEREE_ADDRESS": "unix:/s",
    }
    assert environment({}, BWRAP, Path("/srv/anna"), Path("/tmp/1")) == {
        "PATH": "/usr/bin",
        "LANG": "de_DE.UTF-8",
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
    }
