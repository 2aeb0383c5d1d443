"""The rule that ends a tournament early: looked at board set by board set, in the order of the schedule."""

from __future__ import annotations

from collections.abc import Iterable

from referee_server.tournament.cup import Cup
from referee_server.tournament.model import Outcome
from referee_server.tournament.sequential import Sequential, Verdict, difference


class Stopping:
    """Whether one entrant is better than another: the verdict does not depend on which table ended first.

    Attributes:
        through: the last board set that was looked at; None before the first, or while there is no verdict.
    """

    def __init__(self, cup: Cup) -> None:
        """Takes the rule of a tournament that has one."""
        assert cup.stop is not None
        names = [entrant.name for entrant in cup.entrant]
        self._rule = cup.stop
        self._pair = names.index(cup.stop.better), names.index(cup.stop.than)
        self._lowest_wins = cup.rules.lowest_wins
        error = 1 - cup.stop.confidence
        self._test = Sequential(alpha=error, beta=error, effect=cup.stop.effect)
        self._next = 0
        self.through: int | None = None

    @property
    def verdict(self) -> Verdict | None:
        """What is certain enough to end the tournament; None for nothing yet."""
        return self._test.verdict

    @property
    def next_board(self) -> int:
        """The board set to be looked at next."""
        return self._next

    def look(self, tables: Iterable[Outcome]) -> None:
        """Looks at all tables of the next board set, which have ended."""
        found = difference(tables, *self._pair, by=self._rule.by, lowest_wins=self._lowest_wins)
        if found is not None and self._test.take(found) is not None:
            self.through = self._next
        self._next += 1

    def words(self) -> str:
        """Returns the verdict in words."""
        better = "is better than" if self.verdict == "better" else "is not better than"
        return (
            f"{self._rule.better} {better} {self._rule.than} at {self._rule.confidence:.0%} confidence, after"
            f" {self._test.sets} board sets"
        )
