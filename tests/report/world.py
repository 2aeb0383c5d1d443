"""Tournaments made up for the tests: Guillotine, four at a table, the first entrants the strongest."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from referee_games.contract import rank_places
from referee_server.cli.report.model import Duel, Report
from referee_server.tournament.bias import bias
from referee_server.tournament.crosstable import crosstable
from referee_server.tournament.model import DealOutcome, Outcome, Table
from referee_server.tournament.sequential import compare
from referee_server.tournament.standings import standings

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


def cup(
    names: tuple[str, ...] = FOUR,
    tables: int = 6,
    *,
    deals: int = 6,
    seed: int = 5,
    mishaps: bool = True,
    resamples: int = 100,
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
        standings=standings(outcomes, len(names), lowest_wins=True, resamples=resamples),
        crosstable=crosstable(outcomes, len(names), lowest_wins=True),
        bias=bias(outcomes, lowest_wins=True, resamples=resamples),
        outcomes=tuple(reversed(outcomes)),  # they come in any order
        commitment="5f" * 32,
        master="3a" * 32,
        generated="Made from the journal of the tournament, after its last table.",
    )


def nobody() -> Report:
    """Returns a tournament in which nothing has ended yet."""
    report = cup(tables=0, mishaps=False)
    return replace(report, state="running", tables_total=6, notes=(), master="", generated="")


def duel(outcomes: Sequence[Outcome], verdict: str = "") -> Duel:
    return Duel(0, 3, "place", compare(outcomes, 0, 3, by="place", lowest_wins=True), verdict)
