"""The bot `shaky`: plays as `greedy` does, and now and then whatever comes. A near equal, to measure with."""

from __future__ import annotations

from typing import Final

from referee_games.bots.greedy import Greedy
from referee_games.bots.plain import Random
from referee_games.contract import Decision

SLIPS: Final = 10
"""One decision in so many, on average, is drawn instead of thought about."""


class Shaky:
    """Plays as `greedy` does, but for one decision in ten, which it draws evenly from the legal actions.

    Which one that is depends on the seed, the match id, the seat and the number of the decision, and on nothing else.
    """

    name: str = "shaky"

    def __init__(self, seed: int = 0) -> None:
        self._good = Greedy(seed)
        self._slips = Random(seed)

    def choose(self, decision: Decision) -> str:
        """Returns one of the legal actions."""
        draws = self._slips.draws(decision)
        if draws.below(SLIPS):
            return self._good.choose(decision)
        return decision.legal[draws.below(len(decision.legal))]
