"""Answers over the wire: stale, early, doubled, wrong, huge; each has its verdict, and one effect at most."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from google.protobuf.descriptor import FieldDescriptor
from grpc import StatusCode

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import event_pb2, match_pb2
from referee.v1 import match_service_pb2 as pb
from rpc.agent import Agent, item, refused
from rpc.kit import HOST, Client, duel, play_out, spec_of, started
from rpc.server import Referee
from tables.kit import MS

Make = Callable[..., Agent]
V = event_pb2
CLOCK = match_pb2.Clock(allowance_ms=100, bank_ms=50)
LIMIT = 150 * MS


@pytest.fixture
def asked(client: Client, agent: Make, referee: Referee) -> tuple[str, Agent, Agent, agent_pb.Decision]:
    """A match in which bert is being asked: its id, anna, bert, the question."""
    match_id, (anna, bert) = started(client, agent, clock=CLOCK, options={"deals": 4})
    return match_id, anna, bert, bert.wait("decision")


Asked = tuple[str, Agent, Agent, agent_pb.Decision]


def test_a_stale_decision_is_closed_and_its_outcome_told(asked: Asked, referee: Referee) -> None:
    match_id, _, bert, question = asked
    referee.advance(LIMIT)  # the referee plays a substitute
    bert.answer(question, decision_id=0)
    verdict = bert.wait("verdict")
    assert verdict.status == V.ANSWER_STATUS_TIMED_OUT
    assert verdict.action == referee.of_log(match_id, "action_applied")[0].action


def test_a_decision_that_a_house_bot_took_is_closed(client: Client, agent: Make, referee: Referee) -> None:
    rule = match_pb2.FaultRule(kind=match_pb2.FAULT_KIND_MALFORMED, action=match_pb2.FAULT_ACTION_REPLACE)
    _, (_, bert) = started(client, agent, policy=match_pb2.FaultPolicy(rules=[rule]))
    question = bert.wait("decision")
    bert.answer(question, "?")
    assert bert.wait("verdict").status == V.ANSWER_STATUS_FAULTED
    bert.answer(question)
    assert bert.wait("verdict").status == V.ANSWER_STATUS_DECISION_CLOSED


@pytest.mark.parametrize("number", [1, 1_000, 2**31 - 1, -1])
def test_a_decision_of_the_future_is_not_open_and_no_strike(asked: Asked, referee: Referee, number: int) -> None:
    match_id, _, bert, question = asked
    bert.answer(question, decision_id=number)
    assert bert.wait("verdict").status == V.ANSWER_STATUS_NOT_OPEN
    assert referee.of_log(match_id, "fault_ruled") == []


def test_the_same_answer_twice_has_one_outcome(asked: Asked, referee: Referee) -> None:
    match_id, _, bert, question = asked
    bert.answer(question)
    first = bert.wait("verdict")
    bert.answer(question)
    second = bert.wait("verdict")
    assert (first.status, second.status) == (V.ANSWER_STATUS_ACCEPTED, V.ANSWER_STATUS_REPEATED)
    assert first.action == second.action == question.legal[0]
    assert len(referee.of_log(match_id, "action_applied")) == 1


def test_of_two_different_answers_the_first_stands(asked: Asked, referee: Referee) -> None:
    match_id, _, bert, question = asked
    bert.send(*(item(answer=answer_to(question, action)) for action in question.legal))
    assert bert.wait("verdict").status == V.ANSWER_STATUS_ACCEPTED
    second = bert.wait("verdict")
    assert (second.status, second.action) == (V.ANSWER_STATUS_ALREADY_ANSWERED, question.legal[0])
    assert [one.action for one in referee.of_log(match_id, "action_applied")] == [question.legal[0]]


def answer_to(question: agent_pb.Decision, action: str) -> agent_pb.Answer:
    return agent_pb.Answer(match_id=question.match_id, decision_id=question.decision_id, action=action)


def test_of_a_hundred_answers_to_one_question_one_is_accepted(asked: Asked, referee: Referee) -> None:
    match_id, _, bert, question = asked
    bert.send(*(item(answer=answer_to(question, question.legal[n % 2])) for n in range(100)))
    statuses = [bert.wait("verdict").status for _ in range(100)]
    assert statuses.count(V.ANSWER_STATUS_ACCEPTED) == 1
    assert len(referee.of_log(match_id, "action_applied")) == 1
    referee.check(match_id)


def test_a_thousand_answers_to_one_question_are_a_flood_and_one_of_them_counts(asked: Asked, referee: Referee) -> None:
    match_id, _, bert, question = asked
    for _ in range(4):
        bert.send(*(item(answer=answer_to(question, question.legal[n % 2])) for n in range(250)))
    assert bert.end()[:2] == (StatusCode.RESOURCE_EXHAUSTED, "RATE")
    referee.quiet()
    applied = [one for one in referee.of_log(match_id, "action_applied") if one.seat == question.seat]
    assert [one.decision_id for one in applied].count(question.decision_id) == 1
    [ruled] = referee.of_log(match_id, "fault_ruled")
    assert ruled.kind == match_pb2.FAULT_KIND_FLOOD
    referee.check(match_id)


@pytest.mark.parametrize(("before_us", "status"), [(1 * MS, 1), (1, 1), (0, 5), (-1 * MS, 5)])
def test_an_answer_counts_if_it_is_read_before_the_deadline(
    asked: Asked, referee: Referee, before_us: int, status: int
) -> None:
    match_id, _, bert, question = asked
    referee.advance(LIMIT - before_us)
    bert.answer(question)
    assert bert.wait("verdict").status == status
    assert bool(referee.of_log(match_id, "fault_ruled")) == (before_us <= 0)


def test_a_substitute_stands_when_the_answer_comes_after_all(asked: Asked, referee: Referee) -> None:
    match_id, _, bert, question = asked
    referee.advance(LIMIT)
    before = referee.of_log(match_id, "action_applied")
    bert.answer(question)
    bert.wait("verdict")
    assert referee.of_log(match_id, "action_applied")[: len(before)] == before


def test_an_answer_before_its_question_is_a_guess(asked: Asked, referee: Referee) -> None:
    match_id, anna, _, question = asked
    anna.answer(question, "2S", decision_id=0)
    assert anna.wait("verdict").status == V.ANSWER_STATUS_NOT_OPEN
    assert referee.of_log(match_id, "action_applied") == []


WRONG = {
    "not in hand": ("illegal", match_pb2.FAULT_KIND_ILLEGAL),
    "of another deck": ("X1", match_pb2.FAULT_KIND_MALFORMED),
    "of another phase": ("contract:royalty", match_pb2.FAULT_KIND_MALFORMED),
    "pass": ("pass", match_pb2.FAULT_KIND_MALFORMED),
    "nothing": ("", match_pb2.FAULT_KIND_MALFORMED),
    "lower case": ("lower", match_pb2.FAULT_KIND_MALFORMED),
    "a space behind": ("space", match_pb2.FAULT_KIND_MALFORMED),
    "two cards": ("2S 3S", match_pb2.FAULT_KIND_MALFORMED),
    "60 KB": ("x" * 60_000, match_pb2.FAULT_KIND_MALFORMED),
    "NUL": ("2S\0", match_pb2.FAULT_KIND_MALFORMED),
    "a number": ("NaN", match_pb2.FAULT_KIND_MALFORMED),
}


@pytest.mark.parametrize(("text", "kind"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_answer_is_ruled_a_strike_and_put_on_record(
    asked: Asked, referee: Referee, text: str, kind: int
) -> None:
    match_id, anna, bert, question = asked
    text = {
        "illegal": next(card for card in ("2S", "3S", "4S") if card not in question.legal),
        "lower": question.legal[0].lower(),
        "space": question.legal[0] + " ",
    }.get(text, text)
    bert.answer(question, text)
    verdict = bert.wait("verdict")
    assert (verdict.status, verdict.fault, verdict.strike_count) == (V.ANSWER_STATUS_FAULTED, kind, 1)
    [ruled] = referee.of_log(match_id, "fault_ruled")
    assert (ruled.raw_answer, ruled.raw_answer_size) == (text.encode()[:256], len(text.encode()))
    assert list(ruled.legal) == list(question.legal)
    referee.check(match_id)
    assert anna.ended is None


@pytest.mark.parametrize("text", ["7C", "pass", "stop"])
def test_a_move_of_another_phase_of_the_same_game_is_illegal(client: Client, agent: Make, text: str) -> None:
    names = ("anna", "bert", "cleo", "dora")
    _, agents = started(client, agent, names, spec=spec_of("guillotine", *names))
    question = agents[0].wait("decision")
    assert question.legal[0].startswith("contract:")
    agents[0].answer(question, text)
    assert agents[0].wait("verdict").fault == match_pb2.FAULT_KIND_ILLEGAL


def test_three_strikes_cost_the_seat_and_harm_nobody_else(client: Client, agent: Make, referee: Referee) -> None:
    match_id, (anna, bert) = started(client, agent, options={"deals": 10})
    for who in (bert, anna, anna, bert, bert):  # as they are asked
        asked = who.wait("decision")
        who.answer(asked, "?" if who is bert else asked.legal[0])
        who.wait("verdict")
    play_out([anna, bert], match_id, referee)
    result = anna.wait("match_over").result
    assert list(result.official_places) == [1, 2]
    assert result.fault_counts[0] == 0
    assert bert.wait("match_over").result.official_places == result.official_places


@pytest.mark.parametrize("count", [257, 10_000])
def test_more_items_than_a_message_may_have_end_the_stream(asked: Asked, referee: Referee, count: int) -> None:
    match_id, _, bert, _ = asked
    bert.send(*(item(pong=agent_pb.Pong()) for _ in range(count)))
    ended = bert.end()
    assert ended[:2] == (StatusCode.RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE")
    assert ended.metadata == {"limit": "256"}
    referee.check(match_id)


def test_256_items_are_not_too_many(asked: Asked) -> None:
    _, _, bert, question = asked
    bert.send(*(item(pong=agent_pb.Pong()) for _ in range(255)), item(answer=answer_to(question, question.legal[0])))
    assert bert.wait("verdict").status == V.ANSWER_STATUS_ACCEPTED


UNKNOWN_MEMBER = b"\xfa\x3f\x02\x08\x01"  # field 1023 of ClientItem


@pytest.mark.parametrize("data", [b"", UNKNOWN_MEMBER], ids=["nothing set", "a member of the future"])
def test_an_item_that_is_not_known_is_rejected_with_the_servers_version(asked: Asked, data: bytes) -> None:
    _, _, bert, question = asked
    bert.send_bytes(b"\x0a" + bytes([len(data)]) + data)
    rejected = bert.wait("rejected")
    assert rejected.reason == reason_pb.ERROR_REASON_UNKNOWN_VARIANT
    assert "(referee " in rejected.message
    bert.answer(question)
    assert bert.wait("verdict").status == V.ANSWER_STATUS_ACCEPTED


def test_unknown_fields_of_an_answer_are_ignored_and_not_stored(asked: Asked, referee: Referee) -> None:
    match_id, _, bert, question = asked
    answer = answer_to(question, question.legal[0]).SerializeToString()
    answer += b"\xfa\x3f" + b"\xe0\xd4\x03" + b"Z" * 60_000  # field 1023, 60,000 bytes
    bert.send_bytes(agent_pb.PlayRequest(items=[item(answer=agent_pb.Answer.FromString(answer))]).SerializeToString())
    assert bert.wait("verdict").status == V.ANSWER_STATUS_ACCEPTED
    assert sum(event.ByteSize() for event in referee.log(match_id)) < 5_000


def test_unknown_fields_of_a_match_are_ignored_and_not_stored(client: Client, referee: Referee) -> None:
    spec = duel("bot:first", "open").SerializeToString() + b"\xfa\x3f" + b"\xe0\xd4\x03" + b"Z" * 60_000
    match_id = client.create(match_pb2.MatchSpec.FromString(spec), request_id="r")
    assert b"ZZZZ" not in b"".join(event.SerializeToString() for event in referee.log(match_id))
    assert client.create(duel("bot:first", "open"), request_id="r") == match_id


def test_the_rules_of_the_protocol_know_no_floating_point() -> None:
    # The tournament service is left out: its ratings are numbers of another kind, and no rule depends on them.
    from referee.v1 import game_service_pb2, log_service_pb2, registry_service_pb2

    files = [pb, agent_pb, event_pb2, match_pb2, game_service_pb2, log_service_pb2, registry_service_pb2]
    floats = (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE)
    for file in files:
        for message in file.DESCRIPTOR.message_types_by_name.values():
            assert not [field.name for field in message.fields if field.type in floats]


def test_an_answer_has_no_room_for_a_claim_on_time() -> None:
    assert {field.name for field in agent_pb.Answer.DESCRIPTOR.fields} == {"match_id", "decision_id", "action", "seat"}


# Ready, nonces, and what comes out of turn.


@pytest.fixture
def offered(client: Client, agent: Make) -> tuple[str, Agent, Agent]:
    """A match that is on offer to anna and bert."""
    anna, bert = agent("anna"), agent("bert")
    anna.hello()
    bert.hello()
    match_id = client.create(duel())
    assert anna.wait("match_offered").match_id == bert.wait("match_offered").match_id == match_id
    return match_id, anna, bert


@pytest.mark.parametrize("length", [1, 31, 33, 60_000])
def test_a_nonce_of_another_length_is_refused(offered: tuple[str, Agent, Agent], referee: Referee, length: int) -> None:
    match_id, anna, _ = offered
    anna.ready(match_id, bytes(length))
    rejected = anna.wait("rejected")
    assert (rejected.reason, rejected.match_id) == (reason_pb.ERROR_REASON_NONCE_LENGTH, match_id)
    assert referee.of_log(match_id, "seat_ready") == []
    anna.ready(match_id, bytes(32))
    referee.quiet()


def test_a_nonce_of_a_million_bytes_is_no_message(offered: tuple[str, Agent, Agent]) -> None:
    match_id, anna, _ = offered
    anna.ready(match_id, bytes(1_000_000))
    assert anna.end().code == StatusCode.RESOURCE_EXHAUSTED


def test_a_nonce_is_given_once(offered: tuple[str, Agent, Agent], referee: Referee) -> None:
    match_id, anna, bert = offered
    anna.ready(match_id, b"a" * 32)
    anna.ready(match_id, b"b" * 32)
    assert anna.wait("rejected").reason == reason_pb.ERROR_REASON_ALREADY_READY
    bert.ready(match_id)
    bert.wait("decision")
    anna.ready(match_id, b"c" * 32)
    assert anna.wait("rejected").reason == reason_pb.ERROR_REASON_ALREADY_READY
    assert [ready.nonce for ready in referee.of_log(match_id, "seat_ready")] == [b"a" * 32, b""]


def test_the_cards_follow_from_the_nonces_on_record(offered: tuple[str, Agent, Agent], referee: Referee) -> None:
    match_id, anna, bert = offered
    anna.ready(match_id, b"a" * 32)
    bert.ready(match_id, b"b" * 32)
    play_out([anna, bert], match_id, referee)
    assert list(referee.of_log(match_id, "secret_revealed")[0].nonces) == [b"a" * 32, b"b" * 32]
    report = referee.check(match_id)
    assert (report.sealed, report.ended) == (False, True)


def test_a_match_that_is_declined_does_not_start(offered: tuple[str, Agent, Agent], client: Client) -> None:
    match_id, anna, bert = offered
    anna.send(item(decline=agent_pb.Decline(match_id=match_id)))
    assert bert.wait("match_over").result.reason == match_pb2.END_REASON_NOT_STARTED
    assert client.get(match_id).state == match_pb2.MATCH_STATE_CANCELLED


def test_a_match_that_has_started_is_not_declined(asked: Asked) -> None:
    match_id, _, bert, _ = asked
    bert.send(item(decline=agent_pb.Decline(match_id=match_id)))
    assert bert.wait("rejected").reason == reason_pb.ERROR_REASON_ALREADY_READY


def test_a_second_hello_is_rejected_and_the_stream_goes_on(asked: Asked) -> None:
    _, _, bert, question = asked
    bert.send(item(hello=agent_pb.Hello(protocol_version=1)), item(answer=answer_to(question, question.legal[0])))
    rejected = bert.wait("rejected")
    assert (rejected.reason, rejected.item_index) == (reason_pb.ERROR_REASON_HELLO_REPEATED, 0)
    assert bert.wait("verdict").status == V.ANSWER_STATUS_ACCEPTED


def test_a_cancelled_match_cannot_be_cancelled_again(client: Client) -> None:
    match_id = client.create(duel("open", "open"))
    client.cancel(match_id, "twice")
    found = refused(lambda: client.cancel(match_id))
    assert found[:2] == (StatusCode.FAILED_PRECONDITION, "MATCH_OVER")


def test_an_answer_with_the_hello_counts(asked: Asked, agent: Make) -> None:
    _, _, bert, question = asked
    bert.close()
    again = agent("bert")
    again.send(item(hello=agent_pb.Hello(protocol_version=1)), item(answer=answer_to(question, question.legal[0])))
    assert again.wait("verdict").status == V.ANSWER_STATUS_ACCEPTED


def test_leave_with_the_hello_is_goodbye(asked: Asked, agent: Make, referee: Referee) -> None:
    match_id, _, bert, _ = asked
    bert.close()
    again = agent("bert")
    again.send(item(hello=agent_pb.Hello(protocol_version=1)), item(leave=agent_pb.Leave()))
    assert again.end().code == StatusCode.OK
    referee.advance(1)
    assert [one.left for one in referee.of_log(match_id, "seat_disconnected")][-1]


def test_verdicts_of_the_last_answers_come_before_the_end_that_leave_asked_for(asked: Asked) -> None:
    _, _, bert, question = asked
    bert.send(item(answer=answer_to(question, question.legal[0])), item(leave=agent_pb.Leave()))
    assert bert.wait("verdict").status == V.ANSWER_STATUS_ACCEPTED
    assert bert.end().code == StatusCode.OK


def test_an_end_of_the_stream_without_leave_is_a_loss(asked: Asked, referee: Referee) -> None:
    match_id, _, bert, _ = asked
    bert.half_close()
    bert.end()
    referee.quiet()
    assert [one.left for one in referee.of_log(match_id, "seat_disconnected")] == [False]


def test_an_answer_that_was_read_before_the_loss_counts(asked: Asked, agent: Make, referee: Referee) -> None:
    match_id, _, bert, question = asked
    bert.answer(question)
    bert.half_close()
    bert.end()
    referee.quiet()
    assert [one.action for one in referee.of_log(match_id, "action_applied")] == [question.legal[0]]
    again = agent("bert")
    again.hello()
    again.answer(question)
    assert again.wait("verdict").status == V.ANSWER_STATUS_REPEATED


def test_listing_needs_the_states_that_there_are(client: Client) -> None:
    for state in (0, 99, -1):
        request = pb.ListMatchesRequest(states=[state])  # type: ignore[list-item]
        found = refused(lambda request=request: client.matches.ListMatches(request, metadata=HOST, timeout=9))  # type: ignore[misc]
        assert (found.code, found.fields) == (StatusCode.INVALID_ARGUMENT, ["states"])
