"""Log files: what goes in comes out, and whatever happens to the bytes is found and placed."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.v1 import event_pb2
from referee_server.journal import (
    MAX_EVENT_BYTES,
    MAX_EVENTS,
    DamagedLogError,
    EmptyLogError,
    HeaderOnlyLogError,
    LimitError,
    LogError,
    LogTooLargeError,
    NewerLogError,
    NotALogError,
    TrailingDataError,
    TruncatedLogError,
    chain,
    pack,
    salvage,
    unpack,
)

from .kit import forged, frames, numbered, sealed, written

# The last but one does not begin with its number, which no match writes but a log may hold.
EVENTS = tuple(
    (numbered(n, b" event ") if n != 7 else b"event 7 ") + sha256(bytes([n])).digest()[:25] for n in range(1, 9)
)
LOG = pack("match-1", EVENTS)
RIGHT = frames("match-1", EVENTS)
DIGEST = unpack(LOG).digest
OTHER = frames("match-2", EVENTS)


def fault_of(data: bytes) -> LogError:
    """Returns what is wrong with a log; also checks that what is said to be intact is."""
    log, fault = salvage(data)
    assert fault is not None
    assert log.events == EVENTS[: len(log.events)]
    assert fault.place <= len(log.events) + 1
    with pytest.raises(type(fault)):
        unpack(data)
    return fault


def rebuilt(kept: list[tuple[bytes, bytes]], *, count: int = len(EVENTS)) -> bytes:
    return forged("match-1", kept, count=count, digest=DIGEST)


def test_digests_follow_the_published_formula() -> None:
    digest = sha256(b"referee.log.v1\0match-1").digest()
    for event in EVENTS:
        digest = sha256(digest + struct.pack(">I", len(event)) + event).digest()
    assert digest == DIGEST
    assert chain.extend(chain.start("match-1"), EVENTS)[0].digest == DIGEST


@given(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=40),
    st.lists(st.binary(max_size=300), min_size=1, max_size=40),
)
def test_what_was_packed_is_unpacked(match_id: str, events: list[bytes]) -> None:
    log = unpack(pack(match_id, events))
    assert (log.match_id, log.events) == (match_id, tuple(events))
    assert log.digest == chain.extend(chain.start(match_id), events)[0].digest


@pytest.mark.parametrize("size", [0, 1, 125, 126, 251, 252, 253, 254, 255, 300])
@pytest.mark.parametrize("place", [1, 127, 128, 300, 16_383, 16_384])
def test_event_is_unpacked_with_its_number_whatever_its_place_and_size(place: int, size: int) -> None:
    number = event_pb2.MatchEvent(sequence=place).SerializeToString()
    events = [b""] * (place - 1) + [number + bytes(size)]
    assert unpack(pack("m", events)).events == tuple(events)


def test_an_event_s_number_takes_no_room() -> None:
    noise = [sha256(bytes([n])).digest() for n in range(100)]  # does not get smaller
    size = len(pack("m", [numbered(n, rest) for n, rest in enumerate(noise, 1)]))
    assert size <= 100 * (1 + 32 + chain.CHECK_BYTES) + 120


def test_event_that_was_moved_without_its_number_is_placed() -> None:
    fault = fault_of(rebuilt([(numbered(3, EVENTS[4][2:]), RIGHT[4][1]) if n == 2 else e for n, e in enumerate(RIGHT)]))
    assert (type(fault), fault.place) == (DamagedLogError, 3)


def test_log_built_by_hand_from_the_documented_layout_is_read() -> None:
    assert unpack(rebuilt(RIGHT)).events == EVENTS


def test_every_flipped_bit_is_found_and_no_intact_event_is_lost_before_it() -> None:
    places = set()
    for at in range(len(LOG)):
        for bit in range(8):
            data = bytearray(LOG)
            data[at] ^= 1 << bit
            places.add(fault_of(bytes(data)).place)
    assert places >= set(range(len(EVENTS) + 1))


@pytest.mark.parametrize("number", range(1, len(EVENTS) + 1))
def test_every_changed_byte_of_an_event_is_placed_at_that_event_by_who_recompresses(number: int) -> None:
    event, check = RIGHT[number - 1]
    for at in range(len(event)):
        changed = event[:at] + bytes([event[at] ^ 0x20]) + event[at + 1 :]
        fault = fault_of(rebuilt([*RIGHT[: number - 1], (changed, check), *RIGHT[number:]]))
        assert (type(fault), fault.place) == (DamagedLogError, number)


def test_every_truncation_is_told_as_such_behind_the_last_intact_event() -> None:
    for kept in range(len(LOG)):
        log, fault = salvage(LOG[:kept])
        expected = {0: EmptyLogError, 14: HeaderOnlyLogError}.get(kept, TruncatedLogError)
        assert type(fault) is expected, kept
        assert fault is not None
        assert fault.place == len(log.events), kept
        assert log.events == EVENTS[: fault.place]


def test_events_before_a_place_that_cannot_be_inflated_are_given() -> None:
    deflate = zlib.compressobj(wbits=-15)
    inside = b"\0\7match-1" + b"".join(written(place, e) + c for place, (e, c) in enumerate(RIGHT[:5], 1))
    cut = b"referee-log 1\n" + deflate.compress(inside) + deflate.flush(zlib.Z_FULL_FLUSH)
    log, fault = salvage(cut + b"\7" + bytes(50))  # a block of the one kind that deflate does not have
    assert log.events == EVENTS[:5]
    assert (type(fault), fault and fault.place) == (DamagedLogError, 6)


@pytest.mark.parametrize("kept", range(len(EVENTS)))
def test_missing_tail_is_told_when_the_rest_is_sealed_anew(kept: int) -> None:
    inside = b"\0\7match-1" + b"".join(written(place, e) + c for place, (e, c) in enumerate(RIGHT[:kept], 1))
    for fault in (
        fault_of(rebuilt(RIGHT[:kept])),  # with the end it had
        fault_of(sealed(inside)),
    ):
        assert (type(fault), fault.place) == (TruncatedLogError, kept)


@pytest.mark.parametrize("at", range(len(EVENTS) - 1))
def test_swapped_events_are_placed_at_the_first(at: int) -> None:
    fault = fault_of(rebuilt([*RIGHT[:at], RIGHT[at + 1], RIGHT[at], *RIGHT[at + 2 :]]))
    assert (type(fault), fault.place) == (DamagedLogError, at + 1)


@pytest.mark.parametrize("at", range(len(EVENTS) - 1))
def test_dropped_event_is_placed_where_the_next_stands(at: int) -> None:
    fault = fault_of(rebuilt([*RIGHT[:at], *RIGHT[at + 1 :]]))
    assert (type(fault), fault.place) == (DamagedLogError, at + 1)


@pytest.mark.parametrize("at", range(len(EVENTS)))
def test_doubled_event_is_placed_at_the_copy(at: int) -> None:
    fault = fault_of(rebuilt([*RIGHT[: at + 1], *RIGHT[at:]]))
    assert (type(fault), fault.place) == (DamagedLogError, at + 2)


@pytest.mark.parametrize("at", range(len(EVENTS)))
def test_event_spliced_in_from_another_match_is_placed(at: int) -> None:
    fault = fault_of(rebuilt([*RIGHT[:at], OTHER[at], *RIGHT[at + 1 :]]))
    assert (type(fault), fault.place) == (DamagedLogError, at + 1)


def test_events_under_the_id_of_another_match_are_placed_at_the_first() -> None:
    assert fault_of(forged("match-2", RIGHT, count=len(EVENTS), digest=DIGEST)).place == 1


@pytest.mark.parametrize("count", [0, 7])
def test_end_that_counts_fewer_events_is_found(count: int) -> None:
    fault = fault_of(rebuilt(RIGHT, count=count))
    assert (type(fault), fault.place) == (DamagedLogError, count + 1)


def test_other_final_digest_is_found() -> None:
    fault = fault_of(forged("match-1", RIGHT, count=len(EVENTS), digest=bytes(32)))
    assert (type(fault), fault.place) == (DamagedLogError, len(EVENTS))


@pytest.mark.parametrize("garbage", [b"\0", b"\n", LOG, bytes(100)])
def test_anything_behind_the_log_is_found(garbage: bytes) -> None:
    fault = fault_of(LOG + garbage)
    assert (type(fault), fault.place) == (TrailingDataError, len(EVENTS))


def test_anything_behind_the_end_inside_the_log_is_found() -> None:
    fault = fault_of(forged("match-1", RIGHT, count=len(EVENTS), digest=DIGEST, tail=b"x"))
    assert (type(fault), fault.place) == (TrailingDataError, len(EVENTS))


def test_newer_version_is_named() -> None:
    fault = fault_of(b"referee-log 12\n" + LOG[14:])
    assert isinstance(fault, NewerLogError)
    assert fault.version == 12
    assert "version 12" in str(fault)


@pytest.mark.parametrize(
    "data", [b"PK\3\4", b"referee-log x\n", b"referee-log 0\nabc", b"referee-log 1\r\n", b"x" * 10**6]
)
def test_other_file_is_not_a_log(data: bytes) -> None:
    assert isinstance(fault_of(data), NotALogError)


def test_log_without_events_is_empty() -> None:
    assert isinstance(fault_of(forged("m", [], count=0, digest=chain.start("m").digest)), EmptyLogError)
    with pytest.raises(EmptyLogError):
        pack("m", [])


@given(st.binary(max_size=200))
def test_no_bytes_behind_the_first_line_do_more_than_raise_a_log_error(noise: bytes) -> None:
    _, fault = salvage(b"referee-log 1\n" + noise)
    assert isinstance(fault, LogError)


def test_codes_of_damage_differ() -> None:
    kinds: list[type[LogError]] = [
        EmptyLogError,
        NotALogError,
        NewerLogError,
        TruncatedLogError,
        HeaderOnlyLogError,
        DamagedLogError,
    ]
    kinds += [TrailingDataError, LogTooLargeError]
    assert len({kind.code for kind in kinds}) == len(kinds)
    assert str(fault_of(LOG[:-1])).startswith("TRUNCATED at event 8")
    assert str(fault_of(rebuilt(RIGHT[1:]))).startswith("HASH_MISMATCH at event 1")


# Limits


def test_largest_event_passes_and_a_larger_one_is_refused() -> None:
    assert unpack(pack("m", [bytes(MAX_EVENT_BYTES)])).events == (bytes(MAX_EVENT_BYTES),)
    with pytest.raises(LimitError):
        pack("m", [bytes(MAX_EVENT_BYTES + 1)])


def test_most_events_pass_and_one_more_is_refused() -> None:
    assert len(unpack(pack("m", [b""] * MAX_EVENTS)).events) == MAX_EVENTS
    with pytest.raises(LimitError):
        pack("m", [b""] * (MAX_EVENTS + 1))


def test_log_of_more_events_than_allowed_is_refused_in_reading() -> None:
    too_many = [b""] * (MAX_EVENTS + 1)
    inside = b"\0\1m" + b"".join(written(1, b"") + check for _, check in frames("m", too_many))
    _, fault = salvage(sealed(inside))
    assert (type(fault), fault and fault.place) == (LogTooLargeError, MAX_EVENTS + 1)


def test_bomb_fills_no_memory() -> None:
    deflate = zlib.compressobj(wbits=-15)
    zeros = bytes(1 << 20)
    bomb = b"referee-log 1\n" + deflate.compress(b"\0\1m" + b"\xff" + struct.pack(">I", 0xFFFFFFFE))
    bomb += b"".join(deflate.compress(zeros) for _ in range(200)) + deflate.flush()
    tracemalloc.start()
    try:
        _, fault = salvage(bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(fault, DamagedLogError)
    assert peak < 4 << 20


@pytest.mark.parametrize("match_id", ["", "x" * 201])
def test_senseless_match_id_is_refused(match_id: str) -> None:
    with pytest.raises(ValueError, match="match id"):
        pack(match_id, [b"x"])
