"""Reading many matches at once, and one match bit by bit."""

from __future__ import annotations

from referee_server.journal import Journal
from referee_server.journal.follow import Cursor

from .kit import added, events, final


def test_the_events_of_running_matches_come_in_one_pass_and_in_their_order(journal: Journal) -> None:
    journal.commit([added("m1"), added("m2"), added("m3")])
    journal.commit([events("a", match_id="m1"), events("x", match_id="m2"), events("over", match_id="m3"), final("m3")])
    journal.commit([events("y", match_id="m2"), events("b", "c", match_id="m1")])
    found: dict[str, list[bytes]] = {}
    for match_id, event in journal.running_events():
        found.setdefault(match_id, []).append(event)
    assert found == {"m1": [b"a", b"b", b"c"], "m2": [b"x", b"y"]}


def test_where_nothing_runs_nothing_comes(journal: Journal) -> None:
    assert list(journal.running_events()) == []


def test_a_cursor_gets_each_event_once_and_hears_of_the_end(journal: Journal) -> None:
    journal.commit([added(), events("a", "b", "c")])
    cursor = Cursor("m1", 0)
    assert journal.advance(cursor, 2) == ([b"a", b"b"], False)
    assert journal.advance(cursor, 2) == ([b"c"], False)
    assert journal.advance(cursor, 2) == ([], False)
    journal.commit([events("d"), final()])
    assert journal.advance(cursor, 2) == ([b"d"], True)
