"""Answers a match of others, which it was told of, and one that there is not; and plays its own."""

from __future__ import annotations

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class Foreign(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        for match_id in (*self.more, "a" * 26, "", "x" * 10_000):
            answer = pb.Answer(match_id=match_id, decision_id=0, action=decision.legal[0])
            self.stream.send(pb.ClientItem(answer=answer))
        super().decided(decision)


main(Foreign)
