"""Does not take what it is offered."""

from __future__ import annotations

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class Decline(Zoo):
    def offered(self, offer: pb.MatchOffered) -> None:
        self.stream.send(pb.ClientItem(decline=pb.Decline(match_id=offer.match_id)))


main(Decline)
