"""Answers everything twice, in one message."""

from __future__ import annotations

from raw import Zoo, answer_item, main

from referee.v1 import agent_service_pb2 as pb


class Duplicate(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        self.stream.send(*[answer_item(decision, decision.legal[0])] * 2)


main(Duplicate)
