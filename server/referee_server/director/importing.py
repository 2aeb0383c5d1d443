"""Taking in the log of a match that was played somewhere else."""

from __future__ import annotations

from referee.v1 import match_pb2
from referee_server.director.executor import ExecutorError, Order
from referee_server.journal import EventsAdded, LogError, MatchAdded, Record, SummaryChanged, unpack
from referee_server.match.verify import LogError as FaultyLogError
from referee_server.match.verify import parse, replay
from referee_server.tables.messages import summary


def records_of(order: Order, log: bytes) -> list[Record]:
    """Returns what puts the match of a log file into a journal, as if it had been played there.

    Raises:
        ExecutorError: it is not the whole log of the match that was ordered.
    """
    try:
        found = unpack(log)
        match = replay(parse(found.events))
    except (LogError, FaultyLogError) as error:
        raise ExecutorError(f"the log of match {order.match_id} that came back does not hold: {error}") from None
    created = match.created
    if (found.match_id, created.match_id, created.deal_id) != (order.match_id, order.match_id, order.deal_id):
        raise ExecutorError(f"for match {order.match_id} came the log of another one")
    if not match.over:
        raise ExecutorError(f"the log of match {order.match_id} that came back has no end")
    told = summary(match, created.spec.label)
    time = created.create_time
    state = match_pb2.MatchState.Name(match.state).removeprefix("MATCH_STATE_")
    return [
        MatchAdded(
            match_id=order.match_id,
            game=told.game,
            request_id="",
            secret=order.secret,
            summary=told.SerializeToString(),
            create_time_ms=time.seconds * 1_000 + time.nanos // 1_000_000,
            state=state,
        ),
        EventsAdded(order.match_id, tuple(found.events)),
        SummaryChanged(order.match_id, state, told.SerializeToString(), final=match.revealed or not match.held_back),
    ]
