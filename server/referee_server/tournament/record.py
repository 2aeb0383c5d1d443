"""What came of a table, as the log of its tournament keeps it, and back."""

from __future__ import annotations

from referee.v1 import match_pb2
from referee.v1 import tournament_pb2 as pb
from referee_server.tournament.harvest import fault_name, reason_name
from referee_server.tournament.model import DealOutcome, Outcome, Table


def outcome_to(outcome: Outcome, attempt: int) -> pb.TableEnded:
    """Returns an outcome as it is stored."""
    table = outcome.table
    return pb.TableEnded(
        table=table.number,
        round=table.round,
        board=table.board,
        group=table.group,
        entrants=table.seats,
        attempt=attempt,
        match_id=outcome.match_id,
        reason=match_pb2.EndReason.Value(f"END_REASON_{outcome.reason.upper()}"),
        sides=outcome.sides,
        totals=outcome.totals,
        places=outcome.places,
        faults=[
            pb.SeatFaults(
                counts=[
                    pb.FaultCount(kind=match_pb2.FaultKind.Value(f"FAULT_KIND_{kind.upper()}"), count=count)
                    for kind, count in sorted(seat.items())
                ]
            )
            for seat in outcome.faults
        ],
        substitute_counts=outcome.substituted,
        losses=outcome.losses,
        deals=[
            pb.TableDeal(deal=deal.deal, dealer=deal.dealer, scores=deal.scores, kind=deal.kind, counted=deal.counted)
            for deal in outcome.deals
        ],
        digest=outcome.digest,
        said=outcome.said,
    )


def outcome_from(ended: pb.TableEnded) -> Outcome:
    """Returns an outcome that was stored."""
    return Outcome(
        table=Table(ended.table, ended.round, ended.board, ended.group, tuple(ended.entrants)),
        match_id=ended.match_id,
        reason=reason_name(ended.reason),
        sides=tuple(ended.sides),
        totals=tuple(ended.totals),
        places=tuple(ended.places),
        faults=tuple({fault_name(one.kind): one.count for one in seat.counts} for seat in ended.faults),
        substituted=tuple(ended.substitute_counts),
        losses=tuple(ended.losses),
        deals=tuple(
            DealOutcome(deal.deal, deal.dealer, tuple(deal.scores), deal.kind, deal.counted) for deal in ended.deals
        ),
        digest=ended.digest,
        said=tuple(ended.said),
    )
