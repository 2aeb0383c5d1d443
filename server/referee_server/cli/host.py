"""What a host asks of a running service: matches, cancelling, agents."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from referee.v1 import match_pb2, match_service_pb2, registry_service_pb2
from referee_client import NotReachableError, RefereeError, Tls, convert
from referee_games import bots, dealing
from referee_server.cli.client import PATIENCE_S, HostClient, check_address, host_client
from referee_server.cli.output import ExitCode, Failure, fail, print_rows
from referee_server.match.errors import RefusedError
from referee_server.match.spec import check_seats, configure, find_game
from referee_server.tables.credentials import hash_credential

AT_ONCE: Final = 64
"""How many matches of one command are in play at once."""
_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 0.5
_UNDECIDED: Final = (match_pb2.MATCH_STATE_WAITING, match_pb2.MATCH_STATE_RUNNING)


@dataclass(frozen=True, slots=True)
class Clocks:
    """Time limits as typed, in seconds; None for the defaults."""

    allowance: float | None
    bank: float | None
    increment: float | None
    untimed: bool

    def to_message(self) -> match_pb2.Clock:
        """Returns them as the service takes them."""
        clock = match_pb2.Clock(untimed=self.untimed)
        for name in ("allowance", "bank", "increment"):
            seconds: float | None = getattr(self, name)
            if seconds is None:
                continue
            if not 0 <= seconds <= 86_400:
                fail(f"--{name} is from 0 to 86400 seconds, not {seconds}")
            setattr(clock, f"{name}_ms", round(seconds * 1_000))
        return clock


def make_spec(
    game: str,
    seats: Sequence[str],
    options: Sequence[str],
    clocks: Clocks,
    *,
    first_dealer: int | None,
    auto_play: str,
    label: str,
) -> match_pb2.MatchSpec:
    """Returns what a host typed as a spec, checked as far as it can be here.

    Raises:
        Failure: saying what is wrong and what would be right.
    """
    given: dict[str, object] = {}
    for text in options:
        name, equals, value = text.partition("=")
        if not equals or not name:
            fail(f"an option is given as K=V, not {text[:60]!r}")
        if name in given:
            fail(f"option {name[:60]} is given twice")
        given[name] = value
    try:
        rules = find_game(game)
        full = configure(rules, given)
        spec = match_pb2.MatchSpec(
            game=game,
            options=convert.options_to(game, full),
            seats=[_seat(text) for text in seats],
            first_dealer=first_dealer,
            clock=clocks.to_message(),
            auto_play=match_pb2.AUTO_PLAY_NEVER if auto_play == "never" else match_pb2.AUTO_PLAY_PUBLIC,
            label=label,
        )
        check_seats(spec, rules, full)
    except RefusedError as error:
        fail(error.message)
    return spec


def _seat(text: str) -> match_pb2.SeatSpec:
    if text == "open":
        return match_pb2.SeatSpec(open=match_pb2.OpenSeat())
    if text.startswith("agent:"):
        return match_pb2.SeatSpec(agent=text.removeprefix("agent:"))
    name, _, seed = text.partition(":")
    if seed and not (seed.isascii() and seed.isdigit() and int(seed) < 2**64):
        fail(f"the seed of a house bot is a whole number below 2^64, not {seed[:40]!r}")
    return match_pb2.SeatSpec(bot=name, bot_seed=int(seed or 0))


def create_matches(
    spec: match_pb2.MatchSpec,
    count: int,
    *,
    seed: str | None,
    data: str,
    connect: str | None,
    tls: Tls | None,
    wait: bool,
    as_json: bool,
) -> None:
    """Has matches played and prints how they end, in the order created.

    Raises:
        Failure: the service refuses or is not there; CHECK_FAILED when a match ended without a result.
    """
    secrets_ = list(_secrets(seed, count))
    # The connection ends before the threads do: after Ctrl-C nobody waits for matches to end.
    with ThreadPoolExecutor(AT_ONCE) as pool, host_client(data, connect, tls) as client:
        if not wait:
            for secret in secrets_:
                print(_create(client, spec, secret).match_id)
            return
        results = list(pool.map(lambda secret: _play(client, spec, secret), secrets_))
    rows = [_result_row(match) for match in results]
    columns = {"match": "match", "seats": "seats", "totals": "totals", "places": "places", "end": "end"}
    print_rows(rows, columns, as_json=as_json, empty="no match")
    if any(not match.result.totals for match in results):
        raise Failure("not every match has a result", ExitCode.CHECK_FAILED)


def _secrets(seed: str | None, count: int) -> Iterator[bytes]:
    """Yields the secrets of matches: none given, the seed itself for one match, and derived from it for several."""
    if seed is None:
        yield from [b""] * count
        return
    try:
        master = bytes.fromhex(seed)
    except ValueError:
        master = b""
    if len(master) != dealing.SECRET_BYTES or not any(master):
        fail("--seed is 64 hex digits, not all zero")
    if count == 1:
        yield master
    else:
        yield from (dealing.set_secret(master, f"match/{number}") for number in range(count))


def _create(client: HostClient, spec: match_pb2.MatchSpec, secret: bytes) -> match_pb2.Match:
    asked = match_pb2.MatchSpec()
    asked.CopyFrom(spec)
    asked.given_secret = secret
    request = match_service_pb2.CreateMatchRequest(spec=asked, request_id=secrets.token_hex(16))
    response: match_service_pb2.CreateMatchResponse = client.call(client.matches.CreateMatch, request)
    return response.match


def _play(client: HostClient, spec: match_pb2.MatchSpec, secret: bytes) -> match_pb2.Match:
    """Has a match played. It is asked for and not watched: to stream every event costs as much as to play."""
    match = _create(client, spec, secret)
    request = match_service_pb2.GetMatchRequest(match_id=match.match_id)
    pause_s = _FIRST_PAUSE_S
    seen = time.monotonic()
    while match.state in _UNDECIDED:
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.3, _LONGEST_PAUSE_S)
        try:
            got: match_service_pb2.GetMatchResponse = client.call(client.matches.GetMatch, request)
        except Failure as lost:
            # A service that was stopped goes on with its matches once it is back.
            if lost.code is not ExitCode.UNREACHABLE or time.monotonic() - seen > PATIENCE_S:
                raise
        else:
            match = got.match
            seen = time.monotonic()
    return match


def _result_row(match: match_pb2.Match) -> dict[str, Any]:
    return {
        "match": match.match_id,
        "seats": [seat.name for seat in match.seats],
        "totals": list(match.result.totals),
        "places": list(match.result.official_places),
        "end": match_pb2.EndReason.Name(match.result.reason).removeprefix("END_REASON_").lower(),
        "digest": match.result.digest.hex(),
    }


def cancel_match(match_id: str, note: str, *, data: str, connect: str | None, tls: Tls | None) -> None:
    """Cancels a match.

    Raises:
        Failure: there is no such match, it has ended, or the service is not there.
    """
    with host_client(data, connect, tls) as client:
        client.call(client.matches.CancelMatch, match_service_pb2.CancelMatchRequest(match_id=match_id, note=note))
    print(f"cancelled {match_id}")


def list_agents(*, data: str, connect: str | None, tls: Tls | None, as_json: bool) -> None:
    """Prints the registered agents."""
    with host_client(data, connect, tls) as client:
        response = client.call(client.registry.ListAgents, registry_service_pb2.ListAgentsRequest())
    rows = [
        {
            "name": agent.name,
            "agent_id": agent.agent_id,
            "state": "revoked" if agent.revoked else "connected" if agent.connected else "away",
            "registered": agent.create_time.ToJsonString(),
        }
        for agent in response.agents
    ]
    columns = {"name": "name", "agent_id": "id", "state": "state", "registered": "registered"}
    print_rows(rows, columns, as_json=as_json, empty="no agents yet; they register when they first connect")


def add_agent(name: str, out: str | None, *, data: str, connect: str | None, tls: Tls | None) -> None:
    """Registers an agent and writes its credential to a file that nobody else can read.

    Raises:
        Failure: the name is not to be had, the file exists, or the service is not there.
    """
    token = secrets.token_hex(32)
    path = Path(out or f"{name.replace('/', '_').replace(os.sep, '_').lstrip('.-') or 'agent'}.token")
    with host_client(data, connect, tls) as client:
        # Written first: a credential that is registered and lost could only be revoked.
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            fail(f"{path} exists already; name another file with -o")
        except OSError as error:
            fail(f"cannot write {path}: {error.strerror}", ExitCode.STORAGE)
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(token + "\n")
            client.call(
                client.registry.AddAgent,
                registry_service_pb2.AddAgentRequest(name=name, credential_hash=hash_credential(token)),
            )
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    print(f"wrote the credential of {name} to {path}; pass it on by a safe way")


def revoke_agent(agent: str, *, data: str, connect: str | None, tls: Tls | None) -> None:
    """Revokes an agent's credential."""
    with host_client(data, connect, tls) as client:
        client.call(client.registry.RevokeAgent, registry_service_pb2.RevokeAgentRequest(agent=agent))
    print(f"revoked {agent}")


def play_agent(
    bot: str,
    address: str,
    name: str,
    *,
    seed: int,
    credential: str | None,
    matches: int | None,
    max_matches: int,
    tls: Tls | None,
) -> None:
    """Plays a house bot as a remote agent.

    Raises:
        Failure: there is no such bot, or the referee is not there or refuses.
    """
    from referee_client.house import play_bot

    try:
        play_bot(
            bot,
            check_address(address),
            name,
            seed=seed,
            credential=credential,
            matches=matches,
            max_matches=max_matches,
            tls=tls,
        )
    except bots.UnknownBotError as error:
        fail(str(error))
    except RefereeError as error:
        fail(str(error), ExitCode.UNREACHABLE if isinstance(error, NotReachableError) else ExitCode.FORBIDDEN)
