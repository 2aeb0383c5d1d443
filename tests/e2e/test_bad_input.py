"""What people get wrong: an exit code, one line that says what to do, nothing written, and never a traceback."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from referee_server.journal import pack, unpack

from .kit import BOTS4, REFEREE, Done, Home

# Where a command needs something there: {match} and {log} are of a match that is on record, {tmp} is a folder.
TWO = "--seat greedy --seat first"
FOUR = " ".join(BOTS4)
NO_SUCH = "a" * 26

USAGE = [
    ("nonsense", "No such command 'nonsense'"),
    ("demo --nonsense", "No such option"),
    ("demo --game nope", "no game 'nope'; there are guillotine, regicide"),
    ("demo --game ../../etc/passwd", "no game"),
    ("demo --matches 0", "0 is not in the range"),
    ("demo --matches many", "'many' is not a valid integer"),
    (f"match nope {TWO}", "no game 'nope'"),
    ("match regicide", "has 2 seats, not 0"),
    (f"match guillotine {TWO}", "has 4 seats, not 2"),
    (f"match regicide {TWO} --seat first", "has 2 seats, not 3"),
    ("match regicide --seat nobody --seat first", "no house bot 'nobody'"),
    ("match regicide --seat random:x --seat first", "the seed of a house bot"),
    ("match regicide --seat random:-1 --seat first", "the seed of a house bot"),
    (f"match regicide {TWO} --option targett=5", "no option 'targett'"),
    (f"match regicide {TWO} --option target", "K=V"),
    (f"match regicide {TWO} --option target=0", "option target"),
    (f"match regicide {TWO} --option target=5 --option target=6", "given twice"),
    (f"match regicide {TWO} --option pairs=true", "pairs"),
    (f"match guillotine {FOUR} --option deals_per_dealer=7", "from 1 to 6, not '7'"),
    (f"match guillotine {FOUR} --first-dealer 4", "first_dealer"),
    (f"match regicide {TWO} --allowance -1", "--allowance is from 0"),
    (f"match regicide {TWO} --allowance nan", "--allowance is from 0"),
    (f"match regicide {TWO} --bank 1e99", "--bank is from 0"),
    (f"match regicide {TWO} --seed 12", "--seed is 64 hex digits"),
    (f"match regicide {TWO} --seed {'00' * 32}", "--seed is 64 hex digits"),
    (f"match regicide {TWO} --connect nowhere", "'nowhere' is not an address"),
    ("agents list --connect host:port", "is not an address"),
    ("agent nobody --name x", "no house bot 'nobody'"),
    ("agent first", "Missing option '--name'"),
    ("agent first --name x --connect 1.2.3.4:99999", "is not an address"),
    ("serve --listen here", "'here' is not an address"),
    ("serve --listen 127.0.0.1:65536", "is not an address"),
    ("serve --listen 0.0.0.0:0", "say --insecure"),
    ("serve --listen [::]:0", "say --insecure"),
    (f"serve --listen unix:/tmp/{'x' * 120}", "at most 107 bytes"),
    ("serve --durability none", "'none' is not one of"),
    ("verify", "or say --all"),
    ("verify {log} --all", "or say --all"),
    ("verify {log} --digest 12", "64 hex digits"),
    ("verify {log} {log} --digest " + "0" * 64, "checks one log"),
    ("replay {match} --deal 99", "deals so far"),
    ("replay {match} --deal -1", "is not in the range"),
    ("export", "or say --all"),
    ("export {match} --format csv", "'csv' is not one of"),
    ("export --all -o -", "name a folder for several"),
]
OTHER = [
    (66, f"replay {NO_SUCH}", "no match"),
    (66, f"verify {NO_SUCH}", "no match"),
    (66, f"export {NO_SUCH}", "no match"),
    (66, "replay no.log", "no log file 'no.log'"),
    (66, "verify no.log", "no log file 'no.log'"),
    (66, "verify {tmp}", "Is a directory"),
    (66, "export no.log", "no match 'no.log'"),
    (66, "replay " + "x" * 5_000, "no log file"),
    (69, "agents list --connect 127.0.0.1:1", "no referee answers at 127.0.0.1:1; start one"),
    (69, f"match regicide {TWO} --connect 127.0.0.1:1", "no referee answers"),
    (69, f"cancel {NO_SUCH} --connect 127.0.0.1:1", "no referee answers"),
    (73, "matches --data {tmp}", "is not a referee's data folder; name one with --data"),
    (73, "matches --data {tmp}/none", "is not a referee's data folder"),
    (73, "matches --data {log}", "is not a referee's data folder"),
    (73, "agents list --data {tmp}/none", "no host's credential in"),
    (73, "serve --listen 127.0.0.1:0 --data {log}", "cannot be used as a data folder"),
    (73, "serve --listen 127.0.0.1:0 --data /proc/nobody", "cannot be used as a data folder"),
    (73, "demo --data {log}", "cannot be used as a data folder"),
    (74, "export {match} -o {tmp}/none/file", "cannot write"),
    (74, "export {match} --format record -o {tmp}", "Is a directory"),
    (74, "export --all -o {log}", "File exists"),
    (1, "replay {bad}", "TRUNCATED at event"),
    (1, "verify {bad}", "TRUNCATED at event"),
    (1, "verify {empty}", "the log is empty"),
    (1, "verify /dev/null", "the log is empty"),
    (1, "verify {text}", "this is not a log file"),
    (1, "replay {text}", "this is not a log file"),
    (1, "verify {header}", "TRUNCATED at event 0"),
    (1, "replay {newer}", "newer"),
    (1, "verify {glued}", "something follows the log"),
    (1, "verify {other}", "it is of match"),
]


@pytest.fixture(scope="module")
def stage(played: Home) -> dict[str, str]:
    """Returns what stands for the names in braces."""
    folder = played.path / "stage"
    folder.mkdir()
    (folder / "tmp").mkdir()
    match_id = played.ok("matches", "--json").rows()[0]["match"]
    played.ok("export", match_id, "-o", folder / "log")
    good = (folder / "log").read_bytes()
    made = {
        "bad": good[:-500],
        "empty": b"",
        "text": b"cards and more cards\n",
        "header": b"referee-log 1\n",
        "newer": good.replace(b"log 1", b"log 2", 1),
        "glued": good + good,
        "other": pack(NO_SUCH, unpack(good).events),
    }
    for name, content in made.items():
        (folder / name).write_bytes(content)
    return {"match": match_id, **{name: str(folder / name) for name in ("log", "tmp", *made)}}


def contents(folder: Path) -> dict[str, int]:
    """Returns what is in a folder; SQLite's own helpers for reading aside."""
    files = (path for path in folder.rglob("*") if not path.name.startswith("journal.db"))
    return {str(path): path.stat().st_size for path in files}


