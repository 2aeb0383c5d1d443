"""What has been played so far, as far as later rounds depend on it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from referee_server.tournament.formats.plan import Plan, bye_worth
from referee_server.tournament.formats.seating import Seats
from referee_server.tournament.model import Outcome

# A partnership counts like two meetings, because with four at a table there are twice as many opponents as partners;
# costs are of squares, hence four.
_PARTNER_WEIGHT = 4


class Round(NamedTuple):
    """Who meets in a round.

    Attributes:
        groups: the groups; for pairs members 0 and 2 against 1 and 3. Negative numbers are house bots.
        byes: who has no table.
        seated: whether the members stand in the order of the seats, which are then not to be balanced.
    """

    groups: Sequence[tuple[int, ...]]
    byes: Sequence[int] = ()
    seated: bool = False


class Meetings:
    """How often entrants met, against and with each other."""

    def __init__(self, plan: Plan) -> None:
        self._pairs = plan.pairs
        self._against: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._with: defaultdict[tuple[int, int], int] = defaultdict(int)

    def copy(self) -> Meetings:
        """Returns meetings of its own that start out the same."""
        twin = Meetings.__new__(Meetings)
        twin._pairs = self._pairs
        twin._against = self._against.copy()
        twin._with = self._with.copy()
        return twin

    def against(self, a: int, b: int) -> int:
        """Returns how often two entrants met on different sides."""
        return self._against.get((a, b) if a < b else (b, a), 0)

    def partners(self, a: int, b: int) -> int:
        """Returns how often two entrants were partners."""
        return self._with.get((a, b) if a < b else (b, a), 0)

    def add(self, group: Sequence[int], times: int = 1) -> None:
        """Notes that a group met; house bots are nobody. -1 takes it back."""
        for i, j in combinations(range(len(group)), 2):
            a, b = sorted((group[i], group[j]))
            if a >= 0:
                book = self._with if self._pairs and j - i == 2 else self._against
                book[a, b] += times

    def cost(self, group: Sequence[int]) -> int:
        """Returns how stale a group is: 0 where nobody met anybody else of it before."""
        if self._pairs:
            a, b, c, d = group
            against = self.against(a, b) + self.against(a, d) + self.against(c, b) + self.against(c, d)
            return against + _PARTNER_WEIGHT * (self.partners(a, c) + self.partners(b, d))
        get = self._against.get
        total = 0
        for i, a in enumerate(group):
            for b in group[i + 1 :]:
                total += get((a, b) if a < b else (b, a), 0)
        return total


class History:
    """Results, meetings and byes so far.

    Attributes:
        bye: what a bye is worth.
        points: place points, by entrant, byes included.
        tables: how many tables with an outcome, by entrant.
        byes: how many rounds without a table, by entrant.
        spare: how often an entrant was left over, whether it had a bye or met house bots.
        meetings: who met whom.
        seats: who sat where.
        last: place points in the last round played, by entrant.
    """

    def __init__(self, plan: Plan) -> None:
        self.bye = bye_worth(plan)
        self._average = (len(plan.sides) - 1) / 2
        self.points: defaultdict[int, float] = defaultdict(float)
        self.tables: defaultdict[int, int] = defaultdict(int)
        self.byes: defaultdict[int, int] = defaultdict(int)
        self.spare: defaultdict[int, int] = defaultdict(int)
        self.meetings = Meetings(plan)
        self.seats = Seats(plan)
        self.last: defaultdict[int, float] = defaultdict(float)

    def release(self, made: Round) -> None:
        """Notes that a round was paired."""
        for group in made.groups:
            self.meetings.add(group)
            if min(group) < 0:
                for entrant in group:
                    self.spare[entrant] += 1
        for entrant in made.byes:
            self.byes[entrant] += 1
            self.spare[entrant] += 1
            self.points[entrant] += self.bye

    def score(self, outcomes: Sequence[Outcome]) -> None:
        """Notes the outcomes of a whole round."""
        self.last.clear()
        for outcome in outcomes:
            for seat, entrant in enumerate(outcome.table.seats):
                if entrant >= 0:
                    points = self._of(outcome, seat)
                    self.points[entrant] += points
                    self.last[entrant] += points
                    self.tables[entrant] += 1

    def _of(self, outcome: Outcome, seat: int) -> float:
        if not outcome.scored:
            return 0.0 if seat < len(outcome.losses) and outcome.losses[seat] else self._average
        place = outcome.places[outcome.sides[seat]]
        behind = sum(1.0 if other > place else 0.5 for other in outcome.places if other >= place)
        return behind - 0.5  # the side itself was counted as one that it shares its place with
