from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee_server.tournament.model import DealOutcome, Interval
from referee_server.tournament.sequential import (
    By,
    Sequential,
    compare,
    normalized_elo,
    paired,
    pentanomial_llr,
)
from referee_server.tournament.student import quantile, two_sided
from tournament.made import PAIRS, outcome, tournament

# Vectors published with fastchess, both for bounds of 0 and 2.
FASTCHESS = [
    ((379, 10170, 21828, 10640, 343), 2.94598),
    ((365, 16618, 36229, 16974, 390), 2.25),
]
# The additional hours of sleep of ten patients with one drug against the other, from Student's paper of 1908.
SLEEP = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]


@pytest.mark.parametrize(("freedom", "reach"), [(1, 12.7062), (4, 2.7764), (9, 2.2622), (29, 2.0452), (1000, 1.9623)])
def test_the_middle_95_percent_of_t_are_those_of_the_tables(freedom: int, reach: float) -> None:
    assert quantile(0.95, freedom) == pytest.approx(reach, abs=5e-5)


@given(st.floats(-50, 50))
def test_tails_of_t_are_exact_where_there_is_a_formula(t: float) -> None:
    assert two_sided(t, 1) == pytest.approx(1 - 2 / math.pi * math.atan(abs(t)), abs=1e-12)
    assert two_sided(t, 2) == pytest.approx(1 - abs(t) / math.sqrt(2 + t * t), abs=1e-12)


def test_the_paired_test_is_that_of_students_paper() -> None:
    found = paired(SLEEP)
    assert found.sets == 10
    assert found.difference.value == pytest.approx(1.58)
    assert found.p == pytest.approx(0.002833, abs=1e-6)
    assert (found.difference.low, found.difference.high) == pytest.approx((0.7001142, 2.4598858), abs=1e-6)


@pytest.mark.parametrize(
    ("differences", "p"),
    [([], 1.0), ([3.0], 1.0), ([3.0, 3.0], 0.5), ([3.0] * 6, 1 / 32), ([0.0] * 9, 1.0), ([1.0, -1.0] * 9, 1.0)],
)
def test_a_few_sets_that_agree_prove_little(differences: list[float], p: float) -> None:
    assert paired(differences).p == pytest.approx(p)


def test_what_is_compared_are_board_sets() -> None:
    # In set 0, A has 3 and 2 place points, B has 0 and 1; in set 1 they sit at different tables, with 2 and 3.
    played = [
        outcome(0, (0, 1, 8, 9), (4, 1, 3, 2), board=0),
        outcome(1, (9, 0, 1, 8), (4, 3, 2, 1), board=0),
        outcome(2, (0, 7, 8, 9), (3, 4, 1, 2), board=1),
        outcome(3, (1, 7, 8, 9), (4, 3, 1, 2), board=1),
    ]
    found = compare(played, 0, 1, by="place", lowest_wins=False)
    assert found.sets == 2
    assert found.difference.value == pytest.approx(((2.5 - 0.5) + (2 - 3)) / 2)


def test_sets_in_which_only_one_of_them_sat_are_left_out() -> None:
    played = [outcome(0, (0, 7), (1, 0)), outcome(1, (1, 7), (0, 1)), outcome(2, (0, 1), reason="cancelled")]
    assert compare(played, 0, 1, by="place", lowest_wins=False).sets == 0


def test_points_are_compared_a_deal_over_deals_that_count() -> None:
    deals = [DealOutcome(0, 0, (10, 4)), DealOutcome(1, 1, (2, 4)), DealOutcome(2, 0, (99, 0), counted=False)]
    played = [outcome(0, (0, 1), (111, 8), deals=deals)]
    assert compare(played, 0, 1, by="points", lowest_wins=False).difference.value == 2
    assert compare(played, 0, 1, by="points", lowest_wins=True).difference.value == -2
    assert compare(played, 1, 0, by="points", lowest_wins=False).difference.value == -2


def test_partners_differ_by_nothing() -> None:
    played = [outcome(number, (0, 2, 1, 3), (5, 1), sides=PAIRS) for number in range(4)]
    assert compare(played, 0, 1, by="points", lowest_wins=False).difference == Interval(0, 0, 0)


@given(st.randoms(use_true_random=False), st.sampled_from(["place", "points"]))
def test_a_comparison_does_not_depend_on_the_order_of_tables(draw: random.Random, by: By) -> None:
    played = tournament([0, 0.2, 0.4, 0.6, 0.8], 12, 3, seed=draw.randrange(1000))
    shuffled = draw.sample(played, len(played))
    assert compare(shuffled, 0, 1, by=by, lowest_wins=False) == compare(played, 0, 1, by=by, lowest_wins=False)


@pytest.mark.parametrize(("counts", "ratio"), FASTCHESS)
def test_the_likelihood_ratio_of_pairs_is_that_of_fastchess(counts: tuple[int, ...], ratio: float) -> None:
    assert pentanomial_llr(counts, 0, 2) == pytest.approx(ratio, abs=5e-3)


def test_the_likelihood_ratio_of_the_longer_vector_agrees_to_five_digits() -> None:
    assert pentanomial_llr(FASTCHESS[0][0], 0, 2) == pytest.approx(2.94598, abs=1e-4)


