"""What becomes of an agent's answer: it closes its decision, or changes nothing and is told why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import event_pb2
from referee_server.match import inputs
from referee_server.match.machine import STRAYS_KEPT

if TYPE_CHECKING:
    from referee_server.tables.table import Table


def judge(table: Table, seat: int, answer: agent_pb.Answer, received_us: int, verdict: agent_pb.Verdict) -> None:
    """Takes an answer that was received at that match time, and writes down what became of it."""
    if answer.HasField("seat") and answer.seat != seat:
        verdict.status = event_pb2.ANSWER_STATUS_SEAT_MISMATCH
        return
    deadline = table.match.deadline_us
    if deadline is not None and received_us >= deadline + table.lateness_us():
        table.alarm.tick()
    match = table.match
    # An answer that was read before its question was put is a guess.
    put = match.actor == seat and match.offered_us is not None and match.offered_us <= received_us
    if not put or answer.decision_id != len(match.seats[seat].outcomes) or table.broken:
        _stray(table, seat, answer, verdict)
        return
    lateness_us = min(table.lateness_us(), received_us - (match.offered_us or 0))
    events = table.feed(inputs.Answer(seat, answer.decision_id, answer.action.encode(), received_us, lateness_us))
    if not events:  # the referee failed over it, so it has no effect, and the match is about to end
        verdict.status = event_pb2.ANSWER_STATUS_MATCH_OVER
    elif events[0].HasField("fault_ruled"):
        ruled = events[0].fault_ruled
        verdict.status = event_pb2.ANSWER_STATUS_FAULTED
        verdict.fault = ruled.kind
        verdict.strike_count = ruled.strike_count
        verdict.asked_again = ruled.asked_again
    else:
        verdict.status = event_pb2.ANSWER_STATUS_ACCEPTED
        verdict.action = answer.action


def _stray(table: Table, seat: int, answer: agent_pb.Answer, verdict: agent_pb.Verdict) -> None:
    match = table.match
    state = match.seats[seat]
    number = answer.decision_id
    if match.over or table.broken:
        verdict.status = event_pb2.ANSWER_STATUS_MATCH_OVER
        return
    if not 0 <= number < len(state.outcomes):
        verdict.status = event_pb2.ANSWER_STATUS_NOT_OPEN
    else:
        action, source, timed_out = state.outcome(number)
        if action < len(match.game.texts):
            verdict.action = match.game.texts[action]
        if timed_out:
            verdict.status = event_pb2.ANSWER_STATUS_TIMED_OUT
        elif source == event_pb2.ACTION_SOURCE_AGENT:
            repeated = verdict.action == answer.action
            verdict.status = event_pb2.ANSWER_STATUS_REPEATED if repeated else event_pb2.ANSWER_STATUS_ALREADY_ANSWERED
        else:
            verdict.status = event_pb2.ANSWER_STATUS_DECISION_CLOSED
    table.machine.stray_counts[seat] += 1
    if state.ignored_kept < STRAYS_KEPT and not match.may_reopen(state):
        table.feed(inputs.Stray(seat, number, answer.action.encode(), verdict.status))
