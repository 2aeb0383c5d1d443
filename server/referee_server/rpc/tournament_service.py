"""TournamentService: what hosts do with the tournaments of a running service."""

from __future__ import annotations

import asyncio
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import match_pb2
from referee.v1 import tournament_service_pb2 as pb
from referee_games.contract import shown
from referee_server.director.tournaments import Tournaments
from referee_server.journal import TournamentRow
from referee_server.match.errors import RefusedError
from referee_server.rpc.gate import Caller, Gate
from referee_server.rpc.listing import from_token, to_token
from referee_server.tournament.book import Book
from referee_server.tournament.cup import Entrant
from referee_server.tournament.cupfile import CupError, entrant_of, parse_cup
from referee_server.tournament.model import Standing
from referee_server.tournament.table import snapshot

_DEFAULT_PAGE: Final = 100
_MAX_PAGE: Final = 1_000
_RESAMPLES: Final = 400


class TournamentService:
    """Serves `referee.v1.TournamentService`."""

    def __init__(self, tournaments: Tournaments, gate: Gate) -> None:
        self._tournaments = tournaments
        self._gate = gate

    async def CreateTournament(  # noqa: N802
        self, request: pb.CreateTournamentRequest, caller: Caller
    ) -> pb.CreateTournamentResponse:
        """Creates a tournament from its description."""
        self._gate.check_host(caller)
        if not 1 <= len(request.request_id) <= 64:
            raise _invalid("request_id", "a request id has 1 to 64 characters")
        try:
            cup = parse_cup(request.toml)
            if any(entrant.command is not None for entrant in cup.entrant):
                raise CupError.of("entrant", "a running service starts no programs; use `referee run` for those")
            tournament_id = await self._tournaments.create(request.toml, request.request_id)
        except CupError as error:
            raise RefusedError(
                reason_pb.ERROR_REASON_TOURNAMENT_INVALID,
                "the description is not one of a tournament: " + "; ".join(map(str, error.problems)),
                violations=[(f"toml.{problem.path}", problem.message) for problem in error.problems],
            ) from None
        return pb.CreateTournamentResponse(tournament=await self._told(tournament_id))

    async def StartTournament(  # noqa: N802
        self, request: pb.StartTournamentRequest, caller: Caller
    ) -> pb.StartTournamentResponse:
        """Starts a tournament, or goes on with it."""
        self._gate.check_host(caller)
        await self._tournaments.go_on(request.tournament_id)
        return pb.StartTournamentResponse(tournament=await self._told(request.tournament_id))

    async def PauseTournament(  # noqa: N802
        self, request: pb.PauseTournamentRequest, caller: Caller
    ) -> pb.PauseTournamentResponse:
        """Starts no more tables."""
        self._gate.check_host(caller)
        await self._tournaments.pause(request.tournament_id)
        return pb.PauseTournamentResponse(tournament=await self._told(request.tournament_id))

    async def CancelTournament(  # noqa: N802
        self, request: pb.CancelTournamentRequest, caller: Caller
    ) -> pb.CancelTournamentResponse:
        """Ends a tournament."""
        self._gate.check_host(caller)
        await self._tournaments.cancel(request.tournament_id)
        return pb.CancelTournamentResponse(tournament=await self._told(request.tournament_id))

    async def GetTournament(  # noqa: N802
        self, request: pb.GetTournamentRequest, caller: Caller
    ) -> pb.GetTournamentResponse:
        """Returns a tournament as it stands."""
        self._gate.check_host(caller)
        book = await self._tournaments.read(request.tournament_id)
        entrants = [_entrant(one, number in book.withdrawn) for number, one in enumerate(book.cup.entrant)]
        return pb.GetTournamentResponse(tournament=await self._told(request.tournament_id), entrants=entrants)

    async def ListTournaments(  # noqa: N802
        self, request: pb.ListTournamentsRequest, caller: Caller
    ) -> pb.ListTournamentsResponse:
        """Lists tournaments, the newest first."""
        self._gate.check_host(caller)
        if request.page_size < 0:
            raise _invalid("page_size", "a page has no negative size")
        size = min(request.page_size or _DEFAULT_PAGE, _MAX_PAGE)
        before = from_token("t", request.page_token)
        rows = self._tournaments.page(before, size + 1)
        token = to_token("t", rows[size - 1].number) if len(rows) > size else ""
        return pb.ListTournamentsResponse(
            tournaments=[await self._message(row) for row in rows[:size]], next_page_token=token
        )

    async def GetStandings(  # noqa: N802
        self, request: pb.GetStandingsRequest, caller: Caller
    ) -> pb.GetStandingsResponse:
        """Returns the standings."""
        self._gate.check_host(caller)
        book = await self._tournaments.read(request.tournament_id)
        # Seconds of computing in a large tournament, for which no match is to wait.
        lines = await asyncio.to_thread(snapshot(book, _RESAMPLES))
        return pb.GetStandingsResponse(standings=[_standing(book, line) for line in lines])

    async def EnterTournament(  # noqa: N802
        self, request: pb.EnterTournamentRequest, caller: Caller
    ) -> pb.EnterTournamentResponse:
        """Lets somebody in late."""
        self._gate.check_host(caller)
        book = await self._tournaments.read(request.tournament_id)
        kind = request.seat.WhichOneof("kind")
        if kind not in ("bot", "agent"):
            raise _invalid("seat", "an entrant is a house bot, or an agent")
        value = request.seat.bot if kind == "bot" else request.seat.agent
        try:
            entrant = entrant_of(book.cup, request.name, {"agent": "remote"}.get(kind, kind), value)
        except CupError as error:
            raise _invalid("name", "; ".join(problem.message for problem in error.problems)) from None
        await self._tournaments.director(request.tournament_id).enter(entrant)
        return pb.EnterTournamentResponse(tournament=await self._told(request.tournament_id))

    async def WithdrawEntrant(  # noqa: N802
        self, request: pb.WithdrawEntrantRequest, caller: Caller
    ) -> pb.WithdrawEntrantResponse:
        """Takes an entrant out."""
        self._gate.check_host(caller)
        book = await self._tournaments.read(request.tournament_id)
        names = [entrant.name for entrant in book.cup.entrant]
        if request.name not in names:
            raise _invalid("name", f"no entrant is called {shown(request.name)}")
        await self._tournaments.director(request.tournament_id).withdraw(names.index(request.name))
        return pb.WithdrawEntrantResponse(tournament=await self._told(request.tournament_id))

    async def _told(self, tournament_id: str) -> pb.Tournament:
        return await self._message(self._tournaments.row(tournament_id))

    async def _message(self, row: TournamentRow) -> pb.Tournament:
        try:
            told = await self._tournaments.summary(row)
        except RefusedError:
            # Its log is damaged; that it exists is told all the same.
            return pb.Tournament(tournament_id=row.tournament_id)
        told.create_time.CopyFrom(
            Timestamp(seconds=row.create_time_ms // 1_000, nanos=row.create_time_ms % 1_000 * 1_000_000)
        )
        director = self._tournaments.running.get(row.tournament_id)
        told.playing_table_count = len(director.playing) if director is not None else 0
        return told


def _entrant(entrant: Entrant, withdrawn: bool) -> pb.Entrant:
    told = pb.Entrant(name=entrant.name, withdrawn=withdrawn)
    if entrant.bot is not None:
        told.seat.CopyFrom(match_pb2.SeatSpec(bot=entrant.bot))
    elif entrant.remote is not None:
        told.seat.CopyFrom(match_pb2.SeatSpec(agent=entrant.remote))
    return told


def _standing(book: Book, line: Standing) -> pb.Standing:
    return pb.Standing(
        entrant=book.cup.entrant[line.entrant].name,
        rank=line.rank,
        table_count=line.played,
        place_points_milli=_milli(line.place_points),
        points=-line.points if book.cup.rules.lowest_wins else line.points,
        rating_milli=_milli(line.rating.value),
        rating_low_milli=_milli(line.rating.low),
        rating_high_milli=_milli(line.rating.high),
        fault_count=sum(line.faults.values()),
        time_loss_count=line.time_losses,
        mean_milli=_milli(line.mean.value),
        mean_low_milli=_milli(line.mean.low),
        mean_high_milli=_milli(line.mean.high),
        bye_count=line.byes,
        substitute_count=line.substituted,
    )


def _milli(value: float) -> int:
    return round(value * 1_000)


def _invalid(field: str, message: str) -> RefusedError:
    return RefusedError(reason_pb.ERROR_REASON_FIELD_INVALID, message, field=field)
