"""A match of the scripted referee: real rules and cards, house bots in the other seats, a clock that stands still."""

from __future__ import annotations

import base64
import hashlib
import os
from typing import Final

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import event_pb2, match_pb2
from referee_client import convert
from referee_games import bots, dealing, registry
from referee_server.match import inputs
from referee_server.match.machine import Machine
from referee_server.match.seat import AGENT, BOT
from referee_server.match.spec import settle
from referee_server.match.state import DECIDE_VERSION, begin
from referee_server.match.views import Projector

_SHORT: Final = {"guillotine": {"deals_per_dealer": 1}, "regicide": {"target": 15}}
"""Options with which a match is soon over."""
_STEP_US: Final = 1_000
_BOT: Final = "greedy"


class Board:
    """One match.

    Attributes:
        match_id: its id.
        game: key of the game.
        seat: the agent's seat.
        asked: the decision that is open; None when none is.
        decisions: how many the agent has been asked.
        over: whether the match has ended.
    """

    def __init__(self, game: str, number: int = 0, allowance_ms: int = 10_000, bank_ms: int = 0) -> None:
        rules = registry.find(game)
        options = rules.configure(_SHORT.get(game, {}))
        count = rules.seats(options)
        self.match_id = base64.b32encode(os.urandom(16)).decode().rstrip("=").lower()
        self.game = game
        self.seat = number % count
        self.asked: pb.Decision | None = None
        self.decisions = 0
        seats = [
            match_pb2.Seat(seat=place, kind=AGENT, agent_id="0" * 20, name="agent")
            if place == self.seat
            else match_pb2.Seat(seat=place, kind=BOT, name=_BOT)
            for place in range(count)
        ]
        clock = match_pb2.Clock(allowance_ms=allowance_ms, bank_ms=bank_ms)
        spec = settle(match_pb2.MatchSpec(game=game, clock=clock, first_dealer=self.seat))
        spec.options.CopyFrom(convert.options_to(game, options))
        secret = os.urandom(dealing.SECRET_BYTES)
        created = event_pb2.MatchCreated(
            match_id=self.match_id,
            spec=spec,
            seats=seats,
            deal_id=self.match_id,
            commitment=dealing.commitment(self.match_id, secret),
            decide_version=DECIDE_VERSION,
            nonces_taken=True,
        )
        first = event_pb2.MatchEvent(sequence=1, match_created=created)
        self._machine = Machine(begin(first), secret)
        self._projector = Projector(self.seat, self._machine.match.game)
        self._events = self._projector.see([first])
        self._now_us = 0
        self._bots = {place: bots.make(_BOT, place) for place in range(count) if place != self.seat}
        self._keep(self._machine.begin())
        self._step(inputs.OfferSeat(self.seat))

    @property
    def over(self) -> bool:
        """Whether the match has ended."""
        return self._machine.match.over

    @property
    def ready(self) -> bool:
        """Whether the agent has said that it is ready."""
        return self._machine.match.seats[self.seat].ready

    def events(self, after: int = 0) -> pb.ServerItem:
        """Returns the events so far, as the seat sees them, behind a number."""
        seen = [event for event in self._events if event.sequence > after]
        return pb.ServerItem(events=pb.SeatEvents(match_id=self.match_id, seat=self.seat, events=seen[:200]))

    def offer(self) -> pb.ServerItem:
        """Returns the offer as it stands."""
        match = self._machine.match
        spec = match.created.spec
        return pb.ServerItem(
            match_offered=pb.MatchOffered(
                match_id=self.match_id,
                game=self.game,
                options=spec.options,
                seat=self.seat,
                seats=match.created.seats,
                clock=spec.clock,
                policy=spec.policy,
                deal_id=self.match_id,
                commitment=match.commitment,
                nonces_taken=True,
                ready=self.ready,
                auto_play=spec.auto_play,
            )
        )

    def start(self, nonce: bytes) -> None:
        """Takes the agent's Ready."""
        self._step(inputs.Ready(self.seat, nonce))

    def ask(self) -> pb.ServerItem | None:
        """Lets the bots play and returns the agent's next decision, or the one that is open; None at the end."""
        match = self._machine.match
        while self.asked is None and not match.over:
            due = match.bot_due()
            if due is not None:
                question = match.question(due[0])
                self._step(inputs.Choose(due[0], question.number, self._bots[due[0]].choose(question)))
                continue
            question = match.question(self.seat)
            self._step(inputs.Ask(self.seat, 0))
            self.asked = convert.decision_to(question)
            self.decisions += 1
        return None if self.asked is None else pb.ServerItem(decision=self.asked)

    def answer(self, action: str) -> pb.ServerItem:
        """Takes a legal answer to the decision that is open and returns the verdict."""
        assert self.asked is not None
        number, self.asked = self.asked.decision_id, None
        self._now_us += _STEP_US
        self._step(inputs.Answer(self.seat, number, action.encode(), self._now_us))
        return verdict(self.match_id, number, event_pb2.ANSWER_STATUS_ACCEPTED, action)

    def stop(self) -> None:
        """Ends the match without a result, as a host does."""
        if not self.over:
            self._step(inputs.Stop(match_pb2.END_REASON_CANCELLED, "cancelled by the host"))
        self.asked = None

    def end(self) -> pb.ServerItem:
        """Returns the word of the end."""
        result = match_pb2.MatchResult()
        assert self._machine.match.result is not None
        result.CopyFrom(self._machine.match.result)
        result.digest = hashlib.sha256(self.match_id.encode()).digest()
        return pb.ServerItem(match_over=pb.MatchOver(match_id=self.match_id, seat=self.seat, result=result))

    def _step(self, given: inputs.Input) -> None:
        self._now_us += _STEP_US
        self._keep(self._machine.step(given, self._now_us))

    def _keep(self, events: list[event_pb2.MatchEvent]) -> None:
        self._events += self._projector.see(events)


def verdict(match_id: str, number: int, status: event_pb2.AnswerStatus.ValueType, action: str = "") -> pb.ServerItem:
    """Returns a verdict."""
    return pb.ServerItem(verdict=pb.Verdict(match_id=match_id, decision_id=number, status=status, action=action))
