"""Records and logs that the tests of the journal are made of."""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

from referee_server.journal import (
    AgentAdded,
    EventsAdded,
    Journal,
    LogStored,
    MatchAdded,
    SummaryChanged,
    chain,
    pack,
)

SECRET = b"\x07the secret of this match, really\x07"
HASH = b"\x09the hash of a credential, really\x09"


def added(match_id: str = "m1", *, request_id: str = "", state: str = "running") -> MatchAdded:
    return MatchAdded(match_id, "guillotine", request_id, SECRET, b"summary of " + match_id.encode(), 1234, state)


def events(*texts: str, match_id: str = "m1") -> EventsAdded:
    return EventsAdded(match_id, tuple(text.encode() for text in texts))


def final(match_id: str = "m1", state: str = "finished") -> SummaryChanged:
    return SummaryChanged(match_id, state, b"over", final=True)


def agent(name: str = "Ada", *, agent_id: str = "", credential_hash: bytes = b"") -> AgentAdded:
    return AgentAdded(agent_id or f"id-{name}", name, name.lower(), credential_hash or HASH + name.encode(), 99)


def archived(journal: Journal, match_id: str = "m1") -> LogStored:
    return LogStored(match_id, pack(match_id, journal.read(match_id)))


def frames(match_id: str, stored: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    """Returns each event with its right check."""
    digest = chain.start(match_id).digest
    found = []
    for event in stored:
        digest = chain.link(digest, event)
        found.append((event, digest[: chain.CHECK_BYTES]))
    return found


def numbered(place: int, rest: bytes) -> bytes:
    """Returns an event that begins with its number, for a place below 128."""
    return bytes([8, place]) + rest


def written(place: int, event: bytes) -> bytes:
    """Returns an event of a place below 128, with its length, as a log file has it."""
    if not event.startswith(numbered(place, b"")):
        return b"\xff" + struct.pack(">I", len(event)) + event
    rest = event[2:]
    return (bytes([len(rest)]) if 0 < len(rest) < 254 else b"\xfe" + struct.pack(">I", len(rest))) + rest


def forged(match_id: str, kept: list[tuple[bytes, bytes]], *, count: int, digest: bytes, tail: bytes = b"") -> bytes:
    """Returns a log file as somebody makes it who recompresses and seals anew what he changed."""
    encoded_id = match_id.encode()
    inside = struct.pack(">H", len(encoded_id)) + encoded_id
    for place, (event, check) in enumerate(kept, 1):
        inside += written(place, event) + check
    return sealed(inside + struct.pack(">BI32s", 0, count, digest) + tail)


def sealed(inside: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-15)
    body = b"referee-log 1\n" + deflate.compress(inside) + deflate.flush()
    return bytes(body + sha256(body).digest())


@contextmanager
def meddling(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of somebody who has no business in the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        yield db
