"""What a table of a tournament is played with: ids, secrets and seeds, all following from the master secret."""

from __future__ import annotations

import hashlib
import hmac

from referee_games import dealing
from referee_server.director.executor import Order, Player, TableKey
from referee_server.tables.creation import id_of
from referee_server.tournament.book import Book
from referee_server.tournament.model import Table


def tournament_id_from(master: bytes, toml: str) -> str:
    """Returns the id of a tournament whose master secret the host gave: everything follows from what he wrote."""
    return id_of(hashlib.sha256(b"referee.tournament.v1\0" + master + toml.encode()).digest()[:16])


def match_id_of(book: Book, master: bytes, table: Table, attempt: int) -> str:
    """Returns the id of a table's match: one that tells nothing of the schedule to who does not know the master."""
    return id_of(_derived(master, "referee.table.v1", f"{book.tournament_id}/{table.number}/{attempt}")[:16])


def order_for(book: Book, master: bytes, table: Table) -> Order:
    """Returns the order for a table's next attempt."""
    cup, created = book.cup, book.created
    assert book.started is not None
    attempt = book.attempts.get(table.number, 0) + 1
    held_back = cup.mode != "none"
    deal_id = deal_id_of(book, table, attempt)
    match_id = match_id_of(book, master, table, attempt)
    return Order(
        key=TableKey(book.tournament_id, table.board, table.number, attempt),
        table=table,
        match_id=match_id,
        deal_id=deal_id,
        secret=dealing.set_secret(master, deal_id),
        unsealed=created.unsealed,
        held_back=held_back,
        spec=cup.match_spec().SerializeToString(),
        players=tuple(
            player_of(
                book, entrant, int.from_bytes(_derived(master, "referee.bot.v1", f"{match_id}/{seat}")[:8], "big")
            )
            for seat, entrant in enumerate(table.seats)
        ),
        commitment=created.commitment,
        nonces=tuple(book.started.nonces),
        trust_memory=cup.duplicate.trust_memory,
    )


def deal_id_of(book: Book, table: Table, attempt: int) -> str:
    """Returns the id of a table's cards: that of its board set.

    Outside of duplicate play a second attempt has cards of its own, because the first ones may have been seen.
    """
    board = f"{book.tournament_id}/{table.board}"
    return board if book.cup.mode != "none" or attempt == 1 else f"{board}/{attempt}"


def player_of(book: Book, entrant: int, seed: int = 0) -> Player:
    """Returns an entrant, or a house bot that fills a seat, as an executor is told."""
    if entrant < 0:
        return Player(entrant, "bot", book.cup.duplicate.fillers[-1 - entrant], seed)
    described = book.cup.entrant[entrant]
    if described.bot is not None:
        return Player(entrant, "bot", described.bot, seed)
    if described.remote is not None:
        return Player(entrant, "agent", described.remote)
    return Player(entrant, "program", described.name)


def _derived(master: bytes, purpose: str, what: str) -> bytes:
    return hmac.digest(master, purpose.encode() + b"\0" + what.encode(), "sha256")
