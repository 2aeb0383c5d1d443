"""Sends more items in a message than allowed, its answer among them."""

from __future__ import annotations

from raw import Zoo, answer_item, main

from referee.v1 import agent_service_pb2 as pb


class ManyItems(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        self.stream.send(*[answer_item(decision, decision.legal[0])] * 257)


main(ManyItems)
