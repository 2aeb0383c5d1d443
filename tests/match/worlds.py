"""Two worlds that differ only in cards that one viewer cannot know, played in step.

Both have the same visible actions at the same times for as long as that is possible: an action is chosen among those
that are legal in both. Whatever nobody else may see (attempts, stray answers, waiting, nonces, seeds) differs freely.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from match.driver import SECRET, Driver, Event, created
from referee.v1 import event_pb2, match_pb2
from referee_games import dealing
from referee_games.contract import Game
from referee_server.match import inputs
from referee_server.match.machine import STRAYS_KEPT, Machine
from referee_server.match.seat import OPEN
from referee_server.match.state import begin
from referee_server.match.views import Projector


class World(Driver):
    """A match whose packs and substitutes are given instead of drawn."""

    def __init__(self, spec: match_pb2.MatchSpec, packs: Mapping[int, Sequence[int]], viewer: int) -> None:
        first = created(spec)
        self.match = begin(first)
        self.machine = _Machine(self.match, SECRET, self)
        self.packs = packs
        self.wanted = ""
        self.events = [first]
        self.steps = [1]
        self.now = 0
        self.projector = Projector(viewer, self.match.game)
        self.first = self.look(0)
        self.events += self.machine.begin()

    def first_dealer(self, seats: int) -> int:
        return 0

    def pack(self, deal: int, pack: Sequence[int]) -> Sequence[int]:
        seed = dealing.match_seed("worlds", SECRET, [])
        return self.packs.get(deal) or dealing.deal_pack(seed, deal, pack)

    def bot_seed(self, seat: int) -> int:
        return seat

    def substitute(self, seat: int, decision_id: int, count: int) -> int:
        return [shown(self, text) for text in self.legal()].index(self.wanted)

    def legal(self) -> list[str]:
        """Returns the legal actions of who acts."""
        return [self.match.game.texts[action] for action in self.match.playing.legal()]

    def found(self, public: str) -> str:
        """Returns a legal action that everybody sees as this."""
        return next(text for text in self.legal() if shown(self, text) == public)

    def look(self, since: int) -> list[bytes]:
        """Returns what the viewer sees of the events from there on, as bytes, until everything is revealed."""
        seen = self.projector.see(self.events[since:])
        return [event.SerializeToString(deterministic=True) for event in seen if not event.HasField("secret_revealed")]


class _Machine(Machine):
    __slots__ = ("world",)

    def __init__(self, match: object, secret: bytes, world: World) -> None:
        self.world = world
        super().__init__(match, secret)  # type: ignore[arg-type]  # handed on as it is

    def _seed(self) -> None:
        self.chance = self.world


def shown(world: World, text: str) -> str:
    """Returns an action as the other seats see it."""
    game: Game = world.match.game
    number = game.number(text)
    assert number is not None
    return game.public_text(number)


def cards_seen(event: Event, viewer: int) -> list[str]:
    """Returns the cards that an event of the whole log tells a viewer by the rules of the game."""
    match event.WhichOneof("payload"):
        case "action_applied":
            hidden = event.action_applied.action.startswith("discard:") and event.action_applied.seat != viewer
            return [] if hidden else [event.action_applied.action.removeprefix("discard:")]
        case "card_shown":
            return [event.card_shown.card]
        case "trick_taken":
            return list(event.trick_taken.cards)
        case "cards_dealt":
            return [card for hand in event.cards_dealt.hands if hand.seat == viewer for card in hand.cards]
    return []


class Pair:
    """Two worlds in step.

    Attributes:
        compared: how many events of the viewer were held against each other.
        turned: whether the second world makes its step before the first.
    """

    def __init__(
        self,
        specs: Sequence[match_pb2.MatchSpec],
        viewer: int,
        chance: random.Random,
        make: type[World] = World,
        *,
        turned: bool = False,
    ) -> None:
        self.viewer = viewer
        self.turned = turned
        self.chance = chance
        self.compared = 0
        probe = make(specs[0], {}, viewer)
        game, seats = probe.match.game, len(probe.match.seats)
        pack = list(probe.pack(0, game.pack))
        size = 8 if game.name == "guillotine" else 9
        # Card n of the pack goes to seat 1 + n while hands are dealt; -1 stands for the stock.
        holders = [(1 + place) % seats if place < size * seats else -1 for place in range(len(pack))]
        hidden = [place for place, holder in enumerate(holders) if holder != viewer]
        one = chance.choice(hidden)
        other = chance.choice([place for place in hidden if holders[place] != holders[one] or holders[one] < 0])
        swapped = list(pack)
        swapped[one], swapped[other] = pack[other], pack[one]
        self.swapped = {game.texts[pack[one]], game.texts[pack[other]]}
        self.worlds = [make(spec, {0: cards}, viewer) for spec, cards in zip(specs, (pack, swapped), strict=True)]
        assert self.worlds[0].first == self.worlds[1].first

    def public(self) -> set[str]:
        """Returns the actions that are legal in both worlds, as the other seats see them."""
        return set.intersection(*({shown(world, text) for text in world.legal()} for world in self.worlds))

    def step(self, given: Sequence[inputs.Input | None], *, after: int = 0) -> bool:
        """Hands each world its input and compares what the viewer sees. Returns whether the worlds still look alike."""
        before = [len(world.events) for world in self.worlds]
        steps = list(zip(self.worlds, given, strict=True))
        for world, one in reversed(steps) if self.turned else steps:
            world.now += after
            if one is not None:
                world.step(one)
        fresh = [world.events[start:] for world, start in zip(self.worlds, before, strict=True)]
        looks = [world.look(start) for world, start in zip(self.worlds, before, strict=True)]
        alike = min(self._alike(events, other) for events, other in (fresh, fresh[::-1]))
        known = alike < max(len(events) for events in fresh)
        if known:
            # Up to the event that tells the difference by the rules of the game nothing may be told differently.
            shortest = min(len(look) for look in looks)
            apart = next((n for n in range(shortest) if looks[0][n] != looks[1][n]), shortest)
            projector = Projector(self.viewer, self.worlds[0].match.game)
            assert apart >= len(projector.see(fresh[0][:alike]))
        else:
            assert looks[0] == looks[1]
        self.compared += len(looks[0])
        return not known

    def _alike(self, events: Sequence[Event], other: Sequence[Event]) -> int:
        """Returns how many events of one world come before the viewer may be told the difference.

        That is a card of those that are swapped, or a pass that the referee plays for a seat in this world alone: it
        tells what the seat does not hold.
        """
        passes = sum(event.action_applied.action == "pass" for event in other)
        for number, event in enumerate(events):
            passes -= event.action_applied.action == "pass"
            if passes < 0 or self.swapped & {*cards_seen(event, self.viewer)}:
                return number
        return max(len(events), len(other))

    def play(self, turns: int) -> None:
        """Plays on until the worlds look different to the viewer, or have ended, or for so many decisions."""
        one = self.worlds[0].match
        for number in sorted(range(len(one.seats)), key=lambda number: one.seats[number].kind != OPEN):
            if one.seats[number].kind == OPEN:
                # Somebody else had it before: what that one gave is told to nobody, not even to who has the seat now.
                self._take(number, "former")
                self.step([inputs.OfferSeat(number)] * 2)
                if any(not seat.ready for seat in one.seats if seat.seat != number):
                    self.step([inputs.Ready(number, bytes([nonce]) * 32) for nonce in (3, 4)], after=5_555)
                self.step([inputs.Lose(number, left=True)] * 2, after=1_111)
                self._take(number, "next")
            if not one.seats[number].ready:
                self.step([inputs.OfferSeat(number)] * 2)
                if not self.step([inputs.Ready(number, bytes([nonce]) * 32) for nonce in (1, 2)], after=7_777):
                    return
        for _ in range(turns):
            if any(world.match.over for world in self.worlds):
                return
            assert [world.match.actor for world in self.worlds] == [one.actor] * 2
            if not self._turn():
                return

    def _take(self, seat: int, name: str) -> None:
        self.step([inputs.Fill(seat, f"id-{name}", name)] * 2, after=3_333)

    def _turn(self) -> bool:
        world = self.worlds[0]
        seat = world.match.actor
        assert seat is not None
        common = sorted(self.public())
        if seat == self.viewer:
            assert self.worlds[0].match.question(seat) == self.worlds[1].match.question(seat)
        if not common:
            return False
        public = self.chance.choice(common)
        number = len(world.match.seats[seat].outcomes)
        if world.match.bot_due():
            return self.step([inputs.Choose(seat, number, world.found(public)) for world in self.worlds], after=12_345)
        own = seat == self.viewer
        waits = [0, 0 if own else self.chance.randrange(world.now + 1)]
        ways = [0, 0 if own else self.chance.randrange(self.worlds[1].match.seats[seat].quota_us + 1)]
        asks = [inputs.Ask(seat, wait_us, way_us) for wait_us, way_us in zip(waits, ways, strict=True)]
        if not self.step(asks, after=self.chance.randrange(30_000)):
            return False
        self._stray(seat)
        while self.chance.random() < 0.2:
            going_on = self._wrong(seat, number, public)
            if going_on is not None:
                return going_on
        think_us = self.chance.randrange(200_000)
        lateness = [0, 0 if own else self.chance.randrange(think_us + 1)]
        answers = [
            inputs.Answer(seat, number, world.found(public).encode(), world.now + think_us, late_us)
            for world, late_us in zip(self.worlds, lateness, strict=True)
        ]
        return self.step(answers, after=think_us)

    def _stray(self, seat: int) -> None:
        """Lets another seat send in one world what nobody asked for."""
        others = [other for other in range(len(self.worlds[0].match.seats)) if other != self.viewer]
        other, world = self.chance.choice(others), self.worlds[self.chance.randrange(2)]
        if self.chance.random() < 0.3 and world.match.seats[other].ignored_kept < STRAYS_KEPT:
            start = len(world.events)
            world.step(inputs.Stray(other, 0, b"stray", event_pb2.ANSWER_STATUS_NOT_OPEN))
            assert world.look(start) == []

    def _wrong(self, seat: int, number: int, public: str) -> bool | None:
        """Lets the seat do something wrong. Returns None if it is asked again, else whether the worlds look alike."""
        for world in self.worlds:
            world.wanted = public
        choice = self.chance.random()
        if choice < 0.3:
            due = max(world.match.deadline_us or 0 for world in self.worlds)
            for world in self.worlds:
                world.now = max(due, world.now)
            return self.step([inputs.Tick()] * 2)
        given: list[inputs.Input | None] = []
        for world in self.worlds:
            raw = f"nonsense {self.chance.randrange(10**12)}" * self.chance.randrange(1, 40)
            if choice < 0.7:
                legal = world.legal()
                raw = self.chance.choice([text for text in world.match.game.texts if text not in legal])
            if seat == self.viewer and given:
                assert isinstance(given[0], inputs.Answer)
                raw = given[0].raw.decode()
            given.append(inputs.Answer(seat, number, raw.encode(), world.now + 100))
        alike = self.step(given, after=100)
        return None if alike and self.worlds[0].match.offered_us is not None else alike
