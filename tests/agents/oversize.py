"""Sends a message that is so many bytes too long in place of its answer."""

from __future__ import annotations

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class Oversize(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        size = 64 * 1024 + int(self.more[0])
        # An unknown field: parsed it would be passed over.
        head = b"\xa2\x06"
        for length in (size - 5,):
            head += bytes((length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14))
        self.stream.send_bytes(head + bytes(size - len(head)))


main(Oversize)
