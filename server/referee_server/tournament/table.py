"""The standings of a tournament, from its book."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from referee_server.tournament.book import Book, plan_of
from referee_server.tournament.formats import bye_worth, tables_a_group
from referee_server.tournament.model import Standing
from referee_server.tournament.standings import standings


def lines_of(book: Book, *, resamples: int = 1000) -> list[Standing]:
    """Returns the standings of a tournament as it stands, best first.

    Args:
        book: the tournament.
        resamples: how often to draw for the intervals; 0 leaves them out, for a quick look.
    """
    return snapshot(book, resamples)()


def snapshot(book: Book, resamples: int) -> Callable[[], list[Standing]]:
    """Returns what works the standings out as they are now: for a thread, while the tournament goes on."""
    plan = plan_of(book.cup, book.created.commitment)
    tables = tables_a_group(plan)
    worth = bye_worth(plan)
    return partial(
        standings,
        book.counted,
        len(book.cup.entrant),
        lowest_wins=book.cup.rules.lowest_wins,
        byes=dict(book.scheduler.byes),
        bye_points=worth / tables,
        # A bye that is worth nothing, because everybody has as many in the end, is no table at which nothing was won.
        bye_tables=tables if worth else 0,
        withdrawn=set(book.withdrawn),
        eliminated=dict(book.scheduler.eliminated),
        resamples=resamples,
    )
