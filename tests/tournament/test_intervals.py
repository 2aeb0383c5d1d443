from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee_games.dealing import Draws
from referee_server.tournament.intervals import bootstrap, by_board, drawn, means, percentile
from referee_server.tournament.model import Interval
from tournament.made import outcome, tournament


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def test_tables_are_put_together_by_board_set_in_the_order_of_the_schedule() -> None:
    played = [
        outcome(number, (0, 1), (1, 0), board=board) for number, board in [(5, 1), (0, 0), (4, 2), (3, 0), (1, 1)]
    ]
    assert [[table.table.number for table in tables] for tables in by_board(played)] == [[0, 3], [1, 5], [4]]


def test_draws_follow_from_the_seed_and_are_pinned() -> None:
    assert drawn(10, 0, 0) == drawn(10, 0, 0) != drawn(10, 1, 0)
    assert drawn(10, 0, 0) != drawn(10, 0, 1)
    assert drawn(10, 0, 0) == [7, 4, 2, 0, 9, 4, 6, 5, 2, 4]


def test_every_unit_is_drawn_about_equally_often() -> None:
    times = Counter(unit for resample in range(1000) for unit in drawn(7, 0, resample))
    assert sorted(times) == list(range(7))
    assert all(900 < count < 1100 for count in times.values())


@pytest.mark.parametrize(("share", "value"), [(0, 1), (0.25, 2), (0.5, 3), (0.6, 5.8), (1, 20)])
def test_percentiles_lie_on_straight_lines_between_values(share: float, value: float) -> None:
    assert percentile([1, 2, 3, 10, 20], share) == pytest.approx(value)


def test_units_are_drawn_as_a_whole() -> None:
    # Each unit adds up to zero, so every selection of units does.
    units = [[-3.0, 3.0], [-8.0, 8.0], [-1.0, 1.0]]
    assert bootstrap(units, lambda chosen: [sum(map(sum, chosen))]) == [Interval(0, 0, 0)]


@pytest.mark.parametrize(("units", "resamples"), [([[1.0, 4.0]], 1000), ([[1.0], [4.0]], 0)])
def test_one_unit_or_no_draw_gives_the_figure_alone(units: list[list[float]], resamples: int) -> None:
    found = bootstrap(units, lambda chosen: [mean([x for unit in chosen for x in unit])], resamples=resamples)
    assert found == [Interval(2.5, 2.5, 2.5)]


def test_a_higher_confidence_is_a_wider_interval_around_the_narrower() -> None:
    units = [float(x) for x in range(30)]
    (narrow,) = bootstrap(units, lambda chosen: [mean(list(chosen))], confidence=0.8)
    (wide,) = bootstrap(units, lambda chosen: [mean(list(chosen))], confidence=0.99)
    assert wide.low < narrow.low < narrow.value == wide.value < narrow.high < wide.high


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 4)), min_size=1, max_size=12), st.integers(0, 5))
def test_means_are_the_bootstrap_made_fast(units: list[tuple[int, int]], seed: int) -> None:
    (slow,) = bootstrap(
        units, lambda chosen: [sum(x for x, _ in chosen) / sum(n for _, n in chosen)], resamples=60, seed=seed
    )
    fast = means([{"a": (float(x), float(n))} for x, n in units], resamples=60, seed=seed)["a"]
    assert (fast.value, fast.low, fast.high) == pytest.approx((slow.value, slow.low, slow.high))


def test_what_is_fixed_is_in_every_resample() -> None:
    found = means([{"a": (0.0, 1.0)}, {"a": (0.0, 1.0)}], fixed={"a": (6.0, 1.0), "b": (3.0, 2.0)}, resamples=50)
    assert found == {"a": Interval(2, 2, 2), "b": Interval(1.5, 1.5, 1.5)}


def test_a_key_is_judged_by_the_resamples_in_which_it_was_drawn() -> None:
    units: list[dict[str, tuple[float, float]]] = [
        *({"a": (1.0, 1.0)}, {"a": (3.0, 1.0)}) * 3,
        *({"b": (9.0, 1.0)},) * 6,
    ]
    found = means(units, resamples=300)
    assert found["a"].value == 2
    assert 1 <= found["a"].low < 1.6
    assert 2.4 < found["a"].high <= 3
    assert found["b"] == Interval(9, 9, 9)


def test_fewer_than_six_sets_give_no_interval() -> None:
    units = [{"a": (float(number), 1.0)} for number in range(6)]
    assert means(units[:5])["a"] == Interval(2, 2, 2)
    assert means(units)["a"].low < 2.5 < means(units)["a"].high


def test_intervals_of_few_sets_hold_the_mean_as_often_as_those_of_many() -> None:
    held = 0
    for seed in range(400):
        draws = Draws(b"few", str(seed))
        units = [{"a": (sum(draws.below(100) for _ in range(6)) / 6, 1.0)} for _ in range(8)]
        interval = means(units, resamples=400, seed=seed)["a"]
        held += interval.low <= 49.5 <= interval.high
    assert 0.92 < held / 400 < 0.98


@pytest.mark.parametrize("luck", [0.0, 2.0])
def test_about_95_of_100_intervals_hold_the_true_mean(luck: float) -> None:
    # In a field of equals the true mean is half of all place points, whatever the luck of a board set does.
    held: Counter[bool] = Counter()
    for seed in range(200):
        units = []
        for tables in by_board(tournament([0.0] * 5, 40, 4, luck=luck, seed=seed)):
            unit: dict[int, tuple[float, float]] = {}
            for table in tables:
                for entrant, place in zip(table.table.seats, table.places, strict=True):
                    amount, weight = unit.get(entrant, (0.0, 0.0))
                    unit[entrant] = (amount + 4 - place, weight + 1)
            units.append(unit)
        for interval in means(units, resamples=200, seed=seed).values():
            held[interval.low <= 1.5 <= interval.high] += 1
    assert 0.90 <= held[True] / held.total() <= 0.99


def test_single_tables_of_lucky_board_sets_would_claim_too_much() -> None:
    draw = random.Random(5)
    units = []
    for _ in range(60):
        luck = draw.gauss(0, 3)
        units.append([luck + draw.gauss(0, 1) for _ in range(4)])
    (together,) = bootstrap(units, lambda chosen: [mean([x for unit in chosen for x in unit])], resamples=400)
    single = [[x] for unit in units for x in unit]
    (apart,) = bootstrap(single, lambda chosen: [mean([x for unit in chosen for x in unit])], resamples=400)
    assert together.high - together.low > 1.6 * (apart.high - apart.low)
