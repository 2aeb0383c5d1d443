"""How a tournament is going, for whoever looks on: a bar with rate and time left, and the standings so far."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import defaultdict
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from referee_server.cli.output import escaped
from referee_server.director.director import Director
from referee_server.tournament.book import Book
from referee_server.tournament.points import place_points
from referee_server.tournament.ratings import LiveRatings

if TYPE_CHECKING:
    from rich.console import RenderableType

_TICK_S: Final = 0.5
_LINES: Final = 12


class Progress:
    """Shows a tournament while it runs: on a terminal live, else in a line now and then."""

    def __init__(self, director: Director, address: str, *, quiet: bool) -> None:
        self._director = director
        self._quiet = quiet
        self._live: Any = None
        self._terminal = sys.stdout.isatty() and not quiet
        self._began = time.monotonic()
        self._before = len(director.book.outcomes)
        self._told = -1
        self._live_view = _LiveView() if self._terminal else None
        self._said = f"the referee listens on {address}"

    def __enter__(self) -> Self:
        if self._terminal:
            from rich.live import Live

            self._live = Live(self._picture(), refresh_per_second=4, transient=True)
            self._live.start()
        else:
            self.say(self._said)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """Says something besides."""
        self._said = text
        if not self._terminal and not self._quiet:
            print(text, flush=True)

    async def tick(self) -> None:
        """Keeps what is shown up to date, until it is cancelled."""
        while True:
            if self._live is not None:
                self._live.update(self._picture())
            elif not self._quiet:
                self._line()
            await asyncio.sleep(_TICK_S)

    @property
    def _book(self) -> Book:
        return self._director.book

    def _counts(self) -> tuple[int, int, float, float | None]:
        """Returns tables ended and in all, tables a minute, and seconds left as far as that can be known."""
        ended, total = len(self._book.outcomes), self._book.scheduler.total
        rate = (ended - self._before) / max(1e-9, time.monotonic() - self._began)
        left = (total - ended) / rate if rate and total else None
        return ended, total, rate * 60, left

    def _line(self) -> None:
        ended, total, rate, left = self._counts()
        tenth = ended * 10 // total if total else ended // 100
        if tenth == self._told:
            return
        self._told = tenth
        of = f" of {total}" if total else ""
        print(f"{ended}{of} tables, {rate:.0f} a minute{f', {_span(left)} left' if left else ''}", flush=True)

    def _picture(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        ended, total, rate, left = self._counts()
        head = Table.grid(padding=(0, 1))
        words = f"{ended}{f' of {total}' if total else ''} tables, {len(self._director.playing)} at play"
        pace = f"{rate:.0f} a minute{f', {_span(left)} left' if left else ''}"
        head.add_row(
            Text(self._book.cup.name),
            ProgressBar(total=total or None, completed=ended, width=30, pulse=not total),
            Text(f"{words}, {pace}"),
        )
        assert self._live_view is not None
        self._live_view.take(self._book)
        return Group(head, Text(self._said, style="dim"), self._live_view.picture(self._book))


class _LiveView:
    """The standings for the eye: what changes with each table, worked out as the tables come."""

    def __init__(self) -> None:
        self._count = 0
        self._ratings: LiveRatings
        self._points: defaultdict[int, float]
        self._seen = 0

    def take(self, book: Book) -> None:
        """Takes the tables that have ended since."""
        if len(book.cup.entrant) != self._count:
            # At the beginning, and when somebody has come late.
            self._count, self._seen, self._points = len(book.cup.entrant), 0, defaultdict(float)
            self._ratings = LiveRatings(self._count, lowest_wins=book.cup.rules.lowest_wins)
        for outcome in islice(book.outcomes.values(), self._seen, None):
            self._ratings.update(outcome)
            if outcome.scored:
                for entrant, points in zip(outcome.table.seats, place_points(outcome), strict=True):
                    self._points[entrant] += points
        self._seen = len(book.outcomes)

    def picture(self, book: Book) -> RenderableType:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("", "entrant", "tables", "a table", "skill"):
            table.add_column(title, justify="left" if title == "entrant" else "right")
        for number, line in enumerate(self._ratings.lines()[:_LINES], 1):
            name = escaped(book.cup.entrant[line.entrant].name)
            mean = f"{self._points[line.entrant] / line.tables:.2f}" if line.tables else ""
            table.add_row(str(number), name, str(line.tables), mean, f"{line.mu:.1f} ± {2 * line.sigma:.1f}")
        return table


def _span(seconds: float) -> str:
    """Returns a time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
