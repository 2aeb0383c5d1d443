"""Local matches: the rules and cards of the service, without it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.v1 import agent_service_pb2
from referee_client import Agent, Decision, IllegalAnswer, LocalMatch, Offer, Result, convert, play_local
from referee_games import dealing
from referee_games.contract import CHANCE, OptionError
from referee_games.registry import UnknownGameError, find

VECTORS = Path(__file__).parents[1] / "data" / "vectors"


class First(Agent):
    def choose(self, decision: Decision) -> str:
        return decision.legal[0]


class AsyncLast(Agent):
    async def choose(self, decision: Decision) -> str:
        return decision.legal[-1]


class Dice:
    """Not an agent, but something that can choose."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def choose(self, decision: Decision) -> str:
        return self._random.choice(decision.legal)


def test_the_same_seed_gives_the_same_match() -> None:
    one, two = (play_local("guillotine", [First()] * 4, seed=7, steps=True) for _ in range(2))
    assert one == two
    other = play_local("guillotine", [First()] * 4, seed=8)
    assert other.totals != one.totals


def test_the_secret_of_a_result_repeats_it() -> None:
    one = play_local("regicide", [First(), First()], steps=True)
    assert play_local("regicide", [First(), First()], seed=one.secret, steps=True) == one


def test_the_match_id_is_the_deal_id() -> None:
    one = play_local("guillotine", [First()] * 4, seed=7, match_id="one")
    assert one.totals != play_local("guillotine", [First()] * 4, seed=7, match_id="two").totals


@pytest.mark.parametrize("auto_play", ["public", "never"])
@pytest.mark.parametrize(
    ("game", "options"), [("guillotine", {}), ("guillotine", {"domino_pass": "free"}), ("regicide", {"players": 3})]
)
def test_every_decision_is_counted_and_only_those_that_are_not_forced_are_asked(
    game: str, options: dict[str, Any], auto_play: Any
) -> None:
    """Plays the same match by hand, straight from the rules, and compares question by question."""
    secret = bytes(range(32))
    rules = find(game)
    full = rules.configure(options)
    seats = rules.seats(full)
    seed = dealing.match_seed("local", secret, [bytes(32)] * seats)
    state = rules.start(full, dealing.first_dealer(seed, seats))
    numbers = [0] * seats
    match = LocalMatch(game, options=options, seed=secret, auto_play=auto_play)
    chance = random.Random(1)
    asked = 0
    while state.actor >= 0 or state.actor == CHANCE:
        seat = state.actor
        if seat == CHANCE:
            state.deal(dealing.deal_pack(seed, state.deal_number, rules.pack))
            continue
        legal = state.legal()
        if auto_play == "public" and state.forced():
            action = legal[0]
        else:
            asked += 1
            action = chance.choice(legal)
            texts = tuple(rules.texts[one] for one in legal)
            assert match.decision == Decision("local", game, seat, numbers[seat], state.view(seat), texts)
            match.answer(rules.texts[action])
        numbers[seat] += 1
        state.apply(action)
    assert match.decision is None
    assert match.result is not None
    assert (match.result.totals, match.result.places) == (state.totals(), state.places())
    assert match.result.decisions == sum(numbers)
    assert (asked == sum(numbers)) == (auto_play == "never")


@pytest.mark.parametrize("game", ["guillotine", "regicide"])
def test_recorded_matches_can_be_played_again_by_their_steps(game: str) -> None:
    result = play_local(game, [Dice(seat) for seat in range(4 if game == "guillotine" else 2)], seed=3, steps=True)
    assert len(result.steps) == result.decisions
    match = LocalMatch(game, seed=3, auto_play="never")
    for step in result.steps:
        assert match.decision is not None
        assert (match.decision.seat, match.decision.number) == (step.seat, step.number)
        assert match.decision.legal == step.legal
        match.answer(step.action)
    assert match.result is not None
    assert match.result.totals == result.totals
    assert len(result.deals) == result.deals[-1].deal + 1
    assert result.deals[-1].totals == result.totals


