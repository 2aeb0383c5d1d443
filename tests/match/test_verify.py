"""Replay gives back the match, and verification accepts every honest log."""

from __future__ import annotations

from typing import Any

import pytest

from match.driver import SECRET, Driver, Event, at, house, of_kind, says, silent, spec_of
from match.logs import LOGS, log
from referee.v1 import event_pb2, match_pb2
from referee_games import dealing
from referee_games.contract import PUBLIC
from referee_server.match import inputs
from referee_server.match.machine import Machine
from referee_server.match.seat import SeatState
from referee_server.match.state import Match, begin
from referee_server.match.verify import LogError, parse, replay, verify


def snapshot(match: Match) -> dict[str, Any]:
    """Returns everything a match is, in a form that can be compared."""
    told = {name: getattr(match, name) for name in Match.__slots__ if name not in ("engine", "seats", "facts")}
    told["facts"] = list(match.facts)
    told["substituted_deals"] = set(match.substituted_deals)
    told["seats"] = [{name: getattr(seat, name) for name in SeatState.__slots__} for seat in match.seats]
    for seat in told["seats"]:
        seat["outcomes"] = list(seat["outcomes"])
    if match.engine is not None:
        engine = match.engine
        told["engine"] = (engine.actor, engine.deal_number, engine.dealer, engine.totals(), engine.places())
        told["views"] = [engine.view(viewer) for viewer in range(PUBLIC, len(match.seats))]
        told["legal"] = engine.legal() if engine.actor >= 0 else ()
    return told


