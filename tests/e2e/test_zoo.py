"""Bad agents as real processes: how the match of each ends, to the letter, and that the others get theirs."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from .arena import ABSENT, CALM, KEEPALIVE_S, PING_TIMEOUT_S, QUICK, UNREADY, Arena, Ending
from .kit import Home, Process


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    home = Home(tmp_path_factory.mktemp("zoo"), uuid.uuid4().hex)
    arena = Arena(home)
    yield arena
    arena.close()
    assert arena.good.popen.poll() is None, arena.good.output
    assert arena.service.stop() == 0, arena.service.output
    home.ok("verify", "--all")
    home.close()


@dataclass(frozen=True)
class Row:
    """One bad agent, and how its match ends.

    `told` are words that the agent hears in a line, in this order; `ignored` what is on record of its stray answers.
    `or_never_offered`: who goes at once may be gone before the match is offered, since a referee that is late (a busy
    machine) begins nothing new; then it did not show up.
    """

    program: str
    more: tuple[str, ...] = ()
    clock: Mapping[str, int] = None  # type: ignore[assignment]  # filled in below
    rules: Mapping[str, str] | None = None
    faults: tuple[str, ...] = ()
    reason: str = "COMPLETED"
    told: tuple[str, ...] = ()
    ignored: frozenset[str] = frozenset()
    game: str = "guillotine"
    or_never_offered: bool = False

    @property
    def name(self) -> str:
        parts = (self.program, *self.more, *(() if self.rules is None else ("by-policy",)))
        return "-".join((*parts, *(() if self.game == "guillotine" else (self.game,))))


def strikes(kind: str) -> tuple[str, ...]:
    """Returns the faults of who is replaced after three strikes."""
    return tuple(f"{kind} SUBSTITUTE {count}" for count in (1, 2, 3))


NO_SHOW = {"clock": ABSENT, "faults": ("NO_SHOW CANCEL 0",), "reason": "NOT_STARTED"}
NOT_READY = {"clock": UNREADY, "faults": ("START_TIMEOUT CANCEL 0",), "reason": "NOT_STARTED"}
TIMEOUTS = {"clock": QUICK, "faults": strikes("TIMEOUT")}
GONE = {"clock": CALM, "faults": ("DISCONNECT REPLACE 0",)}
FLOOD = {"clock": CALM, "faults": ("FLOOD REPLACE 0",), "told": ("end RESOURCE_EXHAUSTED RATE",)}
FINE = {"clock": CALM}

ROWS = [
    # It never starts: nobody is blamed for points, the match ends without a result, unless the host wants it played.
    Row("crash_at_start", **NO_SHOW),  # type: ignore[arg-type]
    Row("never_hello", **NO_SHOW, told=("end FAILED_PRECONDITION NO_HELLO",)),  # type: ignore[arg-type]
    Row("gzipped", **NO_SHOW, told=("end UNIMPLEMENTED",)),  # type: ignore[arg-type]
    Row("slow_start", **NOT_READY, told=("offered", "over")),  # type: ignore[arg-type]
    Row("decline", clock=CALM, faults=("START_TIMEOUT CANCEL 0",), reason="NOT_STARTED", told=("over",)),
    Row("nonce", **NOT_READY, told=("rejected 14",) * 4),  # type: ignore[arg-type]
    Row("crash_at_start", clock=ABSENT, rules={"NO_SHOW": "REPLACE"}, faults=("NO_SHOW REPLACE 0",)),
    Row("slow_start", clock=UNREADY, rules={"START_TIMEOUT": "REPLACE"}, faults=("START_TIMEOUT REPLACE 0",)),
    Row("slow_start", ("0.4",), clock={**CALM, "ready_ms": 20_000}),
    # It does not answer, or not with an action: three strikes, and a house bot plays on.
    Row("silent", **TIMEOUTS),  # type: ignore[arg-type]
    Row("silent", **TIMEOUTS, game="regicide"),  # type: ignore[arg-type]
    Row("stall", **TIMEOUTS),  # type: ignore[arg-type]
    Row("never_reads", **TIMEOUTS),  # type: ignore[arg-type]
    Row("wrong_id", **TIMEOUTS, ignored=frozenset({"NOT_OPEN"}), told=("NOT_OPEN",)),  # type: ignore[arg-type]
    Row("late", **TIMEOUTS, ignored=frozenset({"TIMED_OUT"}), told=("TIMED_OUT",)),  # type: ignore[arg-type]
    Row("illegal", clock=CALM, faults=strikes("ILLEGAL"), told=("FAULTED",) * 3),
    Row("malformed", clock=CALM, faults=strikes("MALFORMED"), told=("FAULTED",) * 3),
    Row("malformed", clock=CALM, faults=strikes("MALFORMED"), told=("FAULTED",) * 3, game="regicide"),
    Row("illegal", clock=CALM, rules={"ILLEGAL": "FORFEIT"}, faults=("ILLEGAL FORFEIT 1",), reason="FORFEITED"),
    # Its stream ends, one way or the other.
    Row("noise", **GONE, told=("end INVALID_ARGUMENT NOT_PARSEABLE",)),  # type: ignore[arg-type]
    Row("oversize", ("1",), **GONE, told=("end RESOURCE_EXHAUSTED MESSAGE_TOO_LARGE",)),  # type: ignore[arg-type]
    Row("oversize", ("2000000",), **GONE, told=("end RESOURCE_EXHAUSTED -",)),  # type: ignore[arg-type]
    Row("many_items", **GONE, told=("end RESOURCE_EXHAUSTED MESSAGE_TOO_LARGE",)),  # type: ignore[arg-type]
    Row("flood", ("empty",), **FLOOD),  # type: ignore[arg-type]
    Row("flood", ("strays",), **FLOOD, ignored=frozenset({"REPEATED"})),  # type: ignore[arg-type]
    Row("disconnect", ("sent", "hello", "1"), **NOT_READY, or_never_offered=True),  # type: ignore[arg-type]
    Row("disconnect", ("received", "welcome", "1"), **NOT_READY, or_never_offered=True),  # type: ignore[arg-type]
    Row("disconnect", ("received", "match_offered", "1"), **NOT_READY),  # type: ignore[arg-type]
    Row("disconnect", ("sent", "ready", "1"), **GONE),  # type: ignore[arg-type]
    Row("disconnect", ("received", "decision", "1"), **GONE),  # type: ignore[arg-type]
    Row("disconnect", ("received", "decision", "4"), **GONE),  # type: ignore[arg-type]
    Row("disconnect", ("sent", "answer", "1"), **GONE),  # type: ignore[arg-type]
    Row("disconnect", ("sent", "answer", "4"), **GONE),  # type: ignore[arg-type]
    Row("disconnect", ("received", "verdict", "1"), **GONE),  # type: ignore[arg-type]
    Row("disconnect", ("received", "verdict", "4"), **GONE, game="regicide"),  # type: ignore[arg-type]
    Row("disconnect", ("sent", "pong", "1"), **GONE),  # type: ignore[arg-type]
    Row("disconnect", ("received", "match_over", "1"), **FINE),  # type: ignore[arg-type]
    # It is a nuisance, and plays: nothing is ruled on.
    Row("plain", **FINE, told=("over",)),  # type: ignore[arg-type]
    Row("duplicate", **FINE, ignored=frozenset({"REPEATED"}), told=("ACCEPTED", "REPEATED")),  # type: ignore[arg-type]
    Row("guess", **FINE, told=("ACCEPTED", "NOT_OPEN")),  # type: ignore[arg-type]
    Row("hello_again", **FINE, told=("rejected 27", "over")),  # type: ignore[arg-type]
    Row("unknown_item", **FINE, told=("rejected 10", "over")),  # type: ignore[arg-type]
    Row("other_seat", **FINE, told=("SEAT_MISMATCH", "ACCEPTED")),  # type: ignore[arg-type]
    Row("double_connect", **FINE, told=("first ABORTED SUPERSEDED", "over")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_it_ends_as_the_policy_says(arena: Arena, row: Row) -> None:
    name, credential = arena.add(row.program)
    match_id = arena.match(name, row.clock, row.rules, row.game)
    agent = arena.start(
        row.program, name, credential, *row.more, *((match_id,) if row.program == "never_reads" else ())
    )
    ending = arena.ending(match_id)
    check(ending, row)
    for told in row.told:
        agent.wait_for(told)
    agent.close()


def check(ending: Ending, row: Row) -> None:
    """Checks an ending against its row, and what follows from that."""
    offered = any(event.HasField("seat_offered") and event.seat_offered.seat == 0 for event in ending.events)
    if row.or_never_offered and not offered:
        assert ending.faults == ["NO_SHOW CANCEL 0"]
    else:
        assert ending.faults == list(row.faults)
    assert ending.faults_of_others == []
    assert ending.reason == row.reason
    assert set(ending.ignored) >= row.ignored
    assert row.ignored or not ending.ignored or row.program in NUISANCES
    replaced = bool(row.faults) and row.reason == "COMPLETED"
    assert ending.replaced_by == ["greedy"] * replaced
    if row.reason == "NOT_STARTED":
        assert ending.official_places == []
    elif row.faults:
        assert ending.official_places[0] == len(ending.official_places), "the offender is officially last"
    else:
        assert ending.official_places == ending.places


NUISANCES = ("guess", "duplicate", "flood")


def started(arena: Arena, program: str, clock: Mapping[str, int], *more: str) -> tuple[str, str, str, Process]:
    """Starts an agent of the zoo in a match; returns its name, its credential, the match and the process."""
    name, credential = arena.add(program)
    match_id = arena.match(name, clock)
    return name, credential, match_id, arena.start(program, name, credential, *more)


def test_two_answers_to_one_decision_are_one_action(arena: Arena) -> None:
    _, _, match_id, agent = started(arena, "two_answers", CALM)
    ending = arena.ending(match_id)
    assert (ending.faults, ending.reason) == ([], "COMPLETED")
    accepted, later = {}, {}
    for line in agent.lines:
        match line.split():
            case ["verdict", _, number, "ACCEPTED", action]:
                accepted[number] = action
            case ["verdict", _, number, "ALREADY_ANSWERED" | "REPEATED" | "MATCH_OVER", action]:
                later[number] = action
    assert accepted.keys() == later.keys()
    assert len(accepted) > 10
    applied = {
        str(event.action_applied.decision_id): event.action_applied.action
        for event in ending.events
        if event.HasField("action_applied") and event.action_applied.seat == 0 and event.action_applied.source == 1
    }
    assert applied == accepted
    assert {number: action for number, action in later.items() if action != "-"}.items() <= accepted.items()


def test_the_matches_of_others_are_not_to_be_told_from_none(arena: Arena) -> None:
    done = arena.match(arena.add("absent")[0], {**CALM, "connect_ms": 1})
    arena.ending(done)
    open_match = arena.match(arena.add("absent")[0], CALM)
    _, _, match_id, agent = started(arena, "foreign", CALM, open_match, done)
    ending = arena.ending(match_id)
    assert (ending.faults, ending.reason, ending.ignored) == ([], "COMPLETED", [])
    agent.wait_for("over")
    foreign = [line.split()[3:] for line in agent.lines if line.startswith("verdict") and match_id not in line]
    assert foreign
    assert all(words[-2:] == ["NO_SEAT", "-"] or words == ["-"] for words in foreign)


def test_a_storm_of_reconnects_is_slowed_down_and_costs_no_strike(arena: Arena) -> None:
    _, _, match_id, agent = started(arena, "storm", {**CALM, "reconnect_grace_ms": 30_000}, "40")
    ending = arena.ending(match_id)
    assert (ending.faults, ending.reason) == ([], "COMPLETED")
    assert ending.gone == ending.back == 40
    agent.wait_for("refused RESOURCE_EXHAUSTED RATE")
    asked = [line for line in agent.lines if line.startswith("decision")]
    assert asked[:41] == [f"decision {match_id} 0"] * 41, "the same question comes again, by its number"


def test_a_goodbye_in_mid_match_is_not_waited_for(arena: Arena) -> None:
    _, _, match_id, agent = started(arena, "leave", {**CALM, "reconnect_grace_ms": 600_000})
    ending = arena.ending(match_id)
    assert (ending.faults, ending.reason, ending.left) == (["DISCONNECT REPLACE 0"], "COMPLETED", True)
    assert ending.official_places[0] == 4
    agent.wait_for("end OK")


def test_a_frozen_agent_is_noticed_by_the_probe(arena: Arena) -> None:
    _, _, match_id, agent = started(arena, "frozen", CALM)
    ending = arena.ending(match_id)
    agent.popen.send_signal(signal.SIGCONT)
    assert (ending.faults, ending.reason) == (["DISCONNECT REPLACE 0"], "COMPLETED")
    asked = next(event.match_time_us for event in ending.events if event.HasField("decision_offered"))
    gone = next(event.match_time_us for event in ending.events if event.HasField("seat_disconnected"))
    assert (gone - asked) / 1e6 <= KEEPALIVE_S + PING_TIMEOUT_S + 1
    agent.wait_for("end UNAVAILABLE")


def test_a_credential_revoked_in_mid_match_ends_the_stream(arena: Arena) -> None:
    name, credential, match_id, agent = started(arena, "silent", CALM)
    agent.wait_for("decision")
    arena.revoke(name)
    agent.wait_for("end UNAUTHENTICATED CREDENTIAL_REVOKED")
    ending = arena.ending(match_id)
    assert (ending.faults, ending.reason, ending.left) == (["DISCONNECT REPLACE 0"], "COMPLETED", False)
    arena.start("plain", name, credential).wait_for("end UNAUTHENTICATED CREDENTIAL_REVOKED")


def test_who_comes_back_within_the_grace_plays_on(arena: Arena, tmp_path: Path) -> None:
    name, credential, match_id, agent = started(
        arena, "disconnect", {**CALM, "reconnect_grace_ms": 30_000}, "received", "decision", "3"
    )
    agent.wait_for("gone")
    arena.start("plain", name, credential).wait_for("over")
    ending = arena.ending(match_id)
    assert (ending.faults, ending.reason, ending.gone, ending.back) == ([], "COMPLETED", 1, 1)


def test_bad_company_leaves_a_good_match_alone(arena: Arena) -> None:
    """All at once: who floods, storms and stalls harms nobody but itself, nor the match of those who do not."""
    company = [
        ("flood", "strays"),
        ("flood", "empty"),
        ("storm", "20"),
        ("oversize", "1"),
        ("never_reads",),
        ("silent",),
    ]
    bad = []
    for program, *more in company:
        name, credential = arena.add(program)
        bad.append(arena.match(name, {**CALM, "allowance_ms": 5_000, "bank_ms": 0, "reconnect_grace_ms": 2_000}))
        arena.start(program, name, credential, *more, *((bad[-1],) if program == "never_reads" else ()))
    good = [started(arena, "plain", CALM)[2] for _ in range(2)]
    for match_id in good:
        ending = arena.ending(match_id)
        assert (ending.faults, ending.faults_of_others, ending.reason) == ([], [], "COMPLETED")
    endings = [arena.ending(match_id) for match_id in bad]
    assert [ending.faults_of_others for ending in endings] == [[]] * len(bad)
    assert [ending.faults for ending in endings] == [
        ["FLOOD REPLACE 0"],
        ["FLOOD REPLACE 0"],
        [],
        ["DISCONNECT REPLACE 0"],
        list(strikes("TIMEOUT")),
        list(strikes("TIMEOUT")),
    ]
