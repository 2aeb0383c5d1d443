"""The service is killed in the middle of it all, and started again on the same data."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections import Counter
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from referee.v1 import event_pb2
from referee_client import Agent, Decision, Verdict
from referee_server.cli.data import DataFolder

from .kit import Home, until

BOTS = ("greedy", "first", "random", "stride")
MATCHES = 20
"""So many that they last several seconds at full speed."""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def stored(home: Home) -> dict[str, list[bytes]]:
    """Returns all events on record, by match."""
    with closing(DataFolder(home.data).read()) as journal:
        return {row.match_id: list(journal.read(row.match_id)) for row in journal.matches(after_number=0, limit=100)}


def has_happened(home: Home, count: int) -> bool:
    """Asks for no more than the counts: matches go on meanwhile, and are not to end before they are looked at."""
    with closing(DataFolder(home.data).read()) as journal:
        return sum(row.event_count for row in journal.matches(after_number=0, limit=100)) > count


def states(home: Home) -> Counter[str]:
    return Counter(row["state"] for row in home.ok("matches", "--json").rows())


def cards(events: list[bytes]) -> list[bytes]:
    parsed = [event_pb2.MatchEvent.FromString(event) for event in events]
    return [bytes(event.cards_dealt.pack) for event in parsed if event.cards_dealt.pack]


@pytest.mark.parametrize("game", ["guillotine", "regicide"])
def test_matches_go_on_with_the_same_cards_after_the_service_was_killed(home: Home, game: str) -> None:
    listen = f"127.0.0.1:{free_port()}"
    service = home.serve(listen=listen)
    bots = BOTS if game == "guillotine" else BOTS[:2]
    agents = [home.agent(bot, service.address) for bot in bots]
    until(lambda: home.ok("agents", "list").out.count("connected") == len(bots))
    seats = [argument for bot in bots for argument in ("--seat", f"agent:{bot}")]
    more = ("--option", "target=500") if game == "regicide" else ()
    home.ok("match", game, *seats, *more, "--matches", MATCHES, "--no-wait")
    before: dict[str, list[bytes]] = {}
    for _ in range(2):
        # Each time in the middle: more has happened than before, and not everything is done.
        enough = sum(map(len, before.values())) + 2_000
        until(partial(has_happened, home, enough))
        service.stop(signal.SIGKILL)
        found = stored(home)
        for match_id, events in before.items():
            assert found[match_id][: len(events)] == events
        before = found
        assert len(before) == MATCHES
        service = home.serve(listen=listen)
        assert service.resumed > 0
    until(lambda: states(home) == {"finished": MATCHES})
    assert [agent.popen.poll() for agent in agents] == [None] * len(bots)
    after = stored(home)
    for match_id, events in before.items():
        assert after[match_id][: len(events)] == events
        assert len(set(cards(after[match_id]))) == len(cards(after[match_id]))
    verified = home.ok("verify", "--all", "--json").rows()
    assert [row["outcome"] for row in verified] == ["verified"] * MATCHES
    records = home.ok("export", "--all", "--format", "record").rows()
    assert [record["rulings"] for record in records] == [[]] * MATCHES


class Ledger(Agent):
    """Keeps what the referee has acknowledged. Goes on as long as there are permits, which all that play share."""

    max_matches = 16

    def __init__(self, name: str, permits: asyncio.Semaphore) -> None:
        self.name = name
        self.permits = permits
        self.acknowledged: list[tuple[str, int, str]] = []
        self.asked: Counter[tuple[str, int]] = Counter()

    async def choose(self, decision: Decision) -> str:
        self.asked[decision.match_id, decision.number] += 1
        await self.permits.acquire()
        return decision.legal[decision.number % len(decision.legal)]

    def on_verdict(self, verdict: Verdict) -> None:
        if verdict.status == "accepted":
            self.acknowledged.append((verdict.match_id, verdict.number, verdict.action))


async def test_no_acknowledged_decision_is_lost_or_doubled_by_kills(home: Home) -> None:
    from referee_client import client

    service = await asyncio.to_thread(home.serve, listen=f"127.0.0.1:{free_port()}")
    permits = asyncio.Semaphore(0)
    agents = [Ledger(f"agent{number}", permits) for number in range(4)]
    players = [
        asyncio.create_task(
            client.play(
                agent, service.address, credential=f"{number:064x}"[::-1], matches=8, backoff=client.Backoff(0.05, 0.2)
            )
        )
        for number, agent in enumerate(agents, 1)
    ]
    seats = [argument for agent in agents for argument in ("--seat", f"agent:{agent.name}")]

    def permit(count: int) -> None:
        for _ in range(count):
            permits.release()

    async def acknowledged(count: int) -> None:
        while sum(len(agent.acknowledged) for agent in agents) < count:
            await asyncio.sleep(0.005)
            for player in players:
                assert not player.done(), player.result()

    def connected() -> bool:
        return home.ok("agents", "list").out.count("connected") == 4

    await asyncio.to_thread(until, connected)
    await asyncio.to_thread(home.ok, "match", "guillotine", *seats, "--matches", 8, "--no-wait")
    permit(1_000)
    for count in (300, 1_200, 2_500, 4_000):
        await asyncio.wait_for(acknowledged(count), 60)  # in the middle of it all, with permits left
        await asyncio.to_thread(service.stop, signal.SIGKILL)
        service = await asyncio.to_thread(home.serve, listen=service.address)
        assert service.resumed > 0
        permit(1_200)
    permit(10_000)
    await asyncio.wait_for(asyncio.gather(*players), 60)
    exported = await asyncio.to_thread(home.ok, "export", "--all", "--format", "jsonl")
    events: list[Any] = [json.loads(line) for line in exported.out.splitlines()]
    seat_of = {
        (event["match_id"], seat["name"]): seat.get("seat", 0)
        for event in events
        if "match_created" in event
        for seat in event["match_created"]["seats"]
    }
    applied = Counter(
        (event["match_id"], one.get("seat", 0), one.get("decision_id", 0), one["action"])
        for event in events
        if (one := event.get("action_applied")) and one["source"] == "ACTION_SOURCE_AGENT"
    )
    assert set(applied.values()) == {1}
    for agent in agents:
        assert len(agent.acknowledged) == len(set(agent.acknowledged))
        for match_id, number, action in agent.acknowledged:
            assert applied[match_id, seat_of[match_id, agent.name], number, action] == 1
    # An answer that was on its way is sent again from memory: the author's code is not asked twice.
    assert {count for agent in agents for count in agent.asked.values()} == {1}
    assert (await asyncio.to_thread(home.ok, "verify", "--all")).out.count("verified") == 8


def test_a_match_that_waits_for_its_agents_waits_on_after_a_kill(home: Home) -> None:
    service = home.serve()
    match_id = home.ok("match", "regicide", "--seat", "open", "--seat", "first", "--no-wait").out.strip()
    service.stop(signal.SIGKILL)
    service = home.serve()
    assert service.resumed == 1
    agent = home.agent("greedy", service.address, "late", "--matches", "1")
    assert agent.wait() == 0
    assert home.ok("verify", match_id).out.startswith("verified")


def test_who_waits_for_matches_waits_through_a_kill(home: Home) -> None:
    listen = f"127.0.0.1:{free_port()}"
    service = home.serve(listen=listen)
    waiting = home.start("match", "regicide", "--seat", "open", "--seat", "first", "--json")
    until(lambda: len(stored(home)) == 1)
    service.stop(signal.SIGKILL)
    home.serve(listen=listen)
    home.agent("greedy", listen, "late", "--matches", "1")
    assert waiting.wait() == 0, waiting.output
    [row] = map(json.loads, waiting.lines)
    assert (row["end"], len(row["digest"])) == ("completed", 64)


def test_an_orderly_stop_keeps_matches_for_the_next_start(home: Home) -> None:
    listen = f"127.0.0.1:{free_port()}"
    service = home.serve(listen=listen)
    agent = home.agent("first", service.address, "patient")
    until(lambda: "connected" in home.ok("agents", "list").out)
    seats = [argument for seat in ("agent:patient", *BOTS[:3]) for argument in ("--seat", seat)]
    home.ok("match", "guillotine", *seats, "--matches", MATCHES, "--no-wait")
    until(partial(has_happened, home, 500))
    assert service.stop(signal.SIGTERM) == 0
    running = states(home)["running"]
    service = home.serve(listen=listen)
    assert service.resumed == running > 0
    until(lambda: states(home) == {"finished": MATCHES})
    assert agent.popen.poll() is None
