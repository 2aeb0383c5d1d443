"""Connects anew at every decision, many times, before it answers."""

from __future__ import annotations

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class Storm(Zoo):
    times = 0

    def run(self) -> None:
        while True:
            self.stream = self.open()
            self.greet(self.stream)
            self.again = False
            for item in self.stream.items():
                self.took(item)
                if self.again:
                    break
            self.stream.close()

    def decided(self, decision: pb.Decision) -> None:
        self.times += 1
        self.again = self.times <= 60
        if not self.again:
            super().decided(decision)


main(Storm)
