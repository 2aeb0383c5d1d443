"""Rounds that follow the standing: Swiss and ladder."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Final

from referee_games.dealing import shuffled
from referee_server.tournament.formats.history import History, Meetings, Round
from referee_server.tournament.formats.plan import Plan, swiss_rounds
from referee_server.tournament.formats.sample import filled, playable

_REACH: Final = 64  # places up and down within which a Swiss looks for somebody new
_APART: Final = 2  # rounds for which those who met on a ladder should not meet again
_SWEEPS: Final = 10
_SEARCHED: Final = 256  # entrants up to which a round of twos is searched for, where exchanging fails
_CLASH: Final = 16  # seats that clash weigh as much as one meeting again
_STEPS: Final = 20_000  # of the search for a round of twos in which nobody meets again


class Swiss:
    """Entrants of equal points meet, the upper half against the lower, and nobody twice while it can be helped."""

    waits: Final = True
    decided_by_play: Final = False

    def __init__(self, plan: Plan, history: History) -> None:
        self._plan = plan
        self._history = history

    def over(self, number: int, field: tuple[int, ...]) -> bool:
        """Returns whether no round comes after the first `number`."""
        return number >= swiss_rounds(self._plan) or not playable(field, self._plan)

    def plan(self, number: int, field: tuple[int, ...]) -> list[Round]:
        """Returns the next round."""
        n, points = self._plan.seats, self._history.points
        order = sorted(field, key=lambda entrant: (-points[entrant], entrant))
        order, left = leave_over(order, n, self._history)
        groups = [list(group) for group in self._folded(order)]
        freshen(groups, self._cost, _REACH)
        if n == 2 and len(order) <= _SEARCHED and any(map(self._history.meetings.cost, groups)):
            groups = fresh_twos(order, groups, self._history.meetings) or groups
        made = [_partnered(group, self._history.meetings, self._plan) for group in groups]
        # The better one takes another seat at every table, so that no seat falls to the better half; pairs stay as
        # they are, because their members' order says who partners whom.
        if not self._plan.pairs:
            made = [(*group[-i % n :], *group[: -i % n]) for i, group in enumerate(made)]
        return [closed(made, left, self._plan, number)]

    def undo(self, rounds: Sequence[Round]) -> None:
        """Takes back nothing: every round waits for the one before."""

    def _cost(self, group: Sequence[int]) -> int:
        """Returns what is wrong with a group: above all who meets again, then two who both need the same seat."""
        cost = _CLASH * _again(group, self._history.meetings)
        if len(group) == 2:
            a, b = (had[0] - had[1] for had in map(self._history.seats.count, group))
            cost += a * b > 0 and min(abs(a), abs(b)) > 1
        return cost

    def _folded(self, order: list[int]) -> Iterator[tuple[int, ...]]:
        """Yields groups of a bracket: the first of its upper part with the first of its next part, and so on."""
        n, points = self._plan.seats, self._history.points
        bracket: list[int] = []
        for place, entrant in enumerate(order):
            bracket.append(entrant)
            if place + 1 < len(order) and points[order[place + 1]] == points[entrant]:
                continue
            rows = len(bracket) // n
            yield from (tuple(bracket[row + part * rows] for part in range(n)) for row in range(rows))
            bracket = bracket[rows * n :]  # who is over goes down to the next bracket


class Ladder:
    """Neighbours in the standing by a cautious mean meet; anybody may come at any round."""

    waits: Final = True
    decided_by_play: Final = False

    def __init__(self, plan: Plan, history: History) -> None:
        self._plan = plan
        self._history = history
        self._average = (len(plan.sides) - 1) / 2
        self._recent: deque[Round] = deque(maxlen=_APART)
        self._drawn = {entrant: place for place, entrant in enumerate(self._draw())}

    def over(self, number: int, field: tuple[int, ...]) -> bool:
        """Returns whether no round comes after the first `number`."""
        return 0 < self._plan.rounds <= number

    def plan(self, number: int, field: tuple[int, ...]) -> list[Round]:
        """Returns the next round; none while there are too few."""
        if not playable(field, self._plan):
            return []
        n = self._plan.seats
        order = sorted(field, key=lambda entrant: (-self.mean(entrant), self._drawn.get(entrant, entrant)))
        order, left = leave_over(order, n, self._history)
        groups = [order[i : i + n] for i in range(0, len(order), n)]
        recent = Meetings(self._plan)
        for group in (group for made in self._recent for group in made.groups):
            recent.add(group)
        freshen(groups, lambda group: _again(group, recent), n)
        made = [_partnered(group, self._history.meetings, self._plan) for group in groups]
        self._recent.append(closed(made, left, self._plan, number))
        return [self._recent[-1]]

    def undo(self, rounds: Sequence[Round]) -> None:
        """Takes back nothing: every round waits for the one before."""

    def mean(self, entrant: int) -> float:
        """Returns place points a table, as if four average tables had been played before."""
        points = self._history.points[entrant] - self._history.byes[entrant] * self._history.bye
        return (points + 4 * self._average) / (self._history.tables[entrant] + 4)

    def _draw(self) -> list[int]:
        return shuffled(range(self._plan.entrants), self._plan.draws("ladder"))


def leave_over(order: list[int], seats: int, history: History) -> tuple[list[int], list[int]]:
    """Returns who plays and who is left over: the lowest of those who were left over least often."""
    number = len(order) % seats
    by_claim = sorted(range(len(order)), key=lambda place: (history.spare[order[place]], -place))
    out = set(by_claim[:number])
    return [e for i, e in enumerate(order) if i not in out], [e for i, e in enumerate(order) if i in out]


def closed(groups: Sequence[tuple[int, ...]], left: Sequence[int], plan: Plan, number: int) -> Round:
    """Returns the round, those left over playing house bots or having a bye."""
    if left and plan.fillers:
        return Round([*groups, filled(left, plan, number)])
    return Round(groups, left)


def freshen(groups: list[list[int]], cost: Callable[[Sequence[int]], int], reach: int) -> None:
    """Exchanges members of near groups while that costs less."""
    n = len(groups[0]) if groups else 0
    costs = list(map(cost, groups))
    for _ in range(_SWEEPS):
        better = False
        for g, i in ((g, i) for g in range(len(groups) - 1, -1, -1) for i in range(n - 1, -1, -1)):
            if not costs[g]:
                continue
            near = sorted(range(max(0, g - reach), min(len(groups), g + reach + 1)), key=lambda h: (abs(h - g), -h))
            best, saved = (-1, -1, 0, 0), 0
            for h in near[1:]:
                for j in range(n - 1, -1, -1):
                    here, there = groups[g], groups[h]
                    here[i], there[j] = there[j], here[i]
                    new, other = cost(here), cost(there)
                    here[i], there[j] = there[j], here[i]
                    if costs[g] + costs[h] - new - other > saved:
                        best, saved = (h, j, new, other), costs[g] + costs[h] - new - other
                if saved >= costs[g]:
                    break  # all is well here: no need to look further away
            if saved:
                h, j, costs[g], costs[h] = best
                groups[g][i], groups[h][j] = groups[h][j], groups[g][i]
                better = True
        if not better:
            return


def fresh_twos(order: list[int], groups: Sequence[Sequence[int]], meetings: Meetings) -> list[list[int]] | None:
    """Returns twos who never met, near to the groups given, the highest first served; None where none are found."""
    partner = {group[i]: group[1 - i] for group in groups for i in (0, 1)}

    def options(free: list[int]) -> Iterator[int]:
        first = free[0]
        near = sorted(free[1:], key=lambda other: other != partner[first])
        return (other for other in near if not meetings.against(first, other))

    free, trail = order, [options(order)]
    made: list[tuple[list[int], list[int]]] = []
    for _ in range(_STEPS):
        other = next(trail[-1], None)
        if other is None:
            trail.pop()
            if not trail:
                return None
            free, _last = made.pop()
            continue
        made.append((free, [free[0], other]))
        free = [entrant for entrant in free[1:] if entrant != other]
        if not free:
            return [pair for _, pair in made]
        trail.append(options(free))
    return None


def _again(group: Sequence[int], meetings: Meetings) -> int:
    """Returns how often any two of a group met before, in whatever part."""
    return sum(meetings.against(a, b) + meetings.partners(a, b) for a, b in combinations(group, 2))


def _partnered(group: Sequence[int], meetings: Meetings, plan: Plan) -> tuple[int, ...]:
    """Returns the group, for pairs in the partnership that was there least, the highest with the lowest if equal."""
    if not plan.pairs:
        return tuple(group)
    a, b, c, d = group
    return min(((a, b, d, c), (a, b, c, d), (a, c, b, d)), key=meetings.cost)
