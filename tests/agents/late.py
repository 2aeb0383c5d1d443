"""Answers after its time."""

from __future__ import annotations

from raw import Zoo, later, main

from referee.v1 import agent_service_pb2 as pb


class Late(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        seconds = (decision.allowance_us + decision.bank_us) / 1e6
        # The time for the way there and back is credited: a second at most.
        later(seconds + 1.5, self.answer, decision, decision.legal[0])


main(Late)
