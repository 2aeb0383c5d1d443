"""A match as the fold of its events: `Match.evolve` is the only thing that changes it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from google.protobuf.message import Message

from referee.v1 import event_pb2, match_pb2
from referee_client import convert
from referee_games import contract, registry
from referee_games.contract import Decision, Fact
from referee_server.match.seat import AGENT, OPEN, QUOTA_US, REFILL_US, VOIDED, SeatState
from referee_server.match.spec import US

WAITING = match_pb2.MATCH_STATE_WAITING
RUNNING = match_pb2.MATCH_STATE_RUNNING
FINISHED = match_pb2.MATCH_STATE_FINISHED
CANCELLED = match_pb2.MATCH_STATE_CANCELLED

REST_US: Final = 10_000_000
"""How long a match leaves an agent alone that has given its seat back, in microseconds; the next time twice as long.

Twice as long each time without end: however often somebody takes an open seat and goes, the log stays short.
"""

DECIDE_VERSION: Final = 1
"""Version of the rules by which `decide` decides; in every log's first event."""


class Match:
    """A match: everything that its events so far say.

    `offered_us` is None until the question that is due has been put. `owed` is what a ruling still demands before
    anything else happens: a substitute action, drawn or chosen by the bot it names.
    """

    __slots__ = (
        "allowance_us",
        "asked_again",
        "auto_public",
        "commitment",
        "created",
        "deal_count",
        "deal_id",
        "engine",
        "facts",
        "filled_us",
        "first_dealer",
        "first_dealer_drawn",
        "forfeited",
        "game",
        "increment_us",
        "liveness_us",
        "match_id",
        "offered_us",
        "options",
        "owed",
        "owed_timeout",
        "replacing",
        "rests",
        "result",
        "revealed",
        "rules",
        "seats",
        "sequence",
        "sides",
        "state",
        "substituted_deals",
        "time_us",
        "transit_us",
        "unstarted",
        "untimed",
    )

    def __init__(self, created: event_pb2.MatchCreated) -> None:
        spec = created.spec
        self.created = created
        self.match_id = created.match_id
        self.deal_id = created.deal_id
        self.commitment = created.commitment
        self.game = registry.find(spec.game)
        self.options = self.game.configure(convert.options_from(spec.game, spec.options))
        self.sides = self.game.sides(self.options)
        self.auto_public = spec.auto_play != match_pb2.AUTO_PLAY_NEVER
        self.untimed = spec.clock.untimed
        self.allowance_us = spec.clock.allowance_ms * US
        self.increment_us = spec.clock.increment_ms * US
        self.liveness_us = spec.clock.liveness_ms * US
        self.rules = {rule.kind: rule for rule in spec.policy.rules}
        self.seats = [SeatState(seat, spec.clock.bank_ms * US) for seat in created.seats]
        self.state = WAITING
        self.engine: contract.State | None = None
        self.facts: deque[Fact] = deque()
        self.first_dealer = -1
        self.first_dealer_drawn = False
        self.sequence = 0
        self.time_us = 0
        self.filled_us: int | None = None
        self.offered_us: int | None = None
        self.transit_us = 0
        self.asked_again = 0
        self.owed: str | None = None
        # Seats that a house bot is to take over.
        self.replacing: set[int] = set()
        # Of agents that have given their seats back: how often, and until when they are left alone.
        self.rests: dict[str, tuple[int, int]] = {}
        self.owed_timeout = False
        self.unstarted = False
        self.forfeited = False
        self.result: match_pb2.MatchResult | None = None
        self.revealed = False
        self.deal_count = 0
        self.substituted_deals: set[int] = set()
        self._note_filled()

    # What is asked of it.

    @property
    def held_back(self) -> bool:
        """Whether the secret stays hidden after the end, because other tables play the same cards."""
        return self.created.tournament.held_back

    @property
    def nonces(self) -> list[bytes]:
        """The nonces that the match seed is made with."""
        return list(self.created.tournament.nonces) if self.held_back else [seat.nonce for seat in self.seats]

    @property
    def playing(self) -> contract.State:
        """The engine of a match that has started."""
        assert self.engine is not None
        return self.engine

    @property
    def over(self) -> bool:
        """Whether the match has ended."""
        return self.state in (FINISHED, CANCELLED)

    @property
    def actor(self) -> int | None:
        """The seat whose decision is due, or None while nothing is asked of a seat."""
        if self.state != RUNNING or self.facts or self.engine is None or self.engine.actor < 0:
            return None
        return self.engine.actor

    @property
    def deadline_us(self) -> int | None:
        """When the decision that is open runs out, if the referee is on time; None when none is open."""
        if self.offered_us is None:
            return None
        limit_us = self.liveness_us if self.untimed else self.allowance_us + self.seats[self.playing.actor].bank_us
        return self.offered_us + limit_us + self.transit_us

    def may_reopen(self, seat: SeatState) -> bool:
        """Tells whether a seat that an agent has taken is open again when that agent goes: until the start."""
        return self.state == WAITING and seat.was_open and seat.kind == AGENT

    def limit_us(self, seat: SeatState) -> int | None:
        """Returns when a seat's time beside the clock runs out, if the referee is on time; None while it has all time.

        Before the start that is the time to come, to get ready, or to come back; afterwards only the last.
        """
        if self.state == RUNNING:
            if seat.gone_us is None or not seat.played_by_agent:
                return None
            return seat.gone_us + (0 if seat.left else self.created.spec.clock.reconnect_grace_ms * US)
        if self.state != WAITING:
            return None
        clock = self.created.spec.clock
        limits: list[int] = []
        if not seat.ready and seat.offered_us is not None:
            limits.append(seat.offered_us + clock.ready_ms * US)
        elif not seat.ready and self.filled_us is not None and not self.may_reopen(seat):
            limits.append(self.filled_us + clock.connect_ms * US)
        if seat.gone_us is not None and self.may_reopen(seat):
            limits.append(seat.gone_us + clock.connect_ms * US)
        return min(limits, default=None)

    def rests_until_us(self, agent_id: str) -> int:
        """Returns until when an agent gets no seat here because it has given one back; 0 when it has not."""
        return self.rests.get(agent_id, (0, 0))[1]

    def question(self, seat: int) -> Decision:
        """Returns the decision that is due, as the seat that acts is asked."""
        engine = self.playing
        texts = self.game.texts
        state = self.seats[seat]
        return Decision(
            match_id=self.match_id,
            game=self.game.name,
            seat=seat,
            number=len(state.outcomes),
            view=engine.view(seat),
            legal=tuple([texts[action] for action in engine.legal()]),
            allowance_us=self.allowance_us,
            bank_us=state.bank_us,
        )

    def bot_due(self) -> tuple[int, str, int] | None:
        """Returns seat, name and seed of the house bot that has to choose now, or None."""
        seat = self.actor
        if seat is None or self.owed == "":
            return None
        if self.owed:
            return seat, self.owed, 0
        state = self.seats[seat]
        if state.played_by_agent:
            return None
        return seat, state.bot, state.bot_seed

    def agent_due(self) -> int | None:
        """Returns the seat whose agent has to be asked and has not been, or None."""
        seat = self.actor
        if seat is None or self.owed is not None or self.offered_us is not None:
            return None
        return seat if self.seats[seat].played_by_agent else None

    # How events change it.

    def evolve(self, event: event_pb2.MatchEvent) -> None:
        """Takes the next event in."""
        kind = event.WhichOneof("payload")
        if kind is not None:
            self.take(event.sequence, event.match_time_us, kind, getattr(event, kind))
        elif event.ignorable:  # written by a newer referee, for whoever knows it
            self.sequence, self.time_us = event.sequence, event.match_time_us
        else:
            raise ValueError(f"event {event.sequence} is of a kind that this version does not know")

    def take(self, sequence: int, time_us: int, kind: str, payload: Message) -> None:
        """Takes the next event in, given by its parts."""
        self.sequence, self.time_us = sequence, time_us
        _EVOLVE[kind](self, payload)

    def _note_filled(self) -> None:
        if self.filled_us is None and all(seat.kind != OPEN for seat in self.seats):
            self.filled_us = self.time_us

    def _filled(self, event: event_pb2.SeatFilled) -> None:
        seat = self.seats[event.seat.seat]
        seat.kind, seat.agent_id, seat.name = AGENT, event.seat.agent_id, event.seat.name
        seat.former_id = ""
        seat.gone_us, seat.left = None, False
        self._note_filled()

    def _reopened(self, event: event_pb2.SeatReopened) -> None:
        # Whatever the agent has brought to the seat goes with it.
        former_id = self.seats[event.seat].agent_id
        seat = self.seats[event.seat] = SeatState(self.created.seats[event.seat], self.created.spec.clock.bank_ms * US)
        seat.former_id = former_id
        times = self.rests.get(former_id, (0, 0))[0]
        self.rests[former_id] = times + 1, self.time_us + (REST_US << times)
        self.filled_us = None

    def _seat_offered(self, event: event_pb2.SeatOffered) -> None:
        self.seats[event.seat].offered_us = self.time_us

    def _ready(self, event: event_pb2.SeatReady) -> None:
        seat = self.seats[event.seat]
        seat.ready, seat.nonce = True, event.nonce

    def _started(self, event: event_pb2.MatchStarted) -> None:
        self.state = RUNNING
        self.first_dealer, self.first_dealer_drawn = event.first_dealer, event.first_dealer_drawn
        self.engine = self.game.start(self.options, event.first_dealer)

    def _dealt(self, event: event_pb2.CardsDealt) -> None:
        if event.pack:
            # The first fact of a deal is this very event; what else follows from dealing is told after it.
            self.facts.extend(self.playing.deal(list(event.pack))[1:])
        else:
            self.facts.popleft()

    def _told(self, event: Message) -> None:
        self.facts.popleft()

    def _scored(self, event: event_pb2.DealScored) -> None:
        self.facts.popleft()
        self.deal_count += not event.voided

    def _decision_offered(self, event: event_pb2.DecisionOffered) -> None:
        seat = self.seats[event.seat]
        seat.asked_count += 1
        seat.quota_us = min(QUOTA_US, seat.quota_us - event.transit_us + REFILL_US)
        self.offered_us = self.time_us
        self.transit_us = event.transit_us

    def _applied(self, event: event_pb2.ActionApplied) -> None:
        engine = self.playing
        seat = self.seats[event.seat]
        action = self.game.number(event.action)
        if action is None or engine.actor != event.seat:
            raise ValueError(f"event {self.sequence} applies an action that cannot be")
        source = event.source
        seat.close(action, source, timed_out=self.owed_timeout)
        if source == event_pb2.ACTION_SOURCE_AGENT:
            seat.spent(event.think_us, event.transit_us, event.lateness_us)
            seat.bank_us = event.bank_us
        elif seat.kind == AGENT and source != event_pb2.ACTION_SOURCE_AUTO:
            seat.substitute_count += 1
            self.substituted_deals.add(engine.deal_number)
        self.offered_us = None
        self.asked_again = 0
        self.owed = None
        self.owed_timeout = False
        self.facts.extend(engine.apply(action))

    def _faulted(self, event: event_pb2.FaultRuled) -> None:
        seat = self.seats[event.seat]
        seat.fault_count += 1
        seat.strike_count = event.strike_count
        if event.asked_again:
            # The clock runs on, so what is spent is booked with the outcome.
            self.asked_again += 1
            return
        if event.HasField("decision_id"):
            seat.spent(event.think_us, event.transit_us, event.lateness_us)
            self.asked_again = 0
        limit = self.created.spec.policy.strikes
        out = event.action == match_pb2.FAULT_ACTION_REPLACE or 0 < limit <= event.strike_count
        if out and not seat.replaced:
            self.replacing.add(event.seat)
        if event.HasField("decision_id"):
            seat.bank_us = event.bank_us
            self.offered_us = None
        match event.action:
            case match_pb2.FAULT_ACTION_SUBSTITUTE:
                self.owed = self.rules[event.kind].bot
                self.owed_timeout = event.kind == match_pb2.FAULT_KIND_TIMEOUT
            case match_pb2.FAULT_ACTION_VOID_DEAL:
                seat.close(VOIDED)
                self.facts.extend(self.playing.void_deal())
            case match_pb2.FAULT_ACTION_FORFEIT:
                seat.forfeited = self.forfeited = True
            case match_pb2.FAULT_ACTION_CANCEL:
                self.unstarted = True
            case _:  # replace: the event for it follows by itself
                pass

    def _replaced(self, event: event_pb2.SeatReplaced) -> None:
        seat = self.seats[event.seat]
        seat.replaced = True
        self.replacing.discard(event.seat)
        seat.ready = True
        seat.bot = event.bot
        if self.actor == event.seat:
            self.offered_us = None
            self.asked_again = 0

    def _ignored(self, event: event_pb2.AnswerIgnored) -> None:
        self.seats[event.seat].ignored_kept += 1

    def _ended(self, event: event_pb2.MatchEnded) -> None:
        counted = event.result.reason in (match_pb2.END_REASON_COMPLETED, match_pb2.END_REASON_FORFEITED)
        self.state = FINISHED if counted else CANCELLED
        self.result = event.result
        self.facts.clear()
        self.offered_us = None

    def _revealed(self, event: event_pb2.SecretRevealed) -> None:
        self.revealed = True

    def _resumed(self, event: event_pb2.MatchResumed) -> None:
        # Down time is free: whatever was open is put again, with all of its allowance, and nobody is connected.
        self.offered_us = None
        for seat in self.seats:
            if not seat.ready:
                seat.offered_us = None
            if seat.kind == AGENT:
                seat.gone_us = self.time_us
        if self.filled_us is not None and self.state == WAITING:
            self.filled_us = self.time_us

    def _lost(self, event: event_pb2.SeatDisconnected) -> None:
        seat = self.seats[event.seat]
        if seat.gone_us is None:  # a second loss does not give a second grace
            seat.gone_us = self.time_us
        seat.left = seat.left or event.left

    def _regained(self, event: event_pb2.SeatReconnected) -> None:
        seat = self.seats[event.seat]
        seat.gone_us = None
        seat.left = False


