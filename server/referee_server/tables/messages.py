"""What a table says to an agent, from the state of its match."""

from __future__ import annotations

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import match_pb2
from referee_client import convert
from referee_server.match.state import Match
from referee_server.match.views import seen_result


def summary(match: Match, label: str) -> match_pb2.Match:
    """Returns a match as lists show it; times and counts are added by whoever lists it."""
    return match_pb2.Match(
        match_id=match.match_id,
        state=match.state,
        game=match.game.name,
        options=match.created.spec.options,
        seats=[seat.to_message() for seat in match.seats],
        label=label,
        result=match.result,
        tournament_id=match.created.tournament.tournament_id,
        held_back=match.held_back and not match.revealed,
    )


def match_offered(match: Match, seat: int) -> agent_pb.ServerItem:
    """Returns a match as it is offered to a seat."""
    spec = match.created.spec
    seats = [state.to_message() for state in match.seats]
    for message in seats:
        message.ClearField("bot_seed")
    return agent_pb.ServerItem(
        match_offered=agent_pb.MatchOffered(
            match_id=match.match_id,
            game=spec.game,
            options=spec.options,
            seat=seat,
            seats=seats,
            clock=spec.clock,
            policy=spec.policy,
            # Of a match whose secret is held back these would tell which others hold the same cards.
            deal_id="" if match.held_back else match.deal_id,
            commitment="" if match.held_back else match.commitment,
            nonces_taken=match.created.nonces_taken,
            ready=match.seats[seat].ready,
            auto_play=spec.auto_play,
            tournament_id=match.created.tournament.tournament_id,
        )
    )


def decision(match: Match, seat: int, now_us: int) -> agent_pb.ServerItem:
    """Returns the question that is open, with the time that is left of it."""
    question = convert.decision_to(match.question(seat))
    if match.untimed:
        question.untimed = True
    elif match.offered_us is not None:
        used_us = max(0, now_us - match.offered_us)
        allowance_us = match.allowance_us
        question.allowance_us = max(0, allowance_us - used_us)
        question.bank_us = max(0, match.seats[seat].bank_us - max(0, used_us - allowance_us))
    last = match.seats[seat].last
    if last is not None:
        question.last.think_us, question.last.transit_us, question.last.lateness_us = last
    return agent_pb.ServerItem(decision=question)


def not_playing(match_id: str, seat: int = 0) -> agent_pb.ServerItem:
    """Returns the end of a match for an agent that has no seat there any more: for that agent it did not start."""
    result = match_pb2.MatchResult(reason=match_pb2.END_REASON_NOT_STARTED)
    return agent_pb.ServerItem(match_over=agent_pb.MatchOver(match_id=match_id, seat=seat, result=result))


def match_over(match_id: str, seat: int, result: match_pb2.MatchResult, digest: bytes) -> agent_pb.ServerItem:
    """Returns the end of a match, with the digest to check its log against."""
    over = agent_pb.MatchOver(match_id=match_id, seat=seat, result=seen_result(result, seat))
    over.result.digest = digest
    return agent_pb.ServerItem(match_over=over)
