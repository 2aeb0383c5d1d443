"""Messages that say something to the agent, as plain values; the views are in `convert`."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.message import Message

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import error_reason_pb2, event_pb2, match_pb2
from referee_client import convert
from referee_client.values import Event, Offer, Result, SeatInfo, Verdict

_AUTO_PLAY = match_pb2.DESCRIPTOR.enum_types_by_name["AutoPlay"]
_END_REASON = match_pb2.DESCRIPTOR.enum_types_by_name["EndReason"]
_ERROR_REASON = error_reason_pb2.DESCRIPTOR.enum_types_by_name["ErrorReason"]
_FAULT_KIND = match_pb2.DESCRIPTOR.enum_types_by_name["FaultKind"]
_SEAT_KIND = match_pb2.DESCRIPTOR.enum_types_by_name["SeatKind"]
_STATUS = event_pb2.DESCRIPTOR.enum_types_by_name["AnswerStatus"]


def word(enum: EnumDescriptor, number: int) -> str:
    """Returns an enum value in lower case without its prefix; empty for none, the number for one that is newer."""
    value = enum.values_by_number.get(number)
    if value is None:
        return str(number)
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return value.name.removeprefix(prefix).lower() if number else ""


def offer_from(message: pb.MatchOffered, nonce: bytes) -> Offer:
    """Returns an offer as a plain value.

    Raises:
        ValueError: its options cannot be read.
    """
    return Offer(
        match_id=message.match_id,
        game=message.game,
        options=convert.options_from(message.game, message.options, written_out=True),
        seat=message.seat,
        seats=tuple(SeatInfo(seat.seat, word(_SEAT_KIND, seat.kind), seat.name) for seat in message.seats),
        allowance_ms=message.clock.allowance_ms,
        bank_ms=message.clock.bank_ms,
        increment_ms=message.clock.increment_ms,
        auto_play=word(_AUTO_PLAY, message.auto_play) or "public",
        deal_id=message.deal_id,
        commitment=message.commitment,
        nonce=nonce,
        tournament_id=message.tournament_id,
    )


def verdict_from(message: pb.Verdict) -> Verdict:
    """Returns what became of an answer as a plain value."""
    return Verdict(
        match_id=message.match_id,
        number=message.decision_id,
        status=word(_STATUS, message.status),
        fault=word(_FAULT_KIND, message.fault),
        action=message.action,
        strikes=message.strike_count,
        asked_again=message.asked_again,
    )


def result_from(message: pb.MatchOver, game: str) -> Result:
    """Returns the end of a match as a plain value."""
    result = message.result
    sides = tuple(result.sides)
    return Result(
        match_id=message.match_id,
        game=game,
        seat=message.seat,
        side=sides[message.seat] if message.seat < len(sides) else message.seat,
        reason=word(_END_REASON, result.reason),
        totals=tuple(result.totals),
        places=tuple(result.places),
        official_places=tuple(result.official_places),
        sides=sides,
        faults=tuple(result.fault_counts),
        substitutes=tuple(result.substitute_counts),
        deals=result.deal_count,
        digest=result.digest.hex(),
    )


def event_from(message: event_pb2.MatchEvent) -> Event:
    """Returns an event as a plain value. A payload of a newer referee has no kind and no data."""
    kind = message.WhichOneof("payload") or ""
    data = _fields(getattr(message, kind)) if kind else {}
    return Event(message.sequence, message.match_time_us, kind, data)


def reason_word(number: int) -> str:
    """Returns a reason as the protocol names it, without its prefix."""
    return word(_ERROR_REASON, number).upper()


def _fields(message: Message) -> dict[str, Any]:
    return {
        field.name: _value(field, getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def _value(field: Any, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return dict(value)
    if field.is_repeated:
        return tuple(_single(field, one) for one in value)
    return _single(field, value)


def _single(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        return word(field.enum_type, value)
    if field.message_type is None:
        return value
    if field.message_type.full_name == "google.protobuf.Timestamp":
        return value.seconds + value.nanos / 1e9
    return _fields(value)
