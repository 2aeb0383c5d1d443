"""TournamentService: what a host can do with tournaments of a running service, and who else cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest

from director.kit import cup
from referee.v1 import match_pb2, tournament_service_pb2_grpc
from referee.v1 import tournament_service_pb2 as pb
from rpc.agent import Agent, bearer, refused
from rpc.kit import HOST, NOBODY, TIMEOUT, until
from rpc.server import Referee, token_of

BOTS = ("first", "random", "greedy")


class Host:
    """Calls of a host, by default with the host's credential."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._stub: Any = tournament_service_pb2_grpc.TournamentServiceStub(channel)

    def call(self, method: str, who: Any = HOST, **fields: Any) -> Any:
        request = getattr(pb, f"{method}Request")(**fields)
        return getattr(self._stub, method)(request, metadata=who, timeout=TIMEOUT)

    def create(self, toml: str = "", request_id: str = "one") -> str:
        made = self.call("CreateTournament", request_id=request_id, toml=toml or cup(*BOTS, seed=None))
        tournament_id: str = made.tournament.tournament_id
        return tournament_id

    def state(self, tournament_id: str) -> str:
        got = self.call("GetTournament", tournament_id=tournament_id).tournament
        return pb.TournamentState.Name(got.state).removeprefix("TOURNAMENT_STATE_")

    def play(self, referee: Referee, toml: str = "") -> str:
        tournament_id = self.create(toml)
        self.call("StartTournament", tournament_id=tournament_id)
        until(lambda: self.state(tournament_id) == "FINISHED", referee)
        return tournament_id


@pytest.fixture
def host(referee: Referee, grpc_channel: grpc.Channel) -> Host:
    return Host(grpc_channel)


def test_a_tournament_is_created_started_and_finished(host: Host, referee: Referee) -> None:
    tournament_id = host.play(referee)
    got = host.call("GetTournament", tournament_id=tournament_id)
    assert (got.tournament.name, got.tournament.game) == ("cup", "high_card")
    assert got.tournament.finished_table_count == got.tournament.table_count == 6
    assert [entrant.name for entrant in got.entrants] == ["e0", "e1", "e2"]
    assert [entrant.seat.bot for entrant in got.entrants] == list(BOTS)
    assert len(got.tournament.commitment) == 64


def test_standings_add_up(host: Host, referee: Referee) -> None:
    tournament_id = host.play(referee)
    lines = host.call("GetStandings", tournament_id=tournament_id).standings
    assert sorted(line.entrant for line in lines) == ["e0", "e1", "e2"]
    assert sum(line.place_points_milli for line in lines) == 6_000
    assert [line.table_count for line in lines] == [4, 4, 4]
    assert all(line.rating_low_milli <= line.rating_milli <= line.rating_high_milli for line in lines)


def test_everything_wrong_with_a_description_comes_back_with_its_place(host: Host) -> None:
    found = refused(lambda: host.create('name = ""\ngame = "chess"\n[[entrant]]\nname = "a"\nbot = "?"'))
    assert found.reason == "TOURNAMENT_INVALID"
    assert list(found.fields) == ["toml.name", "toml.entrant.0.bot", "toml.game"]


def test_a_running_service_starts_no_programs(host: Host) -> None:
    found = refused(lambda: host.create(cup("first", extra='[[entrant]]\nname = "p"\ncommand = ["./p"]')))
    assert found.reason == "TOURNAMENT_INVALID"


@pytest.mark.parametrize("request_id", ["", "x" * 65])
def test_a_request_without_a_good_id_is_refused(host: Host, request_id: str) -> None:
    assert refused(lambda: host.create(request_id=request_id)).reason == "FIELD_INVALID"


def test_a_repeated_request_gets_the_first_answer_and_another_one_is_refused(host: Host) -> None:
    first = host.create()
    assert host.create() == first
    found = refused(lambda: host.create(cup("first", "first", seed=None)))
    assert found.reason == "REQUEST_ID_REUSED"


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("CreateTournament", {"request_id": "x", "toml": "x"}),
        ("StartTournament", {"tournament_id": "x"}),
        ("PauseTournament", {"tournament_id": "x"}),
        ("CancelTournament", {"tournament_id": "x"}),
        ("GetTournament", {"tournament_id": "x"}),
        ("ListTournaments", {}),
        ("GetStandings", {"tournament_id": "x"}),
        ("EnterTournament", {"tournament_id": "x", "name": "x"}),
        ("WithdrawEntrant", {"tournament_id": "x", "name": "x"}),
    ],
)
def test_only_the_host_may_do_any_of_it(
    host: Host, agent: Callable[..., Agent], method: str, fields: dict[str, Any]
) -> None:
    agent("anna").hello()
    for who in (NOBODY, bearer(token_of("anna"))):
        assert refused(lambda who=who: host.call(method, who, **fields)).reason in ("HOST_ONLY", "CREDENTIAL_UNKNOWN")  # type: ignore[misc]


@pytest.mark.parametrize(
    "method", ["StartTournament", "PauseTournament", "CancelTournament", "GetTournament", "GetStandings"]
)
@pytest.mark.parametrize("tournament_id", ["", "nothing", "x" * 10_000])
def test_an_unknown_tournament_is_not_found(host: Host, method: str, tournament_id: str) -> None:
    assert refused(lambda: host.call(method, tournament_id=tournament_id)).reason == "TOURNAMENT_UNKNOWN"


