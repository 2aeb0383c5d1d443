"""Names another seat than its own in each answer, then answers properly."""

from __future__ import annotations

from raw import Zoo, answer_item, main

from referee.v1 import agent_service_pb2 as pb


class OtherSeat(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        answer = answer_item(decision, decision.legal[0])
        answer.answer.seat = (decision.seat + 1) % 4
        self.stream.send(answer)
        super().decided(decision)


main(OtherSeat)
