"""Says Hello again with every answer."""

from __future__ import annotations

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class HelloAgain(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        self.greet(self.stream)
        super().decided(decision)


main(HelloAgain)
