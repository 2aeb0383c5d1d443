"""Which games there are: the two that come with the referee, and any that another package brings.

A package adds a game by an entry point of the group `referee.games`: its name is the game's key, its value the
`Game` subclass.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from referee_games.contract import Game, shown
from referee_games.guillotine import Guillotine
from referee_games.regicide import Regicide

GROUP = "referee.games"

_BUILT_IN: dict[str, type[Game]] = {game.name: game for game in (Guillotine, Regicide)}


class UnknownGameError(LookupError):
    """No game has that key."""


@cache
def _points() -> dict[str, EntryPoint]:
    """Returns the entry points of other packages. Looking for them reads files, so it is done once."""
    return {point.name: point for point in entry_points(group=GROUP)}


def names() -> list[str]:
    """Returns the keys of all games: the built-in ones first, then those of other packages by name."""
    return [*_BUILT_IN, *sorted(_points().keys() - _BUILT_IN.keys())]


@cache
def find(name: str) -> Game:
    """Returns the game with that key.

    Raises:
        UnknownGameError: there is none.
    """
    if name in _BUILT_IN:
        return _BUILT_IN[name]()
    point = _points().get(name)
    if point is not None:
        game = point.load()()
        if not isinstance(game, Game):
            raise TypeError(f"entry point {name} of {GROUP} is not a Game")
        return game
    raise UnknownGameError(f"there is no game {shown(name)}; there are {', '.join(names())}")
