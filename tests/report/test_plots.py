"""The pictures: what is drawn where."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee_server.cli.report import plots, svg
from referee_server.cli.report.series import MOST_POINTS, advantage_lines, deal_means
from referee_server.tournament.model import Interval
from report.world import cup, forfeited, without_result


def numbers(picture: str, tag: str, attribute: str, look: str) -> list[float]:
    return [float(one) for one in re.findall(rf'<{tag} class="{look}"[^>]* {attribute}="([-\d.]+)"', picture)]


def test_a_higher_rating_lies_further_to_the_right() -> None:
    report = cup()
    across = numbers(plots.ratings(report), "circle", "cx", "dot")
    ratings = [line.rating.value for line in report.standings]
    assert sorted(range(4), key=across.__getitem__) == sorted(range(4), key=ratings.__getitem__)


def test_whiskers_reach_from_the_low_end_to_the_high_end() -> None:
    report = cup(tables=20)
    picture = plots.ratings(report)
    dots = numbers(picture, "circle", "cx", "dot")
    starts = numbers(picture, "line", "x1", "whisker")[::3]
    ends = numbers(picture, "line", "x2", "whisker")[::3]
    for line, dot, start, end in zip(report.standings, dots, starts, ends, strict=True):
        part = (line.rating.value - line.rating.low) / (line.rating.high - line.rating.low)
        assert (dot - start) / (end - start) == pytest.approx(part, abs=0.01)


def test_a_rating_without_interval_is_an_open_dot_without_whiskers() -> None:
    report = cup()
    one = replace(report.standings[0], rating=Interval(1500, 1500, 1500))
    picture = plots.ratings(replace(report, standings=(one,)))
    assert 'class="dot open"' in picture
    assert "whisker" not in picture


def test_points_above_an_even_share_sum_to_nothing_at_a_table() -> None:
    report = cup(tables=30)
    ends = [line.points[-1][1] for line in advantage_lines(report).values()]
    assert sum(ends) == pytest.approx(0)


def test_a_line_ends_at_the_place_points_of_the_standings() -> None:
    report = cup(tables=40)
    lines = advantage_lines(report)
    for line in report.standings:
        tables, advantage = lines[line.entrant].points[-1]
        assert tables == line.played
        assert advantage + 1.5 * tables == pytest.approx(line.place_points)


def test_lines_of_very_many_tables_are_thinned_but_keep_their_start_and_end() -> None:
    report = cup(tables=10_000, deals=1, resamples=0)
    for line in advantage_lines(report).values():
        assert len(line.points) == MOST_POINTS
        assert line.points[0] == (0, 0)
        assert line.points[-1][0] == 9_999  # one ended without a result
        tables = [at for at, _ in line.points]
        assert tables == sorted(set(tables))


def test_tables_without_a_result_add_nothing() -> None:
    report = cup(mishaps=False)
    spoilt = replace(report, outcomes=tuple(without_result(one, "cancelled") for one in report.outcomes))
    assert advantage_lines(spoilt) == {}
    assert plots.points_over_time(spoilt) == ""


def test_beyond_sixteen_entrants_the_best_sixteen_have_lines_and_that_is_said() -> None:
    report = cup(names=tuple(f"entrant {number}" for number in range(20)), tables=100)
    picture = plots.points_over_time(report)
    assert picture.count('class="series') == 16
    assert "the best 16 of 20" in picture
    assert f"  {report.name_of(report.standings[15].entrant)}<" in picture
    assert f"  {report.name_of(report.standings[16].entrant)}<" not in picture


def test_of_sixteen_lines_no_two_look_the_same() -> None:
    picture = plots.points_over_time(cup(names=tuple(f"entrant {number}" for number in range(16)), tables=100))
    looks = re.findall(r'class="series ([^"]*)"', picture)
    assert len(set(looks)) == 16


def test_labels_at_the_ends_of_lines_never_overlap() -> None:
    picture = plots.points_over_time(cup(names=tuple(f"entrant {number}" for number in range(16)), tables=100))
    heights = sorted(float(y) for y in re.findall(r'class="label"[^>]* y="([\d.]+)"', picture))
    assert min(after - before for before, after in pairwise(heights)) >= 14.9


def test_long_names_are_shortened_with_the_whole_name_to_point_at() -> None:
    name = "an entrant with a name that goes on and on"
    picture = plots.ratings(cup(names=(name, "b", "c", "d")))
    (shown,) = re.findall(f"<title>{name}</title>([^<]*)</text>", picture)
    assert re.fullmatch("an entrant with .*….* and on", shown)


@given(st.text(max_size=60), st.floats(40, 300))
def test_what_is_shown_of_a_text_is_never_longer_than_its_room(text: str, most: float) -> None:
    assert svg.span(svg.shortened(text, most)) <= most


def test_deals_that_do_not_count_are_left_out() -> None:
    report = cup(tables=1, mishaps=False)
    (outcome,) = report.outcomes
    spoilt = replace(report, outcomes=(forfeited(outcome, 0, "timeout"),))
    assert set(deal_means(spoilt)) == {"royalty", "queens"}


def test_with_one_kind_of_deal_there_is_no_plot_of_kinds() -> None:
    assert plots.deals(cup(deals=1)) == ""


@pytest.mark.parametrize(("lowest_wins", "look"), [(True, "cell good"), (False, "cell bad")])
def test_few_points_are_tinted_as_the_game_takes_them(lowest_wins: bool, look: str) -> None:
    report = cup(tables=200, mishaps=False)
    best = deal_means(report)["royalty"]
    assert min(best, key=lambda entrant: best[entrant].mean) == 0
    line = next(line for line in report.standings if line.entrant == 0)
    picture = plots.deals(replace(report, standings=(line,), lowest_wins=lowest_wins))
    assert set(re.findall(r'<rect class="([^"]*)"', picture)) == {look}


finite = st.floats(-1e6, 1e6)


@given(finite, finite)
def test_ticks_are_few_ascending_and_in_range(one: float, two: float) -> None:
    low, high = sorted((one, two))
    places = svg.ticks(low, high)
    assert len(places) <= 8
    assert places == sorted(places)
    air = (high - low) * 1e-6 + 1e-9
    assert all(low - air <= place <= high + air for place in places)


@given(st.lists(st.floats(0, 300), min_size=1, max_size=20))
def test_labels_keep_their_order_and_distance_and_stay_inside(wanted: list[float]) -> None:
    wanted.sort()
    places = svg.spaced(wanted, 15, 0, 300)
    assert all(after - before >= 15 - 1e-9 for before, after in pairwise(places))
    assert places[0] >= -1e-9
    assert places[-1] <= 300 + 1e-9
