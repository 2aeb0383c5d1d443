from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee_server.tournament.crosstable import Meeting, crosstable
from referee_server.tournament.model import DealOutcome
from tournament.made import PAIRS, outcome


def test_each_meets_each_at_a_table_and_shared_places_are_half() -> None:
    table = crosstable(
        [outcome(0, (0, 1, 2), (10, 4, 4)), outcome(1, (1, 0, 2), (9, 5, 1))],
        3,
        lowest_wins=False,
    )
    assert table[0][1] == Meeting(2, 0.5, 1.0)
    assert table[1][0] == Meeting(2, 0.5, -1.0)
    assert table[1][2] == Meeting(2, 0.75, 4.0)
    assert table[0][2] == Meeting(2, 1.0, 5.0)
    assert [table[entrant][entrant] for entrant in range(3)] == [Meeting()] * 3


def test_partners_and_house_bots_do_not_meet() -> None:
    table = crosstable([outcome(0, (0, 1, 2, -1), (8, 3), sides=PAIRS)], 3, lowest_wins=False)
    assert table[0][2] == Meeting()
    assert table[0][1] == table[2][1] == Meeting(1, 1.0, 5.0)


def test_tables_without_a_result_are_passed_over() -> None:
    assert crosstable([outcome(0, (0, 1), reason="referee_fault")], 2, lowest_wins=False)[0][1].tables == 0


def test_places_are_official_and_points_leave_out_what_a_substitute_played() -> None:
    deals = [DealOutcome(0, 0, (3, 1)), DealOutcome(1, 1, (50, 0), counted=False)]
    (met,) = (crosstable([outcome(0, (0, 1), (53, 1), places=(2, 1), deals=deals)], 2, lowest_wins=True)[0][1],)
    assert met == Meeting(1, 0.0, -2.0)


@given(
    st.lists(
        st.tuples(st.permutations([0, 1, 2, 3, -1]), st.lists(st.integers(-5, 5), min_size=4, max_size=4)), max_size=12
    ),
    st.randoms(use_true_random=False),
)
def test_the_table_mirrors_itself_and_does_not_depend_on_the_order(
    tables: list[tuple[list[int], list[int]]], draw: random.Random
) -> None:
    played = [outcome(number, seats[:4], totals) for number, (seats, totals) in enumerate(tables)]
    table = crosstable(played, 4, lowest_wins=False)
    assert crosstable(draw.sample(played, len(played)), 4, lowest_wins=False) == table
    for one in range(4):
        for other in range(4):
            assert table[one][other].tables == table[other][one].tables
            assert table[one][other].share + table[other][one].share == pytest.approx(1)
            assert table[one][other].points == -table[other][one].points
            assert table[one][other].lead == pytest.approx(-table[other][one].lead)
