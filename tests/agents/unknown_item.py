"""Sends an item that is newer than the referee with each answer, and unknown fields in the answer."""

from __future__ import annotations

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class UnknownItem(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        answer = pb.Answer(match_id=decision.match_id, decision_id=decision.decision_id, action=decision.legal[0])
        newer = pb.Answer.FromString(answer.SerializeToString() + b"\xa2\x06\x05hello")
        item = pb.ClientItem.FromString(b"\xa2\x06\x05hello")
        self.stream.send(item, pb.ClientItem(answer=newer))


main(UnknownItem)
