"""Every group once, round by round: round robin and gauntlet without a number of rounds.

Groups come from endless-looking streams, never from a list of all of them: three million cost no more memory than three
hundred. A window of them is kept, and a round takes from it what does not overlap, those first who played least.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from math import comb, gcd
from typing import Final

from referee_server.tournament.formats.berger import berger_round, berger_rounds
from referee_server.tournament.formats.history import History, Meetings, Round
from referee_server.tournament.formats.plan import Plan, count
from referee_server.tournament.formats.sample import filled

_SLOTS: Final = 20_000
"""How many seats at most are planned at once; up to that many in all, seats come out even at every round."""
_WINDOW: Final = 8  # groups kept for each entrant, but at least
_LEAST: Final = 500
_TRIES: Final = 30  # steps beyond the straight way that a round may cost


def scattered(items: int, size: int) -> Iterator[tuple[int, ...]]:
    """Yields every subset of 0 … items - 1 with so many members once, in an order that leaps about."""
    total = comb(items, size)
    step = next(s for s in range(max(1, total * 618 // 1000), 2 * total + 2) if gcd(s, total) == 1)
    for i in range(total):
        yield _subset(i * step % total, items, size)


def _subset(rank: int, items: int, size: int) -> tuple[int, ...]:
    """Returns the subset with a rank in the order of the highest member, then the next."""
    members = []
    for k in range(size, 0, -1):
        low, high = k - 1, items - 1
        while low < high:  # the highest member m with C(m, k) <= rank
            middle = (low + high + 1) // 2
            low, high = (middle, high) if comb(middle, k) <= rank else (low, middle - 1)
        members.append(low)
        rank -= comb(low, k)
        items = low
    return tuple(reversed(members))


def orbits(entrants: int, size: int) -> Iterator[tuple[int, ...]]:
    """Yields every subset once, in runs of all turns of one: after each run all entrants have had equally many."""
    for rest in scattered(entrants - 1, size - 1):
        block = (0, *(member + 1 for member in rest))
        turns = [tuple(sorted((member - first) % entrants for member in block)) for first in block]
        if min(turns) != block:
            continue  # another member of the run stands for it
        for turn in range(entrants):
            turned = tuple(sorted((member + turn) % entrants for member in block))
            if turn and turned == block:
                break
            yield turned


def challenges(challenger: int, entrants: int, size: int) -> Iterator[tuple[int, ...]]:
    """Yields every subset whose lowest member is the challenger."""
    for rest in scattered(entrants - challenger - 1, size - 1):
        yield (challenger, *(challenger + 1 + member for member in rest))


class _Stream:
    """Groups to come, of which the next can be looked at without taking it."""

    def __init__(self, groups: Iterator[tuple[int, ...]]) -> None:
        self._groups = groups
        self._next: tuple[int, ...] | None = None

    def next(self, playing: set[int]) -> tuple[int, ...] | None:
        """Returns the next group of which all members play; None at the end. Who left does not come back."""
        while self._next is None or not all(entrant < 0 or entrant in playing for entrant in self._next):
            self._next = next(self._groups, None)
            if self._next is None:
                return None
        return self._next

    def step(self) -> None:
        """Takes the group that was looked at."""
        self._next = None


class EveryGroup:
    """Every group once; those of a late entrant follow as soon as it may play, those of one that left are dropped."""

    waits: Final = False
    decided_by_play: Final = False

    def __init__(self, plan: Plan, history: History) -> None:
        self._plan = plan
        self._meetings = Meetings(plan)  # of the rounds planned, which are more than the rounds paired
        self._challengers = plan.challengers if plan.format == "gauntlet" else plan.entrants
        self._window: dict[int, tuple[int, ...]] = {}  # by order of coming
        self._at: defaultdict[int, dict[int, None]] = defaultdict(dict)  # by entrant: which of the window
        self._come = 0
        self._known = plan.entrants
        self._field: tuple[int, ...] = tuple(range(plan.entrants))
        self._played: defaultdict[int, int] = defaultdict(int)
        self._streams: deque[_Stream] = deque()
        n = plan.seats
        self._circle = n == 2 and plan.format == "round_robin" and plan.entrants >= n
        if plan.entrants < n:
            self._streams.append(_Stream(iter([filled(range(plan.entrants), plan, 0)])))
        elif plan.format == "gauntlet":
            self._streams += [_Stream(challenges(c, plan.entrants, n)) for c in range(plan.challengers)]
        elif not self._circle:
            self._streams.append(_Stream(orbits(plan.entrants, n)))
        # In a rotation seats come out even by themselves, and beyond the limit not for certain: a round at a time.
        self._whole = plan.duplicate != "rotation" and count(plan) * n <= _SLOTS

    def over(self, number: int, field: tuple[int, ...]) -> bool:
        """Returns whether no round comes after the first `number`."""
        self._enter(field)
        if self._circle and number < berger_rounds(self._plan.entrants):
            return False
        if self._window:
            return False
        playing = set(self._field)
        return all(stream.next(playing) is None for stream in self._streams)

    def plan(self, number: int, field: tuple[int, ...]) -> list[Round]:
        """Returns the next rounds as long as the field stays what it is."""
        self._enter(field)
        playing = set(field)
        if self._circle and number < berger_rounds(self._plan.entrants):
            pairs = berger_round(self._plan.entrants, number)
            kept = [pair for pair in pairs if playing.issuperset(pair)]
            met = {entrant for pair in kept for entrant in pair}
            sitting = [entrant for entrant in field if entrant not in met and entrant < self._plan.entrants]
            return [Round(kept, sitting, seated=True)]
        rounds: list[Round] = []
        while self._whole or not rounds:
            self._refill(max(_WINDOW * len(field), _LEAST))
            groups = self._take(field)
            if not groups:
                break
            met = {entrant for group in groups for entrant in group}
            challenged = self._plan.format == "gauntlet"
            rounds.append(Round(groups, [] if challenged else [e for e in field if e not in met]))
        return rounds

    def undo(self, rounds: Sequence[Round]) -> None:
        """Takes back rounds that were planned and will not be paired: their groups come first again."""
        again = [group for made in rounds if not made.seated for group in made.groups]
        for group in again:
            self._meetings.add(group, -1)
            for entrant in group:
                self._played[entrant] -= 1
        kept, self._window = list(self._window.values()), {}
        self._at.clear()
        for group in (*again, *kept):
            self._keep(group)

    def _enter(self, field: tuple[int, ...]) -> None:
        """Drops the groups of those who left and opens a stream for everyone who is new."""
        if field == self._field:
            return
        for left in set(self._field) - set(field):
            for key in list(self._at[left]):
                self._drop(key)
        n = self._plan.seats
        for late in sorted(set(field) - set(range(self._known))):
            lowest = self._challengers if self._plan.format == "gauntlet" else late
            self._streams.append(_Stream(_late(late, n, lowest)))
            self._known = late + 1
        self._field = field

    def _refill(self, wanted: int) -> None:
        """Draws from all streams in turn until the window holds so many groups."""
        playing = set(self._field)
        while self._streams and len(self._window) < wanted:
            stream = self._streams.popleft()
            if (group := stream.next(playing)) is not None:
                for partnering in self._plan.partnerings(group):
                    self._keep(partnering)
                stream.step()
                self._streams.append(stream)

    def _keep(self, group: tuple[int, ...]) -> None:
        self._window[self._come] = group
        for entrant in group:
            self._at[entrant][self._come] = None
        self._come += 1

    def _drop(self, key: int) -> tuple[int, ...]:
        group = self._window.pop(key)
        for entrant in group:
            self._at[entrant].pop(key, None)
        return group

    def _take(self, field: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Takes groups that do not overlap out of the window, as many as will go, and notes them as played."""
        chosen = self._search(sorted(field, key=lambda entrant: (self._played[entrant], entrant)))
        used = {entrant for key in chosen for entrant in self._window[key] if entrant >= 0}
        for key, group in self._window.items():  # what the search left undone
            if len(field) - len(used) < self._plan.seats and used:
                break
            if used.isdisjoint(group):
                chosen.append(key)
                used.update(entrant for entrant in group if entrant >= 0)
        groups = [self._drop(key) for key in chosen]
        for group in groups:
            self._meetings.add(group)
            for entrant in group:
                self._played[entrant] += 1
        return groups

    def _search(self, order: list[int]) -> list[int]:
        """Seats the entrants in the order given, turning back where one cannot be, for a bounded number of steps."""
        goal = min(len(order) // self._plan.seats, self._challengers)
        used: set[int] = set()
        trail: list[tuple[int, Iterator[int]]] = []
        best: list[int] = []
        chosen: list[int] = []
        steps = 2 * goal + _TRIES
        options = self._options(order, used)
        while steps and len(chosen) < goal:
            steps -= 1
            key = next(options, -1)
            if key >= 0:
                chosen.append(key)
                used.update(self._window[key])
                trail.append((key, options))
                if len(chosen) > len(best):
                    best = list(chosen)
                options = self._options(order, used)
            elif trail:
                key, options = trail.pop()
                chosen.pop()
                used.difference_update(self._window[key])
            else:
                break
        return best

    def _options(self, order: list[int], used: set[int]) -> Iterator[int]:
        """Yields what the first entrant not yet seated could play: who played least first, then who met least."""
        first = next((entrant for entrant in order if entrant not in used and self._at[entrant]), None)
        if first is None:
            return iter(())
        played = self._played
        free = [key for key in self._at[first] if used.isdisjoint(self._window[key])]
        meetings = self._meetings

        def claim(key: int) -> tuple[int, int, int]:
            group = self._window[key]
            return sum(played[entrant] for entrant in group), meetings.cost(group), key

        return iter(sorted(free, key=claim))


def _late(late: int, size: int, lowest: int) -> Iterator[tuple[int, ...]]:
    """Yields every subset of a late entrant with earlier ones, of lower numbers, that holds a number below `lowest`."""
    if late >= size - 1:
        for rest in scattered(late, size - 1):
            if rest[0] < lowest:
                yield (*rest, late)
