"""What docs/operating.md promises to whoever runs a service."""

from __future__ import annotations

import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

from .kit import Home, until

TWO = ("--seat", "greedy", "--seat", "first")


def test_a_backup_taken_while_the_service_runs_can_be_restored(home: Home) -> None:
    service = home.serve()
    home.ok("match", "regicide", *TWO)
    waiting = home.ok("match", "regicide", "--seat", "open", "--seat", "first", "--no-wait").out.strip()
    restored = home.path / "restored"
    restored.mkdir()
    with (
        closing(sqlite3.connect(f"file:{home.data}/journal.db?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(restored / "journal.db")) as target,
    ):
        source.backup(target)
    shutil.copy(home.data / "referee-data", restored)
    home.ok("match", "regicide", *TWO)
    service.stop()
    assert len(home.ok("verify", "--all", "--data", restored).out.splitlines()) == 1
    again = home.serve(data=restored)
    assert again.resumed == 1
    home.ok("cancel", waiting, "--data", restored)


def test_neither_credentials_nor_secrets_nor_hands_are_logged(home: Home) -> None:
    service = home.serve("--log-level", "debug", "--practice")
    agent = home.agent("first", service.address, "anna", "--matches", "2")
    assert agent.wait() == 0
    home.ok("match", "regicide", *TWO)
    records = home.ok("export", "--all", "--format", "record").rows()
    service.stop()
    tokens = [path.read_text(encoding="ascii").strip() for path in home.path.rglob("*.token")]
    hands = [" ".join(hand) for record in records for pack in record["packs"] for hand in pack["hands"]]
    assert len(tokens) >= 2
    assert len(hands) > 4
    for word in (*tokens, *(record["secret"] for record in records), *hands):
        assert word not in service.output
    assert all(record["match_id"] in service.output for record in records)


def test_what_the_folder_holds_is_for_its_owner_alone(home: Home) -> None:
    home.serve()
    home.ok("match", "regicide", *TWO)
    for name in ("host.token", "journal.db"):
        assert (home.data / name).stat().st_mode & 0o077 == 0, name


def test_a_copy_of_the_credential_is_enough_for_a_host_elsewhere(home: Home, tmp_path: Path) -> None:
    service = home.serve()
    elsewhere = home.path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(home.data / "host.token", elsewhere)
    done = home.ok("match", "regicide", *TWO, "--data", elsewhere, "--connect", service.address, "--json")
    assert done.rows()[0]["end"] == "completed"


def test_hanging_up_the_terminal_ends_the_service_and_its_matches_go_on(home: Home) -> None:
    service = home.serve()
    home.ok("match", "regicide", "--seat", "open", "--seat", "first", "--no-wait")
    service.stop(signal.SIGHUP)
    assert "Traceback" not in service.output
    assert home.serve().resumed == 1


def test_two_services_run_side_by_side_on_data_of_their_own(home: Home) -> None:
    one, two = home.serve(), home.serve(data=home.path / "other")
    assert one.address != two.address
    home.ok("match", "regicide", *TWO)
    home.ok("match", "regicide", *TWO, "--data", home.path / "other")
    until(lambda: home.ok("verify", "--all").out.count("verified") == 1)