class Watched(Driver):
    """Keeps what the match was like after each step."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self.states = [snapshot(self.match)] * len(self.steps)

    def step(self, given: inputs.Input, *, after: int = 0) -> list[Event]:
        events = super().step(given, after=after)
        self.states.append(snapshot(self.match))
        return events


class Forgetful(Driver):
    """Rebuilds the match from its log after every step."""

    def step(self, given: inputs.Input, *, after: int = 0) -> list[Event]:
        events = super().step(given, after=after)
        self.match = replay(parse([event.SerializeToString() for event in self.events]))
        self.machine = Machine(self.match, SECRET)
        return events


def play(driver: Driver) -> Driver:
    driver.start().play({0: at([3, 5], silent), 1: at([2], says("?"), house("stride"))})
    return driver


SPECS = {
    "guillotine": lambda: spec_of("guillotine", options={"deals_per_dealer": 1}, first_dealer=None),
    "regicide": lambda: spec_of("regicide", options={"max_deals": 2, "stock": "exchange"}, first_dealer=None),
    "regicide, replaced": lambda: spec_of(
        "regicide", options={"max_deals": 2, "players": 3}, policy=match_pb2.FaultPolicy(strikes=1)
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_replay_gives_the_state_that_the_machine_had_after_each_step(name: str) -> None:
    driver = Watched(SPECS[name]())
    play(driver)
    match = begin(driver.events[0])
    number = 0
    for event in driver.events[1:]:
        match.evolve(event)
        while number < len(driver.steps) and driver.steps[number] < match.sequence:
            number += 1
        if driver.steps[number] == match.sequence:
            assert snapshot(match) == driver.states[number]


@pytest.mark.parametrize("name", LOGS)
def test_replay_of_a_prefix_is_the_same_whichever_way_it_is_reached(name: str) -> None:
    events = log(name).events
    match = begin(events[0])
    for length, event in enumerate(events[1:], 2):
        match.evolve(event)
        if length % 11 == 0 or length > len(events) - 5:
            assert snapshot(replay(events[:length])) == snapshot(match)


@pytest.mark.parametrize("name", SPECS)
def test_a_match_rebuilt_after_every_step_goes_on_the_same(name: str) -> None:
    assert play(Forgetful(SPECS[name]())).events == play(Driver(SPECS[name]())).events


@pytest.mark.parametrize("name", LOGS)
def test_an_honest_log_verifies(name: str) -> None:
    report = verify(log(name).events)
    assert (report.ended, report.sealed) == (True, False)
    assert snapshot(report.match) == snapshot(log(name).match)


@pytest.mark.parametrize("name", LOGS)
def test_a_log_verifies_from_its_stored_bytes(name: str) -> None:
    verify(parse([event.SerializeToString() for event in log(name).events]))


@pytest.mark.parametrize("name", LOGS)
def test_a_log_verifies_while_its_secret_is_sealed(name: str) -> None:
    report = verify(log(name).events[:-1])
    assert (report.ended, report.sealed) == (True, True)


@pytest.mark.parametrize("name", LOGS)
def test_a_running_match_verifies_after_every_step(name: str) -> None:
    driver = log(name)
    for length in driver.steps[:: max(1, len(driver.steps) // 40)]:
        if length < len(driver.events):
            report = verify(driver.events[:length])
            assert (report.ended, report.sealed) == (False, True)


@pytest.mark.parametrize("name", LOGS)
def test_a_log_that_breaks_off_within_a_step_is_found_out_at_its_end(name: str) -> None:
    driver = log(name)
    whole = {*driver.steps, len(driver.events) - 1}
    broken = [length for length in range(1, len(driver.events)) if length not in whole]
    for length in broken[:: max(1, len(broken) // 40)]:
        with pytest.raises(LogError, match="ends before") as caught:
            verify(driver.events[:length])
        assert caught.value.sequence == length


def test_the_logs_hold_every_kind_of_event() -> None:
    kinds = {event.WhichOneof("payload") for name in LOGS for event in log(name).events}
    assert kinds == {field.name for field in Event.DESCRIPTOR.oneofs_by_name["payload"].fields}


def test_the_logs_hold_every_source_of_an_action() -> None:
    sources = {applied.source for name in LOGS for applied in of_kind(log(name).events, "action_applied")}
    assert sources == set(event_pb2.ActionSource.values()) - {event_pb2.ACTION_SOURCE_UNSPECIFIED}


def test_an_empty_log_is_no_log() -> None:
    with pytest.raises(LogError) as caught:
        verify([])
    assert caught.value.sequence == 1


@pytest.mark.parametrize("junk", [b"\xff", b"\x08", b"\x0a\xff\xff\xff\xff\x0f"])
def test_bytes_that_are_no_event_are_named(junk: bytes) -> None:
    records = [event.SerializeToString() for event in log("regicide").events]
    records[6] = junk
    with pytest.raises(LogError) as caught:
        parse(records)
    assert caught.value.sequence == 7


def unknown(sequence: int, *, ignorable: bool) -> Event:
    """Returns an event with a payload that nobody has thought of yet."""
    event = Event(sequence=sequence, ignorable=ignorable)
    event.MergeFromString(b"\xc2\x3e\x01x")
    return event


def with_unknown(place: int, *, ignorable: bool) -> list[Event]:
    events = [Event.FromString(event.SerializeToString()) for event in log("regicide").events]
    events.insert(place, unknown(place + 1, ignorable=ignorable))
    for number, event in enumerate(events, 1):
        event.sequence = number
    return events


def test_what_a_newer_referee_marks_as_ignorable_is_passed_over_wherever_it_stands() -> None:
    for place in range(1, len(log("regicide").events) + 1, 5):
        report = verify(with_unknown(place, ignorable=True))
        assert report.match.result == log("regicide").match.result
        replay(with_unknown(place, ignorable=True))


@pytest.mark.parametrize("place", [1, 9, 10, 11, 12])
def test_what_cannot_be_passed_over_is_called_newer(place: int) -> None:
    with pytest.raises(LogError) as caught:
        verify(with_unknown(place, ignorable=False))
    assert (caught.value.sequence, caught.value.newer) == (place + 1, True)


def test_a_later_version_of_decide_is_called_newer() -> None:
    events = [Event.FromString(event.SerializeToString()) for event in log("regicide").events]
    events[0].match_created.decide_version = 2
    with pytest.raises(LogError, match="version 2") as caught:
        verify(events)
    assert (caught.value.sequence, caught.value.newer) == (1, True)


def test_a_deal_id_apart_from_the_match_deals_the_same_cards_at_every_table() -> None:
    tables = [
        Driver(spec_of("regicide"), match_id=letter * 26, deal_id="board-7", nonces_taken=False).start()
        for letter in "ab"
    ]
    first, second = (of_kind(table.events, "cards_dealt")[0] for table in tables)
    assert first == second
    assert tables[0].match.commitment == dealing.commitment("board-7", SECRET)
