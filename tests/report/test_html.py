"""The page: whole, safe, and in need of nothing from elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from referee_server.cli.report.html import MOST_TABLES, as_html
from referee_server.cli.report.model import Report
from report.world import cup, duel, nobody

FETCHING = {"script", "link", "img", "iframe", "object", "embed", "base", "use", "image"}
VOID = {"meta", "line", "circle", "polyline", "rect"}
HOSTILE = "</title></svg><script>alert(1)</script>\" onload='x' &amp; =1 \x1b[2J\u202e\u200b<img src=x>"


class Page(HTMLParser):
    """Reads a page and keeps what the tests ask for; refuses tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headed: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.open[-1:] == ["svg"] and not self.open_pictures_titled(tag):
            raise AssertionError(f"a picture starts with {tag}")
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def open_pictures_titled(self, tag: str) -> bool:
        last = next(name for name, _ in reversed(self.tags))
        return last != "svg" or tag == "title"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def hostile() -> Report:
    report = cup(names=(HOSTILE, f"{HOSTILE}2", "=cmd|x", "ok"))
    slow = replace(report.standings[0], losses={HOSTILE: 1}, faults={HOSTILE: 1})
    return replace(
        report,
        name=HOSTILE,
        game_title=HOSTILE,
        format=HOSTILE,
        state=HOSTILE,
        notes=(HOSTILE,),
        comparison=duel(report.outcomes, HOSTILE),
        commitment=HOSTILE,
        master=HOSTILE,
        generated=HOSTILE,
        standings=(slow, *report.standings[1:]),
        outcomes=tuple(
            replace(
                outcome,
                match_id=HOSTILE,
                deals=tuple(replace(deal, kind=f"{deal.kind}{HOSTILE}") for deal in outcome.deals),
            )
            for outcome in report.outcomes
        ),
    )


REPORTS = {
    "four": cup(),
    "none ended": nobody(),
    "nobody": replace(nobody(), names=(), standings=()),
    "one table": cup(tables=1, mishaps=False),
    "forty": cup(names=tuple(f"entrant {number}" for number in range(40)), tables=60),
    "hostile": hostile(),
}


@pytest.mark.parametrize("name", REPORTS)
def test_its_tags_match_and_every_picture_begins_with_its_title(name: str) -> None:
    Page(as_html(REPORTS[name]))


@pytest.mark.parametrize("name", REPORTS)
def test_it_needs_nothing_from_elsewhere_and_runs_nothing(name: str) -> None:
    page = Page(as_html(REPORTS[name]))
    assert {tag for tag, _ in page.tags}.isdisjoint(FETCHING)
    attributes = {attribute for _, given in page.tags for attribute in given}
    assert attributes & {"src", "href", "srcset", "xlink:href"} == set()
    assert [attribute for attribute in attributes if attribute.startswith("on")] == []
    (style,) = re.findall("<style>(.*?)</style>", as_html(REPORTS[name]), re.DOTALL)
    assert not re.search(r"@import|url\(|@font-face", style)


def test_it_holds_no_address() -> None:
    text = as_html(cup())
    assert not re.search(r"https?:|//|src=|@import", text)


@pytest.mark.parametrize("name", REPORTS)
def test_each_id_is_there_once_and_every_reference_leads_somewhere(name: str) -> None:
    page = Page(as_html(REPORTS[name]))
    ids = [given["id"] for _, given in page.tags if "id" in given]
    assert len(ids) == len(set(ids))
    told = [one for _, given in page.tags for one in (given.get("aria-labelledby") or "").split()]
    assert set(told) <= set(ids)


@pytest.mark.parametrize("name", REPORTS)
def test_no_figure_in_it_is_none(name: str) -> None:
    assert not re.search(r"\bnan\b|\binf\b|None", as_html(REPORTS[name]))


def test_text_of_others_is_shown_but_no_character_that_is_not_seen() -> None:
    text = as_html(hostile())
    assert [char for char in text if not char.isprintable() and char != "\n"] == []
    assert "<script>alert(1)</script>" in "".join(Page(text).text)


@pytest.mark.parametrize("name", ["four", "hostile"])
def test_every_column_and_every_line_of_its_tables_has_a_head(name: str) -> None:
    page = Page(as_html(REPORTS[name]))
    assert page.named("table")
    assert all(given.get("scope") in ("col", "row") for given in page.named("th"))


@pytest.mark.parametrize(
    ("name", "plots"),
    [
        ("four", {"ratings", "points", "seats", "dealing", "deals"}),
        ("none ended", set()),
        ("nobody", set()),
    ],
)
def test_it_has_a_plot_of_all_that_there_are_figures_of(name: str, plots: set[str]) -> None:
    drawn = {(given["aria-labelledby"] or "").split("-")[0] for given in Page(as_html(REPORTS[name])).named("svg")}
    assert drawn == plots


def test_how_far_it_is_and_what_has_to_be_known_stand_before_all_figures() -> None:
    report = replace(cup(), state="running", tables_total=9, notes=("UNSEALED: the host gave the seed.",))
    text = as_html(report)
    for said in ("Not finished: it is still running. 6 of 9 tables", "UNSEALED: the host gave the seed."):
        assert text.index(said) < text.index("<main>")


def test_of_very_many_tables_the_last_are_listed_and_that_is_said() -> None:
    text = as_html(cup(tables=MOST_TABLES + 20, deals=1, resamples=0))
    assert f"The last {MOST_TABLES} of {MOST_TABLES + 20} tables" in text
    assert text.count('<td class="text">m') == MOST_TABLES


def test_ten_thousand_tables_still_make_a_page_of_less_than_a_megabyte() -> None:
    names = tuple(f"entrant {number}" for number in range(16))
    assert len(as_html(cup(names=names, tables=10_000, deals=1, resamples=0))) < 1_000_000
