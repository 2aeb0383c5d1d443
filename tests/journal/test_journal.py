"""The one suite that every journal has to pass."""

from __future__ import annotations

import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from referee_server.journal import (
    MAX_EVENT_BYTES,
    AgentRevoked,
    ClosedError,
    DuplicateError,
    EventsAdded,
    Journal,
    LimitError,
    LogError,
    LogStored,
    MatchFinalError,
    MatchNotFinalError,
    Record,
    RefusedError,
    SummaryChanged,
    UnknownAgentError,
    UnknownMatchError,
    WrongLogError,
    chain,
    pack,
)

from .kit import HASH, SECRET, added, agent, archived, events, final

# Matches and events


def test_events_are_read_back_in_order(journal: Journal) -> None:
    journal.commit([added(), events("a", "b")])
    journal.commit([events("c")])
    assert journal.read("m1") == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("after", "limit", "expected"),
    [(0, 2, [b"a", b"b"]), (1, 1, [b"b"]), (2, None, [b"c"]), (3, None, []), (9, None, []), (0, 0, [])],
)
@pytest.mark.parametrize("stage", ["running", "final", "archived"])
def test_any_part_can_be_read(
    journal: Journal, stage: str, after: int, limit: int | None, expected: list[bytes]
) -> None:
    journal.commit([added(), events("a", "b", "c")])
    if stage != "running":
        journal.commit([final()])
    if stage == "archived":
        journal.commit([archived(journal)])
    assert journal.read("m1", after, limit) == expected


def test_match_row_tells_what_was_added(journal: Journal) -> None:
    journal.commit([added("m1", state="waiting"), events("a", "b")])
    row = journal.match("m1")
    assert row is not None
    assert (row.match_id, row.number, row.game, row.state) == ("m1", 1, "guillotine", "waiting")
    assert (row.summary, row.create_time_ms, row.event_count, row.final) == (b"summary of m1", 1234, 2, False)
    assert row.digest == chain.extend(chain.start("m1"), [b"a", b"b"])[0].digest


def test_digest_of_a_new_match_is_the_start_of_its_chain(journal: Journal) -> None:
    journal.commit([added()])
    row = journal.match("m1")
    assert row is not None
    assert (row.event_count, row.digest) == (0, chain.start("m1").digest)


@pytest.mark.parametrize("stage", ["running", "final", "archived"])
def test_count_and_digest_stay_through_every_stage(journal: Journal, stage: str) -> None:
    journal.commit([added(), events("a", "b")])
    if stage != "running":
        journal.commit([final()])
    if stage == "archived":
        journal.commit([archived(journal)])
    row = journal.match("m1")
    assert row is not None
    assert (row.event_count, row.digest) == (2, chain.extend(chain.start("m1"), [b"a", b"b"])[0].digest)


def test_unknown_match_is_none_or_an_error(journal: Journal) -> None:
    assert journal.match("nobody") is None
    for ask in (journal.read, journal.secret):
        with pytest.raises(UnknownMatchError):
            ask("nobody")


def test_match_is_found_by_its_request_id(journal: Journal) -> None:
    journal.commit([added("m1", request_id="r1"), added("m2"), added("m3")])
    row = journal.match_by_request("r1")
    assert row is not None
    assert row.match_id == "m1"
    assert journal.match_by_request("r2") is None
    assert journal.match_by_request("") is None


def test_matches_are_paged_in_either_order(journal: Journal) -> None:
    journal.commit([added(f"m{n}") for n in range(1, 6)])
    page = [row.number for row in journal.matches(limit=2)]
    assert page == [1, 2]
    assert [row.number for row in journal.matches(after_number=2, limit=2)] == [3, 4]
    assert [row.number for row in journal.matches(limit=2, newest_first=True)] == [5, 4]
    assert [row.number for row in journal.matches(after_number=4, limit=9, newest_first=True)] == [3, 2, 1]
    assert journal.matches(after_number=5) == []
    assert journal.matches(after_number=1, newest_first=True) == []


def test_matches_are_filtered_by_state(journal: Journal) -> None:
    journal.commit([added("m1", state="waiting"), added("m2"), added("m3", state="odd")])
    assert [row.match_id for row in journal.matches(states=["waiting", "odd"])] == ["m1", "m3"]
    assert journal.matches(states=["none"]) == []


