"""Says Hello in version 0, under a name of its own."""

from __future__ import annotations

from raw import Stream, Zoo, main

from referee.v1 import agent_service_pb2 as pb


class OldVersion(Zoo):
    def greet(self, stream: Stream) -> None:
        stream.send(pb.ClientItem(hello=pb.Hello(name="somebody else")))


main(OldVersion)
