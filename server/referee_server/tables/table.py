"""A running match in the event loop: takes an input, decides, stores, tells, asks the next seat, re-arms one timer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import uuid4

import structlog

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import event_pb2, match_pb2
from referee_games import bots
from referee_server import failpoints
from referee_server.journal import MAX_EVENTS, EventsAdded, SummaryChanged
from referee_server.match import inputs
from referee_server.match.machine import Machine
from referee_server.match.seat import SeatState
from referee_server.match.state import WAITING
from referee_server.tables import messages
from referee_server.tables.alarm import Alarm
from referee_server.tables.answers import judge
from referee_server.tables.asking import Asking
from referee_server.tables.host import Host
from referee_server.tables.owed import LIMITING, Owed
from referee_server.tables.rates import LOSSES_BORNE
from referee_server.tables.session import Session
from referee_server.tables.stopping import Stopping
from referee_server.tables.telling import Telling

_log = structlog.get_logger(__name__)

_ASKED_FOR: Final = (event_pb2.ANSWER_STATUS_ACCEPTED, event_pb2.ANSWER_STATUS_FAULTED)
_CHOICES_A_TURN: Final = 64
"""How many choices of house bots one match makes before others get their turn of the loop."""
_MOST_EVENTS: Final = MAX_EVENTS - 1_000
"""A match as long as this is stopped: the journal would refuse what follows, and with it the commit of all matches."""


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
        self.epoch_us = host.clock.now_us() - machine.match.time_us
        self._asking = Asking(host.clock, host.later, self.advance)
        self._bots: dict[int, bots.Bot] = {}
        # Seats whose agents have not come back since the referee was started again.
        self._missing: set[int] = set()
        self._losses = [0] * len(machine.match.seats)
        self._owed = Owed(host.meter, len(machine.match.seats))
        self._telling = Telling(self, host)
        self.alarm = Alarm(self, host, self._owed)
        self.asleep = False
        self.broken = False
        self._doubtful = False  # whether what is in memory is not to be trusted, not even that the match is over
        self._refusals = 0

    @property
    def now_us(self) -> int:
        """Match time."""
        return self._host.clock.now_us() - self.epoch_us

    def seats_of(self, agent_id: str) -> list[int]:
        """Returns the seats of an agent."""
        return [seat.seat for seat in self.match.seats if seat.agent_id == agent_id and agent_id]

    def is_offered(self, seat: SeatState) -> bool:
        """Tells whether the agent of a seat has been offered the match, or none is needed there."""
        return self.match.state != WAITING or seat.ready or seat.offered_us is not None

    def is_held(self, seat: SeatState) -> bool:
        """Tells whether the match takes up one of its agent's places: from the offer on, or since it took the seat."""
        return self.is_offered(seat) or seat.was_open

    def _then(self, callback: Callable[[], None]) -> None:
        """Calls back once what was decided so far is stored, unless the journal refuses it."""
        self._host.committer.then(callback, self.match_id)

    # Inputs.

    def begin(self) -> None:
        """Goes on with what follows from the creation alone, now that it is stored: however long that took."""
        self.epoch_us = self._host.clock.now_us() - self.match.time_us
        if self.match.filled_us is not None:
            self._owed.begin_limits()
        self._step(self.machine.begin)

    def sleep(self) -> None:
        """Stands still until `resume`: programs have yet to be started, which is to take none of their time."""
        self.asleep = True

    def resume(self, seconds: int, nanos: int) -> None:
        """Takes the match up after a restart, at that wall time."""
        self.asleep = False
        self.epoch_us = self._host.clock.now_us() - self.match.time_us
        if self.match.sequence == 1:
            # The referee went down before the creation could have its consequences.
            self.begin()
        if self.match.over:
            self._end()  # all that is missing is the word for it
            return
        self._missing = {seat.seat for seat in self.match.seats if seat.agent_id}
        self.feed(inputs.Resume(seconds, nanos))

    def feed(self, given: inputs.Input) -> list[event_pb2.MatchEvent]:
        """Takes an input now and returns its events, which are on their way to the journal; none if that failed.

        Raises:
            NotNowError: it cannot happen now.
        """
        return self._step(lambda: self.machine.step(given, self.now_us))

    def _step(self, decide: Callable[[], list[event_pb2.MatchEvent]]) -> list[event_pb2.MatchEvent]:
        if self._doubtful:
            return []  # the state in memory is not to be trusted; the match is about to end
        try:
            failpoints.hit("decide.before")
            events = self._host.steps.run(decide)
            failpoints.hit("decide.after")
        except inputs.NotNowError:
            raise
        except Exception:
            self.fail()
            return []
        self._took(events)
        self.advance()
        return events

    def answer(
        self, session: Session, answer: agent_pb.Answer, received_us: int, may_reply: Callable[[], bool]
    ) -> None:
        """Takes an agent's answer, received at that time of the service's clock, and tells it the verdict.

        Where the answer was not asked for, the verdict is told only if `may_reply` says so.
        """
        seat = self.seats_of(session.agent_id)[0]
        verdict = agent_pb.Verdict(match_id=self.match_id, decision_id=answer.decision_id)
        item = agent_pb.ServerItem(verdict=verdict)
        told = [True]
        # Queued before it is known, so that it comes before the next question and before the end of the match.
        self._then(lambda: session.push(item) if told[0] else None)
        judge(self, seat, answer, max(0, received_us - self.epoch_us), item.verdict)
        if self._doubtful:
            # That the match is over is told once it is so in the journal too.
            told[0] = False
            self._telling.unsaid.append(lambda: session.push(item))
        elif item.verdict.status not in _ASKED_FOR:
            told[0] = may_reply()
        if item.verdict.asked_again:
            self._guarded(lambda: self._telling.question(session, seat))

    def accuse(self, agent_id: str, kind: match_pb2.FaultKind.ValueType) -> None:
        """Rules on what an agent did outside of its answers, where it still plays."""
        if self.asleep:
            return
        for seat in self.seats_of(agent_id):
            try:
                self.feed(inputs.Accuse(seat, kind))
            except inputs.NotNowError:
                continue

    def absent(self, agent_id: str) -> None:
        """Takes note that an agent does not come; without effect once it was offered the match."""
        for seat in self.seats_of(agent_id):
            try:
                self.feed(inputs.Absent(seat))
            except inputs.NotNowError:
                continue

    # Streams.

    def attach(self, session: Session) -> None:
        """Takes up an agent's new stream: the offer again, the events it missed, and the question that is open.

        To be called when everything so far is committed.
        """
        match = self.match
        if self.asleep:
            return  # it is taken up when the match is
        if match.over or self._doubtful:
            session.tables[self.match_id] = self  # so that it is told of the end
            return
        for seat in self.seats_of(session.agent_id):
            state = match.seats[seat]
            self._missing.discard(seat)
            if self.is_held(state):
                session.tables[self.match_id] = self
            if self.is_offered(state):
                self._telling.offered(session, seat)
            # Else it is offered when all have room for it, like any other.
            if state.gone_us is not None and not match.over:
                self.feed(inputs.Regain(seat))
            open_here = match.actor == seat and match.offered_us is not None and state.played_by_agent
            if open_here and not self._asking.is_open_with(session):
                self._guarded(lambda seat=seat: self._hand_over(session, seat))  # type: ignore[misc]
        self.advance()

    def detach(self, session: Session) -> None:
        """Takes note that a stream has ended."""
        self._asking.lost(session)
        for seat in self.seats_of(session.agent_id):
            self._telling.feeds.pop(seat, None)
            state = self.match.seats[seat]
            if self.match.over or state.gone_us is not None or state.replaced:
                continue
            self._losses[seat] += 1
            if self.match.may_reopen(state):
                # Each loss costs two events, and who takes a seat may wait there without a limit.
                self.feed(inputs.Lose(seat, session.left or self._losses[seat] > LOSSES_BORNE))
                continue
            on_offer = self.match.state == WAITING and state.offered_us is not None and not state.ready
            self.feed(inputs.Decline(seat) if session.left and on_offer else inputs.Lose(seat, session.left))
            if self._losses[seat] > LOSSES_BORNE:
                # Each costs two events, and at its greatest length a log ends the match for all.
                self.accuse(session.agent_id, match_pb2.FAULT_KIND_FLOOD)

    def forsake(self, agent_id: str) -> None:
        """Gives up the open seats that an agent has taken which may not come back; without effect once it plays."""
        for seat in self.seats_of(agent_id):
            if self.match.may_reopen(self.match.seats[seat]):
                self.feed(inputs.Lose(seat, left=True))

    def _given_back(self, seat: int) -> None:
        """Lets the agent of a seat that is open again have nothing more to do with the match, and tells it so."""
        agent_id = self.match.seats[seat].former_id
        self._telling.unfollow(seat)
        self._missing.discard(seat)
        self._losses[seat] = self.machine.stray_counts[seat] = 0
        session = self._host.session_of(agent_id)
        if session is not None and session.tables.pop(self.match_id, None) is not None:
            session.idle_since_us = self._host.clock.now_us()
            session.positions.pop(self.match_id, None)  # should it have the seat again, it begins anew
            self._telling.not_playing(session, seat)
        self._host.reopened(self)

    def offer(self) -> None:
        """Offers the match to the agents that have not had it yet and are there. All of them must have room for it."""
        if self.match.filled_us is None or self.match.state != WAITING or self._doubtful or self.asleep:
            return
        for seat in self.match.seats:
            session = self._host.session_of(seat.agent_id)
            if session is None or self.is_offered(seat):
                continue
            session.tables[self.match_id] = self
            self.feed(inputs.OfferSeat(seat.seat))
            if self._doubtful:
                return
            self._telling.offered(session, seat.seat)

    # What happens by itself.

    def advance(self) -> None:
        """Lets house bots choose, asks the agent whose turn it is, and re-arms the timer."""
        if not self._host.halted and not self.asleep:
            self._guarded(self._advance)

    def _guarded(self, act: Callable[[], None]) -> None:
        """Does something that calls the rules of a game. What they raise is nobody's fault but the referee's."""
        if self._doubtful:
            return
        try:
            act()
        except Exception:
            self.fail()

    def _advance(self) -> None:
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
        elif self.match.offered_us is None:
            self._asking.stop_waiting()  # what waited will not be asked
        self.alarm.set(self.machine.wake_at())

    def _choose(self, seat: int, name: str, seed: int) -> None:
        bot = self._bots.get(seat)
        if bot is None or bot.name != name:
            bot = self._bots[seat] = bots.make(name, seed or self.machine.hidden_seed(seat))
        self._took(self._host.steps.run(lambda: self._choice(bot, seat)))

    def _choice(self, bot: bots.Bot, seat: int) -> list[event_pb2.MatchEvent]:
        question = self.match.question(seat)
        return self.machine.step(inputs.Choose(seat, question.number, bot.choose(question)), self.now_us)

    def _ask(self, seat: int) -> None:
        if seat in self._missing:
            # The referee was away, not the agent: its clock starts when it is back, or never if the grace runs out.
            return
        session = self._host.session_of(self.match.seats[seat].agent_id)
        if session is not None and self._asking.has_to_wait(session):
            return
        # The way there and back is credited as far as the seat's quota goes.
        transit_us = min(session.transit_us, self.match.seats[seat].quota_us) if session is not None else 0
        self._owed.asked()
        ask = inputs.Ask(seat, self._asking.waited_us, transit_us)
        self._took(self._host.steps.run(lambda: self.machine.step(ask, self.now_us)))
        # An agent that is away is asked all the same: its clock runs, and it gets the question when it is back.
        if session is not None:
            self._hand_over(session, seat)
            self._owed.sent()
            offered_us = self.match.offered_us
            self._then(lambda: self._handed(offered_us))
        else:
            self._asking.opened(None)

    def _handed(self, offered_us: int | None) -> None:
        """Takes note that a question has left, if it is still the open one."""
        if offered_us is not None and self.match.offered_us == offered_us:
            self._owed.handed(self.now_us - offered_us)

    def _hand_over(self, session: Session, seat: int) -> None:
        self._telling.question(session, seat)
        self._asking.opened(session)

    def _took(self, events: list[event_pb2.MatchEvent]) -> None:
        """Sends events to the journal and, once they are there, to the seats that want them."""
        if not events:
            return
        match, committer = self.match, self._host.committer
        committer.store(EventsAdded(self.match_id, tuple([event.SerializeToString() for event in events])))
        if self._telling.feeds:
            self._then(lambda: self._telling.events(events))
        if match.offered_us is None:
            self._asking.closed()
        kinds = {event.WhichOneof("payload") for event in events}
        if kinds & LIMITING:
            for event in events:
                self._owed.note(event, filled=match.filled_us is not None)
        if "match_ended" in kinds:
            failpoints.hit("match.reveal")
            self._end()
        elif "match_started" in kinds:
            failpoints.hit("match.seal")
            committer.store(SummaryChanged(self.match_id, "RUNNING", self.summary().SerializeToString()))
        elif kinds & {"seat_filled", "seat_reopened"}:
            committer.store(SummaryChanged(self.match_id, "WAITING", self.summary().SerializeToString()))
        if "seat_reopened" in kinds:
            for event in events:
                if event.HasField("seat_reopened"):
                    self._given_back(event.seat_reopened.seat)
        if match.sequence >= _MOST_EVENTS and not match.over:
            self.fail(f"the match is longer than a log may be ({MAX_EVENTS:,} events)")

    def _end(self) -> None:
        match, committer = self.match, self._host.committer
        self._stop_waiting()
        state = match_pb2.MatchState.Name(match.state).removeprefix("MATCH_STATE_")
        final = match.revealed or not match.held_back
        committer.store(SummaryChanged(self.match_id, state, self.summary().SerializeToString(), final=final))
        self._then(self._telling.over)
        self._host.ended(self)

    def _stop_waiting(self) -> None:
        self.alarm.stop()
        self._asking.stop_waiting()

    def summary(self) -> match_pb2.Match:
        """Returns the match as lists show it; times and counts are added by whoever lists it."""
        return messages.summary(self.match, self.label)

    def lateness_us(self) -> int:
        """Returns by how much the referee was late since the question that is open was put."""
        if self.match.offered_us is None:
            return 0
        return self._owed.lateness_us(self.now_us - self.match.offered_us)

    # The referee's own faults.

    def refused(self, error: Exception) -> bool:
        """Takes note that the journal did not take what was decided. Returns whether the match can still be ended."""
        self._refusals += 1
        self.fail(error=error)
        return self._refusals == 1

    def let_go(self) -> None:
        """Stops playing, with nothing said and nothing stored; its agents are free for others."""
        self.broken = True
        self._telling.feeds.clear()
        self._asking.closed()
        self._stop_waiting()

    def fail(self, note: str = "", error: Exception | None = None) -> None:
        """Ends the match as the referee's fault, from what is stored: the state in memory is not to be trusted."""
        if self.broken:
            return
        self.broken = self._doubtful = True
        if not note:
            incident = uuid4().hex[:12]
            note = f"the referee failed; incident {incident}"
            _log.error("match_failed", match_id=self.match_id, incident=incident, exc_info=error or True)
        self._host.committer.then(Stopping(self, self._host, note).attempt)

    def stopped(self, machine: Machine, events: list[event_pb2.MatchEvent]) -> None:
        """Takes note that it has ended as the referee's fault, by these events; without any it had ended before."""
        self._doubtful = False
        if not events:
            self._telling.say_unsaid()  # its end is stored: it was that which was being told
            return
        self.machine, self.match = machine, machine.match
        self._took(events)
