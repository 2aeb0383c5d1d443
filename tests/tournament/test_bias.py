from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from referee_games import registry
from referee_games.conformance import shuffled
from referee_games.contract import CHANCE, OVER, DealScored
from referee_server.tournament.bias import bias
from referee_server.tournament.intervals import bootstrap, by_board
from referee_server.tournament.model import DealOutcome, Outcome
from tournament.made import PAIRS, outcome


def self_play(
    matches: int,
    *,
    seats: Sequence[float] = (0, 0, 0, 0),
    dealer: float = 0,
    kinds: Sequence[float] = (0,),
    seed: int = 0,
) -> list[Outcome]:
    """One bot in all seats, four deals a match, with advantages by seat, for the dealer and for him by kind of deal."""
    draw = random.Random(seed)
    found = []
    for number in range(matches):
        first = draw.randrange(4)
        deals = []
        for deal in range(4):
            dealt = (first + deal) % 4
            kind = draw.randrange(len(kinds))
            scores = [draw.gauss(seats[seat], 10) for seat in range(4)]
            scores[dealt] += dealer + kinds[kind]
            deals.append(DealOutcome(deal, dealt, tuple(map(round, scores)), kind=f"kind {kind}"))
        totals = [sum(column) for column in zip(*(deal.scores for deal in deals), strict=True)]
        found.append(outcome(number, (0, 0, 0, 0), totals, deals=deals))
    return found


def real_self_play(name: str, matches: int, **options: object) -> list[Outcome]:
    """Matches of a game between four players who all draw their actions by lot."""
    draw = random.Random(0)
    game = registry.find(name)
    config = game.configure(options)
    sides = game.sides(config)
    found = []
    for number in range(matches):
        state = game.start(config, draw.randrange(game.seats(config)))
        deals = []
        while state.actor != OVER:
            facts = (
                state.deal(shuffled(game.pack, draw.randrange))
                if state.actor == CHANCE
                else state.apply(draw.choice(state.legal()))
            )
            deals += [
                DealOutcome(fact.deal, fact.dealer, fact.scores, str(fact.details.get("contract", "")))
                for fact in facts
                if isinstance(fact, DealScored)
            ]
        seats = range(game.seats(config))
        found.append(
            outcome(
                number,
                [0 for _ in seats],
                state.totals(),
                places=state.places(),
                sides=[next(side for side, members in enumerate(sides) if seat in members) for seat in seats],
                deals=deals,
            )
        )
    return found


def test_two_thousand_matches_of_fair_self_play_show_no_bias() -> None:
    report = bias(self_play(2000), lowest_wins=False, resamples=400)
    assert all(effect.fair for effect in (*report.seats, *report.dealers, *report.kinds))
    assert [effect.name for effect in report.seats] == [0, 1, 2, 3]
    assert [effect.deals for effect in report.seats] == [8000] * 4
    assert sum(effect.points.value for effect in report.seats) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "lowest_wins", "options"),
    [("guillotine", True, {"deals_per_dealer": 1}), ("regicide", False, {"max_deals": 4})],
)
def test_self_play_of_a_real_game_shows_no_bias_of_a_seat(
    name: str, lowest_wins: bool, options: dict[str, object]
) -> None:
    report = bias(real_self_play(name, 300, **options), lowest_wins, resamples=400)
    assert all(effect.fair for effect in report.seats)


def test_in_about_95_of_100_reports_of_fair_self_play_every_interval_holds_zero() -> None:
    fair = sum(
        all(effect.fair for effect in bias(self_play(60, seed=seed), lowest_wins=False, seed=seed, resamples=500).seats)
        for seed in range(60)
    )
    assert fair >= 52


def test_intervals_of_four_seats_are_those_of_a_board_set_bootstrap_at_a_quarter_of_the_error() -> None:
    played = self_play(40)
    units = [
        [deal.scores[0] - sum(deal.scores) / 4 for table in tables for deal in table.deals]
        for tables in by_board(played)
    ]
    (wide,) = bootstrap(units, lambda chosen: [sum(map(sum, chosen)) / sum(map(len, chosen))], confidence=0.9875)
    found = bias(played, lowest_wins=False).seats[0].points
    assert (found.low, found.value, found.high) == pytest.approx((wide.low, wide.value, wide.high))


def test_a_seat_with_an_advantage_is_found_and_the_dealer_is_not_blamed() -> None:
    report = bias(self_play(500, seats=(0, 3, 0, 0)), lowest_wins=False, resamples=400)
    assert not report.seats[1].fair
    assert report.seats[1].points.low < 2.25 < report.seats[1].points.high  # three points, against a mean of 0.75
    assert all(effect.fair for effect in report.dealers)


def test_a_dealer_with_an_advantage_is_found_and_no_seat_is_blamed() -> None:
    report = bias(self_play(500, dealer=4), lowest_wins=False, resamples=400)
    assert report.dealers[0].points.low < 3 < report.dealers[0].points.high
    assert [effect.fair for effect in report.dealers] == [False] * 4  # his gain is the others' loss
    assert all(effect.fair for effect in report.seats)


def test_kinds_of_deals_tell_what_they_are_worth_to_the_dealer() -> None:
    report = bias(self_play(500, kinds=(0, 4, 0)), lowest_wins=False, resamples=400)
    assert [(effect.name, effect.fair) for effect in report.kinds] == [
        ("kind 0", True),
        ("kind 1", False),
        ("kind 2", True),
    ]
    assert report.kinds[1].points.low < 3 < report.kinds[1].points.high


def test_points_are_turned_where_the_lowest_total_wins() -> None:
    played = self_play(40, seats=(5, 0, 0, 0))
    more, less = bias(played, lowest_wins=False, resamples=0), bias(played, lowest_wins=True, resamples=0)
    assert less.seats[0].points.value == -more.seats[0].points.value < 0


def test_deals_that_do_not_count_and_tables_without_a_result_are_not_looked_at() -> None:
    deals = [DealOutcome(0, 0, (3, 1)), DealOutcome(1, 1, (90, 0), counted=False)]
    report = bias([outcome(0, (0, 0), (93, 1), deals=deals), outcome(1, (0, 0), reason="cancelled")], lowest_wins=False)
    assert [(effect.deals, effect.points.value) for effect in report.seats] == [(1, 1.0), (1, -1.0)]
    assert report.kinds == ()


def test_nothing_is_held_against_a_seat_after_one_board_set() -> None:
    played = [outcome(number, (0, 0), (9, 1), board=0) for number in range(5)]
    assert all(effect.fair for effect in bias(played, lowest_wins=False).seats)
    apart = [outcome(number, (0, 0), (9, 1)) for number in range(6)]
    assert not any(effect.fair for effect in bias(apart, lowest_wins=False).seats)


def test_seats_of_a_side_share_what_it_scored() -> None:
    report = bias([outcome(0, (0, 0, 0, 0), (9, 1), sides=PAIRS)], lowest_wins=False)
    assert [effect.points.value for effect in report.seats] == [4, -4, 4, -4]


def test_tables_in_another_order_give_the_same_report() -> None:
    played = self_play(30)
    assert bias(list(reversed(played)), lowest_wins=False) == bias(played, lowest_wins=False)
