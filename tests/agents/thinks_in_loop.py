"""Thinks for some seconds where it should answer pings."""

from __future__ import annotations

import time

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class ThinksInLoop(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        time.sleep(3)
        super().decided(decision)


main(ThinksInLoop)
