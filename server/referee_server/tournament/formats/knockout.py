"""Knock-out: who loses is out. The order of the file is the seeding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from referee_server.tournament.formats.history import History, Round
from referee_server.tournament.formats.plan import Plan
from referee_server.tournament.formats.sample import filled

_EXTRA: Final = 3
"""How often a tied group plays more sets before the better seed goes on."""


def bracket(size: int) -> list[int]:
    """Returns the seeds, from 0, in the order of a bracket's lines: neighbours meet, and the best two only at the end.

    Args:
        size: a power of two.
    """
    order = [0]
    while len(order) < size:
        double = 2 * len(order)
        # Every seed meets the one that together with it makes the sum of the best and the lowest.
        order = [seed for top in order for seed in (top, double - 1 - top)]
    return order


class Knockout:
    """A bracket of twos, or tables of more of which the first half goes on.

    Attributes:
        eliminated: entrant → the round in which it went out, extra sets counting for the round that was tied.
    """

    waits: Final = True
    decided_by_play: Final = True

    def __init__(self, plan: Plan, history: History) -> None:
        self._plan = plan
        self._history = history
        self.eliminated: dict[int, int] = {}
        # Twos stand on the lines of the bracket, None where nobody is; others in the order of their seeds.
        lines = bracket(1 << (plan.entrants - 1).bit_length()) if plan.seats == 2 else list(range(plan.entrants))
        self._lines: list[int | None] = [seed if seed < plan.entrants else None for seed in lines]
        self._groups: list[tuple[int, ...]] = []  # of the stage that is being played
        self._points: dict[int, float] = {}  # in this stage
        self._playing = False  # whether a stage is
        self._stage = 0  # its first round
        self._extra = 0
        self._spare = 0  # places beyond the usual number, for the best of those who would be out
        self._judged = 0  # rounds whose outcomes are in the points

    def over(self, number: int, field: tuple[int, ...]) -> bool:
        """Returns whether one is left."""
        self._judge(number, field)
        return not self._tied() and len([entrant for entrant in self._lines if entrant is not None]) <= 1

    def plan(self, number: int, field: tuple[int, ...]) -> list[Round]:
        """Returns the next round: more sets for groups that are tied, else the next stage."""
        if tied := self._tied():
            self._extra += 1
            return [Round(tied)]
        self._stage, self._extra, self._points, self._playing = number, 0, {}, True
        self._groups, byes = self._twos() if self._plan.seats == 2 else self._tables()
        return [Round(self._groups, byes)]

    def undo(self, rounds: Sequence[Round]) -> None:
        """Takes back nothing: every round waits for the one before."""

    def _judge(self, number: int, field: tuple[int, ...]) -> None:
        """Takes in the round before, and those who left."""
        if self._judged < number:
            self._judged = number
            for entrant, points in self._history.last.items():
                self._points[entrant] = self._points.get(entrant, 0.0) + points
            if self._playing and not self._tied():
                self._advance()
        if not self._playing:
            gone = {entrant for entrant in self._lines if entrant is not None} - set(field)
            for entrant in gone:
                self.eliminated[entrant] = number
            if self._plan.seats == 2:
                self._lines = [None if entrant in gone else entrant for entrant in self._lines]
            else:
                self._lines = [entrant for entrant in self._lines if entrant not in gone]
                self._end_short(number)

    def _end_short(self, number: int) -> None:
        """Ends a knock-out for tables of more whose withdrawals left too few for one, unless house bots fill it."""
        if 1 < len(self._lines) < self._plan.seats and not self._plan.fillers:
            for entrant in self._lines[1:]:
                if entrant is not None:
                    self.eliminated[entrant] = number
            del self._lines[1:]

    def _ranked(self, group: Sequence[int]) -> list[int]:
        return sorted((e for e in group if e >= 0), key=lambda entrant: (-self._points.get(entrant, 0.0), entrant))

    def _places(self) -> int:
        """Returns how many of a table go on; of the last one, which is the only one of the stage, the winner."""
        final = len(self._groups) == 1 and not self._byes() and not self._spare
        return 1 if final else self._plan.seats // 2

    def _byes(self) -> list[int]:
        playing = {entrant for group in self._groups for entrant in group}
        return [entrant for entrant in self._lines if entrant is not None and entrant not in playing]

    def _tied(self) -> list[tuple[int, ...]]:
        """Returns the groups of which it is open who goes on."""
        if self._extra >= _EXTRA or not self._points:
            return []
        places = self._places()
        tied = []
        for group in self._groups:
            ranked = [self._points.get(entrant, 0.0) for entrant in self._ranked(group)]
            if len(ranked) > places and ranked[places - 1] == ranked[places]:
                tied.append(group)
        return tied

    def _advance(self) -> None:
        places = self._places()
        out = [entrant for group in self._groups for entrant in self._ranked(group)[places:]]
        out = self._ranked(out)[self._spare :]
        for entrant in out:
            self.eliminated[entrant] = self._stage
        gone = set(out)
        if self._plan.seats == 2:
            lines = self._lines
            self._lines = []
            for a, b in zip(lines[::2], lines[1::2], strict=True):
                self._lines.append(b if a is None or a in gone else a)
        else:
            self._lines = [entrant for entrant in self._lines if entrant not in gone]
        self._groups, self._points, self._extra, self._spare, self._playing = [], {}, 0, 0, False

    def _twos(self) -> tuple[list[tuple[int, ...]], list[int]]:
        groups: list[tuple[int, ...]] = []
        byes: list[int] = []
        for a, b in zip(self._lines[::2], self._lines[1::2], strict=True):
            if a is not None and b is not None:
                groups.append((a, b))
            else:
                byes += [entrant for entrant in (a, b) if entrant is not None]
        return groups, byes

    def _tables(self) -> tuple[list[tuple[int, ...]], list[int]]:
        """Draws up tables: the best seeds step on where some are over, the others are spread in the way of a snake."""
        n = self._plan.seats
        seeds = [entrant for entrant in self._lines if entrant is not None]
        if len(seeds) < n:
            return [filled(seeds, self._plan, 0)], []
        tables, left = divmod(len(seeds), n)
        byes, playing = seeds[:left], seeds[left:]
        groups = [
            tuple(playing[row * tables + (t if row % 2 == 0 else tables - 1 - t)] for row in range(n))
            for t in range(tables)
        ]
        final = tables == 1 and not left
        self._spare = 0 if final else max(0, n - left - tables * (n // 2))
        return groups, byes
