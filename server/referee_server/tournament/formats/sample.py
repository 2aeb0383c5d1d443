"""Balanced rounds for a field that does not play every group: by design where one fits, else by exchanging."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import gcd
from typing import Final

from referee_games.dealing import shuffled
from referee_server.tournament.formats.designs import design
from referee_server.tournament.formats.history import History, Meetings, Round
from referee_server.tournament.formats.plan import Plan

_SLOTS: Final = 200_000
"""How many seats at most are planned at once; up to that many the promise about seats holds for any field."""
_SWEEPS: Final = 30
_NEAR: Final = 48  # exchanges tried for each member in a large field
_SMALL: Final = 24  # entrants up to which several draws compete
_DRAWS: Final = 12


class Sample:
    """Round robin of a stated number of rounds: everyone plays in every round, but for what is left over."""

    waits: Final = False
    decided_by_play: Final = False

    def __init__(self, plan: Plan, history: History) -> None:
        self._plan = plan
        self._history = history
        self._order = shuffled(range(plan.entrants), plan.draws("design"))
        self._original = tuple(range(plan.entrants))

    def over(self, number: int, field: tuple[int, ...]) -> bool:
        """Returns whether no round comes after the first `number`."""
        return number >= self._plan.rounds or not playable(field, self._plan)

    def plan(self, number: int, field: tuple[int, ...]) -> list[Round]:
        """Returns the next rounds as long as the field stays what it is."""
        plan, n = self._plan, self._plan.seats
        left = len(field) % n and not plan.fillers and plan.duplicate != "rotation"
        # Without anybody left over, seats come out even after as many rounds as there are seats. Else only at the end.
        batch = n if not left else max(n, _SLOTS // (len(field) * plan.sets))
        wanted = min(plan.rounds - number, batch)
        known = design(plan.entrants, n, plan.pairs, plan.rounds) if field == self._original else None
        if known and not (plan.fillers and len(field) % n):
            period, groups = known
            return [self._designed(groups(k % period)) for k in range(number, number + wanted)]
        return list(self._drawn(number, wanted, field))

    def undo(self, rounds: Sequence[Round]) -> None:
        """Takes back rounds that were planned and will not be paired: nothing was kept of them."""

    def _designed(self, groups: list[tuple[int, ...]]) -> Round:
        named = [tuple(self._order[member] for member in group) for group in groups]
        playing = {entrant for group in named for entrant in group}
        return Round(named, [entrant for entrant in self._original if entrant not in playing])

    def _drawn(self, number: int, wanted: int, field: tuple[int, ...]) -> Iterator[Round]:
        meetings = self._history.meetings.copy()
        spare = {entrant: self._history.spare[entrant] for entrant in field}
        for k in range(number, number + wanted):
            tries = _DRAWS if len(field) <= _SMALL else 1
            drawn = (self._draw(k, attempt, field, meetings, spare) for attempt in range(tries))
            best = min(drawn, key=lambda made: sum(map(meetings.cost, made.groups)))
            for group in best.groups:
                meetings.add(group)
                if min(group) < 0:
                    for entrant in group:
                        if entrant >= 0:
                            spare[entrant] += 1
            for entrant in best.byes:
                spare[entrant] += 1
            yield best

    def _draw(
        self, k: int, attempt: int, field: tuple[int, ...], meetings: Meetings, spare: Mapping[int, int]
    ) -> Round:
        n = self._plan.seats
        order = shuffled(field, self._plan.draws(f"sample/{k}/{attempt}"))
        order.sort(key=lambda entrant: -spare[entrant])
        full = len(order) // n * n
        playing, left = shuffled(order[:full], self._plan.draws(f"groups/{k}/{attempt}")), order[full:]
        groups = [playing[i : i + n] for i in range(0, full, n)]
        exchange(groups, left, meetings, spare)
        made = [tuple(group) for group in groups]
        if left and self._plan.fillers:
            return Round([*made, filled(left, self._plan, k)])
        return Round(made, left)


def playable(field: Sequence[int], plan: Plan) -> bool:
    """Returns whether those who play can make a table."""
    return len(field) >= plan.seats or bool(plan.fillers and field)


def filled(members: Sequence[int], plan: Plan, turn: int) -> tuple[int, ...]:
    """Returns a group with house bots for the members that it lacks, beginning with another one every turn."""
    return (*members, *(-1 - (turn + i) % plan.fillers for i in range(plan.seats - len(members))))


def exchange(groups: list[list[int]], left: list[int], meetings: Meetings, spare: Mapping[int, int]) -> None:
    """Exchanges members between groups, and with those left over as often as they, while that saves meetings again."""
    n = len(groups[0]) if groups else 0
    places = len(groups) * n
    costs = [meetings.cost(group) for group in groups]
    step = next((s for s in range(max(1, places * 382 // 1000), places + 2) if gcd(s, places) == 1), 1)
    for _ in range(_SWEEPS):
        better = False
        for place in range(places):
            g, i = divmod(place, n)
            if not costs[g]:
                continue
            reach = range(places) if places <= 64 else ((place + j * step) % places for j in range(1, _NEAR + 1))
            better |= _best_exchange(groups, costs, g, i, reach, meetings)
            for j, other in enumerate(left):
                if spare[other] == spare[groups[g][i]]:
                    mine = groups[g][i]
                    groups[g][i] = other
                    if (cost := meetings.cost(groups[g])) < costs[g]:
                        costs[g], left[j], better = cost, mine, True
                    else:
                        groups[g][i] = mine
        if not better:
            return


def _best_exchange(
    groups: list[list[int]], costs: list[int], g: int, i: int, reach: Iterator[int] | range, meetings: Meetings
) -> bool:
    """Makes the exchange of a member that saves most; returns whether any saves something."""
    group = groups[g]
    best, saved = (-1, -1, 0, 0), 0
    for place in reach:
        h, j = divmod(place, len(group))
        if h == g:
            continue
        other = groups[h]
        group[i], other[j] = other[j], group[i]
        here, there = meetings.cost(group), meetings.cost(other)
        group[i], other[j] = other[j], group[i]
        if (saving := costs[g] + costs[h] - here - there) > saved:
            best, saved = (h, j, here, there), saving
    if not saved:
        return False
    h, j, costs[g], costs[h] = best
    group[i], groups[h][j] = groups[h][j], group[i]
    return True
