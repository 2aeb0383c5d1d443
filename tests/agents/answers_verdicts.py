"""Takes every verdict for a question, and answers its last decision again."""

from __future__ import annotations

from raw import Zoo, main

from referee.v1 import agent_service_pb2 as pb


class AnswersVerdicts(Zoo):
    last: pb.Decision | None = None

    def decided(self, decision: pb.Decision) -> None:
        self.last = decision
        super().decided(decision)

    def judged(self, verdict: pb.Verdict) -> None:
        if self.last is not None:
            self.answer(self.last, self.last.legal[0])


main(AnswersVerdicts)
