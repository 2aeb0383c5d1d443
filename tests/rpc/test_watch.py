"""Watching: one view, history and live in one, from any number on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from grpc import StatusCode

from referee.v1 import event_pb2, match_pb2
from referee.v1 import match_service_pb2 as pb
from rpc.agent import Agent, bearer, refused
from rpc.kit import ALL, HOST, NOBODY, PUBLIC, Client, duel, play_out, seat_view, started, until
from rpc.server import Referee, token_of

Make = Callable[..., Agent]
ELSEWHERE = "abcdefghijklmnopqrstuvwx23"


def events_of(responses: Any) -> list[event_pb2.MatchEvent]:
    return [event for response in responses for event in response.events]


def all_of(call: Any) -> list[pb.WatchMatchResponse]:
    return list(call)


def test_a_finished_match_is_told_from_its_beginning_with_the_result_at_the_end(
    client: Client, referee: Referee
) -> None:
    match_id = client.finished(referee)
    responses = all_of(client.watch(match_id, ALL, who=NOBODY))
    assert events_of(responses) == referee.log(match_id)
    assert [response.HasField("result") for response in responses] == [False] * (len(responses) - 1) + [True]
    row = referee.do(lambda: referee.journal.match(match_id))
    assert row is not None
    assert responses[-1].result.digest == row.digest
    assert responses[-1].through_sequence == row.event_count


def test_history_and_what_happens_now_come_in_one_sequence(client: Client, agent: Make, referee: Referee) -> None:
    match_id, agents = started(client, agent)
    agents[1].wait("decision")
    watching = [client.watch(match_id, view) for view in (PUBLIC, seat_view(0), seat_view(1), ALL)]
    seen = [[next(one), next(one)] for one in watching]
    play_out(agents, match_id, referee)
    for first, rest in zip(seen, watching, strict=True):
        events = events_of(first + all_of(rest))
        assert [event.sequence for event in events] == list(range(1, len(events) + 1))
        assert events[-1].HasField("secret_revealed")


def test_what_a_watcher_sees_live_is_what_it_would_see_afterwards(
    client: Client, agent: Make, referee: Referee
) -> None:
    match_id, agents = started(client, agent)
    live = [client.watch(match_id, view) for view in (PUBLIC, seat_view(0), ALL)]
    for one in live:
        next(one)
    play_out(agents, match_id, referee)
    for one, view in zip(live, (PUBLIC, seat_view(0), ALL), strict=True):
        assert events_of(all_of(one)) == events_of(all_of(client.watch(match_id, view)))


def test_an_agents_events_are_those_of_its_seats_view(client: Client, agent: Make, referee: Referee) -> None:
    match_id, agents = started(client, agent, hello={"wants_events": True})
    play_out(agents, match_id, referee)
    for seat, one in enumerate(agents):
        one.wait("match_over")
        told = [event for piece in one.all("events") for event in piece.events]
        assert told == events_of(all_of(client.watch(match_id, seat_view(seat))))


@pytest.mark.parametrize("view", [PUBLIC, seat_view(1), ALL], ids=["public", "seat", "all"])
def test_watching_resumes_from_any_number(client: Client, referee: Referee, view: pb.View) -> None:
    match_id = client.finished(referee)
    whole = events_of(all_of(client.watch(match_id, view)))
    for after in range(len(whole) + 1):
        responses = all_of(client.watch(match_id, view, after_sequence=after))
        assert events_of(responses) == whole[after:]
        assert responses[0].through_sequence == after
        assert responses[-1].through_sequence == len(whole)


@pytest.mark.parametrize("ahead", [1, 1_000, 2**63 - 1])
@pytest.mark.parametrize("view", [PUBLIC, ALL], ids=["public", "all"])
def test_a_position_beyond_the_end_is_out_of_range(client: Client, referee: Referee, ahead: int, view: pb.View) -> None:
    match_id = client.finished(referee)
    newest = len(events_of(all_of(client.watch(match_id, view))))
    found = refused(lambda: client.watch(match_id, view, after_sequence=min(newest + ahead, 2**63 - 1)))
    assert found[:3] == (StatusCode.OUT_OF_RANGE, "POSITION_BEYOND_END", {"newest": str(newest)})


@pytest.mark.parametrize("after", [-1, -(2**63)])
def test_a_negative_position_is_refused(client: Client, after: int) -> None:
    match_id = client.create(duel("open", "open"))
    found = refused(lambda: client.watch(match_id, after_sequence=after))
    assert (found.code, found.fields) == (StatusCode.INVALID_ARGUMENT, ["after_sequence"])


def test_without_a_view_nothing_is_shown(client: Client) -> None:
    match_id = client.create(duel("open", "open"))
    found = refused(lambda: client.watch(match_id, pb.View(), who=HOST))
    assert (found.code, found.fields) == (StatusCode.INVALID_ARGUMENT, ["view"])


@pytest.mark.parametrize("seat", [-1, 2, 2**31 - 1])
def test_a_seat_that_is_not_there_is_refused(client: Client, seat: int) -> None:
    match_id = client.create(duel("open", "open"))
    found = refused(lambda: client.watch(match_id, seat_view(seat)))
    assert (found.code, found.fields) == (StatusCode.INVALID_ARGUMENT, ["view.seat"])


@pytest.mark.referee(heartbeat_s=0.05)
def test_a_watcher_of_a_quiet_match_hears_how_far_it_is(client: Client) -> None:
    match_id = client.create(duel("open", "open"))
    watching = client.watch(match_id)
    seen = [next(watching) for _ in range(4)]
    assert [len(one.events) for one in seen] == [0, 1, 0, 0]
    assert [one.through_sequence for one in seen] == [0, 1, 1, 1]
    watching.cancel()


def test_the_first_message_shows_the_table(client: Client, agent: Make) -> None:
    match_id, (_, bert) = started(client, agent)
    asked = bert.wait("decision")
    first = next(client.watch(match_id, seat_view(1)))
    assert first.generic == asked.generic
    public = next(client.watch(match_id, PUBLIC, who=NOBODY))
    assert b'"hand": []' in public.generic.data
    assert next(client.watch(match_id, ALL)).generic == public.generic


# Who may watch what.


def test_the_public_view_is_open_to_everybody(client: Client) -> None:
    match_id = client.create(duel("open", "open"))
    for who in (NOBODY, bearer(token_of("a stranger")), HOST):
        assert next(client.watch(match_id, who=who)).through_sequence == 0


def test_all_is_for_the_host_before_the_end_and_for_everybody_after_it(
    client: Client, agent: Make, referee: Referee
) -> None:
    match_id, agents = started(client, agent)
    agents[1].wait("decision")
    assert next(client.watch(match_id, ALL)).through_sequence == 0
    for who in (NOBODY, bearer(token_of("anna")), bearer(token_of("a stranger"))):
        found = refused(lambda who=who: client.watch(match_id, ALL, who=who))  # type: ignore[misc]
        assert found[:3] == (StatusCode.PERMISSION_DENIED, "VIEW_FORBIDDEN", {"view": "all"})
        elsewhere = refused(lambda who=who: client.watch(ELSEWHERE, ALL, who=who))  # type: ignore[misc]
        assert elsewhere == found
    play_out(agents, match_id, referee)
    for who in (NOBODY, bearer(token_of("anna"))):
        assert events_of(all_of(client.watch(match_id, ALL, who=who))) == referee.log(match_id)


def test_a_seats_view_is_for_its_agent_and_the_host(client: Client, agent: Make) -> None:
    match_id, _ = started(client, agent)
    anna, bert = bearer(token_of("anna")), bearer(token_of("bert"))
    assert next(client.watch(match_id, seat_view(0), who=anna)).through_sequence == 0
    assert next(client.watch(match_id, seat_view(0))).through_sequence == 0
    assert refused(lambda: client.watch(match_id, seat_view(0), who=bert)).reason == "NO_SEAT"
    assert refused(lambda: client.watch(match_id, seat_view(1), who=anna)).reason == "NO_SEAT"
    assert refused(lambda: client.watch(match_id, seat_view(0), who=NOBODY)).reason == "CREDENTIAL_UNKNOWN"


def test_who_took_an_open_seat_may_watch_it_at_once(client: Client, agent: Make) -> None:
    anna = agent("anna")
    anna.hello(takes_open_seats=True)
    match_id = client.create(duel("open", "open"))
    assert client.get(match_id).seats[0].name == "anna"
    assert next(client.watch(match_id, seat_view(0), who=bearer(token_of("anna")))).through_sequence == 0


@pytest.mark.parametrize("view", [PUBLIC, ALL, seat_view(0)])
def test_an_unknown_match_is_unknown_to_the_host(client: Client, view: pb.View) -> None:
    for match_id in (ELSEWHERE, "", "x" * 10_000, "../../etc/passwd"):
        found = refused(lambda match_id=match_id: client.watch(match_id, view))  # type: ignore[misc]
        assert found[:2] == (StatusCode.NOT_FOUND, "MATCH_UNKNOWN")


# Staying behind.


def behind(client: Client, match_id: str, delay_ms: int) -> Any:
    return client.watch(match_id, ALL, delay_ms=delay_ms)


@pytest.mark.parametrize("delay", [-1, 86_400_001, 2**63 - 1])
def test_a_delay_out_of_range_is_refused(client: Client, delay: int) -> None:
    match_id = client.create(duel("open", "open"))
    found = refused(lambda: behind(client, match_id, delay))
    assert (found.code, found.fields) == (StatusCode.INVALID_ARGUMENT, ["delay_ms"])


def test_only_all_can_be_delayed(client: Client) -> None:
    match_id = client.create(duel("open", "open"))
    assert refused(lambda: client.watch(match_id, PUBLIC, delay_ms=1)).fields == ["delay_ms"]


@pytest.mark.referee(heartbeat_s=0.02)
def test_all_stays_behind_as_long_as_it_is_told_to(client: Client, agent: Make, referee: Referee) -> None:
    match_id, (_, bert) = started(client, agent)
    asked = bert.wait("decision")
    watching = behind(client, match_id, 2_000)
    seen = [next(watching) for _ in range(5)]
    assert events_of(seen) == []
    assert not seen[0].WhichOneof("snapshot")
    referee.advance(1_999_000)
    bert.answer(asked)
    bert.wait("verdict")
    assert events_of(next(watching) for _ in range(5)) == []
    referee.advance(1_000)
    played = referee.of_log(match_id, "action_applied")
    assert len(played) == 1
    before = [event for event in referee.log(match_id) if event.match_time_us == 0]
    seen = []
    while len(events_of(seen)) < len(before):
        seen.append(next(watching))
    assert events_of(seen) == before
    assert events_of(next(watching) for _ in range(5)) == []
    watching.cancel()


@pytest.mark.referee(heartbeat_s=0.02)
def test_at_the_end_a_delayed_watcher_sees_the_rest(client: Client, agent: Make, referee: Referee) -> None:
    match_id, agents = started(client, agent)
    watching = behind(client, match_id, 86_400_000)
    next(watching)
    play_out(agents, match_id, referee)
    responses = all_of(watching)
    assert events_of(responses) == referee.log(match_id)
    assert responses[-1].result.digest


def test_a_slow_watcher_holds_up_nobody(client: Client, agent: Make, referee: Referee) -> None:
    match_id, agents = started(client, agent, options={"deals": 50})
    watchers = [client.watch(match_id, ALL) for _ in range(20)]
    for one in watchers:
        next(one)  # and then nothing more
    play_out(agents, match_id, referee)
    assert referee.check(match_id).match.state == match_pb2.MATCH_STATE_FINISHED
    for one in watchers:
        one.cancel()


def test_a_watcher_that_goes_leaves_nothing_behind(client: Client, referee: Referee) -> None:
    match_id = client.create(duel("open", "open"))
    for _ in range(20):
        watching = client.watch(match_id)
        next(watching)
        watching.cancel()
    followers: Any = referee.do(lambda: referee.journal._followers)  # type: ignore[attr-defined]
    until(lambda: len(followers) == 0, referee)


def test_a_damaged_log_ends_a_watch_with_its_place(
    client: Client, referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    from referee_server.journal import DamagedLogError

    match_id = client.finished(referee)

    def damaged(*_: Any, **__: Any) -> Any:
        raise DamagedLogError(7, "event 7 is not what was written")

    monkeypatch.setattr(referee.journal, "advance", damaged)
    found = refused(lambda: client.watch(match_id))
    assert found[:3] == (StatusCode.DATA_LOSS, "LOG_DAMAGED", {"place": "7"})


@pytest.mark.referee(heartbeat_s=0.02)
def test_a_failure_while_watching_ends_the_watch(
    client: Client, referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    match_id = client.create(duel("open", "open"))

    def fails(*_: Any) -> Any:
        raise RuntimeError("seat 1 holds 7S")

    monkeypatch.setattr(referee.journal, "follow", fails)
    found = refused(lambda: client.watch(match_id))
    assert found[:2] == (StatusCode.INTERNAL, "INTERNAL")
    assert "7S" not in found.message
