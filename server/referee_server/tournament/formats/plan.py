"""What a format needs to know, what it refuses, and how many tables come of it (`docs/formats.md` states the rules)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from math import comb, factorial
from typing import Final

from referee_games.dealing import Draws

FORMATS: Final = ("round_robin", "swiss", "knockout", "gauntlet", "ladder")
DUPLICATES: Final = ("none", "rotation", "once")
MOST_ENTRANTS: Final = 10_000
PAIRS: Final = ((0, 2), (1, 3))

# Every way to seat two partnerships that keeps partners opposite each other, the four rotations first.
_PAIR_SEATINGS: Final = (
    (0, 1, 2, 3), (3, 0, 1, 2), (2, 3, 0, 1), (1, 2, 3, 0),
    (0, 3, 2, 1), (1, 0, 3, 2), (2, 1, 0, 3), (3, 2, 1, 0),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """A tournament as far as its schedule is concerned.

    Attributes:
        format: `round_robin`, `swiss`, `knockout`, `gauntlet` or `ladder`.
        entrants: how many entered at the start, 2 to 10,000; with enough house bots 1 will do.
        sides: seats of each side: one seat a side, or `((0, 2), (1, 3))` for pairs.
        duplicate: `none`, `rotation` or `once`.
        permutations: in `rotation`, all seatings of a group instead of the cyclic ones.
        sets: board sets that a group plays in a round, from 1; without duplicate, matches.
        rounds: how many rounds. 0 stands for every group once (round robin, gauntlet), for one more than the rounded
            binary logarithm of the entrants (Swiss), for no end (ladder). Knock-out takes 0 only.
        fillers: how many house bots may fill seats; 0 for none. One may sit at several tables, and twice at one.
        challengers: in a gauntlet, the first so many entrants each meet all others.
        seed: what every draw follows from.
    """

    format: str
    entrants: int
    sides: tuple[tuple[int, ...], ...]
    duplicate: str = "none"
    permutations: bool = False
    sets: int = 1
    rounds: int = 0
    fillers: int = 0
    challengers: int = 1
    seed: int = 0

    @property
    def seats(self) -> int:
        """How many seats a table has."""
        return sum(map(len, self.sides))

    @property
    def pairs(self) -> bool:
        """Whether two partnerships of two play."""
        return self.sides == PAIRS

    @property
    def solo(self) -> bool:
        """Whether entrants meet house bots only, all of them the same ones on the same boards."""
        return self.duplicate == "once" and self.fillers > 0

    def draws(self, label: str) -> Draws:
        """Returns the draws of one label, equal for equal seeds."""
        return Draws(str(self.seed).encode(), f"tournament/{label}")

    def seatings(self) -> tuple[tuple[int, ...], ...]:
        """Returns the seatings in which a group plays a board set, each as the members of seats 0, 1 and so on."""
        if self.duplicate != "rotation":
            return (tuple(range(self.seats)),)
        if self.pairs:
            return _PAIR_SEATINGS if self.permutations else _PAIR_SEATINGS[:4]
        n = self.seats
        if self.permutations:
            return tuple(permutations(range(n)))
        return tuple(tuple((seat - shift) % n for seat in range(n)) for shift in range(n))

    def partnerings(self, group: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Returns the ways a set of entrants plays: for pairs each of the three partnerships, else as it is."""
        if not self.pairs:
            return (group,)
        a, b, c, d = group
        return (group, (a, c, b, d), (a, b, d, c))