def test_page_of_no_matches_is_refused(journal: Journal) -> None:
    with pytest.raises(ValueError, match="at least one"):
        journal.matches(limit=0)


def test_running_matches_are_those_not_final(journal: Journal) -> None:
    journal.commit([added("m1"), added("m2"), added("m3"), final("m2")])
    assert [row.match_id for row in journal.running()] == ["m1", "m3"]


def test_summary_and_state_change(journal: Journal) -> None:
    journal.commit([added(), SummaryChanged("m1", "finished", b"new")])
    row = journal.match("m1")
    assert row is not None
    assert (row.state, row.summary, row.final) == ("finished", b"new", False)


def test_final_match_stays_final_when_its_summary_changes(journal: Journal) -> None:
    journal.commit([added(), events("a"), final()])
    journal.commit([SummaryChanged("m1", "finished", b"corrected")])
    row = journal.match("m1")
    assert row is not None
    assert (row.summary, row.final, row.event_count) == (b"corrected", True, 1)


def test_secret_is_given_by_secret_alone(journal: Journal) -> None:
    journal.commit([added(request_id="r"), events("a"), agent()])
    assert journal.secret("m1") == SECRET
    rows = [journal.match("m1"), journal.match_by_request("r"), *journal.matches(), *journal.running()]
    rows += [journal.agent("id-Ada"), *journal.agents()]  # type: ignore[list-item]
    assert SECRET not in b"".join(str(value).encode() for row in rows for value in _values(row))


def _values(row: object) -> list[object]:
    return [getattr(row, name) for name in row.__slots__]  # type: ignore[attr-defined]


def test_records_show_neither_secrets_nor_hashes() -> None:
    assert "really" not in repr([added(), agent()])


# Batches


def test_empty_batch_changes_nothing(journal: Journal) -> None:
    journal.commit([])
    assert journal.matches() == []


def test_one_batch_serves_many_matches(journal: Journal) -> None:
    journal.commit([added("m1"), added("m2")])
    journal.commit([events("a"), events("x", "y", match_id="m2"), events("b")])
    assert (journal.read("m1"), journal.read("m2")) == ([b"a", b"b"], [b"x", b"y"])


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (events("x", match_id="nobody"), UnknownMatchError),
        (SummaryChanged("nobody", "s", b""), UnknownMatchError),
        (LogStored("nobody", b""), UnknownMatchError),
        (AgentRevoked("nobody"), UnknownAgentError),
        (added("m1"), DuplicateError),
        (added("m9", request_id="r1"), DuplicateError),
        (agent("Ada"), DuplicateError),
        (events("x", match_id="over"), MatchFinalError),
        (LogStored("m1", pack("m1", [b"a"])), MatchNotFinalError),
        (LogStored("over", pack("over", [b"z", b"a"])), WrongLogError),
        (LogStored("over", pack("over", [b"z", b"z", b"z"])), WrongLogError),
        (LogStored("over", pack("m1", [b"z", b"z"])), WrongLogError),
        (LogStored("over", pack("over", [b"z", b"z"])[:-1]), LogError),
        (EventsAdded("m1", (b"ok", bytes(MAX_EVENT_BYTES + 1))), LimitError),
    ],
)
def test_refused_record_leaves_nothing_of_its_batch(journal: Journal, bad: Record, error: type[Exception]) -> None:
    journal.commit([added("m1", request_id="r1"), events("a"), agent("Ada")])
    journal.commit([added("over"), events("z", "z", match_id="over"), final("over")])
    before = (journal.matches(), journal.agents())
    batch: list[Record] = [
        added("m2", request_id="r2"),
        events("b"),
        agent("Bob"),
        SummaryChanged("m1", "changed", b""),
    ]
    with pytest.raises(error):
        journal.commit([*batch, bad])
    assert (journal.matches(), journal.agents(), journal.read("m1")) == (*before, [b"a"])
    journal.commit(batch)
    assert journal.read("m1") == [b"a", b"b"]
    assert [row.number for row in journal.matches()] == [1, 2, 3]


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (added("m1"), "match_id"),
        (added("m2", request_id="r1"), "request_id"),
        (agent("Bob", agent_id="id-Ada"), "agent_id"),
        (agent("ADA", agent_id="other"), "folded_name"),
        (agent("Bob", credential_hash=HASH + b"Ada"), "credential_hash"),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_duplicate_names_what_is_taken(journal: Journal, bad: Record, what: str, together: bool) -> None:
    first: list[Record] = [added("m1", request_id="r1"), agent("Ada")]
    if not together:
        journal.commit(first)
    with pytest.raises(DuplicateError) as caught:
        journal.commit([*(first if together else []), bad])
    assert caught.value.what == what


