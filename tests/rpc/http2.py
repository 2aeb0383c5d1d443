"""A client that speaks just enough HTTP/2 to misbehave: frames made by hand over a plain socket."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import IntEnum
from types import TracebackType
from typing import Final, NamedTuple, Self

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
PATIENCE_S: Final = 20.0
"""How long to wait for what is sure to come, on a busy machine."""


class Kind(IntEnum):
    """Types of frames, RFC 9113 section 6."""

    DATA = 0
    HEADERS = 1
    RST_STREAM = 3
    SETTINGS = 4
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8


class Code(IntEnum):
    """Error codes, RFC 9113 section 7."""

    SETTINGS_TIMEOUT = 4
    CANCEL = 8
    ENHANCE_YOUR_CALM = 11


ACK: Final = 1
END_STREAM: Final = 1
END_HEADERS: Final = 4
INITIAL_WINDOW_SIZE: Final = 4


class Frame(NamedTuple):
    """A frame, as it came."""

    kind: int
    flags: int
    stream: int
    body: bytes


class Gone(NamedTuple):
    """How a connection ended: the error code and the words of the last GOAWAY, None where there was none."""

    code: int | None
    words: bytes


def frame(kind: Kind, body: bytes = b"", *, flags: int = 0, stream: int = 0) -> bytes:
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def settings(**values: int) -> bytes:
    """Returns a SETTINGS frame."""
    numbers = {"initial_window_size": INITIAL_WINDOW_SIZE}
    return frame(Kind.SETTINGS, b"".join(struct.pack(">HI", numbers[name], value) for name, value in values.items()))


def headers(path: str, more: Sequence[tuple[str, str]] = ()) -> bytes:
    """Returns the header block of a call, every field a literal without index (RFC 7541 section 6.2.2)."""
    fields = (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        *more,
    )
    return b"".join(
        b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode() for name, value in fields
    )


def message(data: bytes) -> bytes:
    """Returns a message as gRPC puts it into DATA: uncompressed, with its length."""
    return b"\x00" + struct.pack(">I", len(data)) + data


def _length(head: bytes) -> int:
    return int.from_bytes(head[:3], "big")


class Peer:
    """One connection.

    Args:
        port: of the server, on this machine.
        receive_buffer: bytes of the socket's buffer; None leaves it to the system.
    """

    def __init__(self, port: int, receive_buffer: int | None = None) -> None:
        self._socket = socket.socket()
        if receive_buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.settimeout(PATIENCE_S)
        try:
            self._socket.connect(("127.0.0.1", port))
        except OSError:
            self._socket.close()
            raise
        self._input = self._socket.makefile("rb")
        self._next_stream = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._input.close()
        self._socket.close()

    def greet(self, **values: int) -> Self:
        """Sends the preface and SETTINGS, and acknowledges the server's own."""
        self.send(PREFACE + settings(**values))
        self.frame_of(Kind.SETTINGS)
        self.send(frame(Kind.SETTINGS, flags=ACK))
        return self

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def call(self, path: str, data: bytes | None = None, more: Sequence[tuple[str, str]] = ()) -> int:
        """Opens a stream, with a message and its end if given, and returns its number."""
        stream = self._next_stream
        self._next_stream += 2
        sent = frame(Kind.HEADERS, headers(path, more), flags=END_HEADERS, stream=stream)
        if data is not None:
            sent += frame(Kind.DATA, message(data), flags=END_STREAM, stream=stream)
        self.send(sent)
        return stream

    def read(self) -> Frame | None:
        """Returns the next frame, and acknowledges it if it is a ping; None once the connection is closed."""
        try:
            head = self._input.read(9)
            if len(head) < 9:
                return None
            found = Frame(head[3], head[4], int.from_bytes(head[5:], "big"), self._input.read(_length(head)))
        except ConnectionError:
            return None
        if found.kind == Kind.PING and not found.flags & ACK:
            with suppress(ConnectionError):  # what the server said before it closed is still to be read
                self.send(frame(Kind.PING, found.body, flags=ACK))
        return found

    def frame_of(self, kind: Kind, test: Callable[[Frame], object] = bool) -> Frame:
        """Returns the next frame of a kind, of those that pass a test; what comes before it is dropped."""
        while (found := self.read()) is not None:
            if found.kind == kind and test(found):
                return found
        raise AssertionError(f"the connection was closed before a frame of {kind.name}")

    def answered(self, stream: int) -> bool:
        """Waits for the end of a stream, and returns whether it came to its trailers and was not refused."""
        while (found := self.read()) is not None:
            if found.stream == stream and found.kind == Kind.RST_STREAM:
                return False
            if found.stream == stream and found.kind == Kind.HEADERS and found.flags & END_STREAM:
                return True
        raise AssertionError(f"the connection was closed before stream {stream} ended")

    def gone(self) -> Gone:
        """Waits for the server to close the connection, and returns what it said of that."""
        said = Gone(None, b"")
        while (found := self.read()) is not None:
            if found.kind == Kind.GOAWAY:
                said = Gone(int.from_bytes(found.body[4:8], "big"), found.body[8:])
        return said
