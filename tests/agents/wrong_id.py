"""Answers decisions that there are not: of the future, of the past, below zero."""

from __future__ import annotations

from raw import Zoo, answer_item, main

from referee.v1 import agent_service_pb2 as pb


class WrongId(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        for number in (decision.decision_id + 1000, 2**31 - 1, -1, -(2**31)):
            self.stream.send(answer_item(decision, decision.legal[0], number))


main(WrongId)
