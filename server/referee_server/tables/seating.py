"""Who sits where: agents that wait take open seats, and are seated with house bots to practise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from referee.v1 import match_pb2
from referee_games import registry
from referee_server.match import inputs, spec
from referee_server.match.state import OPEN
from referee_server.tables.session import Session
from referee_server.tables.table import Table

_LABEL: Final = "practice"
_BOT: Final = "greedy"


def fill_open_seats(table: Table, sessions: Iterable[Session]) -> None:
    """Fills a match's open seats with agents that take such, who has waited longest first."""
    match = table.match
    for seat in match.seats:
        if seat.kind != OPEN or table.broken:
            continue
        taken = {other.agent_id for other in match.seats}
        waiting = [
            session
            for session in sessions
            if session.hello.takes_open_seats
            and session.agent_id not in taken
            and session.plays(match.game.name)
            and session.has_room
        ]
        if not waiting:
            return
        session = min(waiting, key=lambda one: one.idle_since_us)
        session.tables[match.match_id] = table
        table.feed(inputs.Fill(seat.seat, session.agent_id, session.name))


def practice_match(session: Session, games: Iterator[str], chance: int) -> match_pb2.MatchSpec | None:
    """Returns a match of one agent against house bots; None if it plays none of the games.

    Args:
        session: the agent's stream.
        games: the games in turn, without end.
        chance: a random number, for the seat.
    """
    name = next((name for name, _ in zip(games, registry.names(), strict=False) if session.plays(name)), None)
    if name is None:
        return None
    game = spec.find_game(name)
    seats = game.seats(game.configure({}))
    asked = match_pb2.MatchSpec(game=name, label=_LABEL)
    for number in range(seats):
        if number == chance % seats:
            asked.seats.add(agent=session.agent_id)
        else:
            asked.seats.add(bot=_BOT)
    return asked
