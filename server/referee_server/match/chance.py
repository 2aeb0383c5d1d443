"""Where the match's chance comes from: the secret, or, while that is sealed, the log itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from referee_games import dealing


class Chance(Protocol):
    """Draws of one match."""

    def first_dealer(self, seats: int) -> int:
        """Returns the seat that deals first."""

    def pack(self, deal: int, pack: Sequence[int]) -> Sequence[int]:
        """Returns the pack as shuffled for a deal."""

    def substitute(self, seat: int, decision_id: int, count: int) -> int:
        """Returns which of `count` legal actions stands in for a missing answer."""

    def bot_seed(self, seat: int) -> int:
        """Returns the seed of a house bot that steps in at a seat."""


class SeededChance:
    """Chance as dealing.md defines it: everything follows from the match seed."""

    __slots__ = ("_seed",)

    def __init__(self, seed: bytes) -> None:
        self._seed = seed

    def first_dealer(self, seats: int) -> int:
        """Draws for the label `first-dealer`."""
        return dealing.first_dealer(self._seed, seats)

    def pack(self, deal: int, pack: Sequence[int]) -> Sequence[int]:
        """Shuffles for the label of the deal."""
        return dealing.deal_pack(self._seed, deal, pack)

    def substitute(self, seat: int, decision_id: int, count: int) -> int:
        """Draws for the label of the substitute."""
        return dealing.Draws(self._seed, dealing.substitute_label(seat, decision_id)).below(count)

    def bot_seed(self, seat: int) -> int:
        """Draws for a label of its own."""
        return dealing.Draws(self._seed, f"bot-seed/{seat}").below(2**32)


class SealedChance:
    """Chance before the nonces are complete: nothing may be drawn yet."""

    def first_dealer(self, seats: int) -> int:
        """Refuses."""
        raise AssertionError("drawn before the seed was known")

    def pack(self, deal: int, pack: Sequence[int]) -> Sequence[int]:
        """Refuses."""
        raise AssertionError("drawn before the seed was known")

    def substitute(self, seat: int, decision_id: int, count: int) -> int:
        """Refuses."""
        raise AssertionError("drawn before the seed was known")

    def bot_seed(self, seat: int) -> int:
        """Refuses."""
        raise AssertionError("drawn before the seed was known")
