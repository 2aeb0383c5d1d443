"""House bots: policies over a decision that substitute for a seat, play as remote agents and train locally.

A bot sees nothing but the `Decision` it is asked, keeps no state and reads no clock, file or random generator. Equal
decisions get equal answers, so a match with house bots can be repeated whatever happened around it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from referee_games.bots.greedy import Greedy
from referee_games.bots.plain import First, Random, Stride
from referee_games.bots.shaky import Shaky
from referee_games.contract import Decision, shown


class Bot(Protocol):
    """A policy over a decision.

    Attributes:
        name: the name that `make` knows it by.
    """

    name: str

    def choose(self, decision: Decision) -> str:
        """Returns one of `decision.legal`."""


class UnknownBotError(LookupError):
    """No house bot has that name."""


_BOTS: Final[dict[str, Callable[[int], Bot]]] = {
    "random": Random,
    "first": lambda _: First(),
    "stride": lambda _: Stride(),
    "shaky": Shaky,
    "greedy": Greedy,
}


def names() -> tuple[str, ...]:
    """Returns the names of all house bots, the simplest first."""
    return tuple(_BOTS)


def make(name: str, seed: int = 0) -> Bot:
    """Returns a house bot.

    Args:
        name: one of `names()`.
        seed: what the choices of a bot that draws depend on, beside the decision; the others ignore it.

    Raises:
        UnknownBotError: there is no such bot.
    """
    if name not in _BOTS:
        raise UnknownBotError(f"there is no house bot {shown(name)}; there are {', '.join(_BOTS)}")
    return _BOTS[name](seed)
