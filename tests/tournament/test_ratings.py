from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee_games.contract import rank_places
from referee_server.tournament.intervals import by_board, drawn
from referee_server.tournament.model import DealOutcome, Outcome
from referee_server.tournament.ratings import LiveRatings, Ranking, fit, rating_intervals, ratings
from tournament.made import PAIRS, outcome, tournament

# Published with choix: partial rankings of different lengths, and the pairs of its introduction.
CHOIX_RANKINGS = [(0, 1, 2), (3, 2, 0), (1, 3)]
CHOIX_PAIRS = [(1, 0), (0, 4), (3, 1), (0, 2), (2, 4), (4, 3)]


def ranked(*orders: tuple[int, ...]) -> list[Ranking]:
    """Rankings without equals, best first."""
    return [Ranking(tuple((item,) for item in order), tuple(range(len(order)))) for order in orders]


@pytest.mark.parametrize(
    ("orders", "count", "strengths"),
    [
        ([(0, 1, 2), (1, 2, 0), (2, 0, 1)], 3, [0, 0, 0]),
        (CHOIX_RANKINGS, 4, [-0.44328117, 0.69506219, -0.67061442, 0.4188334]),
        (CHOIX_PAIRS, 5, [0.58281357, 0.19427119, 0, -0.19427119, -0.58281357]),
    ],
)
def test_with_hardly_any_prior_the_fit_is_that_of_choix(
    orders: list[tuple[int, ...]], count: int, strengths: list[float]
) -> None:
    # With the prior at 1e-6 the two differ by about as much, and choix stops some 1e-5 from the peak.
    assert fit(ranked(*orders), count, prior=1e-6) == pytest.approx(strengths, abs=5e-5)


@pytest.mark.parametrize(
    ("orders", "count", "strengths"),
    [
        (CHOIX_RANKINGS, 4, [-0.22536324885, 0.44414068864, -0.42313380863, 0.20435636884]),
        (CHOIX_PAIRS, 5, [0.35170977330, 0.07002953763, 0, -0.07002953763, -0.35170977330]),
    ],
)
def test_the_prior_is_a_win_and_a_loss_against_a_phantom_in_choix(
    orders: list[tuple[int, ...]], count: int, strengths: list[float]
) -> None:
    # choix.mm_rankings over one item more, to which each loses once and against which each wins once.
    assert fit(ranked(*orders), count) == pytest.approx(strengths, abs=1e-8)


def test_a_shared_place_is_half_of_each_order() -> None:
    # choix over: 0 before 1 before 2, 0 before 2 before 1, twice 2 before 1 before 0; twice the phantom's bouts.
    tied = [Ranking(((0,), (1,), (2,)), (1, 2, 2)), *ranked((2, 1, 0))]
    assert fit(tied, 3) == pytest.approx([-0.13160683562, -0.08463857334, 0.21624540896], abs=1e-8)


