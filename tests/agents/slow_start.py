"""Takes its time to be ready: so many seconds, or for ever."""

from __future__ import annotations

from raw import Zoo, later, main

from referee.v1 import agent_service_pb2 as pb


class SlowStart(Zoo):
    def offered(self, offer: pb.MatchOffered) -> None:
        if self.more:
            later(float(self.more[0]), super().offered, offer)


main(SlowStart)
