"""Is ready, and answers nothing."""

from __future__ import annotations

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class Silent(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        pass


main(Silent)
