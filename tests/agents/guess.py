"""Answers the next decision too, before it is put."""

from __future__ import annotations

from raw import Zoo, answer_item, main

from referee.v1 import agent_service_pb2 as pb


class Guess(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        ahead = answer_item(decision, decision.legal[0], decision.decision_id + 1)
        self.stream.send(answer_item(decision, decision.legal[0]), ahead)


main(Guess)
