"""The bots that look at no card: `random`, `first` and `stride`. They play any game."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from referee_games.contract import Decision
from referee_games.dealing import Draws

STRIDE: Final = 7919
"""Step of `stride` from one decision to the next; a prime, so that it visits every index of any shorter list."""


class Random:
    """Draws evenly from the legal actions.

    The draw depends on the seed, the match id, the seat and the number of the decision, and on nothing else. It is the
    first number of the stream (`docs/dealing.md`) whose seed is
    HMAC-SHA256(key = SHA-256("referee.bot.v1" 00 seed in decimal), message = match id), with the label
    `bot/SEAT/DECISION`.
    """

    name: str = "random"

    def __init__(self, seed: int = 0) -> None:
        self._key = hashlib.sha256(f"referee.bot.v1\0{seed}".encode()).digest()

    def choose(self, decision: Decision) -> str:
        """Returns one of the legal actions, each equally likely over the seeds."""
        return decision.legal[self.draws(decision).below(len(decision.legal))]

    def draws(self, decision: Decision) -> Draws:
        """Returns the draws of one decision."""
        stream = hmac.digest(self._key, decision.match_id.encode(), "sha256")
        return Draws(stream, f"bot/{decision.seat}/{decision.number}")


class First:
    """Takes the first legal action in canonical order."""

    name: str = "first"

    def choose(self, decision: Decision) -> str:
        """Returns the first legal action."""
        return decision.legal[0]


class Stride:
    """Walks through the legal actions by a rule that takes one line in any language.

    The index is (7919 x number of the decision + seat) modulo the number of legal actions, decisions counted from 0
    per match and seat, so that an agent in another language can be compared with it action by action.
    """

    name: str = "stride"

    def choose(self, decision: Decision) -> str:
        """Returns the legal action at the index of the rule."""
        return decision.legal[(STRIDE * decision.number + decision.seat) % len(decision.legal)]
