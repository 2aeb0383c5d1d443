"""The bot `greedy`: plays each known game by simple sense, without search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from referee_games.bots import guillotine, regicide
from referee_games.bots.plain import Random
from referee_games.contract import Decision

_POLICIES: Final[dict[str, Callable[[Decision], str]]] = {
    "guillotine": guillotine.choose,
    "regicide": regicide.choose,
}


class Greedy:
    """Plays the games it knows by rules of thumb that look one play ahead, and any other game like `random`.

    In a game it knows it is deterministic and the seed changes nothing. In others an even draw is safer than a fixed
    choice, which many games punish every time; that draw depends on the seed as it does for `random`.
    """

    name: str = "greedy"

    def __init__(self, seed: int = 0) -> None:
        self._elsewhere = Random(seed)

    def choose(self, decision: Decision) -> str:
        """Returns one of the legal actions."""
        if len(decision.legal) == 1:
            return decision.legal[0]
        policy = _POLICIES.get(decision.game, self._elsewhere.choose)
        return policy(decision)
