"""Answers with what is no action of any game: text with a zero byte, an escape and a lone accent in it."""

from __future__ import annotations

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class Malformed(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        self.answer(decision, "\x00\x1b[2J\u0301 " + decision.legal[0])


main(Malformed)
