"""Answers everything twice, with two actions."""

from __future__ import annotations

from raw import Zoo, answer_item, main, other

from referee.v1 import agent_service_pb2 as pb


class TwoAnswers(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        self.stream.send(answer_item(decision, decision.legal[0]), answer_item(decision, other(decision)))


main(TwoAnswers)
