"""Answers after its time."""

from __future__ import annotations

from raw import Zoo, later, main

from referee.v1 import agent_service_pb2 as pb


class Late(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        seconds = (decision.allowance_us + decision.bank_us) / 1e6
        # Some milliseconds more would be credited to the way there and back.
        later(seconds + 0.3, self.answer, decision, decision.legal[0])


main(Late)
