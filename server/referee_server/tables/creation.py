"""How a match comes into being: what was asked for checked and written out, ids, the first event."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from google.protobuf.timestamp_pb2 import Timestamp

from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import event_pb2, match_pb2
from referee_client import convert
from referee_games import dealing
from referee_games.contract import OptionValue, shown
from referee_server import __version__
from referee_server.journal import AgentRow
from referee_server.match import spec
from referee_server.match.errors import RefusedError
from referee_server.match.seat import AGENT, BOT, OPEN
from referee_server.match.state import DECIDE_VERSION

SERVER_VERSION = f"referee {__version__}"
"""Name and version of this referee, as logs and clients are told."""


def settle(asked: match_pb2.MatchSpec) -> tuple[match_pb2.MatchSpec, Mapping[str, OptionValue]]:
    """Returns what a host asked for with all defaults written out, and the options of the game.

    Raises:
        RefusedError: it is not a match that can be played.
    """
    game = spec.find_game(asked.game)
    try:
        options = spec.configure(game, convert.options_from(asked.game, asked.options))
    except ValueError as error:
        raise RefusedError(
            reason_pb.ERROR_REASON_OPTION_INVALID, str(error), field="spec.options", option="?"
        ) from None
    spec.check_seats(asked, game, options)
    settled = spec.settle(asked)
    settled.DiscardUnknownFields()  # whatever they are, they are no part of the match and do not go on record
    settled.options.CopyFrom(convert.options_to(asked.game, options))
    return settled, options


def seats_of(settled: match_pb2.MatchSpec, find_agent: Callable[[str], AgentRow]) -> list[match_pb2.Seat]:
    """Returns the seats of a new match; `find_agent` returns the agent of an id or name, or refuses.

    Raises:
        RefusedError: AGENT_UNKNOWN or AGENT_REPEATED.
    """
    seats = []
    for number, asked in enumerate(settled.seats):
        match asked.WhichOneof("kind"):
            case "bot":
                seat = match_pb2.Seat(kind=BOT, name=asked.bot, bot_seed=asked.bot_seed)
            case "agent":
                row = find_agent(asked.agent)
                seat = match_pb2.Seat(kind=AGENT, agent_id=row.agent_id, name=row.name)
            case _:
                seat = match_pb2.Seat(kind=OPEN)
        seat.seat = number
        seats.append(seat)
    agents = [seat.agent_id for seat in seats if seat.agent_id]
    if len(set(agents)) != len(agents):
        raise RefusedError(
            reason_pb.ERROR_REASON_AGENT_REPEATED, "an agent takes one seat of a match", field="spec.seats"
        )
    return seats


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a match's cards come from.

    Attributes:
        match_id: id of the match.
        deal_id: id under which its cards are derived: the match's own, or its board set's.
        secret: what its cards follow from.
        given: whether the host gave the secret, or what it follows from, himself.
        tournament: the tournament that it is a table of; None outside one.
    """

    match_id: str
    deal_id: str
    secret: bytes = field(repr=False)
    given: bool = False
    tournament: event_pb2.TournamentTable | None = None


def created(
    origin: Origin, settled: match_pb2.MatchSpec, seats: Sequence[match_pb2.Seat], wall_ns: int
) -> event_pb2.MatchEvent:
    """Returns the first event of a match."""
    payload = event_pb2.MatchCreated(
        match_id=origin.match_id,
        spec=settled,
        seats=seats,
        deal_id=origin.deal_id,
        commitment=dealing.commitment(origin.deal_id, origin.secret),
        unsealed=origin.given,
        decide_version=DECIDE_VERSION,
        create_time=Timestamp(seconds=wall_ns // 10**9, nanos=wall_ns % 10**9),
        server_version=SERVER_VERSION,
        nonces_taken=origin.tournament is None or not origin.tournament.held_back,
        tournament=origin.tournament,
    )
    return event_pb2.MatchEvent(sequence=1, match_created=payload)


def seed_bots(seats: Sequence[match_pb2.Seat], source: bytes) -> None:
    """Gives house bots that have no seed one that nobody at the table knows; `source` is 32 secret bytes."""
    for seat in seats:
        if seat.kind == match_pb2.SEAT_KIND_BOT and seat.bot_seed == 0:
            drawn = hashlib.sha256(b"referee.bot-seed.v1\0" + bytes([seat.seat]) + source).digest()
            seat.bot_seed = int.from_bytes(drawn[:8], "big") or 1


def is_repeat(
    first: event_pb2.MatchCreated, secret: bytes | None, asked: match_pb2.MatchSpec, settled: match_pb2.MatchSpec
) -> bool:
    """Tells whether a request asks for the same as the one that a match with that first event came from."""
    given = secret if first.unsealed else b""
    return first.spec == settled and given == asked.given_secret


def id_of(data: bytes) -> str:
    """Returns 16 bytes as an id: 26 characters a-z 2-7."""
    return base64.b32encode(data).decode().rstrip("=").lower()


def id_from(asked: match_pb2.MatchSpec, options: Mapping[str, object]) -> str:
    """Returns the id of a match whose secret the host gave: everything follows from what he asked for."""
    seats = [[seat.WhichOneof("kind"), seat.agent or seat.bot, seat.bot_seed] for seat in asked.seats]
    dealer = asked.first_dealer if asked.HasField("first_dealer") else None
    told = json.dumps([asked.game, sorted(options.items()), seats, dealer], separators=(",", ":"))
    return id_of(hashlib.sha256(b"referee.match.v1\0" + asked.given_secret + told.encode()).digest()[:16])


def unknown_match(match_id: str) -> RefusedError:
    """Returns the refusal for a match that does not exist."""
    return RefusedError(
        reason_pb.ERROR_REASON_MATCH_UNKNOWN, f"there is no match {shown(match_id)}", match_id=shown(match_id)
    )
