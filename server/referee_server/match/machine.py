"""Decide: what follows from an input, by the rules of the game and the policy of the match.

`Machine.step` is the whole transition: it decides what the input itself brings about, evolves, and goes on with what
follows by itself (facts, deals, forced actions, substitutes, the end) until the match waits for somebody again. Every
event of a step but those is caused by the input and holds all of it, so that a log can be decided again.
"""

from __future__ import annotations

import json
from typing import Final

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from referee.v1 import event_pb2, match_pb2
from referee_games import dealing
from referee_games.contract import CHANCE, OVER, CardsDealt, CardShown, DealScored, Fact, TrickTaken
from referee_server.match import inputs
from referee_server.match.chance import Chance, SealedChance, SeededChance
from referee_server.match.outcome import make_result
from referee_server.match.seat import AGENT, OPEN, SeatState
from referee_server.match.spec import US
from referee_server.match.state import RUNNING, WAITING, Match

RAW_KEPT: Final = 256
"""How many bytes of a faulty or stray answer are put on record."""
STRAYS_KEPT: Final = 5
"""How many stray answers of a seat are put on record; the rest are counted."""

FIELDS: Final = {
    event_pb2.SeatFilled: "seat_filled",
    event_pb2.SeatOffered: "seat_offered",
    event_pb2.SeatReady: "seat_ready",
    event_pb2.MatchStarted: "match_started",
    event_pb2.CardsDealt: "cards_dealt",
    event_pb2.DecisionOffered: "decision_offered",
    event_pb2.ActionApplied: "action_applied",
    event_pb2.CardShown: "card_shown",
    event_pb2.TrickTaken: "trick_taken",
    event_pb2.DealScored: "deal_scored",
    event_pb2.FaultRuled: "fault_ruled",
    event_pb2.SeatReplaced: "seat_replaced",
    event_pb2.AnswerIgnored: "answer_ignored",
    event_pb2.MatchEnded: "match_ended",
    event_pb2.SecretRevealed: "secret_revealed",
    event_pb2.MatchResumed: "match_resumed",
    event_pb2.SeatDisconnected: "seat_disconnected",
    event_pb2.SeatReconnected: "seat_reconnected",
    event_pb2.SeatReopened: "seat_reopened",
}


