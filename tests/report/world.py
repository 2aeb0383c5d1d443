"""Tournaments made up for the tests: Guillotine, four at a table, the first entrants the strongest."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import combinations
from statistics import fmean, stdev
from typing import TypeVar

from referee_games.contract import rank_places
from referee_server.cli.report.model import Comparison, Pairing, Report, SeatBias
from referee_server.cli.report.series import place_points
from referee_server.tournament.model import DealOutcome, Interval, Outcome, Standing, Table

T = TypeVar("T")

CONTRACTS = ("royalty", "queens", "spades", "parliament", "guillotine", "domino")
FOUR = ("greedy", "Zoë the 2nd", "slow|poke", "random")


def table_of(draw: random.Random, number: int, entrants: int) -> Table:
    seats = draw.sample(range(entrants), 4) if entrants >= 4 else [*range(entrants), *range(-1, entrants - 5, -1)]
    return Table(number, number // max(1, entrants // 4), number, 0, tuple(seats))


def played(draw: random.Random, table: Table, deals: int) -> Outcome:
    """Returns a table that was played to the end by the rules."""
    scored = []
    for deal in range(deals):
        kind = CONTRACTS[deal % len(CONTRACTS)]
        scores = tuple(round(draw.gauss(8 * max(seat, -1), 30) / 5) * 5 for seat in table.seats)
        scored.append(DealOutcome(deal, deal % 4, scores, kind))
    totals = tuple(sum(deal.scores[side] for deal in scored) for side in range(4))
    return Outcome(
        table=table,
        match_id=f"m{table.number:04d}",
        reason="completed",
        sides=(0, 1, 2, 3),
        totals=totals,
        places=rank_places(totals, lowest_wins=True),
        faults=({}, {}, {}, {}),
        substituted=(0, 0, 0, 0),
        losses=("", "", "", ""),
        deals=tuple(scored),
        digest=bytes([table.number % 256]) * 32,
    )


def forfeited(outcome: Outcome, seat: int, kind: str) -> Outcome:
    """Returns the same table, but with one seat replaced after three faults of a kind and ruled last."""
    others = [outcome.totals[side] for side in range(4) if side != seat]
    places = iter(rank_places(others, lowest_wins=True))

    def at_seat(value: T, nothing: T) -> tuple[T, ...]:
        return tuple(value if one == seat else nothing for one in range(4))

    return replace(
        outcome,
        reason="forfeited",
        places=tuple(4 if side == seat else next(places) for side in range(4)),
        faults=at_seat({kind: 3}, {}),
        substituted=at_seat(17, 0),
        losses=at_seat(f"{kind}: replaced", ""),
        deals=tuple(replace(deal, counted=deal.deal < 2) for deal in outcome.deals),
    )


def without_result(outcome: Outcome, reason: str) -> Outcome:
    """Returns the same table, but ended for a reason that leaves no result."""
    return replace(outcome, reason=reason, totals=(), places=(), deals=())


def interval(values: list[float], factor: float = 1.0, offset: float = 0.0) -> Interval:
    mean = offset + factor * fmean(values)
    half = factor * 1.96 * stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return Interval(mean, mean - half, mean + half)


def standing(entrant: int, outcomes: list[Outcome]) -> Standing:
    """Returns a line of the standings that has no rank yet."""
    seen = [(one, one.table.seats.index(entrant)) for one in outcomes if entrant in one.table.seats]
    points = [place_points(one, seat) for one, seat in seen if one.scored] or [0.0]
    faults: Counter[str] = Counter()
    for one, seat in seen:
        faults.update(one.faults[seat])
    return Standing(
        entrant=entrant,
        rank=0,
        played=sum(one.scored for one, _ in seen),
        place_points=sum(points),
        points=sum(one.totals[seat] for one, seat in seen if one.scored),
        mean=interval(points),
        rating=interval(points, 120, 1320),
        byes=0,
        firsts=sum(1 / one.places.count(1) for one, seat in seen if one.scored and one.places[one.sides[seat]] == 1),
        faults=faults,
        time_losses=faults["timeout"],
        losses=Counter(one.losses[seat] for one, seat in seen if one.losses[seat]),
        substituted=sum(one.substituted[seat] for one, seat in seen),
    )


def standings(entrants: int, outcomes: list[Outcome]) -> tuple[Standing, ...]:
    lines = [standing(entrant, outcomes) for entrant in range(entrants)]
    ranks = rank_places([round(100 * line.mean.value) for line in lines], lowest_wins=False)
    ranked = [replace(line, rank=rank) for line, rank in zip(lines, ranks, strict=True)]
    return tuple(sorted(ranked, key=lambda line: line.rank))


def crosstable(outcomes: list[Outcome]) -> dict[tuple[int, int], Pairing]:
    cells: dict[tuple[int, int], Pairing] = {}
    for outcome in outcomes:
        if outcome.scored:
            for one, two in combinations(range(4), 2):
                for mine, other in ((one, two), (two, one)):
                    pair = (outcome.table.seats[mine], outcome.table.seats[other])
                    ahead = outcome.places[other] - outcome.places[mine]
                    old = cells.get(pair, Pairing(0, 0))
                    cells[pair] = Pairing(old.points + (1 if ahead > 0 else 0.5 if not ahead else 0), old.tables + 1)
    return {pair: cell for pair, cell in cells.items() if min(pair) >= 0}


def bias(outcomes: list[Outcome]) -> tuple[SeatBias, ...]:
    scored = [outcome for outcome in outcomes if outcome.scored]
    if not scored:
        return ()
    return tuple(
        SeatBias(seat, len(scored), interval([place_points(outcome, seat) / 3 for outcome in scored]))
        for seat in range(4)
    )


def cup(
    names: tuple[str, ...] = FOUR, tables: int = 6, *, deals: int = 6, seed: int = 5, mishaps: bool = True
) -> Report:
    """Returns a tournament; with `mishaps` one table is forfeited on time and one ended without a result."""
    draw = random.Random(seed)
    outcomes = [played(draw, table_of(draw, number, len(names)), deals) for number in range(tables)]
    if mishaps:
        number = next(one.table.number for one in outcomes[1:] if 2 in one.table.seats)
        outcomes[number] = forfeited(outcomes[number], outcomes[number].table.seats.index(2), "timeout")
        outcomes[-1] = without_result(outcomes[-1], "referee_fault")
    return Report(
        name="Spring cup",
        game="guillotine",
        game_title="Guillotine",
        format="round robin, seats in turn, 2 rounds",
        state="finished",
        names=names,
        filler_names=("house one", "house two", "house three"),
        tables_total=tables,
        lowest_wins=True,
        notes=("Agents ran as processes of one user: what they could read of each other was not limited.",),
        standings=standings(len(names), outcomes),
        crosstable=crosstable(outcomes),
        bias=bias(outcomes),
        comparison=None,
        outcomes=tuple(reversed(outcomes)),  # they come in any order
        commitment="5f" * 32,
        generated="Made from the journal of the tournament, after its last table.",
    )


def nobody() -> Report:
    """Returns a tournament that was called off before anything had ended."""
    return replace(
        cup(), state="running", outcomes=(), standings=standings(4, []), crosstable={}, bias=(), notes=(), generated=""
    )


def comparison() -> Comparison:
    return Comparison(0, 3, 40, Interval(0.61, 0.4, 0.82), "place points a table", "greedy is ahead beyond doubt.")
