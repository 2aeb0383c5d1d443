"""What a seed stands for: who plays what, and what goes wrong when."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from referee.v1 import match_pb2
from referee_client import convert
from referee_games import bots, registry
from referee_server.match import spec as match_spec


@dataclass
class Plan:
    """A scenario.

    Attributes:
        honest: for each agent, whether it is.
        matches: what is played.
        create_us: when each match is created; times of the plan count from the start.
        power: whether commits wait for the disk, in a thread.
        drain_s: how long a drain waits.
    """

    honest: list[bool]
    matches: list[match_pb2.MatchSpec]
    create_us: list[int]
    power: bool = False
    drain_s: float = 1.0
    cancels: list[tuple[int, int]] = field(default_factory=list)
    kills_us: list[int] = field(default_factory=list)
    kills_before: set[int] = field(default_factory=set)
    kills_after: set[int] = field(default_factory=set)
    stalls: list[tuple[int, int]] = field(default_factory=list)
    full_us: list[tuple[int, int]] = field(default_factory=list)
    breaks_us: list[int] = field(default_factory=list)
    drains_us: list[int] = field(default_factory=list)
    watches_us: list[int] = field(default_factory=list)
    bugs_us: list[int] = field(default_factory=list)


def draw_plan(chance: random.Random, opened: random.Random | None = None) -> Plan:
    """Returns a scenario. With another chance for that, half of the seats of agents are open instead."""
    honest_share = chance.choice((1, 1, 0.5, 0.2))
    honest = [chance.random() < honest_share for _ in range(chance.randint(1, 5))]
    matches = [_match(chance, len(honest)) for _ in range(chance.choice((1, 2, 2, 3, 5)))]
    if opened is not None:
        for seat in [seat for spec in matches for seat in spec.seats if seat.HasField("agent")]:
            if opened.random() < 0.5:
                seat.open.SetInParent()
    span_us = chance.choice((100_000, 1_000_000, 5_000_000))

    def some(share: float, most: int) -> list[int]:
        count = chance.randint(1, most) if chance.random() < share else 0
        return [chance.randrange(20_000, span_us) for _ in range(count)]

    def commits(share: float) -> set[int]:
        return {chance.randint(1, 150) for _ in range(3)} if chance.random() < share else set()

    return Plan(
        honest=honest,
        matches=matches,
        create_us=[chance.randrange(chance.choice((1, 200_000))) for _ in matches],
        power=chance.random() < 0.25,
        drain_s=chance.choice((0.0, 0.05, 2.0)),
        cancels=[(chance.randrange(len(matches)), at_us) for at_us in some(0.1, 1)],
        kills_us=some(0.25, 3),
        kills_before=commits(0.1),
        kills_after=commits(0.15),
        stalls=[(at_us, chance.choice((5_000, 100_000, 700_000, 5_000_000))) for at_us in some(0.4, 4)],
        full_us=[(at_us, chance.choice((1_000, 1_500_000, 4_000_000))) for at_us in some(0.15, 2)],
        breaks_us=some(0.07, 1),
        drains_us=some(0.12, 2),
        watches_us=some(0.4, 5),
        bugs_us=some(0.05, 2),
    )


def _match(chance: random.Random, agents: int) -> match_pb2.MatchSpec:
    name = "guillotine" if chance.random() < 0.25 else "regicide"
    game = registry.find(name)
    given: dict[str, object] = {
        option.name: chance.choice(option.choices)
        for option in game.options
        if option.choices and chance.random() < 0.5
    }
    if name == "guillotine":
        given["deals_per_dealer"] = 1
    else:
        given["max_deals"] = chance.choice((1, 1, 1, 2))
        given["target"] = chance.choice((1, 50))
        given["players"] = chance.choice((2, 2, 3, 4))
        given["pairs"] = given["players"] == 4 and chance.random() < 0.5
        if not given["pairs"]:
            given.pop("pair_score", None)
        if chance.random() < 0.6:
            given["stock"] = "exchange"
    options = match_spec.configure(game, given)
    spec = match_pb2.MatchSpec(
        game=name,
        options=convert.options_to(name, options),
        clock=_clock(chance),
        policy=_policy(chance),
        auto_play=chance.choice((match_pb2.AUTO_PLAY_PUBLIC, match_pb2.AUTO_PLAY_NEVER)),
    )
    if chance.random() < 0.3:
        spec.first_dealer = chance.randrange(game.seats(options))
    free = list(range(agents))
    chance.shuffle(free)
    for _ in range(game.seats(options)):
        draw = chance.random()
        if draw < 0.7 and free:
            spec.seats.add(agent=f"agent{free.pop()}")
        elif draw < 0.75:
            spec.seats.add().open.SetInParent()
        else:
            bot = chance.choice(("random", "first", "stride"))
            spec.seats.add(bot=bot, bot_seed=chance.getrandbits(63))
    return spec


def _clock(chance: random.Random) -> match_pb2.Clock:
    clock = match_pb2.Clock(
        connect_ms=chance.choice((2_000, 30_000)),
        ready_ms=chance.choice((300, 2_000, 60_000)),
        reconnect_grace_ms=chance.choice((1_000, 5_000, 30_000)),
        liveness_ms=chance.choice((500, 3_000)),
    )
    if chance.random() < 0.1:
        clock.untimed = True
        return clock
    clock.allowance_ms = chance.choice((0, 100, 200, 1_000))
    clock.bank_ms = chance.choice((0, 300, 1_500)) if clock.allowance_ms else 3_000
    clock.increment_ms = chance.choice((0, 0, 10)) if clock.allowance_ms else 100
    return clock


def _policy(chance: random.Random) -> match_pb2.FaultPolicy:
    policy = match_pb2.FaultPolicy(
        strikes=chance.choice((0, 1, 3, 3, 1_000)),
        replacement_bot=chance.choice(("first", "random", "stride", "greedy")),
    )
    for kind, (actions, _) in match_spec._RULES.items():
        if chance.random() < 0.4:
            rule = policy.rules.add(kind=kind, action=chance.choice(actions))
            if kind in match_spec._MAY_ASK_AGAIN:
                rule.ask_again_count = chance.choice((0, 1, 3))
            if rule.action == match_pb2.FAULT_ACTION_SUBSTITUTE and chance.random() < 0.3:
                rule.bot = chance.choice(bots.names())
            if chance.random() < 0.3:
                rule.strike = chance.random() < 0.5
    return policy
