"""Says that it takes many matches at once, and answers one match only."""

from __future__ import annotations

from typing import Any, ClassVar

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class TakesMany(Zoo):
    hello: ClassVar[dict[str, Any]] = {"max_matches": 8}
    match_id = ""

    def decided(self, decision: pb.Decision) -> None:
        self.match_id = self.match_id or decision.match_id
        if decision.match_id == self.match_id:
            super().decided(decision)


main(TakesMany)
