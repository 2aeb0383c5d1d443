"""How a match ended: the game's own result, and the official one beside it."""

from __future__ import annotations

from referee.v1 import match_pb2
from referee_server.match.state import Match


def official_places(places: tuple[int, ...], offending: set[int]) -> list[int]:
    """Returns the places by side with the offending sides last.

    The others keep their order among themselves; several offenders share the last place.
    """
    clean = [side for side in range(len(places)) if side not in offending]
    last = len(clean) + 1
    return [
        last if side in offending else 1 + sum(places[other] < places[side] for other in clean)
        for side in range(len(places))
    ]


def make_result(match: Match, reason: match_pb2.EndReason.ValueType) -> match_pb2.MatchResult:
    """Returns the result of a match that ends now."""
    result = match_pb2.MatchResult(
        reason=reason,
        fault_counts=[seat.fault_count for seat in match.seats],
        substitute_counts=[seat.substitute_count for seat in match.seats],
        substituted_deals=sorted(match.substituted_deals),
        sides=[next(number for number, side in enumerate(match.sides) if seat.seat in side) for seat in match.seats],
    )
    result.seat_times.extend(
        match_pb2.SeatTime(
            seat=seat.seat,
            think_us=seat.think_us,
            transit_us=seat.transit_us,
            lateness_us=seat.lateness_us,
            decision_count=seat.asked_count,
        )
        for seat in match.seats
    )
    if match.engine is not None:
        result.deal_count = match.deal_count
        if reason in (match_pb2.END_REASON_COMPLETED, match_pb2.END_REASON_FORFEITED):
            places = match.engine.places()
            offending = {
                number for number, side in enumerate(match.sides) if any(match.seats[seat].offender for seat in side)
            }
            result.totals.extend(match.engine.totals())
            result.places.extend(places)
            result.official_places.extend(official_places(places, offending))
    return result