_EVOLVE: Final[dict[str, Callable[[Match, Any], None]]] = {
    "seat_filled": Match._filled,
    "seat_reopened": Match._reopened,
    "seat_offered": Match._seat_offered,
    "seat_ready": Match._ready,
    "match_started": Match._started,
    "cards_dealt": Match._dealt,
    "decision_offered": Match._decision_offered,
    "action_applied": Match._applied,
    "card_shown": Match._told,
    "trick_taken": Match._told,
    "deal_scored": Match._scored,
    "fault_ruled": Match._faulted,
    "seat_replaced": Match._replaced,
    "answer_ignored": Match._ignored,
    "match_ended": Match._ended,
    "secret_revealed": Match._revealed,
    "match_resumed": Match._resumed,
    "seat_disconnected": Match._lost,
    "seat_reconnected": Match._regained,
    "match_created": Match._told,  # only ever the first event, which `Match` itself takes
}


def begin(event: event_pb2.MatchEvent) -> Match:
    """Returns the match that a first event begins.

    Raises:
        ValueError: the event is no MatchCreated, or of a version of decide that this one does not know.
    """
    if event.sequence != 1 or event.WhichOneof("payload") != "match_created":
        raise ValueError("the first event is not the creation of a match")
    match = Match(event.match_created)
    match.sequence = 1
    return match
