"""High card with a fault: in the second deal one part of the rules never returns, and does not want to be disturbed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from high_card import HighCard, HighCardState

from referee_games.contract import Fact, Option, Options


class EndlessState(HighCardState):
    """One match of it."""

    __slots__ = ("_where",)

    def __init__(self, length: int, dealer: int, where: str) -> None:
        super().__init__(length, dealer)
        self._where = where

    def _perhaps(self, where: str) -> None:
        while where == self._where and self.deal_number == 1:
            try:
                while True:
                    pass
            except Exception:
                continue

    def legal(self) -> Sequence[int]:
        self._perhaps("legal")
        return super().legal()

    def apply(self, action: int) -> tuple[Fact, ...]:
        self._perhaps("apply")
        return super().apply(action)

    def copy(self) -> EndlessState:
        twin = EndlessState(self._length, self.dealer, self._where)
        for name in HighCardState.__slots__:
            setattr(twin, name, getattr(self, name))
        return twin


class Endless(HighCard):
    """High card, for ever."""

    name: ClassVar[str] = "endless"
    title: ClassVar[str] = "Endless"
    options: ClassVar[tuple[Option, ...]] = (
        *HighCard.options,
        Option("where", "legal", "What never returns.", choices=("legal", "apply")),
    )

    def start(self, options: Options, first_dealer: int) -> EndlessState:
        return EndlessState(int(options["deals"]), first_dealer, str(options["where"]))
