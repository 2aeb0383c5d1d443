"""Plays a match machine without a service around it: agents are functions, and time is a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from referee.v1 import event_pb2, match_pb2
from referee_client import convert
from referee_games import bots, dealing, registry
from referee_games.contract import Decision
from referee_server.match import inputs
from referee_server.match.machine import Machine
from referee_server.match.spec import settle
from referee_server.match.state import begin

SECRET = bytes(range(32))
MATCH_ID = "abcdefghijklmnopqrstuvwx23"

Event: TypeAlias = event_pb2.MatchEvent
Reply: TypeAlias = tuple[bytes, int]
"""An answer and after how many microseconds it comes."""
Agent: TypeAlias = Callable[[Decision], Reply | None]
"""An agent: None when it never answers."""


def house(name: str, *, think_us: int = 1_000, seed: int = 0) -> Agent:
    """Returns an agent that plays like a house bot and always takes the same time."""
    bot = bots.make(name, seed)
    return lambda decision: (bot.choose(decision).encode(), think_us)


def silent(decision: Decision) -> Reply | None:
    """Never answers."""
    return None


def says(text: str | bytes, think_us: int = 1_000) -> Agent:
    """Returns an agent that always says the same."""
    raw = text.encode() if isinstance(text, str) else text
    return lambda decision: (raw, think_us)


def at(numbers: Sequence[int], wrong: Agent, otherwise: Agent | None = None) -> Agent:
    """Returns an agent that behaves wrongly at the decisions with these numbers."""
    right = otherwise or house("first")
    return lambda decision: (wrong if decision.number in numbers else right)(decision)


def spec_of(
    game: str,
    *seats: str,
    options: Mapping[str, object] | None = None,
    first_dealer: int | None = 0,
    clock: match_pb2.Clock | None = None,
    policy: match_pb2.FaultPolicy | None = None,
    **fields: Any,
) -> match_pb2.MatchSpec:
    """Returns a spec. A seat is the name of an agent, `bot:NAME`, or `open`; without any, agents take all seats."""
    configured = registry.find(game).configure(options or {})
    names = seats or ("anna", "bert", "cleo", "dora")[: registry.find(game).seats(configured)]
    spec = match_pb2.MatchSpec(
        game=game,
        options=convert.options_to(game, configured),
        first_dealer=first_dealer,
        clock=clock,
        policy=policy,
        **fields,
    )
    for name in names:
        if name == "open":
            spec.seats.add().open.SetInParent()
        elif name.startswith("bot:"):
            spec.seats.add(bot=name.removeprefix("bot:"), bot_seed=7)
        else:
            spec.seats.add(agent=name)
    return spec


def created(
    spec: match_pb2.MatchSpec,
    *,
    secret: bytes = SECRET,
    match_id: str = MATCH_ID,
    deal_id: str = "",
    nonces_taken: bool = True,
    unsealed: bool = False,
) -> Event:
    """Returns the first event of a match."""
    seats = []
    for number, seat in enumerate(spec.seats):
        match seat.WhichOneof("kind"):
            case "agent":
                kind = match_pb2.SEAT_KIND_AGENT
                seats.append(match_pb2.Seat(seat=number, kind=kind, agent_id=f"id-{seat.agent}", name=seat.agent))
            case "bot":
                kind = match_pb2.SEAT_KIND_BOT
                seats.append(match_pb2.Seat(seat=number, kind=kind, name=seat.bot, bot_seed=seat.bot_seed))
            case _:
                seats.append(match_pb2.Seat(seat=number, kind=match_pb2.SEAT_KIND_OPEN))
    event = event_pb2.MatchCreated(
        match_id=match_id,
        spec=settle(spec),
        seats=seats,
        deal_id=deal_id or match_id,
        commitment=dealing.commitment(deal_id or match_id, secret),
        unsealed=unsealed,
        decide_version=1,
        server_version="referee test",
        nonces_taken=nonces_taken,
    )
    event.create_time.seconds = 1_700_000_000
    return Event(sequence=1, match_created=event)


class Driver:
    """One match, its log so far, and the time.

    Attributes:
        machine: what decides.
        match: the match as the machine has it.
        events: the whole log so far.
        steps: how long the log was after each step; a running log ends at one of these.
        now: match time in microseconds.
    """

    def __init__(self, spec: match_pb2.MatchSpec, *, secret: bytes = SECRET, **fields: Any) -> None:
        first = created(spec, secret=secret, **fields)
        self.match = begin(first)
        self.machine = Machine(self.match, secret)
        self.events = [first]
        self.now = 0
        self.events += self.machine.begin()
        # The creation is stored before anything follows from it.
        self.steps = sorted({1, len(self.events)})

    def step(self, given: inputs.Input, *, after: int = 0) -> list[Event]:
        """Lets time pass, then hands an input in; returns its events."""
        self.now += after
        events = self.machine.step(given, self.now)
        self.events += events
        self.steps.append(len(self.events))
        return events

    def tick(self, *, early: int = 0) -> list[Event]:
        """Lets time pass until the machine wants to be woken (or a little less), and wakes it."""
        due = self.machine.wake_at()
        assert due is not None
        self.now = max(self.now, due - early)
        return self.step(inputs.Tick())

    def start(self, *nonces: bytes) -> Driver:
        """Offers the match to every agent, and lets it be ready."""
        for seat in self.match.seats:
            if not seat.ready:
                self.step(inputs.OfferSeat(seat.seat))
                self.step(inputs.Ready(seat.seat, nonces[seat.seat] if nonces else b""), after=10)
        return self

    def ask(self, *, wait_us: int = 0, transit_us: int = 0, after: int = 0) -> Decision:
        """Puts the question that is due; what house bots owe comes first."""
        self.serve_bots()
        seat = self.match.agent_due()
        assert seat is not None
        decision = self.match.question(seat)
        self.step(inputs.Ask(seat, wait_us, transit_us), after=after)
        return decision

    def answer(
        self, raw: str | bytes, *, think_us: int = 1_000, lateness_us: int = 0, read_after: int = 0
    ) -> list[Event]:
        """Answers the question that is open."""
        assert self.match.offered_us is not None
        assert self.match.actor is not None
        seat = self.match.actor
        received_us = self.match.offered_us + think_us
        self.now = max(self.now, received_us) + read_after
        bytes_ = raw.encode() if isinstance(raw, str) else raw
        number = len(self.match.seats[seat].outcomes)
        return self.step(inputs.Answer(seat, number, bytes_, received_us, lateness_us))

    def serve_bots(self) -> None:
        """Lets house bots choose as long as it is their turn."""
        while (due := self.match.bot_due()) is not None:
            seat, name, seed = due
            decision = self.match.question(seat)
            self.step(inputs.Choose(seat, decision.number, bots.make(name, seed).choose(decision)))

    def play(self, agents: Mapping[int, Agent] | None = None, *, turns: int = 100_000) -> Driver:
        """Plays on until the match is over, or so many questions have been put. Who is not given plays `first`."""
        usual = house("first")
        while not self.match.over:
            self.serve_bots()
            seat = self.match.agent_due()
            if seat is None and self.match.offered_us is None:
                break
            if turns == 0:
                break
            if seat is not None:
                turns -= 1
                decision = self.ask()
            else:  # asked again
                assert self.match.actor is not None
                decision = self.match.question(self.match.actor)
            reply = (agents or {}).get(decision.seat, usual)(decision)
            deadline = self.match.deadline_us
            assert self.match.offered_us is not None
            if reply is None or (deadline is not None and self.match.offered_us + reply[1] >= deadline):
                self.tick()
            else:
                # Asked again, the clock runs on from the first time.
                self.answer(reply[0], think_us=max(reply[1], self.now - self.match.offered_us))
        return self


def of_kind(events: Sequence[Event], kind: str) -> list[Any]:
    """Returns the payloads of one kind."""
    return [getattr(event, kind) for event in events if event.WhichOneof("payload") == kind]
