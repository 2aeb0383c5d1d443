"""What clients have to do alike: play whole matches of every game over a real service, and the same as locally."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from referee_client import Agent, Decision, play_local
from referee_games import bots, registry

from .kit import PATIENCE_S, SEED, Home, Service, until

GAMES: dict[str, tuple[str, ...]] = {
    "guillotine": ("greedy", "first", "random", "stride"),
    "regicide": ("greedy", "random"),
}
SECRET = bytes.fromhex(SEED)


@pytest.fixture(scope="module")
def service(shared: Home) -> Service:
    return shared.serve()


class Recorder(Agent):
    """Plays as a house bot does and keeps what it was asked."""

    max_matches = 4

    def __init__(self, bot: str, name: str = "") -> None:
        self.name = name or bot
        self.bot = bots.make(bot)
        self.asked: list[Decision] = []

    def choose(self, decision: Decision) -> str:
        # The times differ from run to run, and play has none locally.
        self.asked.append(replace(decision, allowance_us=0, bank_us=0))
        return self.bot.choose(decision)


async def over_the_service(shared: Home, service: Service, game: str, *options: str) -> tuple[Any, list[Recorder]]:
    """Plays one match between recorders; returns its record and them."""
    from referee_client import client

    agents = [Recorder(bot, f"{game}-{bot}-{len(options)}") for bot in GAMES[game]]
    tokens = [shared.path / f"{agent.name}.token" for agent in agents]
    players = [
        asyncio.create_task(client.play(agent, service.address, credential=token, matches=1))
        for agent, token in zip(agents, tokens, strict=True)
    ]
    names = {agent.name for agent in agents}

    def there() -> bool:
        rows = shared.ok("agents", "list", "--json").rows()
        return names <= {row["name"] for row in rows if row["state"] == "connected"}

    await asyncio.to_thread(until, there)
    seats = [argument for agent in agents for argument in ("--seat", f"agent:{agent.name}")]
    command = ("match", game, *seats, *options, "--seed", SEED, "--json")
    [row] = (await asyncio.to_thread(shared.ok, *command)).rows()
    await asyncio.wait_for(asyncio.gather(*players), PATIENCE_S)
    [record] = (await asyncio.to_thread(shared.ok, "export", row["match"], "--format", "record")).rows()
    return record, agents


@pytest.mark.parametrize("auto_play", ["public", "never"])
@pytest.mark.parametrize("game", GAMES)
async def test_an_agent_is_asked_the_same_by_the_service_as_locally(
    shared: Home, service: Service, monkeypatch: pytest.MonkeyPatch, game: str, auto_play: str
) -> None:
    # A nonce of zeros counts as none, which is what a local match has.
    monkeypatch.setattr("referee_client.session.secrets", SimpleNamespace(token_bytes=bytes))
    options = () if auto_play == "public" else ("--auto-play", "never", "--first-dealer", "1")
    record, remote = await over_the_service(shared, service, game, *options)
    local = [Recorder(bot) for bot in GAMES[game]]
    result = play_local(
        game,
        local,
        seed=SECRET,
        match_id=record["match_id"],
        auto_play="public" if auto_play == "public" else "never",
        first_dealer=None if auto_play == "public" else 1,
        steps=True,
    )
    for here, there in zip(local, remote, strict=True):
        assert there.asked == here.asked
    assert [list(step.legal) for step in result.steps] == [step["legal"] for step in record["steps"]]
    assert [step.action for step in result.steps] == [step["action"] for step in record["steps"]]
    assert list(result.totals) == record["totals"]
    assert list(result.places) == record["places"]


@pytest.mark.parametrize("game", GAMES)
async def test_a_house_bot_in_a_seat_plays_as_it_does_locally(shared: Home, service: Service, game: str) -> None:
    seats = [argument for bot in GAMES[game] for argument in ("--seat", f"{bot}:7")]
    done = await asyncio.to_thread(shared.ok, "match", game, *seats, "--seed", SEED, "--json")
    [row] = done.rows()
    [record] = (await asyncio.to_thread(shared.ok, "export", row["match"], "--format", "record")).rows()
    made = [bots.make(bot, 7) for bot in GAMES[game]]
    result = play_local(game, made, seed=SECRET, match_id=row["match"], steps=True)
    assert [step.action for step in result.steps] == [step["action"] for step in record["steps"]]
    assert list(result.totals) == record["totals"]


@pytest.mark.parametrize("bot", bots.names())
@pytest.mark.parametrize("game", GAMES)
def test_a_house_agent_plays_whole_matches_without_a_fault(home: Home, game: str, bot: str) -> None:
    service = home.serve()
    size = len(GAMES[game])
    agent = home.agent(bot, service.address, "tested", "--seed", "5", "--matches", "2")
    until(lambda: "connected" in home.ok("agents", "list").out)
    others = ["--seat", "first"] * (size - 1)
    rows = home.ok("match", game, "--seat", "agent:tested", *others, "--matches", 2, "--json").rows()
    assert [row["end"] for row in rows] == ["completed"] * 2
    assert agent.wait() == 0
    records = home.ok("export", "--all", "--format", "record").rows()
    assert [record["rulings"] for record in records] == [[], []]


def test_a_house_agent_takes_ctrl_c_as_goodbye(home: Home) -> None:
    service = home.serve()
    agent = home.agent("first", service.address, "leaver")
    until(lambda: "connected" in home.ok("agents", "list").out)
    assert agent.stop(signal.SIGINT) == 0
    assert "Traceback" not in agent.output


def test_every_game_of_the_house_is_tried_here() -> None:
    ours = {name for name in registry.names() if type(registry.find(name)).__module__.startswith("referee_games.")}
    assert set(GAMES) == ours
