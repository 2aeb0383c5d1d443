"""Answers once, and then nothing more."""

from __future__ import annotations

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class Stall(Zoo):
    answered = False

    def decided(self, decision: pb.Decision) -> None:
        if not self.answered:
            self.answered = True
            self.answer(decision, decision.legal[0])


main(Stall)