def test_many_matches_may_have_no_request_id(journal: Journal) -> None:
    journal.commit([added("m1"), added("m2")])
    assert len(journal.matches()) == 2


def test_whole_life_of_a_match_fits_in_one_batch(journal: Journal) -> None:
    journal.commit([added(), events("a"), final(), LogStored("m1", pack("m1", [b"a"]))])
    assert journal.read("m1") == [b"a"]
    assert journal.running() == []


def test_refusals_are_no_storage_errors() -> None:
    assert issubclass(DuplicateError, RefusedError)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.lists(st.binary(max_size=8), max_size=3)), max_size=4), max_size=8
    )
)
def test_each_match_reads_as_if_it_were_alone(journal: Journal, batches: list[list[tuple[int, list[bytes]]]]) -> None:
    first = len(journal.matches(limit=10**6))
    ids = [f"m{first + n}" for n in range(4)]
    alone: dict[str, list[bytes]] = {match_id: [] for match_id in ids}
    journal.commit([added(match_id) for match_id in ids])
    for batch in batches:
        journal.commit([EventsAdded(ids[n], tuple(added_now)) for n, added_now in batch])
        for n, added_now in batch:
            alone[ids[n]].extend(added_now)
    for n, match_id in enumerate(ids):
        if n % 2 and alone[match_id]:
            journal.commit([final(match_id)])
            journal.commit([archived(journal, match_id)])
        assert journal.read(match_id) == alone[match_id]
        row = journal.match(match_id)
        assert row is not None
        assert row.digest == chain.extend(chain.start(match_id), alone[match_id])[0].digest


# Agents


def test_agent_is_found_by_id_hash_and_name(journal: Journal) -> None:
    journal.commit([agent("Ada"), agent("Bob")])
    row = journal.agent("id-Ada")
    assert row is not None
    assert (row.agent_id, row.name, row.folded_name, row.create_time_ms, row.revoked) == (
        "id-Ada",
        "Ada",
        "ada",
        99,
        False,
    )
    assert journal.agent_by_hash(HASH + b"Ada") == row
    assert journal.agent_by_name("ada") == row
    assert [found.name for found in journal.agents()] == ["Ada", "Bob"]


def test_unknown_agent_is_none(journal: Journal) -> None:
    assert journal.agent("x") is None
    assert journal.agent_by_hash(b"x") is None
    assert journal.agent_by_name("Ada") is None


def test_revoked_agent_is_still_found_and_its_name_taken(journal: Journal) -> None:
    journal.commit([agent("Ada")])
    journal.commit([AgentRevoked("id-Ada")])
    row = journal.agent_by_hash(HASH + b"Ada")
    assert row is not None
    assert row.revoked
    with pytest.raises(DuplicateError):
        journal.commit([agent("ADA", agent_id="another")])


# The rest


def test_closed_journal_answers_nothing(journal: Journal) -> None:
    journal.close()
    journal.close()
    for use in (lambda: journal.commit([added()]), lambda: journal.match("m1"), journal.agents, journal.checkpoint):
        with pytest.raises(ClosedError):
            use()


def test_checkpoint_leaves_nothing_to_move_and_loses_nothing(journal: Journal) -> None:
    journal.commit([added(), events("a")])
    assert journal.checkpoint() == 0
    journal.commit([events("b")])
    assert journal.read("m1") == [b"a", b"b"]


def test_threads_may_commit_at_once(journal: Journal) -> None:
    journal.commit([added(f"m{n}") for n in range(4)])

    def play(match_id: str) -> None:
        for n in range(50):
            journal.commit([events(str(n), match_id=match_id)])

    threads = [threading.Thread(target=play, args=(f"m{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [str(n).encode() for n in range(50)]
    assert [journal.read(f"m{n}") for n in range(4)] == [expected] * 4
