"""A gauntlet of a stated number of rounds: every challenger meets some of the others in each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from referee_games.dealing import shuffled
from referee_server.tournament.formats.history import History, Meetings, Round
from referee_server.tournament.formats.plan import Plan, gauntlet_groups
from referee_server.tournament.formats.sample import filled

_BATCH: Final = 4  # rounds planned at once


class SampledGauntlet:
    """Each round seats every challenger, while there are others for him, with those he met least."""

    waits: Final = False
    decided_by_play: Final = False

    def __init__(self, plan: Plan, history: History) -> None:
        self._plan = plan
        self._history = history
        self._played: defaultdict[int, int] = defaultdict(int)

    def over(self, number: int, field: tuple[int, ...]) -> bool:
        """Returns whether no round comes after the first `number`."""
        return number >= self._plan.rounds or not self._groups(field)

    def plan(self, number: int, field: tuple[int, ...]) -> list[Round]:
        """Returns the next rounds as long as the field stays what it is."""
        return list(self._rounds(number, min(self._plan.rounds, number + _BATCH), field))

    def undo(self, rounds: Sequence[Round]) -> None:
        """Takes back rounds that were planned and will not be paired."""
        for made in rounds:
            for group in made.groups:
                for entrant in group:
                    self._played[entrant] -= 1

    def _groups(self, field: tuple[int, ...]) -> int:
        challengers = sum(entrant < self._plan.challengers for entrant in field)
        return gauntlet_groups(self._plan, len(field), challengers)

    def _rounds(self, number: int, end: int, field: tuple[int, ...]) -> Iterator[Round]:
        meetings = self._history.meetings.copy()
        for k in range(number, end):
            made = Round(self._round(k, field, meetings))
            for group in made.groups:
                meetings.add(group)
                for entrant in group:
                    self._played[entrant] += 1
            yield made

    def _round(self, k: int, field: tuple[int, ...], meetings: Meetings) -> list[tuple[int, ...]]:
        plan, n, played = self._plan, self._plan.seats, self._played
        drawn = shuffled(field, plan.draws(f"gauntlet/{k}"))
        challengers = [entrant for entrant in drawn if entrant < plan.challengers]
        leaders = sorted(challengers, key=lambda entrant: played[entrant])[: self._groups(field)]
        free = [entrant for entrant in drawn if entrant not in set(leaders)]
        groups = []
        for leader in leaders:
            group = [leader]
            for _ in range(min(n - 1, len(free))):
                choice = min(free, key=lambda other: (self._met(group, other, meetings), played[other]))
                group.append(choice)
                free.remove(choice)
            full = filled(group, plan, k) if len(group) < n else tuple(group)
            groups.append(min(plan.partnerings(full), key=meetings.cost))
        return groups

    @staticmethod
    def _met(group: Sequence[int], other: int, meetings: Meetings) -> tuple[int, int]:
        """Returns how often somebody met the leader of a group, then how often its other members."""
        times = [meetings.against(member, other) + meetings.partners(member, other) for member in group]
        return times[0], sum(times[1:])