def one_line(done: Done, code: int, words: str) -> None:
    assert done.code == code, done
    assert words in done.err, done
    assert done.err.count("\n") == 1, done
    assert "Traceback" not in done.err + done.out


@pytest.mark.parametrize(("command", "words"), USAGE)
def test_what_is_typed_wrong_ends_with_2_and_a_line_that_says_what_would_be_right(
    played: Home, stage: dict[str, str], command: str, words: str
) -> None:
    before = contents(played.path)
    one_line(played.run(*command.format(**stage).split()), 2, words)
    assert contents(played.path) == before


@pytest.mark.parametrize(("code", "command", "words"), OTHER)
def test_what_is_not_there_or_not_usable_has_an_exit_code_of_its_own(
    played: Home, stage: dict[str, str], code: int, command: str, words: str
) -> None:
    before = contents(played.path)
    one_line(played.run(*command.format(**stage).split()), code, words)
    assert contents(played.path) == before


def test_without_a_command_there_is_help(played: Home) -> None:
    done = played.run()
    assert (done.code, done.err) == (2, "")
    assert "Usage: referee" in done.out


def test_help_names_the_exit_codes(played: Home) -> None:
    out = played.ok("--help").out
    assert all(f"{code} " in out for code in (0, 1, 2, 66, 69, 73, 74, 75, 77, 130))


# Data folders.


def test_a_folder_of_something_else_is_left_alone(home: Home) -> None:
    home.data.mkdir()
    (home.data / "thesis.tex").touch()
    for command in (["serve", "--listen", "127.0.0.1:0"], ["demo"]):
        one_line(home.run(*command), 73, "is not empty and not a referee's data folder; name another")
    assert [path.name for path in home.data.iterdir()] == ["thesis.tex"]


def test_a_folder_of_another_release_is_left_alone(home: Home) -> None:
    home.data.mkdir()
    (home.data / "referee-data").write_text("This folder belongs to a referee. Format 9.\n", encoding="utf-8")
    one_line(home.run("serve", "--listen", "127.0.0.1:0"), 73, "made by another release")
    one_line(home.run("matches"), 73, "made by another release")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(home: Home) -> None:
    home.data.mkdir(mode=0o500)
    one_line(home.run("serve", "--listen", "127.0.0.1:0"), 73, "Permission denied")


