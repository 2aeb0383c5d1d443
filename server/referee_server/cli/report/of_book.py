"""A report from the log of a tournament."""

from __future__ import annotations

from typing import Final

from referee_server.cli.report.model import FINISHED, Duel, Report
from referee_server.tournament import book as states
from referee_server.tournament.bias import bias
from referee_server.tournament.book import Book
from referee_server.tournament.crosstable import crosstable
from referee_server.tournament.sequential import compare
from referee_server.tournament.table import lines_of

_FORMATS: Final = {
    "round_robin": "round robin",
    "swiss": "Swiss",
    "knockout": "knock-out",
    "gauntlet": "gauntlet",
    "ladder": "ladder",
}
_MODES: Final = {
    "none": "every table with cards of its own",
    "rotation": "duplicate, each group on every board set in every seating of the rotation",
    "once": "duplicate, each entrant on a board set once",
}


def report_of(book: Book, *, resamples: int = 1000) -> Report:
    """Returns the report of a tournament as it stands.

    Args:
        book: the tournament.
        resamples: how often to draw for the intervals; 0 leaves them out, for a quick look.
    """
    cup = book.cup
    lowest_wins = cup.rules.lowest_wins
    counted = book.counted
    full = resamples > 0
    return Report(
        name=cup.name,
        game=cup.game,
        game_title=cup.rules.title,
        format=_format(book),
        state=_state(book),
        names=[entrant.name for entrant in cup.entrant],
        filler_names=cup.duplicate.fillers,
        tables_total=book.scheduler.total or len(book.scheduler.tables),
        lowest_wins=lowest_wins,
        notes=_notes(book),
        standings=lines_of(book, resamples=resamples),
        crosstable=crosstable(counted, len(cup.entrant), lowest_wins=lowest_wins),
        bias=bias(counted, lowest_wins) if full and counted else None,
        comparison=_duel(book) if full else None,
        outcomes=counted,
        commitment=book.created.commitment,
        master=book.ended.master_secret.hex() if book.ended is not None else "",
        generated=f"From the log of tournament {book.tournament_id}, {book.sequence} facts.",
    )


def _format(book: Book) -> str:
    cup = book.cup
    rounds = f", {cup.format.rounds} rounds" if cup.format.rounds else ""
    sets = "match" if cup.mode == "none" else "board set"
    many = f"{cup.format.sets} {sets}{'es' if cup.mode == 'none' else 's'}" if cup.format.sets > 1 else f"one {sets}"
    return f"{_FORMATS[cup.format.kind]}{rounds}, {many} a group; {_MODES[cup.mode]}"


def _state(book: Book) -> str:
    if book.ended is not None and book.ended.note:
        return f"stopped early: {book.ended.note}"
    if book.stopping is not None and book.stopping.verdict is not None:
        return f"stopped early: {book.stopping.words()}"
    return FINISHED if book.state == states.FINISHED else book.state.lower().replace("waiting", "not started")


def _notes(book: Book) -> list[str]:
    notes = []
    if book.created.unsealed:
        notes.append("UNSEALED: the host gave the seed himself, so that he could know every card beforehand.")
    if book.cup.duplicate.trust_memory:
        notes.append("TRUSTED: entrants met the same cards again, and are trusted not to have remembered them.")
    tiers: dict[str, list[str]] = {}
    if book.started is not None:
        for entrant, tier in zip(book.cup.entrant, book.started.isolation, strict=False):
            if tier:
                tiers.setdefault(tier, []).append(entrant.name)
    notes += [f"Kept apart from the machine by {tier}: {', '.join(names)}." for tier, names in sorted(tiers.items())]
    beyond = len(book.outcomes) - len(book.counted)
    if beyond:
        notes.append(f"{beyond} tables ended after the verdict; they do not count.")
    return notes


def _duel(book: Book) -> Duel | None:
    rule = book.cup.stop
    if rule is None:
        return None
    names = [entrant.name for entrant in book.cup.entrant]
    first, second = names.index(rule.better), names.index(rule.than)
    found = compare(
        book.counted,
        first,
        second,
        by=rule.by,
        lowest_wins=book.cup.rules.lowest_wins,
        confidence=rule.confidence,
    )
    verdict = book.stopping.words() if book.stopping is not None and book.stopping.verdict is not None else ""
    return Duel(first, second, rule.by, found, verdict)
