"""A tournament in short, as lists show it."""

from __future__ import annotations

from referee.v1 import tournament_service_pb2 as pb
from referee_server.tournament.book import Book


def summary_of(book: Book) -> pb.Tournament:
    """Returns what lists show of a tournament, as far as it follows from its log.

    What does not is left out: when it was created, and how many tables are at play.
    """
    return pb.Tournament(
        tournament_id=book.tournament_id,
        name=book.cup.name,
        state=pb.TournamentState.Value(f"TOURNAMENT_STATE_{book.state}"),
        game=book.cup.game,
        table_count=book.scheduler.total,
        finished_table_count=len(book.outcomes),
        commitment=book.created.commitment,
        note=book.ended.note if book.ended is not None else "",
    )
