"""A simulated world with a fuzzer in it: every other message is wrong, and everybody else has to get his match."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from fuzz.echo import without_own
from fuzz.generate import Generator
from referee.v1 import agent_service_pb2 as pb
from referee.v1 import match_pb2
from referee_client import convert
from referee_server.rpc.errors import CODE_OF
from sim.agents import Agent, Traits
from sim.ledger import check
from sim.link import Link, reason_of
from sim.plan import Plan
from sim.referee import HOST_TOKEN
from sim.wire import SERVICES, Call
from sim.world import World

_METHODS: Final = {
    f"{service.name}/{method.name}": method
    for service in SERVICES
    for method in service.methods
    if not method.client_streaming
}
_PLANNED: Final = frozenset(CODE_OF.values()) | {0}
_STREAM_US: Final = 30_000
"""How long a stream of responses is left running."""


class Fuzzer(Agent):
    """An agent that says anything."""

    def connect(self) -> None:
        super().connect()
        if self.link is not None:
            self._go_on(self.link)

    def _go_on(self, link: Link) -> None:
        world = self.world
        assert isinstance(world, FuzzWorld)
        if link is not self.link or link.dead or self.quiet:
            return
        for _ in range(self.chance.choice((1, 1, 1, 30))):
            link.send_bytes(world.play_request(), 0)
        # At its rate limit it would be told nothing; now and then it goes beyond.
        pause_us = self.chance.choice((1_000, 25_000, 25_000, 25_000, 60_000))
        world.after(pause_us, lambda: self._go_on(link))

    def _bad_hello(self, hello: pb.Hello, link: Link) -> None:
        world = self.world
        assert isinstance(world, FuzzWorld)
        link.send_bytes(world.play_request(), 0)

    def _decide(self, link: Link, decision: pb.Decision) -> None:
        self.asked[decision.match_id] = decision.decision_id
        if self.chance.random() < 0.6:
            action = self.chance.choice(decision.legal)
            answer = pb.Answer(match_id=decision.match_id, decision_id=decision.decision_id, action=action)
            self._say(link, 500, answer)


class FuzzWorld(World):
    """A world for one run of the fuzzer.

    Attributes:
        sent: how many messages and calls it has made.
    """

    def __init__(self, seed: int, messages: int, say: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, say)
        chance = random.Random(f"fuzz/{seed}")
        self.sent = 0
        self.statuses: dict[str, int] = {}
        self._messages = messages
        self._fuzz = chance
        self._generator = Generator(chance)
        self.plan = Plan(honest=[True, True, False], matches=[_spec(1), _spec(2)], create_us=[0, 0])
        quick = Traits(honest=True, way_us=(20, 200), wants_events=True, nonce=True)
        bad = Traits(honest=False, way_us=(0, 0), wants_events=chance.random() < 0.5)
        chances = [random.Random(f"fuzz/{seed}/{number}") for number in range(3)]
        self.agents = [
            Agent(self, "agent0", quick, chances[0]),
            Agent(self, "agent1", quick, chances[1]),
            Fuzzer(self, "agent2", bad, chances[2]),
        ]
        self.by_name = {agent.name: agent for agent in self.agents}
        self._slack_us = 8_000

    def _prepare(self) -> None:
        super()._prepare()
        self.after(20_000, self._call)

    def _finished(self) -> bool:
        if self.sent < self._messages:
            if super()._finished():
                # The next match, so that there is always one to disturb.
                number = len(self.plan.matches)
                self.plan.matches.append(_spec(number))
                self.after(0, lambda: self._create(number))
            return False
        return all(told.final for match_id, told in self.ledger.matches.items() if self._planned(match_id))

    def _planned(self, match_id: str) -> bool:
        return match_id in self._created.values()

    def _wanted(self, match_id: str) -> bool:
        return self._planned(match_id)

    def _know(self) -> None:
        ids = list(self.ledger.matches)[-12:]
        known = self._generator.known
        known["match_id"] = [*ids, "nowhere"]
        known["agent"] = ["agent2", self.agents[2].agent_id, "nobody"]
        known["name"] = ["agent2", "agent0", "agent9"]
        known["request_id"] = ["request0", "request1", "r1", "r2", ""]
        known["toml"] = _CUPS
        if self.referee is not None:
            rows = self.guard(self.referee.tournaments.rows) or []
            known["tournament_id"] = [*(row.tournament_id for row in rows[-6:]), "nowhere"]
        known["game"] = ["guillotine", "regicide", "whist"]
        known["bot"] = known["replacement_bot"] = ["first", "random", "stride", "greedy", "fred"]
        told = self.ledger.matches.get(ids[-1]) if ids else None
        if told is not None and told.match is not None:
            known["action"] = told.match.game.texts

    def play_request(self) -> bytes:
        """Returns what to send on a stream next."""
        self.sent += 1
        if self.sent % 50 == 1:
            self._know()
        return self._generator.encoded(pb.PlayRequest.DESCRIPTOR)

    def _call(self) -> None:
        """Makes a call with anything in it, as anybody."""
        if self.sent < self._messages:
            self.after(self._fuzz.choice((500, 5_000)), self._call)
        if self.referee is None:
            return
        self.sent += 1
        name = self._fuzz.choice(list(_METHODS))
        data = self._generator.encoded(_METHODS[name].input_type)
        harmful = name in ("MatchService/CancelMatch", "RegistryService/RevokeAgent", "RegistryService/AddAgent")
        protected = [*self._created.values(), "agent0", "agent1", self.agents[0].agent_id, self.agents[1].agent_id]
        if harmful and any(one and one.encode() in data for one in protected):
            return
        agents = [agent.token for agent in self.agents]
        tokens = (HOST_TOKEN, HOST_TOKEN, HOST_TOKEN, *agents, None, "00" * 32, "xyz", "é", "a" * 5_000)
        token = self._fuzz.choice(tokens)
        call = Call(token, lambda got: self._got(name, token, got), lambda: self._done(name, call, data))
        call.start(self.referee.loop, self.referee.handlers[name], data)
        if _METHODS[name].server_streaming:
            self.after(_STREAM_US, call.cancel)

    def _got(self, name: str, token: str | None, data: bytes) -> None:
        for told in self.ledger.matches.values():
            hidden = told.secrets[:2] if token == HOST_TOKEN else told.secrets
            leaks = not told.over and not told.match.created.unsealed and any(secret in data for secret in hidden)
            if leaks and name != "MatchService/WatchMatch":
                self.fail(f"{name} tells a secret")

    def _done(self, name: str, call: Call, data: bytes) -> None:
        if call.status is None:
            return
        reason = self.guard(lambda: reason_of(call.status)) or ""
        self.check_text(without_own(call.status[1], _METHODS[name].input_type, data))
        code = call.status[0]
        what = f"{name} {reason or code}"
        self.statuses[what] = self.statuses.get(what, 0) + 1
        self.guard(lambda: check(code in _PLANNED and reason != "INTERNAL", f"{name} ends with {call.status}"))


_CUP: Final = 'name = "c{0}"\ngame = "regicide"\noptions = {{ max_deals = 1 }}\n{1}'
_ENTRANTS: Final = "".join(f'[[entrant]]\nname = "{bot}"\nbot = "{bot}"\n' for bot in ("first", "random", "stride"))
_FAR: Final = '[[entrant]]\nname = "far"\nremote = "{}"\n'
_CUPS: Final = (
    *(
        _CUP.format(kind, f'format = {{ kind = "{kind}" }}\n{_ENTRANTS}')
        for kind in ("round_robin", "swiss", "gauntlet")
    ),
    _CUP.format("far", _ENTRANTS + _FAR.format("agent2")),
    _CUP.format("nobody", _ENTRANTS + _FAR.format("nobody")),
    _CUP.format("bad", "[[entrant]]"),
    _CUP.format("program", _ENTRANTS + '[[entrant]]\nname = "p"\ncommand = ["./p"]\n'),
    "= =",
)
"""Descriptions of tournaments, good and bad; good ones are short."""


def _spec(number: int) -> match_pb2.MatchSpec:
    """Returns a match of the two good agents, or of one of them with the fuzzer."""
    spec = match_pb2.MatchSpec(
        game="regicide",
        options=convert.options_to("regicide", {"players": 2, "max_deals": 2}),
        clock=match_pb2.Clock(
            allowance_ms=300, bank_ms=300, connect_ms=60_000, ready_ms=2_000, reconnect_grace_ms=2_000
        ),
    )
    spec.policy.strikes = 1_000
    for name in ("agent0", "agent2" if number % 2 else "agent1"):
        spec.seats.add(agent=name)
    return spec
