"""A running match in the event loop: takes an input, decides, stores, tells, asks the next seat, re-arms one timer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol
from uuid import uuid4

import structlog

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import event_pb2, match_pb2
from referee_client import convert
from referee_games import bots
from referee_server.journal import MAX_EVENTS, EventsAdded, SummaryChanged
from referee_server.match import inputs
from referee_server.match.machine import STRAYS_KEPT, Machine
from referee_server.match.state import WAITING
from referee_server.match.verify import parse, replay
from referee_server.match.views import Projector
from referee_server.tables.clock import Clock, Timer
from referee_server.tables.committer import Committer
from referee_server.tables.lateness import SLACK_US, LatenessMeter
from referee_server.tables.session import Session

_log = structlog.get_logger(__name__)

WAIT_CAP_US: Final = 60_000_000
"""How long a question waits for an agent that has enough others open; then it is put all the same."""
_LOG_LIMIT: Final = MAX_EVENTS - 1_000
"""At how many events a match is stopped: what ends it still has room."""
_RECHECK_US: Final = 10_000
"""How soon a time limit that the referee may not enforce now is looked at again, in microseconds."""
_LIMIT_KINDS: Final = frozenset(
    {"seat_offered", "seat_disconnected", "seat_ready", "seat_reconnected", "seat_filled", "match_resumed"}
)
"""Events with which a seat's time to come, to get ready or to come back begins or ends."""
_CHOICES_A_TURN: Final = 64
"""How many choices of house bots one match makes before others get their turn of the loop."""


class Host(Protocol):
    """What a table needs of the hall it stands in."""

    clock: Clock
    committer: Committer
    meter: LatenessMeter

    @property
    def halted(self) -> bool:
        """Whether nothing new is asked: the referee shuts down, or its storage is away."""

    def session_of(self, agent_id: str) -> Session | None:
        """Returns the agent's stream, if it has one."""

    def ended(self, table: Table) -> None:
        """Takes note that a match has ended and its end is being stored."""

    def stored_events(self, match_id: str) -> list[bytes]:
        """Returns the events of a match that are committed."""

    def digest(self, match_id: str) -> bytes:
        """Returns the digest of a match's committed events."""

    def later(self, callback: Callable[[], None]) -> None:
        """Calls back in a later turn of the loop."""