def test_what_does_not_fit_its_state_is_refused(host: Host, referee: Referee) -> None:
    waiting = host.create(request_id="two")
    assert refused(lambda: host.call("PauseTournament", tournament_id=waiting)).reason == "TOURNAMENT_STATE"
    over = host.play(referee)
    for method in ("StartTournament", "PauseTournament", "CancelTournament"):
        found = refused(lambda method=method: host.call(method, tournament_id=over))  # type: ignore[misc]
        assert (found.reason, found.metadata["state"]) == ("TOURNAMENT_STATE", "FINISHED")


def far(extra: str = "") -> str:
    """A tournament that waits for an agent, and so stands still."""
    remote = '[[entrant]]\nname = "far"\nremote = "anna"\n'
    return cup("first", seed=None, duplicate='mode = "none"', extra=remote + extra)


def test_it_waits_for_its_agents_and_can_be_cancelled_meanwhile(host: Host) -> None:
    tournament_id = host.create(far())
    host.call("StartTournament", tournament_id=tournament_id)
    assert host.state(tournament_id) == "STARTING"
    assert host.call("CancelTournament", tournament_id=tournament_id).tournament.state == pb.TOURNAMENT_STATE_CANCELLED


def test_it_is_paused_and_goes_on(host: Host, referee: Referee, agent: Callable[..., Agent]) -> None:
    tournament_id = host.create(far())
    host.call("StartTournament", tournament_id=tournament_id)
    host.call("PauseTournament", tournament_id=tournament_id)
    anna = agent("anna")
    anna.hello()
    referee.quiet()
    assert host.state(tournament_id) == "PAUSED"
    assert host.call("GetTournament", tournament_id=tournament_id).tournament.playing_table_count == 0
    host.call("StartTournament", tournament_id=tournament_id)
    assert anna.wait("match_offered").tournament_id == tournament_id


def test_somebody_enters_late_and_somebody_leaves(host: Host) -> None:
    tournament_id = host.create(far())
    host.call("StartTournament", tournament_id=tournament_id)
    seat = match_pb2.SeatSpec(bot="greedy")
    host.call("EnterTournament", tournament_id=tournament_id, name="late", seat=seat)
    host.call("WithdrawEntrant", tournament_id=tournament_id, name="e0")
    entrants = host.call("GetTournament", tournament_id=tournament_id).entrants
    assert [(entrant.name, entrant.withdrawn) for entrant in entrants] == [
        ("e0", True),
        ("far", False),
        ("late", False),
    ]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": "late"}, "FIELD_INVALID"),
        ({"name": "E0", "seat": match_pb2.SeatSpec(bot="first")}, "FIELD_INVALID"),
        ({"name": "late", "seat": match_pb2.SeatSpec(bot="nobody")}, "FIELD_INVALID"),
        ({"name": "\x1b[0m", "seat": match_pb2.SeatSpec(bot="first")}, "FIELD_INVALID"),
    ],
)
def test_who_cannot_enter_is_refused(host: Host, fields: dict[str, Any], reason: str) -> None:
    tournament_id = host.create(far())
    host.call("StartTournament", tournament_id=tournament_id)
    assert refused(lambda: host.call("EnterTournament", tournament_id=tournament_id, **fields)).reason == reason


def test_nobody_leaves_who_is_not_there(host: Host) -> None:
    tournament_id = host.create(far())
    host.call("StartTournament", tournament_id=tournament_id)
    found = refused(lambda: host.call("WithdrawEntrant", tournament_id=tournament_id, name="nobody"))
    assert found.reason == "FIELD_INVALID"


def test_tournaments_are_listed_page_by_page_the_newest_first(host: Host) -> None:
    made = [host.create(request_id=str(number)) for number in range(5)]
    found: list[str] = []
    token = ""
    while True:
        page = host.call("ListTournaments", page_size=2, page_token=token)
        found += [one.tournament_id for one in page.tournaments]
        token = page.next_page_token
        if not token:
            break
    assert found == made[::-1]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"page_size": -1}, "FIELD_INVALID"),
        ({"page_token": "x"}, "PAGE_TOKEN_INVALID"),
        ({"page_token": "é" * 100}, "PAGE_TOKEN_INVALID"),
    ],
)
def test_a_bad_page_is_refused(host: Host, fields: dict[str, Any], reason: str) -> None:
    assert refused(lambda: host.call("ListTournaments", **fields)).reason == reason


def test_a_tournament_whose_log_is_damaged_is_not_shown_and_the_others_are(host: Host, referee: Referee) -> None:
    harmed, sound = host.create(request_id="a"), host.create(request_id="b")

    def harm() -> None:
        tournament = referee.journal._tournaments[harmed]  # type: ignore[attr-defined]
        object.__setattr__(tournament, "events", (b"\xff", *tournament.events))

    referee.do(harm)
    for method in ("GetTournament", "StartTournament", "GetStandings"):
        found = refused(lambda method=method: host.call(method, tournament_id=harmed))  # type: ignore[misc]
        assert found.reason == "TOURNAMENT_DAMAGED"
    assert [one.tournament_id for one in host.call("ListTournaments").tournaments] == [sound, harmed]
    assert host.state(sound) == "WAITING"
