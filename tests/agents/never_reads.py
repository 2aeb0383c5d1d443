"""Says Hello and that it is ready, blindly, and never reads a byte: it asks for events, too."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from raw import Zoo, later, main

from referee.v1 import agent_service_pb2 as pb


class NeverReads(Zoo):
    hello: ClassVar[dict[str, Any]] = {"wants_events": True, "max_matches": 4096}

    def run(self) -> None:
        self.stream = self.open()
        self.greet(self.stream)
        for match_id in self.more:
            later(0.5, self.stream.send, pb.ClientItem(ready=pb.Ready(match_id=match_id)))
        while not self.stream.call.done():
            time.sleep(0.05)
        for _ in self.stream.call:
            pass


main(NeverReads)
