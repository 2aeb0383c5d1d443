"""Matches as lists show them."""

from __future__ import annotations

import base64

from google.protobuf.timestamp_pb2 import Timestamp

from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import match_pb2
from referee_server.journal import MatchRow
from referee_server.match.errors import RefusedError


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


def to_token(kind: str, number: int) -> str:
    """Returns the page token that stands for a place in a list. `kind` is a letter for what is listed."""
    return base64.urlsafe_b64encode(f"{kind}{number}".encode()).decode()


def from_token(kind: str, token: str) -> int:
    """Returns the place in a list that a page token stands for; 0 for none.

    Raises:
        RefusedError: PAGE_TOKEN_INVALID.
    """
    if not token:
        return 0
    try:
        text = base64.urlsafe_b64decode(token.encode()).decode() if len(token) <= 64 else ""
        number = int(text.removeprefix(kind))
        if to_token(kind, number) != token or not 0 < number < 1 << 63:
            raise ValueError
    except ValueError:
        raise RefusedError(
            reason_pb.ERROR_REASON_PAGE_TOKEN_INVALID, "a page token is the next_page_token of the page before"
        ) from None
    return number
