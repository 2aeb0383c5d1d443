"""Sends tiny messages as fast as it can once it is asked: `empty` ones, or `strays`."""

from __future__ import annotations

from raw import Zoo, answer_item, main

from referee.v1 import agent_service_pb2 as pb


class Flood(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        stray = pb.PlayRequest(items=[answer_item(decision, decision.legal[0], 0)]).SerializeToString()
        for _ in range(100_000):
            if self.stream.call.done():
                break
            self.stream.send_bytes(stray if "strays" in self.more else b"")


main(Flood)
