"""Answers with a card of the game that it may not play."""

from __future__ import annotations

from raw import CARDS, Zoo, main

from referee.v1 import agent_service_pb2 as pb


class Illegal(Zoo):
    def decided(self, decision: pb.Decision) -> None:
        self.answer(decision, next(card for card in CARDS if card not in decision.legal))


main(Illegal)
