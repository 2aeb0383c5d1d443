"""Everybody alone among house bots, in the same seat of the same boards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from referee_server.tournament.formats.history import History, Round
from referee_server.tournament.formats.plan import Plan


class Solo:
    """A round is a table for every entrant and board set."""

    waits: Final = False
    decided_by_play: Final = False

    def __init__(self, plan: Plan, history: History) -> None:
        self._rounds = max(plan.rounds, 1)

    def over(self, number: int, field: tuple[int, ...]) -> bool:
        """Returns whether no round comes after the first `number`."""
        return number >= self._rounds or not field

    def plan(self, number: int, field: tuple[int, ...]) -> list[Round]:
        """Returns the next round."""
        return [Round([(entrant,) for entrant in field])]

    def undo(self, rounds: Sequence[Round]) -> None:
        """Takes back rounds that were planned and will not be paired: nothing was kept of them."""
