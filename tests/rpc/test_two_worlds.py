"""Two worlds that differ only in what a seat cannot know give it the same bytes, in number, order and size.

In the second world two cards have changed places in the pack: one in the hand of seat 1, the other in another hand or
out of play. Both are of one suit, and everybody does the same in both worlds until one of the two would have to be
played. Whoever holds neither of them has to be sent exactly the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from match.driver import spec_of
from referee.v1 import agent_service_pb2 as pb
from referee.v1 import event_pb2, match_pb2
from referee_games import registry
from referee_server.match import chance
from rpc.agent import Agent, bearer, item
from rpc.kit import NOBODY, PUBLIC, Client, seat_view, until
from rpc.server import Referee, serve, token_of

NAMES = ("anna", "bert", "cleo", "dora")
CLOCK = match_pb2.Clock(allowance_ms=1_000, bank_ms=10_000)
Move = tuple[int, int, str]
"""A seat, the number of its decision, and what it did."""


class World:
    """One referee with its agents, in which things happen one after another."""

    def __init__(self, referee: Referee, port: int, spec: match_pb2.MatchSpec) -> None:
        self.referee = referee
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.client = Client(self._channel)
        self.agents: list[Agent] = []
        self.streams: dict[str, list[bytes]] = {}
        self.moves: list[Move] = []
        for name in NAMES[: len(spec.seats)]:
            agent = Agent(self._channel, name)
            agent.hello(wants_events=True)
            self.agents.append(agent)
        self.match_id = self.client.create(spec)
        table = referee.do(lambda: referee.hall.matches.running[self.match_id])
        for seat, agent in enumerate(self.agents):
            agent.wait("match_offered")
            agent.ready(self.match_id)
            until(lambda seat=seat: referee.do(lambda: table.match.seats[seat].ready), referee)  # type: ignore[misc]

    def asked(self) -> tuple[int, pb.Decision] | None:
        """Returns the seat that is asked and its question."""
        table = self.referee.do(lambda: self.referee.hall.matches.running[self.match_id])
        self.referee.quiet()
        seat = self.referee.do(lambda: table.match.actor)
        if seat is None:
            return None
        number = self.referee.do(lambda: len(table.match.seats[seat].outcomes))
        agent = self.agents[seat]
        decision: pb.Decision = agent.wait("decision")
        assert decision.decision_id == number
        return seat, decision

    def move(self, seat: int, decision: pb.Decision, action: str) -> None:
        """Lets a seat answer after a while, and waits until all of it has happened."""
        self.referee.advance(12_345 + 1_000 * len(self.moves))
        self.agents[seat].answer(decision, action)
        verdict = self.agents[seat].wait("verdict")
        assert verdict.status in (event_pb2.ANSWER_STATUS_ACCEPTED, event_pb2.ANSWER_STATUS_FAULTED)
        self.moves.append((seat, decision.decision_id, action))

    def reconnect(self, seat: int) -> None:
        """Lets a seat be lost and come back; it asks for all events again."""
        old = self.agents[seat]
        _drain(old)
        self.streams[f"{old.name} before"] = list(old.messages)
        old.half_close()
        old.end()
        self.referee.quiet()
        again = Agent(self._channel, old.name)
        again.hello(wants_events=True)
        self.referee.quiet()
        self.agents[seat] = again

    def seen(self) -> dict[str, list[bytes]]:
        """Returns what every agent has been sent, and what anybody who watches now is sent, item by item."""
        self.referee.quiet()
        through = {}
        for seat, agent in enumerate(self.agents):
            _drain(agent)
            through[f"seat {seat}"] = _items(agent.messages)
            if f"{agent.name} before" in self.streams:
                through[f"seat {seat} before"] = _items(self.streams[f"{agent.name} before"])
        for name, view, who in (
            ("public", PUBLIC, NOBODY),
            *((f"watch {seat}", seat_view(seat), bearer(token_of(NAMES[seat]))) for seat in range(len(self.agents))),
        ):
            through[name] = self._watch(view, who)
        return through

    def _watch(self, view: Any, who: Any) -> list[bytes]:
        watching = self.client.watch(self.match_id, view, who=who)
        first = next(watching)
        history = next(watching)
        watching.cancel()
        return [first.SerializeToString(), history.SerializeToString()]

    def close(self) -> None:
        for agent in self.agents:
            agent.close()
        self._channel.close()


def _drain(agent: Agent) -> None:
    """Waits until everything has come that was sent to an agent: what it asks now is answered behind that."""
    agent.send(item(answer=pb.Answer(match_id="is that all?")))
    while agent.wait("verdict").match_id != "is that all?":
        pass


def _items(messages: Sequence[bytes]) -> list[bytes]:
    """Returns events one by one, then the other items.

    How many fit a message is a matter of the moment, and so is whether an event comes with the history; what they are
    is not.
    """
    items = [one for message in messages for one in pb.PlayResponse.FromString(message).items]
    events = [event for one in items if one.HasField("events") for event in one.events.events]
    return [
        *(event.SerializeToString() for event in events),
        *(one.SerializeToString() for one in items if not one.HasField("events")),
    ]


@contextmanager
def world(
    monkeypatch: pytest.MonkeyPatch, spec: match_pb2.MatchSpec, exchanged: tuple[int, int] | None = None
) -> Iterator[World]:
    original = chance.SeededChance.pack

    def pack(self: Any, deal: int, cards: Any) -> Any:
        dealt = list(original(self, deal, cards))
        if exchanged is not None and deal == 0:
            one, other = (dealt.index(card) for card in exchanged)
            dealt[one], dealt[other] = dealt[other], dealt[one]
        return dealt

    with monkeypatch.context() as patched:
        patched.setattr(chance.SeededChance, "pack", pack)
        referee = Referee()
        with serve(referee, lambda servicer, server: servicer.put_on(server)) as thread:
            made = World(referee, thread.port, spec)
            try:
                yield made
            finally:
                made.close()


GAMES: dict[str, tuple[str, dict[str, object], int | None]] = {
    # The game, its options, and whose card changes places with one of seat 1; None for one out of play.
    "guillotine": ("guillotine", {}, 2),
    "guillotine with free passes": ("guillotine", {"domino_pass": "free"}, 3),
    "regicide for three": ("regicide", {"players": 3}, 2),
    "regicide for four": ("regicide", {"players": 4}, 3),
    "regicide in pairs, a card out of play": ("regicide", {"players": 4, "pairs": True}, None),
    "regicide with exchange": ("regicide", {"players": 4, "stock": "exchange"}, 2),
    "regicide with exchange, a card of the stock": ("regicide", {"players": 3, "stock": "exchange"}, None),
}


def spec_for(name: str) -> match_pb2.MatchSpec:
    game, options, _ = GAMES[name]
    configured = registry.find(game).configure(options)
    names = NAMES[: registry.find(game).seats(configured)]
    again = [
        match_pb2.FaultRule(kind=kind, ask_again_count=2)
        for kind in (match_pb2.FAULT_KIND_ILLEGAL, match_pb2.FAULT_KIND_MALFORMED)
    ]
    return spec_of(game, *names, options=options, clock=CLOCK, policy=match_pb2.FaultPolicy(rules=again))


def pair_of(one: World, name: str) -> tuple[str, str]:
    """Returns two cards of one suit, seat 1's and another's, that nobody has seen."""
    other = GAMES[name][2]
    dealt = one.referee.of_log(one.match_id, "cards_dealt")
    hands = [set().union(*(deal.hands[seat].cards for deal in dealt)) for seat in range(len(one.agents))]
    held = hands[other] if other is not None else set(dealt[-1].stock)
    shown = {event.card for event in one.referee.of_log(one.match_id, "card_shown")}
    for mine in sorted(hands[1] - shown):
        for theirs in sorted(held - shown):
            if mine[1] == theirs[1] and mine[0] != "X":
                return mine, theirs
    raise AssertionError("no two cards of one suit")


def choose(decision: pb.Decision, apart: tuple[str, str], count: int) -> str | None:
    """Returns what a seat does: something that has nothing to do with either card."""
    fit = [action for action in decision.legal if not any(card in action for card in apart)]
    return fit[count % len(fit)] if fit else None


@pytest.mark.parametrize("reconnecting", [False, True], ids=["", "reconnecting"])
@pytest.mark.parametrize("name", GAMES)
def test_who_cannot_tell_two_worlds_apart_is_sent_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch, name: str, reconnecting: bool
) -> None:
    spec = spec_for(name)
    game = registry.find(spec.game)
    with world(monkeypatch, spec) as first:
        opened = _open(first)
        apart = pair_of(first, name)
        moves = 0
        while (asked := first.asked()) is not None:
            seat, decision = asked
            if reconnecting and moves == 5:
                first.reconnect(0)
                if seat == 0:
                    decision = first.agents[0].wait("decision")
            action = choose(decision, apart, moves)
            if action is None or moves == 25:
                break
            if moves == 3 and seat not in (1, GAMES[name][2]):
                _say_nonsense(first, seat, decision)
            first.move(seat, decision, action)
            moves += 1
        assert moves >= 5
        one = first.seen()
        script = list(first.moves)
    numbers = game.number(apart[0]), game.number(apart[1])
    assert numbers[0] is not None
    assert numbers[1] is not None
    with world(monkeypatch, spec, (numbers[0], numbers[1])) as second:
        for number, (seat, decision_id, action) in enumerate(script):
            asked = second.asked()
            assert asked is not None
            decision = asked[1]
            if reconnecting and number - opened == 5:
                second.reconnect(0)
                if seat == 0:
                    decision = second.agents[0].wait("decision")
            assert (asked[0], decision.decision_id) == (seat, decision_id)
            if number - opened == 3 and seat not in (1, GAMES[name][2]):
                _say_nonsense(second, seat, decision)
            second.move(seat, decision, action)
        second.asked()
        if reconnecting and len(script) - opened == 5:
            second.reconnect(0)
        other = second.seen()
    knowing = {1, GAMES[name][2]} - {None}
    differing = set()
    for audience, told in one.items():
        seats = re.findall(r"\d", audience)
        if seats and int(seats[0]) in knowing:
            differing.add(audience)
            continue
        assert [len(one) for one in told] == [len(one) for one in other[audience]], audience
        assert told == other[audience], audience
    # The worlds do differ, for those who can know.
    assert any(one[audience] != other[audience] for audience in differing)


def _open(first: World) -> int:
    """Plays what comes before the hands are complete, so that two cards can be chosen that nobody has seen."""
    opened = 0
    while True:
        asked = first.asked()
        assert asked is not None
        seat, decision = asked
        if not (set(decision.legal) & {"open", "decline"} or decision.legal[0].startswith("name:")):
            first.agents[seat]._next -= 1  # still to be answered
            return opened
        first.move(seat, decision, decision.legal[0])
        opened += 1


def _say_nonsense(one: World, seat: int, decision: pb.Decision) -> None:
    """Lets a seat try what is not legal; it is asked again."""
    one.agents[seat].answer(decision, "nonsense")
    assert one.agents[seat].wait("verdict").asked_again


def test_an_attempt_that_is_asked_again_is_nobody_elses_to_see(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, list[bytes]]] = []
    for nonsense in (False, True):
        with world(monkeypatch, spec_for("guillotine")) as one:
            asked = one.asked()
            assert asked is not None
            seat, decision = asked
            if nonsense:
                _say_nonsense(one, seat, decision)
            one.move(seat, decision, decision.legal[0])
            seen.append(one.seen())
    for audience in ("seat 1", "seat 2", "seat 3", "public", "watch 1"):
        assert seen[0][audience] == seen[1][audience], audience
    assert seen[0]["seat 0"] != seen[1]["seat 0"]