class Table:
    """One match being played."""

    def __init__(self, host: Host, machine: Machine, label: str, create_time_ns: int) -> None:
        self.machine = machine
        self.match = machine.match
        self.match_id = machine.match.match_id
        self.label = label
        self.create_time_ns = create_time_ns
        self._host = host
        # Match time 0 on the service's clock; after a restart, such that match time goes on where it was.
        self._epoch_us = host.clock.now_us() - machine.match.time_us
        self._timer: Timer | None = None
        self._timer_us: int | None = None
        self._asked: Session | None = None
        self._waiting_since_us: int | None = None
        self._wait_timer: Timer | None = None
        self._bots: dict[int, bots.Bot] = {}
        self._projectors: dict[int, Projector] = {}
        # Whether any seat has wanted events: what is stored from then on is shown to whoever has caught up by then.
        self._shows = False
        self._held_until_us: int | None = None
        self._late_before_us = 0
        # How long the open question took to be stored and handed over; None while it is on its way.
        self._handed_after_us: int | None = 0
        # How late the referee had been by when the time to come, or to come back, began; by seat.
        self._limits_since_us: dict[int, int] = {}
        self.broken = False

    @property
    def now_us(self) -> int:
        """Match time."""
        return self._host.clock.now_us() - self._epoch_us

    def seats_of(self, agent_id: str) -> list[int]:
        """Returns the seats of an agent."""
        return [seat.seat for seat in self.match.seats if seat.agent_id == agent_id and agent_id]

    # Inputs.

    def begin(self) -> None:
        """Goes on with what follows from the creation alone."""
        self._limits_since_us = dict.fromkeys(range(len(self.match.seats)), self._host.meter.total_us())
        self._step(self.machine.begin)
        self.advance()

    def resume(self, seconds: int, nanos: int) -> None:
        """Goes on after a restart. Agents get their grace to come back before the clock of a question starts."""
        grace_us = self.match.created.spec.clock.reconnect_grace_ms * 1_000
        self._held_until_us = self._host.clock.now_us() + grace_us
        if self.match.sequence == 1:
            # The last run ended between the creation and what follows from it.
            self._step(self.machine.begin)
        self.feed(inputs.Resume(seconds, nanos))

    def feed(self, given: inputs.Input) -> list[event_pb2.MatchEvent]:
        """Takes an input now and returns its events, which are on their way to the journal.

        Raises:
            NotNowError: it cannot happen now.
        """
        events = self._step(lambda: self.machine.step(given, self.now_us))
        self.advance()
        return events

    def _step(self, decide: Callable[[], list[event_pb2.MatchEvent]]) -> list[event_pb2.MatchEvent]:
        """Takes what is decided; a failure of ours breaks the match, and nothing comes of it.

        Nothing is taken of a broken match: its state in memory is not what is stored.
        """
        if self.broken:
            return []
        try:
            events = decide()
        except inputs.NotNowError:
            raise
        except Exception:
            self._break()
            return []
        self._took(events)
        return events

    def answer(self, session: Session, answer: agent_pb.Answer, received_us: int) -> agent_pb.Verdict:
        """Takes an agent's answer, received at that time of the service's clock, and returns the verdict.

        It is not to be told before what it rests on is stored (`Committer.tell`).
        """
        seat = self.seats_of(session.agent_id)[0]
        verdict = agent_pb.Verdict(match_id=self.match_id, decision_id=answer.decision_id)
        if answer.HasField("seat") and answer.seat != seat:
            verdict.status = event_pb2.ANSWER_STATUS_SEAT_MISMATCH
        else:
            self._judge(seat, answer, max(0, received_us - self._epoch_us), verdict)
        return verdict

    def ask_again(self, session: Session) -> None:
        """Puts the question that is open to its seat again, on the same clock."""
        seat = self.match.actor
        if seat is not None and self.match.offered_us is not None and not self.broken:
            self._host.committer.tell(session, self._question(seat))

    def _judge(self, seat: int, answer: agent_pb.Answer, received_us: int, verdict: agent_pb.Verdict) -> None:
        match = self.match
        number = answer.decision_id
        deadline = match.deadline_us
        if deadline is not None and received_us >= deadline + self._lateness_us():
            self._tick()
        # Also when it was the tick that the referee failed over.
        if self.broken and not match.over:
            verdict.status = event_pb2.ANSWER_STATUS_NOT_OPEN
            return
        state = match.seats[seat]
        # An answer that was read before its question was put is a guess.
        put = match.actor == seat and match.offered_us is not None and match.offered_us <= received_us
        if not put or number != len(state.outcomes):
            self._stray(seat, answer, verdict)
            return
        lateness_us = min(self._lateness_us(), received_us - (match.offered_us or 0))
        events = self.feed(inputs.Answer(seat, number, answer.action.encode(), received_us, lateness_us))
        ruled = events[0].fault_ruled if events and events[0].HasField("fault_ruled") else None
        if not events:
            # The referee failed over it, and the match ends: nothing was accepted.
            verdict.status = event_pb2.ANSWER_STATUS_NOT_OPEN
        elif ruled is None:
            verdict.status = event_pb2.ANSWER_STATUS_ACCEPTED
            verdict.action = answer.action
        else:
            verdict.status = event_pb2.ANSWER_STATUS_FAULTED
            verdict.fault = ruled.kind
            verdict.strike_count = ruled.strike_count
            verdict.asked_again = ruled.asked_again

    def _stray(self, seat: int, answer: agent_pb.Answer, verdict: agent_pb.Verdict) -> None:
        match = self.match
        state = match.seats[seat]
        number = answer.decision_id
        if match.over:
            verdict.status = event_pb2.ANSWER_STATUS_MATCH_OVER
            return
        if not 0 <= number < len(state.outcomes):
            verdict.status = event_pb2.ANSWER_STATUS_NOT_OPEN
        else:
            action, source, timed_out = state.outcome(number)
            if action < len(match.game.texts):
                verdict.action = match.game.texts[action]
            if timed_out:
                verdict.status = event_pb2.ANSWER_STATUS_TIMED_OUT
            elif source == event_pb2.ACTION_SOURCE_AGENT:
                repeated = verdict.action == answer.action
                verdict.status = (
                    event_pb2.ANSWER_STATUS_REPEATED if repeated else event_pb2.ANSWER_STATUS_ALREADY_ANSWERED
                )
            else:
                verdict.status = event_pb2.ANSWER_STATUS_DECISION_CLOSED
        self.machine.stray_counts[seat] += 1
        if state.ignored_kept < STRAYS_KEPT:
            self.feed(inputs.Stray(seat, number, answer.action.encode(), verdict.status))

    # Streams.

    def attach(self, session: Session, after: dict[str, int]) -> None:
        """Takes up an agent's new stream: the offer again, the events it missed, and the question that is open.

        To be called when everything so far is committed.
        """
        for seat in self.seats_of(session.agent_id):
            state = self.match.seats[seat]
            session.tables[self.match_id] = self
            if self.broken:
                continue
            if self.match.filled_us is not None:
                if self.match.state == WAITING and not state.ready and state.offered_us is None:
                    self.feed(inputs.OfferSeat(seat))
                self._host.committer.tell(session, self._offer(seat))
                self._begin_showing(session, seat, after)
            # The offer goes first: that the seat is back may be all that its question waited for.
            if state.gone_us is not None and not self.match.over:
                self.feed(inputs.Regain(seat))
            is_asked = self.match.actor == seat and self.match.offered_us is not None and state.played_by_agent
            if is_asked and self._asked is not session:
                self._hand_over(session, seat)
        self.advance()

    def detach(self, session: Session) -> None:
        """Takes note that a stream has ended."""
        if self._asked is session:
            self._asked = None
        for seat in self.seats_of(session.agent_id):
            # The next stream begins where its agent says, not where this one stopped.
            self._projectors.pop(seat, None)
            state = self.match.seats[seat]
            if self.broken or self.match.over or state.gone_us is not None:
                continue
            on_offer = self.match.state == WAITING and state.offered_us is not None and not state.ready
            self.feed(inputs.Decline(seat) if session.left and on_offer else inputs.Lose(seat, session.left))

    def _begin_showing(self, session: Session, seat: int, after: dict[str, int]) -> None:
        if session.hello.wants_events:
            self._shows = True
            self._host.committer.then(lambda: self._catch_up(session, seat, after))

    def _catch_up(self, session: Session, seat: int, after: dict[str, int]) -> None:
        """Sends the events that a stream has missed. From here on new ones are sent as they are stored."""
        if self._host.session_of(session.agent_id) is not session:
            return
        projector = Projector(seat, self.match.game)
        seen = projector.see(parse(self._host.stored_events(self.match_id)))
        self._projectors[seat] = projector
        missed = seen[after.get(self.match_id, 0) :]
        for start in range(0, len(missed), 100):
            piece = agent_pb.SeatEvents(match_id=self.match_id, seat=seat, events=missed[start : start + 100])
            session.push(agent_pb.ServerItem(events=piece))

    def offer(self) -> None:
        """Offers the match to the agents that have not had it yet and are there with room for it."""
        if self.broken or self.match.filled_us is None or self.match.state != WAITING:
            return
        for seat in self.match.seats:
            if seat.ready or seat.offered_us is not None:
                continue
            session = self._host.session_of(seat.agent_id)
            if session is None or not (session.has_room or self.match_id in session.tables):
                continue
            session.tables[self.match_id] = self
            self.feed(inputs.OfferSeat(seat.seat))
            self._host.committer.tell(session, self._offer(seat.seat))
            self._begin_showing(session, seat.seat, {})

    def _offer(self, seat: int) -> agent_pb.ServerItem:
        match = self.match
        spec = match.created.spec
        seats = [state.to_message() for state in match.seats]
        for message in seats:
            message.ClearField("bot_seed")
        return agent_pb.ServerItem(
            match_offered=agent_pb.MatchOffered(
                match_id=self.match_id,
                game=spec.game,
                options=spec.options,
                seat=seat,
                seats=seats,
                clock=spec.clock,
                policy=spec.policy,
                deal_id=match.deal_id,
                commitment=match.commitment,
                nonces_taken=match.created.nonces_taken,
                ready=match.seats[seat].ready,
                auto_play=spec.auto_play,
            )
        )

    # What happens by itself.

    def advance(self) -> None:
        """Lets house bots choose, asks the agent whose turn it is, and re-arms the timer."""
        if self._host.halted or self.broken:
            return
        for _ in range(_CHOICES_A_TURN):
            due = self.match.bot_due()
            if due is None:
                break
            self._choose(*due)
        else:
            self._host.later(self.advance)
            return
        seat = self.match.agent_due()
        if seat is not None:
            self._ask(seat)
        self._arm()

    def _choose(self, seat: int, name: str, seed: int) -> None:
        try:
            bot = self._bots.get(seat)
            if bot is None or bot.name != name:
                bot = self._bots[seat] = bots.make(name, seed)
            question = self.match.question(seat)
            chosen = inputs.Choose(seat, question.number, bot.choose(question))
            self._step(lambda: self.machine.step(chosen, self.now_us))
        except Exception:
            self._break()

    def _ask(self, seat: int) -> None:
        session = self._host.session_of(self.match.seats[seat].agent_id)
        now_us = self._host.clock.now_us()
        if session is None and self._held_until_us is not None and now_us < self._held_until_us:
            if self._wait_timer is None:
                self._wait_timer = self._host.clock.call_at(self._held_until_us, self.advance)
            return
        waited_us = now_us - self._waiting_since_us if self._waiting_since_us is not None else 0
        if session is not None and session.open_count >= session.max_open and waited_us < WAIT_CAP_US:
            if self._waiting_since_us is None:
                self._waiting_since_us = now_us
                session.waiting.append(self)
                self._wait_timer = self._host.clock.call_at(now_us + WAIT_CAP_US, self.advance)
            return
        self._waiting_since_us = None
        if self._wait_timer is not None:
            self._wait_timer.cancel()
            self._wait_timer = None
        # The way there and back is credited as far as the seat's quota goes.
        transit_us = min(session.transit_us, self.match.seats[seat].quota_us) if session is not None else 0
        self._late_before_us = self._host.meter.total_us()
        self._handed_after_us = 0
        if not self._step(lambda: self.machine.step(inputs.Ask(seat, waited_us, transit_us), self.now_us)):
            return
        # An agent that is away is asked all the same: its clock runs, and it gets the question when it is back.
        if session is not None:
            self._hand_over(session, seat)
            self._handed_after_us = None
            offered_us = self.match.offered_us
            self._host.committer.then(lambda: self._handed(offered_us))

    def _handed(self, offered_us: int | None) -> None:
        """Takes note that the open question has left. What it took to store it is the referee's time."""
        if offered_us is None or self.match.offered_us != offered_us or self._handed_after_us is not None:
            return
        after_us = self.now_us - offered_us
        if after_us > SLACK_US:
            self._late_before_us = self._host.meter.total_us()
            self._handed_after_us = after_us
        else:
            self._handed_after_us = 0

    def _hand_over(self, session: Session, seat: int) -> None:
        self._asked = session
        session.open_count += 1
        self._host.committer.tell(session, self._question(seat))

    def _question(self, seat: int) -> agent_pb.ServerItem:
        """Returns the question that is open, with the time that is left now."""
        match = self.match
        decision = convert.decision_to(match.question(seat))
        if match.untimed:
            decision.untimed = True
        elif match.offered_us is not None:
            used_us = max(0, self.now_us - match.offered_us)
            allowance_us = match.created.spec.clock.allowance_ms * 1_000
            decision.allowance_us = max(0, allowance_us - used_us)
            decision.bank_us = max(0, match.seats[seat].bank_us - max(0, used_us - allowance_us))
        last = match.seats[seat].last
        if last is not None:
            decision.last.think_us, decision.last.transit_us, decision.last.lateness_us = last
        return agent_pb.ServerItem(decision=decision)

    def _took(self, events: list[event_pb2.MatchEvent]) -> None:
        """Sends events to the journal and, once they are there, to the seats that want them."""
        if not events:
            return
        match, committer = self.match, self._host.committer
        committer.store(EventsAdded(self.match_id, tuple([event.SerializeToString() for event in events])))
        if self._shows:
            committer.then(lambda: self._show(events))
        if self._asked is not None and match.offered_us is None:
            self._release()
        if match.sequence > _LOG_LIMIT and not match.over:
            self._host.later(self._stop_at_limit)
        kinds = {event.WhichOneof("payload") for event in events}
        if kinds & _LIMIT_KINDS:
            for event in events:
                self._note_limits(event)
        if "match_ended" in kinds:
            self._end()
        elif "match_started" in kinds:
            committer.store(SummaryChanged(self.match_id, "RUNNING", self.summary().SerializeToString()))

    def _show(self, events: list[event_pb2.MatchEvent]) -> None:
        """Sends stored events to the seats that want them."""
        for seat, projector in self._projectors.items():
            session = self._host.session_of(self.match.seats[seat].agent_id)
            seen = projector.see(events)
            if session is not None and seen and session.hello.wants_events:
                piece = agent_pb.SeatEvents(match_id=self.match_id, seat=seat, events=seen)
                session.push(agent_pb.ServerItem(events=piece))

    def _release(self) -> None:
        session = self._asked
        self._asked = None
        if session is not None:
            session.open_count -= 1
            while session.waiting and session.open_count < session.max_open:
                self._host.later(session.waiting.popleft().advance)
                break

    def _end(self) -> None:
        match, committer = self.match, self._host.committer
        for timer in (self._timer, self._wait_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._wait_timer = None
        state = match_pb2.MatchState.Name(match.state).removeprefix("MATCH_STATE_")
        committer.store(SummaryChanged(self.match_id, state, self.summary().SerializeToString(), final=True))
        committer.then(self._tell_over)
        self._host.ended(self)

    def _tell_over(self) -> None:
        match = self.match
        assert match.result is not None
        result = match_pb2.MatchResult()
        result.CopyFrom(match.result)
        result.digest = self._host.digest(self.match_id)
        for seat in match.seats:
            session = self._host.session_of(seat.agent_id) if seat.agent_id else None
            if session is not None and self.match_id in session.tables:
                over = agent_pb.MatchOver(match_id=self.match_id, seat=seat.seat, result=result)
                session.push(agent_pb.ServerItem(match_over=over))

    def summary(self) -> match_pb2.Match:
        """Returns the match as lists show it; times and counts are added by whoever lists it."""
        match = self.match
        return match_pb2.Match(
            match_id=self.match_id,
            state=match.state,
            game=match.game.name,
            options=match.created.spec.options,
            seats=[seat.to_message() for seat in match.seats],
            label=self.label,
            result=match.result,
        )

    # Time.

    def _arm(self) -> None:
        due = self.machine.wake_at()
        if due == self._timer_us and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_us = due
        if due is not None and not self.broken:
            self._timer = self._host.clock.call_at(due + self._epoch_us, self._on_timer)

    def _lateness_us(self) -> int:
        """Returns by how much the referee was late since the question that is open was put."""
        if self.match.offered_us is None:
            return 0
        if self._handed_after_us is None:
            return max(0, self.now_us - self.match.offered_us)
        return self._handed_after_us + self._host.meter.total_us() - self._late_before_us

    def _note_limits(self, event: event_pb2.MatchEvent) -> None:
        """Notes from when on a seat's time to come, to get ready or to come back runs, and when it is over."""
        late_us = self._host.meter.total_us()
        match event.WhichOneof("payload"):
            case "seat_offered":
                self._limits_since_us[event.seat_offered.seat] = late_us
            case "seat_disconnected":
                self._limits_since_us.setdefault(event.seat_disconnected.seat, late_us)
            case "seat_ready":
                self._limits_since_us.pop(event.seat_ready.seat, None)
            case "seat_reconnected":
                self._limits_since_us.pop(event.seat_reconnected.seat, None)
            case "seat_filled" | "match_resumed":
                self._limits_since_us = dict.fromkeys(range(len(self.match.seats)), late_us)

    def _limits_owed_us(self) -> int:
        """Returns by how much the referee was late since the first of the limits beside the clock began to run."""
        since_us = min(self._limits_since_us.values(), default=None)
        return 0 if since_us is None else self._host.meter.total_us() - since_us

    def _on_timer(self) -> None:
        self._timer = None
        if self.match.over or self.broken:
            return
        deadline = self.match.deadline_us
        if self._host.halted or (deadline is not None and deadline <= self.now_us < deadline + self._lateness_us()):
            # While the referee owes time nobody runs out of it; and an answer may be waiting to be read.
            owed_us = max(_RECHECK_US, self._lateness_us() - (self.now_us - (deadline or 0)))
            self._timer_us = None
            self._timer = self._host.clock.call_at(self._host.clock.now_us() + owed_us, self._on_timer)
            return
        due = self.machine.wake_at()
        if due is not None and due != deadline and self.now_us < due + self._limits_owed_us():
            # Who comes, or comes back, may be waiting to be let in.
            self._timer_us = None
            self._timer = self._host.clock.call_at(due + self._epoch_us + self._limits_owed_us(), self._on_timer)
            return
        if self.match.state == WAITING and self._busy_agents():
            self._wait_for_busy()
            return
        self._tick()

    def _busy_agents(self) -> bool:
        """Tells whether agents are here, only not free: nobody is to blame, and the match waits for its turn."""
        return any(
            not seat.ready and seat.offered_us is None and self._host.session_of(seat.agent_id) is not None
            for seat in self.match.seats
        )

    def _wait_for_busy(self) -> None:
        """Waits on, but not for a seat whose time to get ready has run out."""
        clock = self.match.created.spec.clock
        next_us = self.now_us + clock.connect_ms * 1_000
        for seat in self.match.seats:
            if seat.offered_us is None or seat.ready:
                continue
            due_us = seat.offered_us + clock.ready_ms * 1_000 + self._limits_owed_us()
            if self.now_us >= due_us:
                # A tick would rule on the first seat that is not ready, which may be one of the busy.
                self.feed(inputs.Decline(seat.seat))
                return
            next_us = min(next_us, due_us)
        self._timer_us = None
        self._timer = self._host.clock.call_at(next_us + self._epoch_us, self._on_timer)

    def _tick(self) -> None:
        elapsed_us = self.now_us - self.match.offered_us if self.match.offered_us is not None else 0
        try:
            self.feed(inputs.Tick(min(self._lateness_us(), elapsed_us)))
        except inputs.NotNowError:
            # Nothing has run out yet: what was to has been answered, or the referee owes it time.
            self._timer_us = None
            self._arm()

    def accuse(self, agent_id: str, kind: match_pb2.FaultKind.ValueType) -> None:
        """Rules on what an agent did outside of its answers, where it still plays."""
        for seat in self.seats_of(agent_id):
            try:
                self.feed(inputs.Accuse(seat, kind))
            except inputs.NotNowError:
                continue

    def _stop_at_limit(self) -> None:
        if not self.match.over:
            self.feed(inputs.Stop(match_pb2.END_REASON_REFEREE_FAULT, "the log has reached its greatest length"))

    def _break(self) -> None:
        """Ends the match as the referee's fault, from what is stored: the state in memory is not to be trusted."""
        if self.broken:
            return
        self.broken = True
        incident = uuid4().hex[:12]
        _log.exception("match_failed", match_id=self.match_id, incident=incident)
        self._host.committer.then(lambda: self._stop_broken(incident))

    def _stop_broken(self, incident: str) -> None:
        secret = self.machine.secret
        self.machine = Machine(replay(parse(self._host.stored_events(self.match_id))), secret)
        self.match = self.machine.match
        note = f"the referee failed; incident {incident}"
        self._took(self.machine.step(inputs.Stop(match_pb2.END_REASON_REFEREE_FAULT, note), self.now_us))
