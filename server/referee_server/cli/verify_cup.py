"""Proving a tournament: its log, its cards, and that its results are those of its matches."""

from __future__ import annotations

from typing import Any

from referee.v1 import match_pb2
from referee_games import dealing
from referee_server.director.orders import deal_id_of, match_id_of
from referee_server.journal import JournalReader, StorageError
from referee_server.journal.errors import DamagedLogError, JournalError
from referee_server.match.verify import LogError, parse
from referee_server.tables.revealing import end_digest
from referee_server.tournament.book import Book, BookError
from referee_server.tournament.harvest import outcome_of
from referee_server.tournament.model import Outcome


class _DoesNotHoldError(Exception):
    """A tournament does not hold; the message says what of it."""


def verify_tournaments(journal: JournalReader) -> list[dict[str, Any]]:
    """Returns a row on each tournament of a data folder, in the form of those on logs."""
    return [_verified(journal, row.tournament_id) for row in journal.tournaments()]


def _verified(journal: JournalReader, tournament_id: str) -> dict[str, Any]:
    row: dict[str, Any] = {"log": tournament_id, "outcome": "refuted", "event": 0, "message": "", "digest": ""}
    try:
        book = Book.read(journal.tournament_log(tournament_id))
        _check(journal, book, tournament_id)
    except DamagedLogError as error:
        return row | {"event": error.place, "message": f"tournament: {error}"}
    except BookError as error:
        return row | {"event": error.sequence, "message": f"tournament: {error}"}
    except _DoesNotHoldError as error:
        return row | {"message": f"tournament {book.cup.name}: {error}"}
    sealed = book.ended is None
    text = f"tournament {book.cup.name}, {len(book.outcomes)} tables"
    if sealed:
        text += "; SEALED: not over, its master secret is not out"
    if book.created.unsealed:
        text += "; UNSEALED: the host gave the seed"
    return row | {"outcome": "sealed" if sealed else "verified", "message": text}


def _check(journal: JournalReader, book: Book, tournament_id: str) -> None:
    created = book.created
    if created.tournament_id != tournament_id:
        raise _DoesNotHoldError(f"it says that it is tournament {created.tournament_id}")
    master = book.ended.master_secret if book.ended is not None else b""
    if master and dealing.commitment(tournament_id, master) != created.commitment:
        raise _DoesNotHoldError("the master secret is not the one that was committed to")
    for outcome in book.outcomes.values():
        if outcome.match_id:
            _check_table(journal, book, outcome, master)


def _check_table(journal: JournalReader, book: Book, outcome: Outcome, master: bytes) -> None:
    """Checks that a table was the match that the schedule asks for, and that its result is what the log has."""
    table, where = outcome.table, f"table {outcome.table.number}"
    try:
        records = journal.read(outcome.match_id)
        events = parse(records)
    except StorageError:
        raise
    except (JournalError, LogError) as error:
        if outcome.reason == "referee_fault":
            return  # that is why
        raise _DoesNotHoldError(f"{where}: match {outcome.match_id} cannot be read: {error}") from None
    first = events[0].match_created
    placed = first.tournament.tournament_id == book.tournament_id and first.tournament.board == table.board
    if not placed or first.deal_id != deal_id_of(book, table, book.attempts[table.number]):
        raise _DoesNotHoldError(f"{where}: match {outcome.match_id} is not of this board set")
    assert book.started is not None
    if first.tournament.held_back and list(first.tournament.nonces) != list(book.started.nonces):
        raise _DoesNotHoldError(f"{where}: the nonces are not those of the entrants")
    _check_seats(book, outcome, first.spec)
    if master:
        secret = dealing.set_secret(master, first.deal_id)
        if dealing.commitment(first.deal_id, secret) != first.commitment:
            raise _DoesNotHoldError(f"{where}: its cards do not follow from the master secret")
        if match_id_of(book, master, table, book.attempts[table.number]) != outcome.match_id:
            raise _DoesNotHoldError(f"{where}: another match was to be played")
    found = outcome_of(table, outcome.match_id, events, end_digest(outcome.match_id, records))
    if _facts(found) != _facts(outcome):
        raise _DoesNotHoldError(f"{where}: the result on record is not that of match {outcome.match_id}")


def _check_seats(book: Book, outcome: Outcome, spec: match_pb2.MatchSpec) -> None:
    """Checks that house bots sat where the schedule has them; who an agent is only the host knows."""
    for entrant, seat in zip(outcome.table.seats, spec.seats, strict=True):
        bot = book.cup.duplicate.fillers[-1 - entrant] if entrant < 0 else book.cup.entrant[entrant].bot
        if (bot or "") != seat.bot:
            raise _DoesNotHoldError(f"table {outcome.table.number}: somebody else sat in a seat")


def _facts(outcome: Outcome) -> tuple[Any, ...]:
    """Returns what of an outcome the log of its match has to bear out."""
    return (
        outcome.reason,
        outcome.sides,
        outcome.totals,
        outcome.places,
        tuple(dict(seat) for seat in outcome.faults),
        outcome.substituted,
        outcome.losses,
        outcome.deals,
        outcome.digest,
    )
