r"""The log file: one match, self-contained, in bytes that prove themselves.

    "referee-log 1\n"                          what this is, and its version
    raw deflate of
        u16 length ‖ match id
        length ‖ rest of event ‖ its check     for each event
        00 ‖ u32 count ‖ digest                the end: number of events, digest of the last
    SHA-256 of everything before               the seal

An event of a match begins with its number, as field 1 of a protobuf message: 08 ‖ varint. That is its place in the log,
so it is left out, and put back in reading. A length counts what is left. It is one byte from 1 to 253, or 254 ‖ u32; or
255 ‖ u32 in front of an event that does not begin with its number, and so is there as a whole.

The chain (see `chain`) finds and places any change to an event, the end finds events missing at the tail, and the seal
finds changes that leave the events alone. Only somebody who computes all of them anew goes unnoticed here; against
him there is the digest that seats and watchers were given with the result.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from struct import Struct
from typing import Final

from referee_server.journal import chain
from referee_server.journal.errors import (
    DamagedLogError,
    EmptyLogError,
    HeaderOnlyLogError,
    LogError,
    LogTooLargeError,
    NewerLogError,
    NotALogError,
    TrailingDataError,
    TruncatedLogError,
)
from referee_server.journal.inflate import EndOfStreamError, Inflater

VERSION: Final = 1
MAGIC: Final = b"referee-log 1\n"
MAX_ID_BYTES: Final = 200
"""The longest match id, in bytes of UTF-8."""

_ANY_VERSION = re.compile(rb"referee-log ([0-9]{1,9})\n")
_SEAL_BYTES = 32
_U16 = Struct(">H")
_U32 = Struct(">I")
_END = Struct(">BI32s")
_END_MARK = 0
_LONG = 254
_WHOLE = 255
_INTACT = "HASH_MISMATCH at event {}: the events up to this one are intact, what follows them is not"


@dataclass(frozen=True, slots=True)
class Log:
    """The content of a log file.

    Attributes:
        match_id: the match.
        events: its events; the first has number 1.
        digest: digest of the last of them.
    """

    match_id: str
    events: tuple[bytes, ...] = field(repr=False)
    digest: bytes


def pack(match_id: str, events: Sequence[bytes]) -> bytes:
    """Returns the log file of a match.

    Args:
        match_id: 1 to 200 bytes of text.
        events: all its events, at least one.

    Raises:
        EmptyLogError: there are no events.
        LimitError: there are more, or larger ones, than a log may hold.
        ValueError: the match id is empty or too long.
    """
    encoded_id = match_id.encode()
    if not 1 <= len(encoded_id) <= MAX_ID_BYTES:
        raise ValueError(f"a match id has 1 to {MAX_ID_BYTES} bytes, not {len(encoded_id)}")
    if not events:
        raise EmptyLogError(0, "a match without events has no log")
    head, checks = chain.extend(chain.start(match_id), events)
    deflate = zlib.compressobj(level=6, wbits=-zlib.MAX_WBITS)
    parts = [MAGIC, deflate.compress(_U16.pack(len(encoded_id)) + encoded_id)]
    for place, (event, check) in enumerate(zip(events, checks, strict=True), 1):
        parts.append(deflate.compress(_written(place, event) + check))
    parts.append(deflate.compress(_END.pack(_END_MARK, head.events, head.digest)))
    parts.append(deflate.flush())
    body = b"".join(parts)
    return body + sha256(body).digest()


@lru_cache(maxsize=4096)
def _number(place: int) -> bytes:
    """Returns what the event of that place begins with."""
    encoded = bytearray(b"\x08")
    while place > 0x7F:
        encoded.append(place & 0x7F | 0x80)
        place >>= 7
    encoded.append(place)
    return bytes(encoded)


def _written(place: int, event: bytes) -> bytes:
    """Returns the length of an event, and what of it is written."""
    number = _number(place)
    if not event.startswith(number):
        return bytes((_WHOLE,)) + _U32.pack(len(event)) + event
    rest = event[len(number) :]
    size = len(rest)
    return (bytes((size,)) if 0 < size < _LONG else bytes((_LONG,)) + _U32.pack(size)) + rest


def unpack(data: bytes) -> Log:
    """Returns the content of a log file, every byte of which has been checked.

    Raises:
        LogError: of the kind that fits, with the place of the first fault.
    """
    log, fault = salvage(data)
    if fault is not None:
        raise fault
    return log


def salvage(data: bytes) -> tuple[Log, LogError | None]:
    """Returns the intact beginning of a log file and what is wrong behind it; None when nothing is.

    However the bytes came about, no more memory is used than the largest log needs.
    """
    fault = _header_fault(data)
    if fault is not None:
        return Log("", (), b""), fault
    stream = Inflater(data, len(MAGIC))
    try:
        encoded_id = stream.take(_U16.unpack(stream.take(_U16.size))[0])
        match_id = encoded_id.decode()
    except EndOfStreamError:
        return Log("", (), b""), _short(stream, 0, within=True)
    except UnicodeDecodeError:
        return Log("", (), b""), DamagedLogError(0, "the match id of the log is damaged")
    events: list[bytes] = []
    digest, fault = _read_events(stream, chain.start(match_id).digest, events)
    if fault is None:
        fault = _end_fault(stream, len(events), digest) or _seal_fault(stream, len(events), data)
    return Log(match_id, tuple(events), digest), fault


def _header_fault(data: bytes) -> LogError | None:
    if not data:
        return EmptyLogError(0, "the log is empty")
    if data == MAGIC:
        return HeaderOnlyLogError(0, "TRUNCATED at event 0: the log ends behind its first line")
    if data.startswith(MAGIC):
        return None
    if MAGIC.startswith(data):
        return TruncatedLogError(0, "TRUNCATED at event 0: the log ends within its first line")
    named = _ANY_VERSION.match(data)
    if named and int(named[1]) > VERSION:
        return NewerLogError(int(named[1]), VERSION)
    return NotALogError(0, "this is not a log file")


def _read_events(stream: Inflater, digest: bytes, events: list[bytes]) -> tuple[bytes, LogError | None]:
    """Takes the events off the stream into `events`, up to the mark of the end or the first fault."""
    size = 0
    while True:
        place = len(events) + 1
        try:
            length = stream.take(1)[0]
            if length == _END_MARK:
                return digest, None
            number = b"" if length == _WHOLE else _number(place)
            if length in (_LONG, _WHOLE):
                length = _U32.unpack(stream.take(_U32.size))[0]
            if length + len(number) > chain.MAX_EVENT_BYTES:
                return digest, DamagedLogError(place, f"HASH_MISMATCH at event {place}: its length is impossible")
            size += len(number) + length
            if place > chain.MAX_EVENTS or size > chain.MAX_MATCH_BYTES:
                return digest, LogTooLargeError(place, f"event {place} makes the log larger than a log may be")
            piece = stream.take(length + chain.CHECK_BYTES)
        except EndOfStreamError:
            return digest, _short(stream, len(events), within=stream.left() > 0)
        event, check = number + piece[:length], piece[length:]
        linked = chain.link(digest, event)
        if linked[: chain.CHECK_BYTES] != check:
            return digest, DamagedLogError(place, f"HASH_MISMATCH at event {place}: it is not what was written there")
        digest = linked
        events.append(event)


def _short(stream: Inflater, intact: int, *, within: bool) -> LogError:
    """Returns the fault of a stream that has less than it should."""
    if stream.broken or (stream.ended and within):
        place = intact + 1
        return DamagedLogError(place, f"HASH_MISMATCH at event {place}: it cannot be read")
    return TruncatedLogError(intact, f"TRUNCATED at event {intact}: what follows it is missing")


def _end_fault(stream: Inflater, count: int, digest: bytes) -> LogError | None:
    """Checks what stands behind the mark of the end."""
    try:
        said = _U32.unpack(stream.take(_U32.size))[0]
        last = stream.take(chain.DIGEST_BYTES)
    except EndOfStreamError:
        return _broken_end(stream, count)
    if said > count:
        return TruncatedLogError(count, f"TRUNCATED at event {count}: the log had {said} events")
    if said < count:
        place = said + 1
        return DamagedLogError(place, f"HASH_MISMATCH at event {place}: the log had {said} events")
    if last != digest:
        return DamagedLogError(count, f"HASH_MISMATCH at event {count}: the digest at the end is another")
    if not count:
        return EmptyLogError(0, "the log holds no events")
    return None


def _seal_fault(stream: Inflater, count: int, data: bytes) -> LogError | None:
    """Checks that the stream ends where it should, with the right seal and nothing else behind it."""
    try:
        stream.take(1)
    except EndOfStreamError:
        pass
    else:
        return TrailingDataError(count, f"something follows event {count}, the last one, inside the log")
    if not stream.ended:
        return _broken_end(stream, count)
    seal = data[stream.end :]
    if len(seal) < _SEAL_BYTES:
        return TruncatedLogError(count, f"TRUNCATED at event {count}: the seal behind it is missing")
    if len(seal) > _SEAL_BYTES:
        return TrailingDataError(count, f"something follows the log, which ends with event {count}")
    if seal != sha256(memoryview(data)[: stream.end]).digest():
        return DamagedLogError(count, _INTACT.format(count))
    return None


def _broken_end(stream: Inflater, count: int) -> LogError:
    if stream.broken or stream.ended:
        return DamagedLogError(count, _INTACT.format(count))
    return TruncatedLogError(count, f"TRUNCATED at event {count}: the end of the log is missing")
