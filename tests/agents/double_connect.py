"""Opens a second stream in mid-match and plays on over it; the first one is read to its end."""

from __future__ import annotations

import threading

import grpc
from raw import Zoo, main, reason_of, say

from referee.v1 import agent_service_pb2 as pb


class DoubleConnect(Zoo):
    second = False

    def decided(self, decision: pb.Decision) -> None:
        if self.second:
            super().decided(decision)
            return
        self.second = True
        first, self.stream = self.stream, self.open()
        self.greet(self.stream)
        threading.Thread(target=self.read, args=(self.stream,), daemon=True).start()
        # The newer stream is the one that is read on; this one only has to learn that it is over.
        try:
            for _ in first.items():
                pass
        except grpc.RpcError as error:
            say("first", error.code().name, reason_of(error))
        threading.Event().wait()


main(DoubleConnect)
