"""Says goodbye in mid-match."""

from __future__ import annotations

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class Leave(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        self.stream.send(pb.ClientItem(leave=pb.Leave()))


main(Leave)
