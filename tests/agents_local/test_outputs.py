"""Outputs on file, restarts by rule, and what is kept of what is printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee_server.agents.launcher import KEEP, Printed
from referee_server.agents.outputs import store_output
from referee_server.agents.restarts import PLAYED_S, Restarts

MATCH = "abcdefghijklmnopqrstuvwxyz"


def test_an_output_is_kept_by_match_and_seat_for_the_services_user_alone(tmp_path: Path) -> None:
    path = store_output(tmp_path, MATCH, 2, "no card left\n\ud800")
    assert path == tmp_path / "outputs" / f"{MATCH}-2.txt"
    assert path.read_text(encoding="utf-8") == "no card left\n?"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_later_output_of_the_same_seat_takes_the_place_of_the_earlier_one(tmp_path: Path) -> None:
    store_output(tmp_path, MATCH, 2, "first, and longer")
    path = store_output(tmp_path, MATCH, 2, "second")
    assert path.read_text(encoding="utf-8") == "second"
    assert len(list(path.parent.iterdir())) == 1


def test_an_output_is_not_written_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / f"{MATCH}-2.new").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        store_output(tmp_path, MATCH, 2, "theirs")
    assert victim.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("match_id", "seat"), [("", 0), ("../../etc/passwd", 0), (MATCH.upper(), 0), (MATCH + "\n", 0), (MATCH, -1)]
)
def test_a_name_that_is_not_made_of_ids_is_refused(tmp_path: Path, match_id: str, seat: int) -> None:
    with pytest.raises(ValueError, match="no output is kept"):
        store_output(tmp_path, match_id, seat, "")
    assert list(tmp_path.iterdir()) == []


def test_restarts_in_a_row_wait_longer_each_time_and_come_to_an_end() -> None:
    restarts = Restarts(3)
    assert [restarts.ended(played_s) for played_s in (59.9, 0.0, 1.0, 2.0)] == [0.5, 1.0, 2.0, None]


def test_who_played_for_a_minute_begins_a_new_row() -> None:
    restarts = Restarts(2)
    assert [restarts.ended(played_s) for played_s in (0.0, 0.0, PLAYED_S, 0.0, 0.0)] == [0.5, 1.0, 0.5, 1.0, None]


def test_no_restart_waits_longer_than_eight_seconds() -> None:
    restarts = Restarts(20)
    assert [restarts.ended(0.0) for _ in range(7)] == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


def test_without_restarts_the_first_end_is_the_last() -> None:
    assert Restarts(0).ended(0.0) is None


@given(st.lists(st.integers(0, 3 * KEEP), max_size=6), st.integers(0, 8 * KEEP))
def test_of_what_was_printed_behind_any_mark_the_last_64_kib_are_kept(sizes: list[int], mark: int) -> None:
    printed, everything = Printed(), b""
    for number, size in enumerate(sizes):
        data = bytes([65 + number]) * size
        printed.take(data)
        everything += data
    behind = everything[mark:]
    kept = behind[-KEEP:].decode()
    gap = f"\n… {len(behind) - KEEP} bytes left out …\n" if len(behind) > KEEP else ""
    assert printed.total == len(everything)
    assert printed.since(mark) == gap + kept
