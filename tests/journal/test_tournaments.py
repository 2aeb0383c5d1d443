"""What a journal keeps of tournaments."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from referee_server.journal import (
    DamagedLogError,
    DuplicateError,
    Journal,
    SqliteJournal,
    TournamentAdded,
    TournamentNoted,
    TournamentSummarised,
    UnknownTournamentError,
    open_read_only,
)
from referee_server.journal.sqlite_open import APPLICATION_ID, MIGRATIONS


def added(tournament_id: str, request_id: str = "") -> TournamentAdded:
    return TournamentAdded(tournament_id, request_id, b"m" * 32, 1_000, "WAITING")


def test_a_tournament_is_found_by_id_and_by_request(journal: Journal) -> None:
    journal.commit([added("a", "first"), added("b")])

    assert [row.tournament_id for row in journal.tournaments()] == ["a", "b"]
    assert journal.tournament("b") == journal.tournaments()[1]
    assert journal.tournament_by_request("first") == journal.tournament("a")
    assert journal.tournament("c") is None
    assert journal.tournament_by_request("") is None


def test_its_log_grows_in_order_over_batches_and_its_state_is_the_last(journal: Journal) -> None:
    journal.commit([added("a"), TournamentNoted("a", (b"1", b"2"), "RUNNING")])
    journal.commit([TournamentNoted("a", (b"3",), "FINISHED")])

    assert journal.tournament_log("a") == [b"1", b"2", b"3"]
    row = journal.tournament("a")
    assert row is not None
    assert row.state == "FINISHED"


def test_the_master_secret_comes_from_nowhere_else(journal: Journal) -> None:
    journal.commit([added("a")])

    assert journal.tournament_secret("a") == b"m" * 32
    assert "mmm" not in repr(added("a"))


@pytest.mark.parametrize(("again", "field"), [(added("a"), "tournament_id"), (added("b", "first"), "request_id")])
def test_ids_are_taken_once_and_nothing_of_a_refused_batch_stays(
    journal: Journal, again: TournamentAdded, field: str
) -> None:
    journal.commit([added("a", "first")])

    with pytest.raises(DuplicateError) as caught:
        journal.commit([TournamentNoted("a", (b"1",), "RUNNING"), again])

    assert caught.value.what == field
    assert journal.tournament_log("a") == []


def test_an_unknown_tournament_is_refused(journal: Journal) -> None:
    with pytest.raises(UnknownTournamentError):
        journal.tournament_log("a")
    with pytest.raises(UnknownTournamentError):
        journal.tournament_secret("a")
    with pytest.raises(UnknownTournamentError):
        journal.commit([TournamentNoted("a", (b"1",), "RUNNING")])


def test_a_log_goes_on_after_the_journal_was_opened_again(path: Path) -> None:
    first = SqliteJournal(path)
    first.commit([added("a"), TournamentNoted("a", (b"1",), "RUNNING")])
    first.close()
    second = SqliteJournal(path)
    second.commit([TournamentNoted("a", (b"2",), "RUNNING")])
    second.close()
    reader = open_read_only(path)

    assert reader.tournament_log("a") == [b"1", b"2"]
    reader.close()


@pytest.mark.parametrize(
    ("harm", "place"),
    [
        ("UPDATE tournament_events SET event = x'ff' WHERE sequence = 2", 2),
        ("DELETE FROM tournament_events WHERE sequence = 1", 1),
    ],
)
def test_damage_is_found_and_its_place_named(path: Path, harm: str, place: int) -> None:
    journal = SqliteJournal(path)
    journal.commit([added("a"), TournamentNoted("a", (b"1", b"2", b"3"), "RUNNING")])
    journal.close()
    with sqlite3.connect(path) as db:
        db.execute(harm)
    db.close()
    reader = open_read_only(path)

    with pytest.raises(DamagedLogError) as caught:
        reader.tournament_log("a")
    reader.close()

    assert caught.value.place == place


def summary_of(journal: Journal, tournament_id: str = "a") -> bytes:
    row = journal.tournament(tournament_id)
    assert row is not None
    assert row in journal.tournaments()
    assert row in journal.newest_tournaments()
    return row.summary


def test_a_summary_is_shown_as_long_as_it_is_of_the_whole_log(journal: Journal) -> None:
    journal.commit([added("a"), TournamentNoted("a", (b"1",), "WAITING")])
    assert summary_of(journal) == b""
    journal.commit([TournamentSummarised("a", 1, b"one")])
    assert summary_of(journal) == b"one"
    journal.commit([TournamentNoted("a", (b"2", b"3"), "RUNNING")])
    assert summary_of(journal) == b""
    journal.commit([TournamentSummarised("a", 2, b"two")])
    assert summary_of(journal) == b""
    journal.commit([TournamentSummarised("a", 3, b"three")])
    assert summary_of(journal) == b"three"


def test_a_summary_may_come_in_one_batch_with_what_it_sums_up(journal: Journal) -> None:
    journal.commit([added("a"), TournamentSummarised("a", 1, b"one"), TournamentNoted("a", (b"1",), "WAITING")])
    assert summary_of(journal) == b"one"


def test_nothing_of_a_refused_batch_is_in_a_summary(journal: Journal) -> None:
    journal.commit([added("a"), TournamentSummarised("a", 1, b"one"), TournamentNoted("a", (b"1",), "WAITING")])
    with pytest.raises(UnknownTournamentError):
        journal.commit([TournamentSummarised("a", 1, b"other"), TournamentSummarised("b", 1, b"?")])
    assert summary_of(journal) == b"one"


def test_pages_of_tournaments_begin_with_the_newest(journal: Journal) -> None:
    journal.commit([added(name) for name in "abcde"])
    pages, before = [], 0
    while rows := journal.newest_tournaments(before_number=before, limit=2):
        pages.append("".join(row.tournament_id for row in rows))
        before = rows[-1].number
    assert pages == ["ed", "cb", "a"]
    with pytest.raises(ValueError, match="at least one"):
        journal.newest_tournaments(limit=0)


def test_data_from_before_there_were_summaries_has_none_and_goes_on(path: Path) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    for statement in (*MIGRATIONS[0], *MIGRATIONS[1]):
        db.execute(statement)
    db.execute("INSERT INTO tournaments VALUES (1, 'a', NULL, 'WAITING', 0, x'')")
    db.execute(f"PRAGMA application_id={APPLICATION_ID}")
    db.execute("PRAGMA user_version=2")
    db.close()
    journal = SqliteJournal(path)
    assert summary_of(journal) == b""
    journal.commit([TournamentNoted("a", (b"1",), "WAITING"), TournamentSummarised("a", 1, b"one")])
    assert summary_of(journal) == b"one"
    journal.close()