def test_the_data_of_a_running_referee_are_not_taken_by_a_second_one(home: Home) -> None:
    home.serve()
    for command in (["serve", "--listen", "127.0.0.1:0"], ["demo"]):
        one_line(home.run(*command), 75, "another referee is using")


def test_a_port_in_use_is_named(home: Home) -> None:
    service = home.serve()
    done = home.run("serve", "--listen", service.address, "--data", home.path / "other")
    one_line(done, 75, service.address.rpartition(":")[2])


def test_a_port_that_something_else_listens_on_is_named(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        one_line(home.run("serve", "--listen", f"127.0.0.1:{port}"), 75, str(port))


def test_an_address_of_another_machine_cannot_be_listened_on(home: Home) -> None:
    done = home.run("serve", "--listen", "192.0.2.1:7431", "--insecure")
    one_line(done, 75, "192.0.2.1:7431")


def test_a_service_that_could_not_start_can_be_started_after_all(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        home.run("serve", "--listen", f"127.0.0.1:{other.getsockname()[1]}")
    assert home.serve().stop() == 0


def damaged(path: Path) -> None:
    path.write_bytes(b"not a database at all, but long enough to be looked at as one" * 100)


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()


@pytest.mark.parametrize("spoil", [damaged, foreign])
@pytest.mark.parametrize("command", ["serve --listen 127.0.0.1:0", "matches", "verify --all", f"replay {NO_SUCH}"])
def test_a_spoiled_journal_is_refused_and_kept(home: Home, spoil: Callable[[Path], None], command: str) -> None:
    home.data.mkdir()
    (home.data / "referee-data").write_text("This folder belongs to a referee. Format 1.\n", encoding="utf-8")
    spoil(home.data / "journal.db")
    before = (home.data / "journal.db").read_bytes()
    done = home.run(*command.split())
    assert done.code in (73, 74)
    assert done.err.count("\n") == 1, done.err
    assert (home.data / "journal.db").read_bytes() == before


NOT_TEXT = "x\udcff"  # a byte that is not UTF-8, as an argument holds it


@pytest.mark.parametrize(
    "arguments",
    [
        ("match", "regicide", *TWO.split(), "--label", NOT_TEXT),
        ("match", "regicide", "--seat", f"agent:{NOT_TEXT}", "--seat", "first"),
        ("cancel", NOT_TEXT),
        ("agents", "add", NOT_TEXT),
        ("agents", "revoke", NOT_TEXT),
        ("agent", "first", "--name", NOT_TEXT),
    ],
    ids=lambda arguments: " ".join(arguments[:2]).replace(NOT_TEXT, "x"),
)
def test_bytes_that_are_not_text_are_no_text_for_the_network(home: Home, arguments: tuple[str, ...]) -> None:
    service = home.serve()
    connect = ("--connect", service.address) if arguments[0] == "agent" else ()
    one_line(home.run(*arguments, *connect), 2, "'x\\udcff' is not text in UTF-8")


def test_bytes_that_are_not_text_may_be_part_of_a_path(home: Home) -> None:
    folder = home.path / NOT_TEXT
    service = home.serve(data=folder)
    home.ok("match", "regicide", *TWO.split(), "--data", folder)
    service.stop()
    home.ok("verify", "--all", "--data", folder)


# The host's credential.


@pytest.fixture
def token(home: Home) -> Path:
    home.serve()
    return home.data / "host.token"


def test_a_credential_that_others_can_read_is_not_used(home: Home, token: Path) -> None:
    token.chmod(0o644)
    one_line(home.run("agents", "list"), 73, "chmod 600")


def test_a_credential_that_is_none_is_named(home: Home, token: Path) -> None:
    token.write_bytes(b"\xff\xfe not hex")
    one_line(home.run("agents", "list"), 73, "does not hold a credential")


def test_a_credential_of_another_referee_is_refused(home: Home, token: Path) -> None:
    token.write_text("0" * 64, encoding="ascii")
    one_line(home.run("agents", "list"), 77, "name its data folder with --data")


def test_a_missing_credential_is_named(home: Home, token: Path) -> None:
    token.unlink()
    one_line(home.run("agents", "list"), 73, "no host's credential")


# Pipes.


@pytest.mark.parametrize("command", ["matches", "verify --all", "replay {match}", "export --all --format jsonl"])
def test_a_closed_pipe_is_no_error(played: Home, stage: dict[str, str], command: str) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*REFEREE, *command.format(**stage).split()],
        env=played.env,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_service_stops_with_0_when_told_to(home: Home, number: signal.Signals) -> None:
    service = home.serve()
    assert service.stop(number) == 0
    assert "Traceback" not in service.output
    assert not (home.data / "address").exists()
