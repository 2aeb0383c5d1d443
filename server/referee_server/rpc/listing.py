"""Matches as lists show them."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from referee.v1 import match_pb2
from referee_server.journal import MatchRow


def match_of(row: MatchRow) -> match_pb2.Match:
    """Returns a match from its row in the journal."""
    match = match_pb2.Match.FromString(row.summary)
    match.event_count = row.event_count
    match.create_time.CopyFrom(
        Timestamp(seconds=row.create_time_ms // 1_000, nanos=row.create_time_ms % 1_000 * 1_000_000)
    )
    if match.HasField("result"):
        match.result.digest = row.digest
    return match
