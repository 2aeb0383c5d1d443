"""Sends random bytes where its answer is due."""

from __future__ import annotations

import os

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class Noise(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        # A field of a length that is not there: no message, whatever follows.
        self.stream.send_bytes(b"\x0a\xff\x7f" + os.urandom(200))


main(Noise)