class Machine:
    """A match with its secret: what decides.

    Attributes:
        match: the match so far.
        chance: where its draws come from; set once the nonces are complete.
        secret: the 32 bytes behind the cards; None where they are not known (a sealed log).
        stray_counts: by seat, answers that changed nothing, those not on record included.
    """

    __slots__ = ("chance", "match", "secret", "stray_counts")

    def __init__(self, match: Match, secret: bytes | None) -> None:
        self.match = match
        self.secret = secret
        self.chance: Chance = SealedChance()
        self.stray_counts = [seat.ignored_kept for seat in match.seats]
        if match.state == RUNNING:
            self._seed()

    def _seed(self) -> None:
        if self.secret is not None:
            self.chance = SeededChance(dealing.match_seed(self.match.deal_id, self.secret, self.match.nonces))

    def hidden_seed(self, seat: int) -> int:
        """Returns a seed for a house bot that steps in at a seat: one that nobody at the table can know."""
        return self.chance.bot_seed(seat)

    def begin(self) -> list[event_pb2.MatchEvent]:
        """Returns what follows from the creation alone, at match time 0: all of it where only house bots play."""
        return self._events(self._follow(), 0)

    def step(self, given: inputs.Input, now_us: int) -> list[event_pb2.MatchEvent]:
        """Takes an input at match time `now_us` and returns the events of it, already taken into `match`.

        Raises:
            inputs.NotNowError: the input cannot happen now; the match is as it was.
        """
        now_us = max(now_us, self.match.time_us)
        return self._events(self._decide(given, now_us), now_us)

    def _events(self, payload: Message | None, now_us: int) -> list[event_pb2.MatchEvent]:
        match = self.match
        events: list[event_pb2.MatchEvent] = []
        while payload is not None:
            events.append(self._envelope(payload, now_us))
            match.take(match.sequence + 1, now_us, FIELDS[type(payload)], payload)
            payload = self._follow()
        return events

    def _envelope(self, payload: Message, now_us: int) -> event_pb2.MatchEvent:
        return event_pb2.MatchEvent(
            sequence=self.match.sequence + 1,
            match_time_us=now_us,
            **{FIELDS[type(payload)]: payload},  # type: ignore[arg-type]  # the field of this type
        )

    def wake_at(self) -> int | None:
        """Returns the match time at which a `Tick` is due, or None."""
        match = self.match
        if match.over:
            return None
        times = (match.deadline_us, *[match.limit_us(seat) for seat in match.seats])
        return min((time for time in times if time is not None), default=None)

    # What an input brings about.

    def _decide(self, given: inputs.Input, now_us: int) -> Message | None:
        match given:
            case inputs.Answer():
                return self._answer(given, now_us)
            case inputs.Ask(seat=seat, wait_us=wait_us, transit_us=transit_us):
                if self.match.agent_due() != seat:
                    raise inputs.NotNowError("no question to that seat is due")
                if not 0 <= wait_us <= now_us:
                    raise inputs.NotNowError("no question has waited as long as that")
                state = self.match.seats[seat]
                if not 0 <= transit_us <= state.quota_us:
                    raise inputs.NotNowError("the seat has not as much credit as that")
                return event_pb2.DecisionOffered(
                    seat=seat,
                    decision_id=len(state.outcomes),
                    bank_us=state.bank_us,
                    wait_us=wait_us,
                    transit_us=transit_us,
                )
            case inputs.Choose(seat=seat, decision_id=number, action=action):
                return self._choose(seat, number, action)
            case inputs.Tick(lateness_us=lateness_us):
                return self._tick(now_us, lateness_us)
            case inputs.Stop(reason=reason, note=note):
                if self.match.over:
                    raise inputs.NotNowError("the match has ended")
                if reason not in inputs.STOP_REASONS:
                    raise inputs.NotNowError("a match is only stopped without a result")
                return self._ended(reason, note)
            case _:
                return self._decide_seat(given, now_us)

    def _decide_seat(self, given: inputs.Input, now_us: int) -> Message | None:
        match = self.match
        if isinstance(given, inputs.Resume):
            if match.over:
                raise inputs.NotNowError("the match has ended")
            return event_pb2.MatchResumed(resume_time=Timestamp(seconds=given.seconds, nanos=given.nanos))
        if isinstance(given, inputs.Reveal):
            if not match.over or match.revealed or not match.held_back or self.secret is None:
                raise inputs.NotNowError("there is nothing to reveal")
            return event_pb2.SecretRevealed(secret=self.secret, nonces=match.nonces, deal_id=match.deal_id)
        assert not isinstance(given, inputs.Answer | inputs.Choose | inputs.Ask | inputs.Tick | inputs.Stop)
        if not 0 <= given.seat < len(match.seats):
            raise inputs.NotNowError("there is no such seat")
        seat = match.seats[given.seat]
        if match.over:
            raise inputs.NotNowError("the match has ended")
        match given:
            case inputs.Fill(agent_id=agent_id, name=name):
                if seat.kind != OPEN:
                    raise inputs.NotNowError("the seat is not open")
                if now_us < match.rests_until_us(agent_id):
                    raise inputs.NotNowError("that agent has given a seat back a moment ago")
                filled = match_pb2.Seat(seat=seat.seat, kind=AGENT, agent_id=agent_id, name=name)
                return event_pb2.SeatFilled(seat=filled)
            case inputs.OfferSeat():
                if match.filled_us is None or seat.ready or seat.kind != AGENT or seat.offered_us is not None:
                    raise inputs.NotNowError("the match is not to be offered to that seat")
                return event_pb2.SeatOffered(seat=seat.seat)
            case inputs.Ready(nonce=nonce):
                if seat.offered_us is None or seat.ready:
                    raise inputs.NotNowError("the seat has not been asked whether it is ready, or has said so")
                if len(nonce) not in (0, dealing.SECRET_BYTES) or (nonce and not match.created.nonces_taken):
                    raise inputs.NotNowError("that nonce is not taken")
                return event_pb2.SeatReady(seat=seat.seat, nonce=nonce)
            case inputs.Decline():
                if match.state != WAITING or seat.offered_us is None or seat.ready:
                    raise inputs.NotNowError("the match is not on offer to that seat")
                if match.may_reopen(seat):
                    if seat.gone_us is not None:
                        raise inputs.NotNowError("that seat's agent is not there")
                    return self._reopened(seat, now_us, event_pb2.REOPEN_CAUSE_DECLINED)
                return self._fault(seat.seat, match_pb2.FAULT_KIND_START_TIMEOUT)
            case inputs.Absent():
                awaited = match.state == WAITING and match.filled_us is not None and seat.offered_us is None
                if not awaited or seat.ready or match.may_reopen(seat):
                    raise inputs.NotNowError("that seat's agent is there")
                return self._fault(seat.seat, match_pb2.FAULT_KIND_NO_SHOW)
            case inputs.Lose(left=left):
                return event_pb2.SeatDisconnected(seat=seat.seat, left=left)
            case inputs.Regain():
                return event_pb2.SeatReconnected(seat=seat.seat)
            case inputs.Accuse(kind=kind):
                if kind not in inputs.ACCUSATIONS or match.state != RUNNING or not seat.played_by_agent:
                    raise inputs.NotNowError("that is no fault of that seat")
                return self._fault(seat.seat, kind)
            case inputs.Stray(decision_id=number, raw=raw, status=status):
                if seat.ignored_kept >= STRAYS_KEPT:
                    raise inputs.NotNowError("enough stray answers of that seat are on record")
                if match.may_reopen(seat):
                    raise inputs.NotNowError("the seat may have another agent before it is asked anything")
                return event_pb2.AnswerIgnored(
                    seat=seat.seat,
                    decision_id=number,
                    raw_answer=raw[:RAW_KEPT],
                    status=event_pb2.AnswerStatus.ValueType(status),
                )

    def _answer(self, given: inputs.Answer, now_us: int) -> Message:
        match = self.match
        if match.actor != given.seat or match.offered_us is None:
            raise inputs.NotNowError("that seat is not asked anything")
        seat = match.seats[given.seat]
        if given.decision_id != len(seat.outcomes):
            raise inputs.NotNowError("that decision is not open")
        if not match.offered_us <= given.received_us <= now_us:
            raise inputs.NotNowError("the answer was received outside the time of its question")
        elapsed_us = given.received_us - match.offered_us
        if not 0 <= given.lateness_us <= elapsed_us:
            raise inputs.NotNowError("the referee was not as late as that")
        deadline = match.deadline_us
        if deadline is not None and given.received_us >= deadline + given.lateness_us:
            raise inputs.NotNowError("the answer came too late")
        think_us, transit_us = self._charged(elapsed_us, given.lateness_us)
        bank_us = seat.bank_us
        if not match.untimed:
            bank_us -= max(0, think_us - match.allowance_us)
        text = given.raw.decode("utf-8", "replace")
        action = match.game.number(text)
        if action is not None and action in match.playing.legal():
            return event_pb2.ActionApplied(
                seat=given.seat,
                decision_id=given.decision_id,
                action=text,
                source=event_pb2.ACTION_SOURCE_AGENT,
                think_us=think_us,
                transit_us=transit_us,
                lateness_us=given.lateness_us,
                bank_us=bank_us + (0 if match.untimed else match.increment_us),
            )
        kind = match_pb2.FAULT_KIND_MALFORMED if action is None else match_pb2.FAULT_KIND_ILLEGAL
        asked_again = match.asked_again < match.rules[kind].ask_again_count
        ruled = self._decision_fault(
            given.seat,
            kind,
            (think_us, transit_us, given.lateness_us),
            asked_again=asked_again,
            bank_us=seat.bank_us if asked_again else bank_us,
        )
        ruled.raw_answer, ruled.raw_answer_size = given.raw[:RAW_KEPT], len(given.raw)
        return ruled

    def _choose(self, seat: int, number: int, text: str) -> Message:
        match = self.match
        due = match.bot_due()
        state = match.seats[seat] if due is not None and due[0] == seat else None
        if state is None or number != len(state.outcomes):
            raise inputs.NotNowError("no house bot has to choose that")
        action = match.game.number(text)
        if action is None or action not in match.playing.legal():
            raise inputs.NotNowError("the house bot's choice is not legal")
        source = event_pb2.ACTION_SOURCE_SUBSTITUTE_BOT if match.owed else event_pb2.ACTION_SOURCE_BOT
        return event_pb2.ActionApplied(seat=seat, decision_id=number, action=text, source=source, bank_us=state.bank_us)

    def _charged(self, elapsed_us: int, lateness_us: int) -> tuple[int, int]:
        """Returns what of the time of the open question is charged, and what is credited to the way."""
        transit_us = min(self.match.transit_us, elapsed_us - lateness_us)
        return elapsed_us - lateness_us - transit_us, transit_us

    def _tick(self, now_us: int, lateness_us: int) -> Message | None:
        match = self.match
        deadline = match.deadline_us
        if deadline is not None and now_us >= deadline + lateness_us:
            assert match.actor is not None
            assert match.offered_us is not None
            elapsed_us = now_us - match.offered_us
            if not 0 <= lateness_us <= elapsed_us:
                raise inputs.NotNowError("the referee was not as late as that")
            think_us, transit_us = self._charged(elapsed_us, lateness_us)
            return self._decision_fault(
                match.actor,
                match_pb2.FAULT_KIND_TIMEOUT,
                (think_us, transit_us, lateness_us),
                asked_again=False,
                bank_us=match.seats[match.actor].bank_us if match.untimed else 0,
            )
        overdue = [seat for seat in match.seats if (limit := match.limit_us(seat)) is not None and now_us >= limit]
        if not overdue:
            raise inputs.NotNowError("no time limit has been reached")
        if match.state == RUNNING:
            return self._fault(overdue[0].seat, match_pb2.FAULT_KIND_DISCONNECT)
        # Seats that only go to others come first: a ruling may be the end of the match.
        seat = next((seat for seat in overdue if match.may_reopen(seat)), overdue[0])
        if match.may_reopen(seat):
            return self._reopened(seat, now_us, event_pb2.REOPEN_CAUSE_LOST)
        never_came = seat.offered_us is None
        return self._fault(
            seat.seat, match_pb2.FAULT_KIND_NO_SHOW if never_came else match_pb2.FAULT_KIND_START_TIMEOUT
        )

    def _reopened(self, seat: SeatState, now_us: int, cause: event_pb2.ReopenCause.ValueType) -> event_pb2.SeatReopened:
        """Gives a seat back, for this cause unless the time to get ready has run out."""
        if not seat.ready and seat.offered_us is not None:
            ready_us = self.match.created.spec.clock.ready_ms * US
            cause = event_pb2.REOPEN_CAUSE_NOT_READY if now_us >= seat.offered_us + ready_us else cause
        return event_pb2.SeatReopened(seat=seat.seat, cause=cause)

    def _fault(self, seat: int, kind: match_pb2.FaultKind.ValueType) -> event_pb2.FaultRuled:
        rule = self.match.rules[kind]
        names = match_pb2.FaultKind.Name(kind), match_pb2.FaultAction.Name(rule.action)
        return event_pb2.FaultRuled(
            seat=seat,
            kind=kind,
            action=rule.action,
            strike_count=self.match.seats[seat].strike_count + rule.strike,
            rule=": ".join(name.split("_", 2)[2].lower() for name in names),
        )

    def _decision_fault(
        self,
        seat: int,
        kind: match_pb2.FaultKind.ValueType,
        times_us: tuple[int, int, int],
        *,
        asked_again: bool,
        bank_us: int,
    ) -> event_pb2.FaultRuled:
        match = self.match
        ruled = self._fault(seat, kind)
        ruled.decision_id = len(match.seats[seat].outcomes)
        ruled.think_us, ruled.transit_us, ruled.lateness_us = times_us
        ruled.bank_us = bank_us
        ruled.legal.extend([match.game.texts[action] for action in match.playing.legal()])
        if asked_again:
            ruled.asked_again = True
            ruled.strike_count = match.seats[seat].strike_count
        return ruled

    # What follows by itself.

    def _follow(self) -> Message | None:
        match = self.match
        if match.facts:
            return self._tell(match.facts[0])
        state = match.state
        if state != RUNNING and match.over:
            if match.revealed or match.held_back or self.secret is None:
                return None
            return event_pb2.SecretRevealed(secret=self.secret, nonces=match.nonces)
        if match.unstarted:
            return self._ended(match_pb2.END_REASON_NOT_STARTED, "")
        if match.forfeited:
            return self._ended(match_pb2.END_REASON_FORFEITED, "")
        if match.owed == "":
            return self._substitute()
        if match.replacing and match.owed is None:
            return event_pb2.SeatReplaced(seat=min(match.replacing), bot=match.created.spec.policy.replacement_bot)
        if match.state == WAITING:
            for seat in match.seats:
                if match.may_reopen(seat) and seat.left:
                    return event_pb2.SeatReopened(seat=seat.seat, cause=event_pb2.REOPEN_CAUSE_LEFT)
            return self._start() if all(seat.ready for seat in match.seats) else None
        engine = match.playing
        if engine.actor == CHANCE:
            return self._deal()
        if engine.actor == OVER:
            return self._ended(match_pb2.END_REASON_COMPLETED, "")
        if match.auto_public and match.offered_us is None and match.owed is None and engine.forced():
            seat = match.seats[engine.actor]
            return event_pb2.ActionApplied(
                seat=seat.seat,
                decision_id=len(seat.outcomes),
                action=match.game.texts[engine.legal()[0]],
                source=event_pb2.ACTION_SOURCE_AUTO,
                bank_us=seat.bank_us,
            )
        return None

    def _start(self) -> Message:
        match = self.match
        self._seed()
        spec = match.created.spec
        if spec.HasField("first_dealer"):
            return event_pb2.MatchStarted(first_dealer=spec.first_dealer)
        return event_pb2.MatchStarted(first_dealer=self.chance.first_dealer(len(match.seats)), first_dealer_drawn=True)

    def _deal(self) -> Message:
        match = self.match
        pack = self.chance.pack(match.playing.deal_number, match.game.pack)
        dealt = match.playing.copy().deal(pack)[0]
        assert isinstance(dealt, CardsDealt)
        event = self._hands(dealt)
        event.pack = bytes(pack)
        return event

    def _substitute(self) -> Message:
        match = self.match
        engine = match.playing
        seat = match.seats[engine.actor]
        legal = engine.legal()
        drawn = self.chance.substitute(seat.seat, len(seat.outcomes), len(legal))
        return event_pb2.ActionApplied(
            seat=seat.seat,
            decision_id=len(seat.outcomes),
            action=match.game.texts[legal[drawn]],
            source=event_pb2.ACTION_SOURCE_SUBSTITUTE,
            bank_us=seat.bank_us,
        )

    def _tell(self, fact: Fact) -> Message:
        texts = self.match.game.texts
        match fact:
            case TrickTaken(seat=seat, cards=cards):
                return event_pb2.TrickTaken(seat=seat, cards=[texts[card] for card in cards])
            case CardsDealt():
                return self._hands(fact)
            case CardShown(card=card, seat=seat):
                return event_pb2.CardShown(card=texts[card], seat=seat)
            case DealScored():
                return event_pb2.DealScored(
                    deal=fact.deal,
                    dealer=fact.dealer,
                    scores=fact.scores,
                    totals=fact.totals,
                    details=[
                        event_pb2.Detail(name=name, json=json.dumps(value, separators=(",", ":")))
                        for name, value in fact.details.items()
                    ],
                    voided=fact.voided,
                )

    def _hands(self, dealt: CardsDealt) -> event_pb2.CardsDealt:
        engine, texts = self.match.playing, self.match.game.texts
        return event_pb2.CardsDealt(
            deal=engine.deal_number,
            dealer=engine.dealer,
            hands=[
                event_pb2.Hand(seat=seat, cards=[texts[card] for card in cards], count=len(cards))
                for seat, cards in enumerate(dealt.hands)
            ],
            stock=[texts[card] for card in dealt.stock],
            stock_count=len(dealt.stock),
        )

    def _ended(self, reason: match_pb2.EndReason.ValueType, note: str) -> Message:
        match = self.match
        # Counts are lost with the process, answers on record are not.
        counts = [max(count, seat.ignored_kept) for count, seat in zip(self.stray_counts, match.seats, strict=True)]
        return event_pb2.MatchEnded(result=make_result(match, reason), note=note, ignored_counts=counts)