@given(st.permutations([0, 1, 2, 3]), st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_a_table_of_equals_rates_those_who_share_a_place_alike_wherever_they_sat(
    seats: list[int], totals: list[int]
) -> None:
    strengths = fit([Ranking(tuple((item,) for item in seats), rank_places(totals, lowest_wins=False))], 4)
    by_total = sorted((total, strengths[item]) for item, total in zip(seats, totals, strict=True))
    for (total, strength), (better, stronger) in pairwise(by_total):
        if total == better:
            assert strength == pytest.approx(stronger, abs=1e-9)
        else:
            assert strength < stronger - 1e-3


def test_all_sharing_one_place_leaves_all_equal() -> None:
    assert fit([Ranking(((0,), (1,), (2,), (3,)), (1, 1, 1, 1))] * 50, 4) == pytest.approx([0] * 4, abs=1e-9)


@given(st.randoms(use_true_random=False), st.integers(1, 40))
def test_tables_in_another_order_give_the_same_bits(draw: random.Random, tables: int) -> None:
    played = [
        outcome(number, draw.sample(range(-2, 5), 4), [draw.randrange(3) for _ in range(4)], board=number // 3)
        for number in range(tables)
    ]
    shuffled = draw.sample(played, tables)
    assert ratings(shuffled, 5, lowest_wins=True) == ratings(played, 5, lowest_wins=True)
    assert rating_intervals(shuffled, 5, lowest_wins=True) == rating_intervals(played, 5, lowest_wins=True)


@given(st.randoms(use_true_random=False), st.sampled_from([1, 2]))
def test_seats_in_another_order_give_the_same_bits(draw: random.Random, players: int) -> None:
    straight, turned = [], []
    for _ in range(30):
        sides = [tuple(draw.sample(range(5), players)) for _ in range(4)]
        places = [draw.randrange(3) for _ in sides]
        straight.append(Ranking(tuple(sides), tuple(places)))
        order = draw.sample(range(4), 4)
        turned.append(
            Ranking(tuple(tuple(draw.sample(sides[at], players)) for at in order), tuple(places[at] for at in order))
        )
    assert fit(turned, 5) == fit(straight, 5)


def test_without_a_table_everybody_is_at_the_centre_and_hardly_anything_is_known() -> None:
    for interval in rating_intervals([], 3, lowest_wins=False):
        assert interval.value == 1500
        assert interval.low < 1200
        assert interval.high > 1800
    assert ratings([], 3, lowest_wins=False) == [1500] * 3
    assert ratings([], 0, lowest_wins=False) == []
    assert rating_intervals([], 0, lowest_wins=False) == []


@pytest.mark.parametrize("tables", [1, 2, 10, 1000, 100_000])
def test_who_always_wins_is_rated_finitely_with_an_interval_of_some_width(tables: int) -> None:
    won = [outcome(number, (0, 1, 2, 3), (4, 3, 2, 1)) for number in range(min(tables, 1000))]
    strengths = fit(ranked((0, 1, 2, 3)) * tables, 4)
    assert all(map(math.isfinite, strengths))
    assert strengths == sorted(strengths, reverse=True)
    for interval in rating_intervals(won, 4, lowest_wins=False):
        assert 50 < interval.high - interval.low < 2000
        assert interval.low < interval.value < interval.high


@given(st.randoms(use_true_random=False), st.sampled_from([1e-3, 1.0]))
def test_the_fit_is_finite_whatever_the_tables_say(draw: random.Random, prior: float) -> None:
    kinds = [
        Ranking(tuple((item,) for item in draw.sample(range(6), 3)), (1, draw.choice([1, 2]), 2)) for _ in range(4)
    ]
    strengths = fit([kind for kind in kinds for _ in range(draw.choice([1, 10, 1000]))], 6, prior=prior)
    assert all(map(math.isfinite, strengths))
    assert sum(strengths) == pytest.approx(0, abs=1e-9)


def test_more_wins_are_a_higher_rating() -> None:
    gained = [fit(ranked((0, 1)) * wins, 2)[0] for wins in range(20)]
    assert gained == sorted(set(gained))


def test_a_prior_that_is_not_above_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        fit([], 2, prior=0)


def test_400_points_are_odds_of_ten_to_one() -> None:
    # So many tables that the prior hardly counts.
    better = [outcome(number, (0, 1), (int(number % 11 > 0), int(number % 11 == 0))) for number in range(11_000)]
    one, other = ratings(better, 2, lowest_wins=False)
    assert one - other == pytest.approx(400, abs=0.5)


def test_a_side_is_as_strong_as_the_mean_of_its_players() -> None:
    # 0 and 1 beat 2 and 3 three times in four: the sides, and so each player of them, are apart by the log of three.
    won, lost = Ranking(((0, 1), (2, 3)), (1, 2)), Ranking(((0, 1), (2, 3)), (2, 1))
    strengths = fit([won, won, won, lost] * 1000, 4, prior=1e-3)
    assert strengths == pytest.approx([math.log(3) / 2, math.log(3) / 2, -math.log(3) / 2, -math.log(3) / 2], abs=1e-4)


def test_changing_partners_tell_who_of_a_side_is_stronger() -> None:
    draw = random.Random(7)
    true = [1.5, 0.5, -0.5, -1.5]
    played = []
    for _ in range(6000):
        a, b, c, d = draw.sample(range(4), 4)
        ahead = (true[a] + true[b] - true[c] - true[d]) / 2
        wins = draw.random() < 1 / (1 + math.exp(-ahead))
        played.append(Ranking(((a, b), (c, d)), (1, 2) if wins else (2, 1)))
    assert fit(played, 4) == pytest.approx(true, abs=0.15)


def test_who_plays_both_seats_of_a_side_is_rated_as_alone() -> None:
    pairs = [
        outcome(number, (0, 1, 0, 1), totals, sides=PAIRS) for number, totals in enumerate([(3, 1)] * 5 + [(1, 2)])
    ]
    alone = [outcome(number, (0, 1), totals) for number, totals in enumerate([(3, 1)] * 5 + [(1, 2)])]
    assert ratings(pairs, 2, lowest_wins=False) == pytest.approx(ratings(alone, 2, lowest_wins=False))


def test_self_play_says_nothing() -> None:
    assert ratings([outcome(0, (1, 1, 1, 1), (4, 3, 2, 1))], 2, lowest_wins=False) == pytest.approx([1500, 1500])


def test_the_lowest_total_is_best_where_it_wins() -> None:
    low, high = ratings([outcome(0, (0, 1), (3, 8), lowest_wins=True)], 2, lowest_wins=True)
    assert low > 1500 > high


def test_rulings_and_deals_that_a_substitute_played_leave_ratings_alone() -> None:
    ruled = outcome(
        0,
        (0, 1),
        (9, 4),
        places=(2, 1),
        deals=[DealOutcome(0, 0, (6, 1)), DealOutcome(1, 1, (3, 3), counted=False)],
    )
    assert ratings([ruled], 2, lowest_wins=False) == ratings([outcome(0, (0, 1), (6, 1))], 2, lowest_wins=False)


def test_tables_without_a_result_or_a_deal_that_counts_say_nothing() -> None:
    nothing = [
        outcome(0, (0, 1), reason="referee_fault", deals=[DealOutcome(0, 0, (6, 1))]),
        outcome(1, (0, 1), (6, 1), deals=[DealOutcome(0, 0, (6, 1), counted=False)]),
    ]
    assert ratings(nothing, 2, lowest_wins=False) == [1500, 1500]


def test_who_beats_a_strong_house_bot_gains_more() -> None:
    # Bot -1 beats 2 again and again, 3 beats bot -2 as often; 0 then beats the strong bot and 1 the weak one.
    strong = [outcome(number, (-1, 2), (1, 0)) for number in range(9)]
    weak = [outcome(9 + number, (-2, 3), (0, 1)) for number in range(9)]
    found = ratings([*strong, *weak, outcome(18, (0, -1), (1, 0)), outcome(19, (1, -2), (1, 0))], 4, lowest_wins=False)
    assert len(found) == 4
    assert sum(found) == pytest.approx(4 * 1500)
    assert found[0] > found[1] + 50


def refitted(played: list[Outcome], count: int, resamples: int) -> list[tuple[float, float]]:
    """Intervals the long way: the whole fit again for each draw of board sets."""
    sets = by_board(played)
    samples: list[list[float]] = [[] for _ in range(count)]
    for resample in range(resamples):
        chosen = [outcome for number in drawn(len(sets), 0, resample) for outcome in sets[number]]
        for sample, value in zip(samples, ratings(chosen, count, lowest_wins=False), strict=True):
            sample.append(value)
    return [(sorted(sample)[resamples // 40], sorted(sample)[-1 - resamples // 40]) for sample in samples]


@pytest.mark.parametrize("luck", [0.0, 1.5])
def test_intervals_agree_with_the_bootstrap_that_fits_again_for_each_draw(luck: float) -> None:
    played = tournament([0, 0.3, 0.6, 0.9, 1.2, 1.5], 100, 4, luck=luck, seed=3)
    close = rating_intervals(played, 6, lowest_wins=False)
    for interval, (low, high) in zip(close, refitted(played, 6, 400), strict=True):
        assert interval.high - interval.low == pytest.approx(high - low, rel=0.2)
        assert (interval.low + interval.high) / 2 == pytest.approx((low + high) / 2, abs=0.1 * (high - low))


@pytest.mark.parametrize("luck", [0.0, 2.0])
def test_about_95_of_100_intervals_hold_the_true_rating(luck: float) -> None:
    true = [0.0] * 5 if luck else [-0.8, -0.4, 0, 0.4, 0.8]
    held: Counter[bool] = Counter()
    for seed in range(200):
        played = tournament(true, 30, 4, luck=luck, seed=seed)
        for strength, interval in zip(true, rating_intervals(played, 5, lowest_wins=False), strict=True):
            held[interval.low <= 1500 + 400 / math.log(10) * strength <= interval.high] += 1
    assert 0.90 <= held[True] / held.total() <= 0.99


def test_tables_of_one_set_that_hang_together_widen_the_intervals() -> None:
    played = tournament([0.0] * 5, 60, 4, luck=2.0, seed=1)
    apart = [outcome(number, table.table.seats, table.totals, board=number) for number, table in enumerate(played)]
    for together, single in zip(
        rating_intervals(played, 5, lowest_wins=False), rating_intervals(apart, 5, lowest_wins=False), strict=True
    ):
        assert together.high - together.low > 1.2 * (single.high - single.low)


def test_the_live_view_rates_as_openskill_in_its_own_example() -> None:
    # Two new pairs, the first of which wins.
    live = LiveRatings(4, lowest_wins=False)
    live.update(outcome(0, (0, 2, 1, 3), (1, 0), sides=PAIRS))
    lines = {line.entrant: line for line in live.lines()}
    for winner in (0, 1):
        assert lines[winner].mu == pytest.approx(26.964294621803063)
        assert lines[winner].sigma == pytest.approx(8.177962604389991)
    for loser in (2, 3):
        assert lines[loser].mu == pytest.approx(23.035705378196937)
        assert lines[loser].sigma == pytest.approx(8.177962604389991)


def test_the_live_view_rates_equal_losers_alike_and_orders_by_what_is_sure() -> None:
    live = LiveRatings(5, lowest_wins=True)
    live.update(outcome(0, (2, 0, 1), (7, 3, 7), lowest_wins=True))
    lines = live.lines()
    assert [line.entrant for line in lines] == [0, 3, 4, 1, 2]
    assert lines[3].mu == pytest.approx(lines[4].mu)
    assert [line.tables for line in lines] == [1, 0, 0, 1, 1]
    assert lines[0].ordinal == pytest.approx(lines[0].mu - 3 * lines[0].sigma)


def test_the_live_view_takes_house_bots_and_self_play_and_passes_over_what_says_nothing() -> None:
    live = LiveRatings(2, lowest_wins=False)
    live.update(outcome(0, (0, 1), reason="cancelled"))
    assert [line.tables for line in live.lines()] == [0, 0]
    live.update(outcome(1, (0, 0, -1, -1), (4, 3, 2, 1)))
    first, second = live.lines()
    assert (first.entrant, first.tables, second.tables) == (0, 1, 0)
    assert first.mu > second.mu == 25
