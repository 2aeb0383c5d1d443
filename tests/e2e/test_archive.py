"""What is done with matches on record: matches, replay, verify, export."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from referee_server.journal import pack, unpack

from . import recheck
from .kit import REFEREE, Home


@pytest.fixture(scope="module")
def rows(played: Home) -> list[Any]:
    return played.ok("matches", "--json").rows()


@pytest.fixture(scope="module")
def log(played: Home, rows: list[Any]) -> Path:
    """The log file of the match of Regicide."""
    path = played.path / "regicide.log"
    played.ok("export", rows[0]["match"], "-o", path)
    return path


class TestMatches:
    def test_the_newest_comes_first(self, rows: list[Any]) -> None:
        assert [row["game"] for row in rows] == ["regicide"] + ["guillotine"] * 3

    def test_a_json_line_has_all_there_is_to_know(self, rows: list[Any]) -> None:
        keys = ["match", "game", "state", "seats", "totals", "places", "created", "label", "events", "digest"]
        for row in rows:
            assert list(row) == keys
        assert [row["state"] for row in rows] == ["finished"] * 4
        assert rows[-1]["label"] == "three"

    def test_the_table_shows_ids_in_full_however_narrow_the_terminal(self, played: Home, rows: list[Any]) -> None:
        out = played.run("matches", env={**played.env, "COLUMNS": "20"}).out
        assert [line.split()[0] for line in out.splitlines()] == ["match", *(row["match"] for row in rows)]

    def test_a_data_folder_without_matches_says_so(self, home: Home) -> None:
        home.serve().stop()
        assert home.ok("matches").out == f"no matches in {home.data} yet\n"
        assert home.ok("matches", "--json").out == ""


class TestReplay:
    def test_a_match_is_told_from_commitment_to_result(self, played: Home, rows: list[Any]) -> None:
        out = played.ok("replay", rows[-1]["match"]).out
        assert out.startswith(f"Guillotine, match {rows[-1]['match']}")
        [record] = played.ok("export", rows[-1]["match"], "--format", "record").rows()
        assert record["commitment"] in out
        assert record["secret"] in out

    def test_a_log_file_tells_the_same_as_the_journal(self, played: Home, rows: list[Any], log: Path) -> None:
        assert played.ok("replay", log).out == played.ok("replay", rows[0]["match"]).out

    def test_one_deal_can_be_told_alone(self, played: Home, rows: list[Any]) -> None:
        whole = played.ok("replay", rows[-1]["match"]).out
        deals = [played.ok("replay", rows[-1]["match"], "--deal", number).out for number in range(4)]
        assert len({*deals, whole}) == 5
        assert all(len(deal) < len(whole) for deal in deals)

    def test_colours_are_for_terminals_only(self, played: Home, rows: list[Any]) -> None:
        assert "\x1b" not in played.ok("replay", rows[0]["match"]).out


class TestVerify:
    def test_all_that_has_ended_is_verified(self, played: Home, rows: list[Any]) -> None:
        lines = played.ok("verify", "--all").out.splitlines()
        assert [line.split()[:2] for line in lines] == [["verified", row["match"]] for row in rows]

    def test_ids_and_files_can_be_mixed(self, played: Home, rows: list[Any], log: Path) -> None:
        found = played.ok("verify", rows[1]["match"], log, "--json").rows()
        assert [row["log"] for row in found] == [rows[1]["match"], str(log)]
        assert [row["outcome"] for row in found] == ["verified", "verified"]

    def test_a_log_file_needs_no_data_folder(self, home: Home, log: Path) -> None:
        home.ok("verify", log)

    def test_the_digest_that_seats_were_given_confirms_a_log(self, played: Home, rows: list[Any], log: Path) -> None:
        played.ok("verify", log, "--digest", rows[0]["digest"].upper())

    def test_another_digest_refutes_a_log(self, played: Home, rows: list[Any], log: Path) -> None:
        done = played.run("verify", log, "--digest", rows[1]["digest"])
        assert done.code == 1
        assert rows[0]["digest"] in done.err

    def test_a_log_that_its_host_wrote_anew_is_found_by_its_digest_alone(
        self, played: Home, rows: list[Any], log: Path, tmp_path: Path
    ) -> None:
        events = unpack(log.read_bytes()).events
        forged = tmp_path / "forged.log"
        forged.write_bytes(pack(rows[0]["match"], events[:-1]))
        done = played.run("verify", forged, "--digest", rows[0]["digest"])
        assert done.code == 1
        assert "its digest is another one" in done.err

    def test_a_changed_byte_is_placed(self, played: Home, log: Path, tmp_path: Path) -> None:
        content = bytearray(log.read_bytes())
        content[len(content) // 2] ^= 1
        path = tmp_path / "changed.log"
        path.write_bytes(content)
        done = played.run("verify", path, "--json")
        [row] = done.rows()
        assert (done.code, row["outcome"]) == (1, "refuted")
        assert f"HASH_MISMATCH at event {row['event']}" in row["message"]
        assert 0 < row["event"] < len(unpack(log.read_bytes()).events)

    def test_a_cut_log_is_placed(self, played: Home, log: Path, tmp_path: Path) -> None:
        path = tmp_path / "cut.log"
        path.write_bytes(log.read_bytes()[:-1000])
        done = played.run("verify", path, "--json")
        [row] = done.rows()
        assert (done.code, row["outcome"]) == (1, "refuted")
        assert f"TRUNCATED at event {row['event']}" in row["message"]

    def test_a_newer_log_is_not_called_wrong(self, played: Home, log: Path, tmp_path: Path) -> None:
        path = tmp_path / "newer.log"
        path.write_bytes(log.read_bytes().replace(b"referee-log 1\n", b"referee-log 2\n", 1))
        done = played.run("verify", path, "--json")
        [row] = done.rows()
        assert (done.code, row["outcome"]) == (1, "newer")

    def test_one_bad_log_does_not_keep_the_others_from_being_verified(
        self, played: Home, rows: list[Any], tmp_path: Path
    ) -> None:
        path = tmp_path / "none.log"
        path.write_bytes(b"")
        done = played.run("verify", path, rows[0]["match"], tmp_path / "missing.log", rows[1]["match"], "--json")
        assert [row["outcome"] for row in done.rows()] == ["refuted", "verified", "missing", "verified"]
        assert (done.code, done.err.count("\n")) == (1, 1)

    def test_a_match_at_play_verifies_as_far_as_it_goes(self, home: Home) -> None:
        home.serve()
        match_id = home.ok("match", "regicide", "--seat", "open", "--seat", "first", "--no-wait").out.strip()
        [row] = home.ok("verify", match_id, "--json").rows()
        assert row["outcome"] == "sealed"
        assert "not ended" in row["message"]


class TestExport:
    def test_a_log_goes_to_a_file_named_by_its_match(self, played: Home, rows: list[Any], tmp_path: Path) -> None:
        played.ok("export", rows[0]["match"], cwd=tmp_path)
        [path] = tmp_path.iterdir()
        assert path.name == f"{rows[0]['match']}.log"
        assert unpack(path.read_bytes()).digest.hex() == rows[0]["digest"]

    def test_all_logs_go_to_a_folder_that_is_made(self, played: Home, rows: list[Any], tmp_path: Path) -> None:
        played.ok("export", "--all", "-o", tmp_path / "a" / "b")
        assert {path.stem for path in (tmp_path / "a" / "b").iterdir()} == {row["match"] for row in rows}
        played.ok("verify", *(tmp_path / "a" / "b").iterdir())

    def test_one_log_goes_into_a_folder_that_is_there(self, played: Home, rows: list[Any], tmp_path: Path) -> None:
        played.ok("export", rows[0]["match"], "-o", tmp_path)
        assert (tmp_path / f"{rows[0]['match']}.log").exists()

    def test_one_log_goes_to_standard_output(self, played: Home, rows: list[Any], log: Path) -> None:
        command = [*REFEREE, "export", rows[0]["match"], "-o", "-"]
        assert subprocess.run(command, env=played.env, capture_output=True, check=True).stdout == log.read_bytes()

    def test_the_same_match_gives_the_same_log_file_each_time(self, played: Home, rows: list[Any], log: Path) -> None:
        again = played.path / "again.log"
        played.ok("export", rows[0]["match"], "-o", again)
        assert again.read_bytes() == log.read_bytes()

    @pytest.mark.parametrize("form", ["jsonl", "record"])
    def test_lines_go_to_standard_output_or_to_a_file(
        self, played: Home, rows: list[Any], form: str, tmp_path: Path
    ) -> None:
        said = played.ok("export", rows[0]["match"], "--format", form).out
        assert played.ok("export", rows[0]["match"], "--format", form, "-o", "-").out == said
        assert played.ok("export", rows[0]["match"], "--format", form, "-o", tmp_path / "x").out == ""
        assert (tmp_path / "x").read_text(encoding="utf-8") == said

    def test_jsonl_is_one_event_a_line(self, played: Home, rows: list[Any]) -> None:
        events = [json.loads(line) for line in played.ok("export", "--all", "--format", "jsonl").out.splitlines()]
        for row in rows:
            ours = [event for event in events if event["match_id"] == row["match"]]
            assert [int(event["sequence"]) for event in ours] == list(range(1, row["events"] + 1))

    def test_a_record_has_these_keys(self, played: Home, rows: list[Any]) -> None:
        records = played.ok("export", "--all", "--format", "record").rows()
        assert [list(record) for record in records] == [recheck.KEYS] * len(rows)
        assert [record["match_id"] for record in records] == [row["match"] for row in rows]

    def test_a_match_without_a_result_is_left_out_of_all_records_and_named(self, home: Home) -> None:
        service = home.serve()
        match_id = home.ok("match", "regicide", "--seat", "open", "--seat", "first", "--no-wait").out.strip()
        home.ok("cancel", match_id)
        service.stop()
        done = home.ok("export", "--all", "--format", "record")
        assert (done.out, done.err) == ("", f"left out {match_id}: it has no result\n")

    def test_reading_does_not_disturb_a_running_service(self, home: Home) -> None:
        home.serve()
        two = ("--seat", "greedy", "--seat", "first")
        home.ok("match", "regicide", *two)
        home.ok("verify", "--all")
        home.ok("export", "--all", "-o", home.path / "logs")
        home.ok("match", "regicide", *two)
        assert len(home.ok("matches", "--json").rows()) == 2
