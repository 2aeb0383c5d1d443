"""Matches against house bots, for agents that have nothing else to play."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Final

from referee.v1 import match_pb2
from referee_games import registry
from referee_server.match import spec
from referee_server.match.errors import RefusedError
from referee_server.tables.session import Session

_LABEL: Final = "practice"
_BOT: Final = "greedy"


class Practice:
    """Makes matches against house bots for agents that have nothing else to play."""

    def __init__(self, create: Callable[[match_pb2.MatchSpec], str], random_bytes: Callable[[int], bytes]) -> None:
        """Begins with the first of the games.

        Args:
            create: creates a match and returns its id, or refuses.
            random_bytes: the operating system's generator.
        """
        self._create = create
        self._random_bytes = random_bytes
        self._games = itertools.cycle(registry.names())

    def match_for(self, session: Session) -> str | None:
        """Creates a match for an agent and returns its id; None if there is none that it could play."""
        asked = _against_bots(session, self._games, self._random_bytes(1)[0])
        if asked is None:
            return None
        try:
            return self._create(asked)
        except RefusedError:
            return None  # its credential has been revoked a moment ago


def _against_bots(session: Session, games: Iterator[str], chance: int) -> match_pb2.MatchSpec | None:
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