def test_normalised_elo_is_that_of_fastchess() -> None:
    elo = normalized_elo(FASTCHESS[0][0])
    assert elo.value == pytest.approx(3.051, abs=5e-4)
    assert (elo.value - elo.low, elo.high - elo.value) == pytest.approx((2.312, 2.312), abs=5e-4)


@pytest.mark.parametrize(
    "counts", [(0, 0, 0, 0, 0), (0, 0, 0, 0, 1), (7, 0, 0, 0, 0), (0, 0, 5, 0, 0), (0, 0, 0, 0, 10**6)]
)
def test_pairs_that_are_all_alike_give_finite_figures(counts: tuple[int, ...]) -> None:
    elo = normalized_elo(counts)
    assert all(map(math.isfinite, (elo.low, elo.value, elo.high, pentanomial_llr(counts, 0, 2))))
    lead = counts[4] - counts[0]
    assert elo.value == pytest.approx(0, abs=1e-9) if not lead else elo.value * lead > 0


def test_the_sequential_test_of_pairs_is_that_of_fastchess() -> None:
    # A set is a pair here: its scores taken one by one, against effects of 0 and 2 points of normalised Elo.
    counts = (38, 1017, 2183, 1064, 34)
    effect = 2 * math.sqrt(2) * math.log(10) / 800
    test = Sequential(effect=effect, least=10**6)
    for score, count in enumerate(counts):
        for _ in range(count):
            test.take(score / 4 - 0.5)
    # The correction for skewness, which pairs of fastchess do without, is next to nothing for so many.
    assert test.ratio == pytest.approx(pentanomial_llr(counts, 0, 2), rel=1e-3)


def test_bounds_follow_from_the_accepted_errors() -> None:
    test = Sequential(alpha=0.05, beta=0.1)
    assert test.low == pytest.approx(math.log(0.1 / 0.95))
    assert test.high == pytest.approx(math.log(0.9 / 0.05))


NOISE: dict[str, Callable[[random.Random], float]] = {
    "normal": lambda draw: draw.gauss(0, 1),
    "place points of four tables": lambda draw: sum(draw.choice((-3, -2, -1, 1, 2, 3)) for _ in range(4)) / 4,
    "mostly a little behind": lambda draw: 2.0 if draw.random() < 0.2 else -0.5,
    "mostly a little ahead": lambda draw: -2.0 if draw.random() < 0.2 else 0.5,
    "skewed": lambda draw: 1 - draw.expovariate(1),
}
"""Differences of mean zero and a deviation of about 1."""


def runs(mean: float, many: int, noise: str = "normal") -> Counter[str | None]:
    """Verdicts of many tests of differences with this mean."""
    verdicts: Counter[str | None] = Counter()
    for seed in range(many):
        draw = random.Random(seed)
        test = Sequential(effect=0.3)
        while test.verdict is None and test.sets < 20_000:
            test.take(mean + NOISE[noise](draw))
        verdicts[test.verdict] += 1
    return verdicts


@pytest.mark.parametrize("noise", list(NOISE))
def test_equals_are_called_better_in_at_most_about_five_of_a_hundred_tests(noise: str) -> None:
    verdicts = runs(0.0, 600, noise)
    assert verdicts[None] == 0
    assert verdicts["better"] <= 0.065 * 600


def test_a_better_one_is_missed_in_at_most_about_five_of_a_hundred_tests() -> None:
    verdicts = runs(0.3, 600)
    assert verdicts[None] == 0
    assert verdicts["not better"] <= 0.065 * 600


def test_a_worse_one_is_practically_never_called_better() -> None:
    assert runs(-0.3, 300)["better"] <= 1


@pytest.mark.parametrize(("difference", "verdict"), [(3.0, "better"), (-3.0, "not better"), (0.0, "not better")])
def test_differences_that_are_all_the_same_come_to_a_verdict(difference: float, verdict: str) -> None:
    test = Sequential()
    while test.verdict is None and test.sets < 1000:
        test.take(difference)
    assert test.verdict == verdict
    assert test.sets >= 20


def test_the_clearer_the_difference_the_sooner_the_verdict() -> None:
    def sets(mean: float) -> int:
        test = Sequential()
        while test.verdict is None:
            test.take(mean + (1 if test.sets % 2 else -1))
        return test.sets

    taken = [sets(mean) for mean in (0.2, 0.3, 0.5, 1.0, 3.0, 50.0)]
    assert taken == sorted(taken, reverse=True)


def test_there_is_no_verdict_before_the_least_number_of_sets() -> None:
    test = Sequential(least=50)
    assert [test.take(5.0 + number % 2) for number in range(49)] == [None] * 49
    assert test.take(5.0) == "better"


def test_a_verdict_stands_whatever_comes_later() -> None:
    test = Sequential()
    while test.take(1.0) is None:
        pass
    for _ in range(1000):
        assert test.take(-100.0) == "better"


@pytest.mark.parametrize(
    "wrong", [{"alpha": 0}, {"alpha": 0.5}, {"beta": 1}, {"effect": 0}, {"none": 0.2}, {"least": 1}]
)
def test_senseless_arguments_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="not"):
        Sequential(**wrong)  # type: ignore[arg-type]
