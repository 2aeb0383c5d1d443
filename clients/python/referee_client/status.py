"""Reads the machine-readable reason out of a refused call.

It is a `google.rpc.Status` with an `ErrorInfo` in the call's trailing metadata. The packages that bring these messages
belong to the referee, not to the base install, and three fields are all that is needed; hence this small reader.
"""

from __future__ import annotations

from collections.abc import Iterator

DETAILS_KEY = "grpc-status-details-bin"


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
        if shift > 63:
            raise IndexError


def _chunks(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields number and content of every length-delimited field."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                _, at = _varint(data, at)
            case 1:
                at += 8
            case 2:
                length, at = _varint(data, at)
                yield tag >> 3, data[at : at + length]
                at += length
            case 5:
                at += 4
            case _:
                raise IndexError


def reason_of(details: bytes) -> str:
    """Returns the reason in a serialised `google.rpc.Status`, such as `NAME_TAKEN`; empty if there is none."""
    try:
        for number, packed in _chunks(details):
            if number != 3:
                continue
            fields = dict(_chunks(packed))
            if not fields.get(1, b"").endswith(b"/google.rpc.ErrorInfo"):
                continue
            info = dict(_chunks(fields.get(2, b"")))
            if info.get(2) == b"referee.v1":
                return info.get(1, b"").decode("ascii", "replace")
    except IndexError:
        pass  # not a status: then the code of the call has to do
    return ""
