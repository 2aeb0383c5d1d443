"""Inflating with suspicion: a bounded amount at a time, and everything that precedes a fault is still delivered."""

from __future__ import annotations

import contextlib
import zlib
from typing import Final

_STEP: Final = 1 << 14  # bytes fed at a time: small, since a fault makes the step be repeated byte by byte
_GROWTH: Final = 1 << 16  # bytes taken out at a time, so that a bomb fills no memory


class EndOfStreamError(Exception):
    """Fewer bytes are left than were asked for."""


class Inflater:
    """Reads a raw deflate stream in pieces.

    Args:
        data: the bytes that hold the stream.
        start: where in them it begins.
    """

    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self._at = start
        self._inflate = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        self._ready = b""
        self._taken = 0  # of what is ready
        self.broken = False
        """Whether the stream turned out not to be deflate; known once the bytes before that have been taken."""

    @property
    def ended(self) -> bool:
        """Whether the stream came to its proper end; false when it was cut off or is broken."""
        return self._inflate.eof

    @property
    def end(self) -> int:
        """Where the stream ended in the data; to be asked once it has."""
        return self._at - len(self._inflate.unused_data)

    def take(self, size: int) -> bytes:
        """Returns the next `size` bytes.

        Raises:
            EndOfStreamError: there are fewer; they stay where they are. `ended` and `broken` tell why.
        """
        end = self._taken + size
        while len(self._ready) < end:
            if self._inflate.eof or self.broken or not self._more():
                raise EndOfStreamError
            end = self._taken + size
        piece = self._ready[self._taken : end]
        self._taken = end
        return piece

    def left(self) -> int:
        """Returns how many bytes of an unfinished piece there are behind the last one taken."""
        return len(self._ready) - self._taken

    def _more(self) -> bool:
        """Inflates a little more; returns false when the data is used up."""
        feed = self._inflate.unconsumed_tail
        if not feed:
            feed = self._data[self._at : self._at + _STEP]
            self._at += len(feed)
        before = self._inflate.copy()
        try:
            out = self._inflate.decompress(feed, _GROWTH)
        except zlib.error:
            self._recover(before, feed)
            return True
        self._add(out)
        return bool(out or feed)

    def _add(self, out: bytes) -> None:
        self._ready = self._ready[self._taken :] + out
        self._taken = 0

    def _recover(self, inflate: zlib._Decompress, feed: bytes) -> None:
        """Takes what can be had of a faulty step: zlib gives nothing of a call that fails."""
        self.broken = True
        out = bytearray()
        with contextlib.suppress(zlib.error):
            for i in range(len(feed)):
                out += inflate.decompress(feed[i : i + 1])
        self._add(bytes(out))
