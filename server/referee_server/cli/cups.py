"""What a host asks of a running service about tournaments."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from referee.v1 import match_pb2
from referee.v1 import tournament_service_pb2 as pb
from referee_client import Tls
from referee_server.cli.client import HostClient, RefusedCallError, host_client
from referee_server.cli.cup_text import read_cup, refuse_cup
from referee_server.cli.output import ExitCode, Failure, fail, print_rows
from referee_server.match.names import fold_name
from referee_server.tables.session import MAX_REQUEST_BYTES
from referee_server.tournament.cupfile import Problem

_PAGE: Final = 1_000
_STATES: Final = {
    number: name.removeprefix("TOURNAMENT_STATE_").lower() for name, number in pb.TournamentState.items() if number
}
_UNKNOWN: Final = "unknown"


def list_cups(*, data: str, connect: str | None, tls: Tls | None, as_json: bool) -> None:
    """Prints the tournaments of a service, the newest first."""
    with host_client(data, connect, tls) as client:
        found = list(_listed(client))
    rows = [
        {
            "name": cup.name,
            "tournament_id": cup.tournament_id,
            "state": _STATES.get(cup.state, _UNKNOWN),
            "game": cup.game,
            "ended": cup.finished_table_count,
            "tables": cup.table_count or None,
            "playing": cup.playing_table_count,
            "created": cup.create_time.ToJsonString(),
            "commitment": cup.commitment,
            "note": cup.note,
        }
        for cup in found
    ]
    columns = {
        "name": "name",
        "tournament_id": "id",
        "state": "state",
        "game": "game",
        "ended": ">ended",
        "tables": ">of tables",
        "playing": ">at play",
        "created": "created",
    }
    print_rows(rows, columns, as_json=as_json, empty="no tournaments yet; `referee cups create` makes one")


def create_cup(path: str, *, start: bool, data: str, connect: str | None, tls: Tls | None) -> None:
    """Creates a tournament from its file and tells what it is bound to. The same file again is the same tournament.

    Args:
        path: the file.
        start: whether to start it as well.
        data: the data folder of the service.
        connect: where the service is.
        tls: whom to trust.

    Raises:
        Failure: the file cannot be read or is not a tournament, or the service refuses or is not there.
    """
    toml = read_cup(path)
    request = pb.CreateTournamentRequest(request_id=hashlib.sha256(toml.encode()).hexdigest(), toml=toml)
    if request.ByteSize() > MAX_REQUEST_BYTES:
        refuse_cup(
            path, [f"a service takes files of up to {MAX_REQUEST_BYTES // 1024} KiB; `referee run` takes longer ones"]
        )
    with host_client(data, connect, tls) as client:
        try:
            cup: pb.Tournament = client.call(client.tournaments.CreateTournament, request).tournament
        except RefusedCallError as refused:
            fields = [(field.partition("."), message) for field, message in refused.violations]
            problems = [str(Problem(place, message)) for (top, _, place), message in fields if top == "toml"]
            if problems:
                refuse_cup(path, problems)
            raise
        if start:
            started = pb.StartTournamentRequest(tournament_id=cup.tournament_id)
            cup = client.call(client.tournaments.StartTournament, started).tournament
    print(f"{_told(cup)}, bound to {cup.commitment}")


def start_cup(what: str, *, data: str, connect: str | None, tls: Tls | None) -> None:
    """Starts a tournament, or goes on with one that was paused."""
    with host_client(data, connect, tls) as client:
        request = pb.StartTournamentRequest(tournament_id=_id_of(client, what))
        print(_told(client.call(client.tournaments.StartTournament, request).tournament))


def pause_cup(what: str, *, data: str, connect: str | None, tls: Tls | None) -> None:
    """Starts no more tables of a tournament."""
    with host_client(data, connect, tls) as client:
        request = pb.PauseTournamentRequest(tournament_id=_id_of(client, what))
        print(_told(client.call(client.tournaments.PauseTournament, request).tournament))


def cancel_cup(what: str, *, data: str, connect: str | None, tls: Tls | None) -> None:
    """Ends a tournament without results of the tables that are at play."""
    with host_client(data, connect, tls) as client:
        request = pb.CancelTournamentRequest(tournament_id=_id_of(client, what))
        print(_told(client.call(client.tournaments.CancelTournament, request).tournament))


def enter_cup(
    what: str, name: str, *, bot: str | None, agent: str | None, data: str, connect: str | None, tls: Tls | None
) -> None:
    """Lets somebody in late.

    Args:
        what: the tournament's id or name.
        name: the name in the standings.
        bot: a house bot; or else
        agent: the name or id of an agent that connects by itself.
        data: the data folder of the service.
        connect: where the service is.
        tls: whom to trust.

    Raises:
        Failure: it is not one of both, cannot enter, or the service is not there.
    """
    if (bot is None) == (agent is None):
        fail("an entrant is either a house bot, --bot BOT, or an agent, --agent AGENT")
    seat = match_pb2.SeatSpec(bot=bot) if bot is not None else match_pb2.SeatSpec(agent=agent or "")
    with host_client(data, connect, tls) as client:
        request = pb.EnterTournamentRequest(tournament_id=_id_of(client, what), name=name, seat=seat)
        cup = client.call(client.tournaments.EnterTournament, request).tournament
    print(f"entered {name} in {_told(cup)}")


def withdraw_from_cup(what: str, name: str, *, data: str, connect: str | None, tls: Tls | None) -> None:
    """Takes an entrant out of all rounds of a tournament that are not paired yet."""
    with host_client(data, connect, tls) as client:
        request = pb.WithdrawEntrantRequest(tournament_id=_id_of(client, what), name=name)
        cup = client.call(client.tournaments.WithdrawEntrant, request).tournament
    print(f"withdrew {name} from {_told(cup)}")


def _told(cup: pb.Tournament) -> str:
    """Returns which tournament it is and how far, in one line."""
    of = f" of {cup.table_count}" if cup.table_count else ""
    state = _STATES.get(cup.state, _UNKNOWN)
    return f"{cup.name} ({cup.tournament_id}): {state}, {cup.finished_table_count}{of} tables ended"


def _listed(client: HostClient) -> Iterator[pb.Tournament]:
    token = ""
    while True:
        request = pb.ListTournamentsRequest(page_size=_PAGE, page_token=token)
        page: pb.ListTournamentsResponse = client.call(client.tournaments.ListTournaments, request)
        yield from page.tournaments
        token = page.next_page_token
        if not token:
            return


def _id_of(client: HostClient, what: str) -> str:
    """Returns the id of the tournament that is meant: by its id, else by its name.

    Raises:
        Failure: there is none, or several have that name.
    """
    found = []
    for cup in _listed(client):
        if cup.tournament_id == what:
            return what
        if cup.name and fold_name(cup.name) == fold_name(what):
            found.append(cup.tournament_id)
    if not found:
        raise Failure(f"there is no tournament {what[:80]} at {client.address}", ExitCode.NOT_FOUND)
    if len(found) > 1:
        fail(f"{len(found)} tournaments are called {what[:80]}; say which by its id: {', '.join(found)}")
    return found[0]
