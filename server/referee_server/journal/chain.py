"""The chain of digests that binds each event to all that came before it, and the limits of a log.

digest 0 = SHA-256("referee.log.v1" ‖ 00 ‖ match id); digest n = SHA-256(digest n-1 ‖ u32(length) ‖ bytes of event n).
The first bytes of digest n are stored beside event n as its *check*, so that a fault can be placed; the last digest
stands for the whole match.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from struct import Struct
from typing import Final, NamedTuple

from referee_server.journal.errors import LimitError

DIGEST_BYTES: Final = 32
CHECK_BYTES: Final = 3
MAX_EVENT_BYTES: Final = 1 << 20
"""The largest event."""
MAX_EVENTS: Final = 50_000
"""The most events of one match."""
MAX_MATCH_BYTES: Final = 50_000_000
"""The most bytes that the events of one match have together."""

_length = Struct(">I").pack


class Head(NamedTuple):
    """How far the chain of a match has come.

    Attributes:
        events: how many events there are.
        size: bytes of all of them together.
        digest: digest of the last event; digest 0 before the first.
    """

    events: int
    size: int
    digest: bytes


def start(match_id: str) -> Head:
    """Returns the head of a match without events."""
    return Head(0, 0, sha256(b"referee.log.v1\0" + match_id.encode()).digest())


def link(digest: bytes, event: bytes) -> bytes:
    """Returns the digest of an event that follows the one with `digest`."""
    return sha256(digest + _length(len(event)) + event).digest()


def extend(head: Head, events: Sequence[bytes]) -> tuple[Head, list[bytes]]:
    """Returns the head after more events, and the check of each of them.

    Raises:
        LimitError: an event, or the match, would grow beyond the limits.
    """
    count, size, digest = head
    checks = []
    for event in events:
        length = len(event)
        if length > MAX_EVENT_BYTES:
            raise LimitError(f"an event has {length:,} bytes; the limit is {MAX_EVENT_BYTES:,}")
        size += length
        digest = sha256(digest + _length(length) + event).digest()
        checks.append(digest[:CHECK_BYTES])
    count += len(checks)
    if count > MAX_EVENTS:
        raise LimitError(f"a match has at most {MAX_EVENTS:,} events; this would make {count:,}")
    if size > MAX_MATCH_BYTES:
        raise LimitError(f"the events of a match have at most {MAX_MATCH_BYTES:,} bytes; this would make {size:,}")
    return Head(count, size, digest), checks
