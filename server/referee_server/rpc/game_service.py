"""GameService: the catalogue."""

from __future__ import annotations

from referee.v1 import game_pb2
from referee.v1 import game_service_pb2 as pb
from referee_games import bots, registry
from referee_games.contract import Game, Option
from referee_server.rpc.agent_service import PROTOCOL_VERSION
from referee_server.rpc.gate import Caller, Gate
from referee_server.tables.creation import SERVER_VERSION
from referee_server.tables.hall import Hall


class GameService:
    """Serves `referee.v1.GameService`."""

    def __init__(self, hall: Hall, gate: Gate) -> None:
        self._hall = hall
        self._gate = gate

    async def ListGames(self, request: pb.ListGamesRequest, caller: Caller) -> pb.ListGamesResponse:  # noqa: N802
        """Lists games and house bots."""
        return pb.ListGamesResponse(games=[_game(registry.find(name)) for name in registry.names()], bots=bots.names())

    async def GetServerInfo(  # noqa: N802
        self, request: pb.GetServerInfoRequest, caller: Caller
    ) -> pb.GetServerInfoResponse:
        """Tells what this server is and can do."""
        return pb.GetServerInfoResponse(
            server_version=SERVER_VERSION,
            oldest_protocol_version=PROTOCOL_VERSION,
            newest_protocol_version=PROTOCOL_VERSION,
            capabilities=pb.Capabilities(
                open_registration=self._gate.open_registration,
                practice=self._hall.settings.practice,
            ),
        )


def _game(game: Game) -> game_pb2.Game:
    return game_pb2.Game(
        name=game.name,
        title=game.title,
        options=[_option(option) for option in game.options],
        lowest_wins=game.lowest_wins,
        seat_count=game.seats(game.configure({})),
    )


def _option(option: Option) -> game_pb2.GameOption:
    default = option.default
    message = game_pb2.GameOption(
        name=option.name,
        default_value=str(default).lower() if isinstance(default, bool) else str(default),
        choices=("true", "false") if isinstance(default, bool) else option.choices,
        description=option.doc,
    )
    if isinstance(default, int) and not isinstance(default, bool):
        message.low, message.high = option.low, option.high
    return message
