"""What came of a table, from the log of its match."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from referee.v1 import event_pb2, match_pb2
from referee_server.tournament.model import DealOutcome, Outcome, Table

_KIND_OF_DEAL = "contract"


def outcome_of(table: Table, match_id: str, events: Sequence[event_pb2.MatchEvent], digest: bytes) -> Outcome:
    """Returns what came of a table.

    Args:
        table: the table.
        match_id: the match that was played.
        events: all events of that match, which has ended.
        digest: digest of its log when it ended.
    """
    seats = len(table.seats)
    faults: list[Counter[str]] = [Counter() for _ in range(seats)]
    last_rules = [""] * seats
    losses = [""] * seats
    scored: list[event_pb2.DealScored] = []
    result = match_pb2.MatchResult()
    for event in events:
        match event.WhichOneof("payload"):
            case "fault_ruled":
                ruled = event.fault_ruled
                faults[ruled.seat][fault_name(ruled.kind)] += 1
                last_rules[ruled.seat] = ruled.rule
                if ruled.action in (match_pb2.FAULT_ACTION_FORFEIT, match_pb2.FAULT_ACTION_CANCEL):
                    losses[ruled.seat] = ruled.rule
            case "seat_replaced":
                losses[event.seat_replaced.seat] = _replaced(last_rules[event.seat_replaced.seat])
            case "deal_scored":
                scored.append(event.deal_scored)
            case "match_ended":
                result = event.match_ended.result
    substituted = set(result.substituted_deals)
    return Outcome(
        table=table,
        match_id=match_id,
        reason=reason_name(result.reason),
        sides=tuple(result.sides),
        totals=tuple(result.totals),
        places=tuple(result.official_places),
        faults=tuple(faults),
        substituted=tuple(result.substitute_counts),
        losses=tuple(losses),
        deals=tuple(
            DealOutcome(
                deal=deal.deal,
                dealer=deal.dealer,
                scores=tuple(deal.scores),
                kind=_kind_of(deal),
                counted=not deal.voided and deal.deal not in substituted,
            )
            for deal in scored
        ),
        digest=digest,
    )


def fault_name(kind: match_pb2.FaultKind.ValueType) -> str:
    """Returns a kind of fault as results name it, such as `timeout`."""
    return match_pb2.FaultKind.Name(kind).removeprefix("FAULT_KIND_").lower()


def reason_name(reason: match_pb2.EndReason.ValueType) -> str:
    """Returns the reason of an end as results name it, such as `completed`."""
    return match_pb2.EndReason.Name(reason).removeprefix("END_REASON_").lower()


def _replaced(rule: str) -> str:
    """Returns the cause of a replacement: a fault that replaces at once, or one strike too many."""
    kind, _, action = rule.partition(": ")
    return rule if action == "replace" else f"{kind}: replaced after too many strikes"


def _kind_of(deal: event_pb2.DealScored) -> str:
    for detail in deal.details:
        if detail.name == _KIND_OF_DEAL:
            return str(json.loads(detail.json))
    return ""