def pair_seatings(group: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Returns the eight seatings of two partnerships: members 0 and 2 against 1 and 3."""
    return [tuple(group[member] for member in seating) for seating in _PAIR_SEATINGS]


def check(plan: Plan) -> None:
    """Raises ValueError, in words for the host, where a plan makes no tournament."""
    seats = plan.seats
    if plan.format not in FORMATS:
        raise ValueError(f"format {plan.format!r} is none of {', '.join(FORMATS)}")
    if plan.duplicate not in DUPLICATES:
        raise ValueError(f"duplicate {plan.duplicate!r} is none of {', '.join(DUPLICATES)}")
    if not plan.pairs and plan.sides != tuple((seat,) for seat in range(seats)):
        raise ValueError(f"sides {plan.sides} are not offered: take one seat a side, or seats 0 and 2 against 1 and 3")
    if not 2 <= seats <= 6:
        raise ValueError(f"a table has 2 to 6 seats, not {seats}")
    if plan.sets < 1 or plan.rounds < 0 or plan.fillers < 0:
        raise ValueError("sets are at least 1, rounds and fillers at least 0")
    if not 1 <= plan.entrants <= MOST_ENTRANTS:
        raise ValueError(f"{plan.entrants} entrants: a tournament takes 1 to {MOST_ENTRANTS:,}")
    if plan.entrants < seats and not plan.fillers:
        raise ValueError(
            f"{plan.entrants} entrants cannot fill a table of {seats} seats: "
            f"{seats - plan.entrants} more are needed, or house bots as fillers"
        )
    if plan.permutations and plan.duplicate != "rotation":
        raise ValueError("permutations are a kind of rotation: set duplicate to rotation, or permutations to false")
    if plan.solo and plan.format != "round_robin":
        raise ValueError(
            "with once and fillers every entrant meets house bots only, so there is nothing to pair: "
            "take format round_robin, or no fillers"
        )
    if plan.format == "knockout":
        _check_knockout(plan)
    if plan.format == "gauntlet" and not 1 <= plan.challengers <= plan.entrants:
        raise ValueError(f"{plan.challengers} challengers: a gauntlet of {plan.entrants} takes 1 to {plan.entrants}")


def _check_knockout(plan: Plan) -> None:
    if plan.pairs:
        raise ValueError("knock-out is not offered for pairs, because partners change: take swiss or round_robin")
    if plan.rounds:
        raise ValueError("a knock-out has the rounds its bracket needs: leave rounds at 0")
    if plan.entrants < plan.seats:
        raise ValueError(f"a knock-out needs at least {plan.seats} entrants, not {plan.entrants}")


def tables_a_group(plan: Plan) -> int:
    """Returns how many tables a group plays in a round."""
    return plan.sets * (factorial(plan.seats) if plan.permutations and not plan.pairs else len(plan.seatings()))


def bye_worth(plan: Plan) -> float:
    """Returns the place points that a bye counts for.

    It is what a group's tables give on average. It is 0 where everybody sits out equally often because every group
    plays, and in a knock-out, where a bye is a step on.
    """
    if plan.format == "knockout" or (plan.format in ("round_robin", "gauntlet") and not plan.rounds):
        return 0.0
    return tables_a_group(plan) * (len(plan.sides) - 1) / 2


def swiss_rounds(plan: Plan) -> int:
    """Returns how many rounds a Swiss has."""
    return plan.rounds or (plan.entrants - 1).bit_length() + 1


def count(plan: Plan) -> int:
    """Returns how many tables a plan makes while nobody enters late or withdraws, without making them.

    0 for a ladder without end and for a knock-out, whose ties ask for more.

    Raises:
        ValueError: the plan makes no tournament.
    """
    check(plan)
    n, entrants, each = plan.seats, plan.entrants, tables_a_group(plan)
    if plan.solo:
        return max(plan.rounds, 1) * entrants * plan.sets
    if plan.format == "knockout":
        return 0
    if plan.format in ("swiss", "ladder"):
        rounds = swiss_rounds(plan) if plan.format == "swiss" else plan.rounds
        return rounds * _groups_a_round(plan) * each
    others = entrants - plan.challengers if plan.format == "gauntlet" else 0
    if plan.rounds:
        if plan.format == "round_robin":
            return plan.rounds * _groups_a_round(plan) * each
        return plan.rounds * gauntlet_groups(plan, entrants, plan.challengers) * each
    if entrants < n:
        return each * (3 if plan.pairs else 1)
    return (comb(entrants, n) - comb(others, n)) * (3 if plan.pairs else 1) * each


def gauntlet_groups(plan: Plan, field: int, challengers: int) -> int:
    """Returns how many groups a sampled round of a gauntlet has, for so many entrants and challengers that play."""
    if field < plan.seats:
        return 1 if plan.fillers and challengers else 0
    return min(challengers, field // plan.seats)


def _groups_a_round(plan: Plan) -> int:
    full, left = divmod(plan.entrants, plan.seats)
    return full + (1 if left and plan.fillers else 0)
