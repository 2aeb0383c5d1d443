"""Where the bad agents play: a service of short patience, a well-behaved agent and house bots to play against."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from referee.v1 import event_pb2, log_service_pb2, log_service_pb2_grpc, match_pb2, match_service_pb2
from referee.v1 import registry_service_pb2 as registry_pb
from referee_client import convert
from referee_server.cli.client import HostClient
from referee_server.cli.data import DataFolder
from referee_server.tables.credentials import hash_credential

from .kit import PATIENCE_S, Home, Process, until

AGENTS = Path(__file__).parents[1] / "agents"
KEEPALIVE_S = PING_TIMEOUT_S = 1.0
PATIENT = ("--keepalive", str(KEEPALIVE_S), "--ping-timeout", str(PING_TIMEOUT_S), "--hello-timeout", "1")

CALM = {"allowance_ms": 30_000, "connect_ms": 30_000, "ready_ms": 30_000, "reconnect_grace_ms": 300}
"""Nobody loses on time here; who is gone is not waited for."""
QUICK = {**CALM, "allowance_ms": 800, "bank_ms": 0}
"""Who does not answer loses on time soon."""
ABSENT = {**CALM, "connect_ms": 1_500}
"""Who does not come is not waited for."""
UNREADY = {**CALM, "connect_ms": 10_000, "ready_ms": 500}
"""Who is not ready is not waited for."""
SHORT: Mapping[str, Mapping[str, object]] = {"guillotine": {"deals_per_dealer": 1}, "regicide": {"target": 5}}
SEATS = {"guillotine": 4, "regicide": 2}


@dataclass
class Ending:
    """How a match ended, in the words of its log."""

    match_id: str
    reason: str
    places: list[int]
    official_places: list[int]
    faults: list[str] = field(default_factory=list)
    """By the zoo's agent: kind, action and strikes."""
    faults_of_others: list[str] = field(default_factory=list)
    replaced_by: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Answers on record that changed nothing."""
    ignored_count: int = 0
    gone: int = 0
    back: int = 0
    left: bool = False
    events: list[event_pb2.MatchEvent] = field(default_factory=list)


def word(enum: Any, value: int, prefix: str) -> str:
    return str(enum.Name(value)).removeprefix(prefix)


class Arena:
    """A service and what the tests ask of it."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.service = home.serve(*PATIENT)
        self._channel = grpc.insecure_channel(self.service.address)
        self.host = HostClient(self._channel, DataFolder(home.data).host_token(), self.service.address)
        self.logs: Any = log_service_pb2_grpc.LogServiceStub(self._channel)
        self._errors: list[str] = []
        self.good_name, credential = self.add("good")
        self.good = self.start("good", self.good_name, credential)
        until(lambda: self.connected(self.good_name), what="the good agent connects")

    def close(self) -> None:
        self._channel.close()

    # Agents.

    def add(self, name: str) -> tuple[str, str]:
        """Registers an agent; returns its name and its credential."""
        credential = secrets.token_hex(32)
        name = f"{name}-{credential[:6]}"
        asked = registry_pb.AddAgentRequest(name=name, credential_hash=hash_credential(credential))
        self.host.call(self.host.registry.AddAgent, asked)
        return name, credential

    def start(self, program: str, name: str, credential: str, *more: str) -> Process:
        """Starts an agent of the zoo as a process."""
        command = [sys.executable, str(AGENTS / f"{program}.py"), self.service.address, name, credential, *more]
        return self.home.spawn(command)

    def connected(self, name: str) -> bool:
        response = self.host.call(self.host.registry.ListAgents, registry_pb.ListAgentsRequest())
        return any(agent.name == name and agent.connected for agent in response.agents)

    def revoke(self, name: str) -> None:
        self.host.call(self.host.registry.RevokeAgent, registry_pb.RevokeAgentRequest(agent=name))

    # Matches.

    def match(
        self,
        name: str,
        clock: Mapping[str, int],
        rules: Mapping[str, str] | None = None,
        game: str = "guillotine",
    ) -> str:
        """Creates a match with the named agent in seat 0, which deals first, and the good one beside it."""
        seats = [match_pb2.SeatSpec(agent=name), match_pb2.SeatSpec(agent=self.good_name)]
        seats += [match_pb2.SeatSpec(bot="greedy"), match_pb2.SeatSpec(bot="first")][: SEATS[game] - 2]
        spec = match_pb2.MatchSpec(
            game=game,
            seats=seats,
            options=convert.options_to(game, SHORT[game]),
            clock=match_pb2.Clock(**clock),  # type: ignore[arg-type]  # one of the fields is no number
            first_dealer=0,
            label=name,
        )
        for kind, action in (rules or {}).items():
            spec.policy.rules.add(
                kind=match_pb2.FaultKind.Value(f"FAULT_KIND_{kind}"),
                action=match_pb2.FaultAction.Value(f"FAULT_ACTION_{action}"),
            )
        response = self.host.call(self.host.matches.CreateMatch, match_service_pb2.CreateMatchRequest(spec=spec))
        return str(response.match.match_id)

    def ending(self, match_id: str) -> Ending:
        """Waits for the end of a match, checks what holds for every one of them, and returns how it was."""
        view = match_service_pb2.View(public=match_service_pb2.PublicView())
        watch = match_service_pb2.WatchMatchRequest(match_id=match_id, view=view)
        for _ in self.host.matches.WatchMatch(watch, metadata=self.host.metadata, timeout=PATIENCE_S):
            pass
        events = self._all_events(match_id)
        got = self.host.call(self.host.matches.GetMatch, match_service_pb2.GetMatchRequest(match_id=match_id))
        result = got.match.result
        checked = self.host.call(
            self.logs.VerifyLog, log_service_pb2.VerifyLogRequest(match_id=match_id, digest=result.digest)
        )
        assert checked.outcome == log_service_pb2.VERIFY_OUTCOME_VERIFIED, checked
        assert any(event.HasField("seat_offered") and event.seat_offered.seat == 1 for event in events), events
        told = self.told(match_id)
        assert told["digest"] == result.digest.hex(), "the others get the final result, with the digest"
        assert self.service.popen.poll() is None, self.service.output
        errors = [line for line in list(self.service.lines) if '"level": "error"' in line]
        fresh, self._errors = errors[len(self._errors) :], errors
        assert not fresh, "the referee failed:\n" + "\n".join(fresh).replace("\\n", "\n")
        ending = Ending(
            match_id,
            word(match_pb2.EndReason, result.reason, "END_REASON_"),
            list(result.places),
            list(result.official_places),
            events=events,
        )
        assert told["reason"] == ending.reason.lower()
        for event in events:
            _count(ending, event)
        return ending

    def told(self, match_id: str) -> dict[str, Any]:
        """Returns what the good agent was told at the end of a match."""

        def find() -> dict[str, Any] | None:
            for line in list(self.good.lines):
                if line.startswith("{") and match_id in line:
                    told: dict[str, Any] = json.loads(line)
                    return told
            return None

        found: dict[str, Any] = until(find, what="the good agent is told the end")
        return found

    def _all_events(self, match_id: str) -> list[event_pb2.MatchEvent]:
        view = match_service_pb2.View(all=match_service_pb2.AllView())
        watch = match_service_pb2.WatchMatchRequest(match_id=match_id, view=view)
        stream = self.host.matches.WatchMatch(watch, metadata=self.host.metadata, timeout=PATIENCE_S)
        return [event for response in stream for event in response.events]


def _count(ending: Ending, event: event_pb2.MatchEvent) -> None:
    match event.WhichOneof("payload"):
        case "fault_ruled":
            ruled = event.fault_ruled
            kind = word(match_pb2.FaultKind, ruled.kind, "FAULT_KIND_")
            action = word(match_pb2.FaultAction, ruled.action, "FAULT_ACTION_")
            faults = ending.faults if ruled.seat == 0 else ending.faults_of_others
            faults.append(f"{kind} {action} {ruled.strike_count}")
        case "seat_replaced":
            ending.replaced_by.append(event.seat_replaced.bot)
        case "answer_ignored":
            ending.ignored.append(word(event_pb2.AnswerStatus, event.answer_ignored.status, "ANSWER_STATUS_"))
        case "seat_disconnected":
            ending.gone += 1
            ending.left = ending.left or event.seat_disconnected.left
        case "seat_reconnected":
            ending.back += 1
        case "match_ended":
            ending.ignored_count = event.match_ended.ignored_counts[0]
        case _:
            pass