@settings(max_examples=25)
@given(data=st.data())
def test_every_decision_of_a_match_survives_the_wire(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["guillotine", "regicide"]))
    game = find(name)
    given_options: dict[str, Any] = data.draw(
        st.fixed_dictionaries({}, optional={o.name: st.sampled_from(o.choices) for o in game.options if o.choices})
    )
    if name == "regicide":
        given_options["players"] = data.draw(st.integers(2, 4))
        given_options["target"] = 20
        if given_options["players"] == 4 and data.draw(st.booleans()):
            given_options["pairs"] = True
        given_options.pop("pair_score", None)
    match = LocalMatch(name, options=given_options, seed=data.draw(st.integers(0, 2**32)), auto_play="never")
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    longest = 0
    while match.decision is not None:
        wire = convert.decision_to(match.decision).SerializeToString()
        back = convert.decision_from(agent_service_pb2.Decision.FromString(wire), name)
        assert back == match.decision
        assert isinstance(back.view.options, dict)
        assert list(back.view.options) == list(match.options)
        longest = max(longest, len(wire))
        public = match.state.view(-1)
        message = agent_service_pb2.Decision()
        convert.view_into(public, message)
        assert convert.view_from(message) == public
        match.answer(chance.choice(match.decision.legal))
    assert longest <= 1024 + 200


@pytest.mark.skipif(not VECTORS.exists(), reason="the vectors are not here")
@pytest.mark.parametrize("game", ["guillotine", "regicide"])
def test_the_options_of_recorded_matches_survive_the_wire(game: str) -> None:
    for line in (VECTORS / f"{game}.jsonl").read_text().splitlines():
        options = json.loads(line)["options"]
        assert convert.options_from(game, convert.options_to(game, options)) == options


def test_async_agents_play_too() -> None:
    result = play_local("guillotine", [AsyncLast(), First(), AsyncLast(), First()], seed=5)
    assert len(result.deals) == 24


async def test_async_agents_play_inside_a_running_loop() -> None:
    inside = play_local("guillotine", [AsyncLast(), First(), AsyncLast(), First()], seed=5)
    assert len(inside.deals) == 24


def test_hooks_are_called() -> None:
    class Chatty(First):
        name = "chatty"

        def __init__(self) -> None:
            self.heard: list[Any] = []

        async def on_match_start(self, offer: Offer) -> None:
            self.heard.append(offer)

        def on_match_over(self, result: Result) -> None:
            self.heard.append(result)

    agent = Chatty()
    result = play_local("regicide", [First(), agent], options={"target": 5}, seed=1, match_id="x")
    start, end = agent.heard
    assert (start.match_id, start.seat, start.options["target"]) == ("x", 1, 5)
    assert [seat.name for seat in start.seats] == ["First", "chatty"]
    assert (end.side, end.totals, end.official_places) == (1, result.totals, result.places)
    assert end.deals == len(result.deals)


@pytest.mark.parametrize("action", ["QX", "", "contract:everything", None, 3])
def test_an_illegal_answer_is_raised(action: Any) -> None:
    class Wrong(Agent):
        def choose(self, decision: Decision) -> Any:
            return action

    with pytest.raises(IllegalAnswer) as caught:
        play_local("guillotine", [Wrong()] * 4, seed=1, first_dealer=2)
    assert caught.value.seat == 2
    assert caught.value.answer == action
    assert caught.value.legal[0] == "contract:royalty"


def test_after_an_illegal_answer_the_decision_still_waits() -> None:
    match = LocalMatch("guillotine", seed=1)
    decision = match.decision
    with pytest.raises(IllegalAnswer):
        match.answer("X1")
    assert match.decision is decision
    match.answer("contract:queens")


def test_there_is_no_answer_after_the_end() -> None:
    match = LocalMatch("regicide", seed=1, options={"max_deals": 1})
    while match.decision is not None:
        match.answer(match.decision.legal[0])
    with pytest.raises(RuntimeError, match="the match is over"):
        match.answer("keep")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"game": "chess"}, UnknownGameError, "no game 'chess'"),
        ({"seats": [First()]}, ValueError, "guillotine has 4 seats with these options, not 1"),
        ({"options": {"speed": 1}}, OptionError, "no option 'speed'"),
        ({"seed": b"short"}, ValueError, "a seed has 32 bytes, not 5"),
        ({"seed": -1}, ValueError, "from 0 to below"),
        ({"first_dealer": 4}, ValueError, "a seat from 0 to 3, not 4"),
        ({"auto_play": "always"}, ValueError, "public or never"),
    ],
)
def test_what_cannot_be_played_is_refused(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        play_local(**{"game": "guillotine", "seats": [First()] * 4, **arguments})


def test_the_package_comes_without_grpc_and_a_local_match_too() -> None:
    program = (
        "import sys, referee_client as r\n"
        "assert not {'grpc', 'google.protobuf'} & set(sys.modules)\n"
        "class A(r.Agent):\n"
        "    def choose(self, decision): return decision.legal[0]\n"
        "r.play_local('guillotine', [A()] * 4)\n"
        "assert 'grpc' not in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-c", program], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
