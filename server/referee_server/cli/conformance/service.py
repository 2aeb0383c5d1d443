"""What an agent is examined in by the real service: whole matches, judged by the log that the referee keeps."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Final

from referee.v1 import event_pb2, match_pb2
from referee_client import convert
from referee_games import registry
from referee_server.agents.local import LocalAgents
from referee_server.cli.conformance.agent import Agent, NotMeant, Setting, Wrong
from referee_server.cli.data import DataFolder
from referee_server.cli.service import Service, ServiceSettings
from referee_server.match.errors import RefusedError
from referee_server.match.verify import parse, verify
from referee_server.tables.session import Session

_BOTS: Final = ("greedy", "random", "first")
_LOOK_S: Final = 0.05


async def matches(agents: LocalAgents, setting: Setting) -> None:
    """Plays whole matches of each of its games at the real service, as many at once as it takes, without a fault."""
    with tempfile.TemporaryDirectory(prefix="referee-conformance-") as folder:
        settings = ServiceSettings(address="127.0.0.1:0", drain_s=1.0)
        async with Service(DataFolder(Path(folder) / "data"), settings) as service:
            agent = Agent(agents, setting, service.address)
            try:
                await _play(service, agent, setting)
            finally:
                await agent.stop()


async def _play(service: Service, agent: Agent, setting: Setting) -> None:
    session = await _session(service, agent, setting)
    games = [name for name in registry.names() if session.plays(name) and (not setting.games or name in setting.games)]
    if not games:
        raise NotMeant("it plays none of the games")
    count = 2 if setting.quick else 16
    waiting = [_create(service, agent, game, number, setting) for game in games for number in range(count)]
    until = time.monotonic() + 60 + len(waiting) * setting.answer_s * 12
    while any(match_id in service.hall.matches.running for match_id in waiting):
        await asyncio.sleep(_LOOK_S)
        if agent.exit is not None:
            raise Wrong(f"its process ended {agent.how()}", "stay until told to end")
        if time.monotonic() > until:
            raise Wrong("its matches did not come to an end", "answer each decision within its time")
    await service.hall.committer.settled()
    for match_id in waiting:
        _judge(parse(service.hall.journal.read(match_id)))


async def _session(service: Service, agent: Agent, setting: Setting) -> Session:
    until = time.monotonic() + setting.start_s
    while time.monotonic() < until:
        try:
            row = service.hall.roster.find(agent.name)
        except RefusedError:
            pass
        else:
            session = service.hall.presence.session_of(row.agent_id)
            if session is not None:
                return session
        if agent.exit is not None:
            raise Wrong(f"its process ended {agent.how()}", "connect, and begin with Hello")
        await asyncio.sleep(_LOOK_S)
    raise Wrong(f"it did not say Hello within {setting.start_s:g} s", "connect, and begin with Hello")


def _create(service: Service, agent: Agent, game: str, number: int, setting: Setting) -> str:
    rules = registry.find(game)
    seats = rules.seats(rules.configure({}))
    options = {"target": 25} if game == "regicide" else {"deals_per_dealer": 1} if setting.quick else {}
    spec = match_pb2.MatchSpec(
        game=game,
        options=convert.options_to(game, options if game in ("guillotine", "regicide") else {}),
        clock=match_pb2.Clock(allowance_ms=round(setting.answer_s * 1_000), bank_ms=0, connect_ms=600_000),
        label="conformance",
    )
    for place in range(seats):
        if place == number % seats:
            spec.seats.add(agent=agent.name)
        else:
            spec.seats.add(bot=_BOTS[place % len(_BOTS)], bot_seed=number)
    return service.hall.matches.create(spec)


def _judge(events: list[event_pb2.MatchEvent]) -> None:
    """Checks the log of a match that has ended."""
    verify(events)
    for event in events:
        if event.HasField("fault_ruled"):
            ruled = event.fault_ruled
            kind = match_pb2.FaultKind.Name(ruled.kind).removeprefix("FAULT_KIND_").lower()
            answer = f" with {ruled.raw_answer.decode('utf-8', 'replace')[:40]!r}" if ruled.raw_answer else ""
            where = f" in decision {ruled.decision_id}{answer}" if ruled.HasField("decision_id") else ""
            raise Wrong(
                f"the referee ruled {kind}{where}", f"no fault; legal were {', '.join(ruled.legal[:8]) or 'others'}"
            )
        if event.HasField("seat_disconnected"):
            raise Wrong("it lost its connection in mid-match", "keep the stream until Leave")
        if event.HasField("answer_ignored"):
            status = event_pb2.AnswerStatus.Name(event.answer_ignored.status).removeprefix("ANSWER_STATUS_").lower()
            number = event.answer_ignored.decision_id
            raise Wrong(f"an answer to decision {number} changed nothing: {status}", "one answer a decision")
