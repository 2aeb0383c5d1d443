"""Is ready with nonces of lengths that there are not."""

from __future__ import annotations

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class Nonce(Zoo):
    def offered(self, offer: pb.MatchOffered) -> None:
        for size in (1, 31, 33, 10_000):
            self.stream.send(pb.ClientItem(ready=pb.Ready(match_id=offer.match_id, nonce=bytes(size))))


main(Nonce)
