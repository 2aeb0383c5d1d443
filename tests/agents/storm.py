"""Connects anew at every decision, many times, before it answers."""

from __future__ import annotations

import time

import grpc
from raw import Zoo, main, reason_of, say

from referee.v1 import agent_service_pb2 as pb


class Storm(Zoo):
    times = 0

    def run(self) -> None:
        while True:
            self.stream = self.open()
            self.greet(self.stream)
            self.again = False
            try:
                for item in self.stream.items():
                    self.took(item)
                    if self.again:
                        break
            except grpc.RpcError as error:
                say("refused", error.code().name, reason_of(error))
                time.sleep(0.2)
            self.stream.close()

    def decided(self, decision: pb.Decision) -> None:
        self.times += 1
        self.again = self.times <= (int(self.more[0]) if self.more else 40)
        if not self.again:
            super().decided(decision)


main(Storm)
