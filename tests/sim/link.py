"""A stream between an agent and the referee: messages take their time, in order, and everything told is checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import event_pb2, match_pb2
from sim.ledger import bare, check
from sim.wire import Call

if TYPE_CHECKING:
    from sim.agents import Agent
    from sim.world import World


def reason_of(status: tuple[int, str, object] | None) -> str:
    """Returns the reason in a status, or what is wrong with it."""
    if status is None or status[0] == 0:
        return ""
    code, message, metadata = status
    found: Any = metadata.get("grpc-status-details-bin") if isinstance(metadata, dict) else None
    check(found, f"a call ended without a reason: {code} {message}")
    rich = status_pb2.Status.FromString(found)
    info = error_details_pb2.ErrorInfo()
    check(rich.details[0].Unpack(info) and rich.code == code, "a status does not hold together")
    return str(info.reason)


class Link:
    """One stream of one agent.

    Attributes:
        positions: the matches that its Hello named, and how far each was known.
        wants_events: whether its Hello asked for events.
        told: when each question was last handed over on this stream, and how much time it said was left.
        arrived: when each answer first came in.
        repeats: the questions that were told more than once on it.
    """

    def __init__(self, world: World, agent: Agent) -> None:
        self.world = world
        self.agent = agent
        self.positions: dict[str, int] = {}
        self.wants_events = False
        self.told: dict[tuple[str, int], tuple[int, int]] = {}
        self.arrived: dict[tuple[str, int], int] = {}
        self.repeats: set[tuple[str, int]] = set()
        self.shown: dict[str, int] = {}
        self.over: set[str] = set()
        self.dead = False
        self.begun = False
        self.call = Call(agent.token, self._written, self._ended, agent.traits.window)
        self._in_us = 0
        self._out_us = 0
        self._unread: list[pb.PlayResponse] = []

    def _way_us(self) -> int:
        return self.agent.chance.randint(*self.agent.traits.way_us)

    # To the referee.

    def send(self, items: list[pb.ClientItem], *, after_us: int = 0, at_us: int | None = None) -> None:
        """Sends items in one message, once some time has passed, or such that they arrive at a certain time."""
        answers = [(item.answer.match_id, item.answer.decision_id) for item in items if item.HasField("answer")]
        self.send_bytes(pb.PlayRequest(items=items).SerializeToString(), after_us, at_us=at_us, answers=answers)

    def send_bytes(
        self, data: bytes, after_us: int, *, at_us: int | None = None, answers: list[tuple[str, int]] | None = None
    ) -> None:
        """Sends a message."""

        def go() -> None:
            arrives_us = at_us if at_us is not None else self.world.now_us + self._way_us()
            self._in_us = max(self._in_us, arrives_us, self.world.now_us)
            self.world.at(self._in_us, lambda: self._arrive(data, answers or []))

        if at_us is not None or not after_us:
            go()
        else:
            self.world.after(after_us, go)

    def _arrive(self, data: bytes, answers: list[tuple[str, int]]) -> None:
        if self.dead or self.call.ended:
            return
        if not self.begun:
            self.begun = True
            self._begin(data)
        for answer in answers:
            self.arrived.setdefault(answer, self.world.now_us)
        self.call.deliver(data)

    def _begin(self, data: bytes) -> None:
        """Notes which positions the first message claims."""
        try:
            items = pb.PlayRequest.FromString(data).items
        except DecodeError:
            return
        self.wants_events = any(item.hello.wants_events for item in items[:1])
        self.positions = {one.match_id: one.after_sequence for item in items[:1] for one in item.hello.positions}

    def half_close(self, after_us: int) -> None:
        """Says that nothing more is sent."""
        self.world.after(after_us + self._way_us(), lambda: None if self.dead else self.call.half_close())

    def cut(self) -> None:
        """Breaks the connection: what is on its way is lost, and both ends find out."""
        if not self.dead:
            self.dead = True
            self.call.cancel()
            self.agent.lost(self, "")

    # To the agent.

    def _written(self, data: bytes) -> None:
        if self.dead or self.world.referee is None or self.world.referee.muted:
            return
        response = pb.PlayResponse.FromString(data)
        self.world.guard(lambda: self._check(response, data))
        self._out_us = max(self._out_us, self.world.loop_us() + self._way_us())
        self.world.at(self._out_us, lambda: self._read(response))

    def _read(self, response: pb.PlayResponse) -> None:
        if self.dead or self.agent.deaf:
            return
        self.call.took()
        self.agent.receive(self, list(response.items))

    def _ended(self) -> None:
        if self.dead or self.world.referee is None or self.world.referee.muted:
            return
        reason = self.world.guard(lambda: reason_of(self.call.status)) or ""
        check(reason != "INTERNAL", "a stream ended with INTERNAL")
        if self.call.status is not None:
            self.world.check_text(self.call.status[1])

        def notice() -> None:
            if not self.dead:
                self.dead = True
                self.world.trace(f"{self.agent.name}'s stream ends: {reason or 'OK'}")
                self.agent.lost(self, reason)

        self._out_us = max(self._out_us, self.world.loop_us() + self._way_us())
        self.world.at(self._out_us, notice)

    # What is told must be so.

    def _check(self, response: pb.PlayResponse, data: bytes) -> None:
        ledger, agent = self.world.ledger, self.agent
        check(len(data) <= 256 * 1024 and 0 < len(response.items) <= 257, "a message is larger than it may be")
        for match_id, told in ledger.matches.items():
            leaks = not told.over and any(secret in data for secret in told.secrets[:2])
            check(not leaks, f"a message to {agent.name} holds the secret of {match_id}")
        for item in response.items:
            kind = item.WhichOneof("item")
            if kind in ("match_offered", "decision", "events", "match_over"):
                payload = getattr(item, kind)
                if kind == "match_over" and not payload.result.digest:
                    self._check_given_back(payload)
                    continue
                told = ledger.matches[payload.match_id]
                own = told.match.seats[payload.seat].name == agent.name
                # What was on its way to who has given its seat back since tells of the time before.
                early = kind in ("match_offered", "events") and agent.name in told.former
                begun = kind == "events" and any(event.HasField("match_started") for event in payload.events)
                check(own or (early and not begun), f"{kind} of seat {payload.seat} goes to {agent.name}")
            match kind:
                case "match_offered":
                    check(not any(seat.bot_seed for seat in item.match_offered.seats), "an offer tells a bot's seed")
                case "decision":
                    self._check_decision(item.decision)
                case "verdict":
                    self._check_verdict(item.verdict)
                case "events":
                    self._check_events(item.events)
                case "match_over":
                    self._check_over(item.match_over)
                case "rejected":
                    self.world.check_text(item.rejected.message)

    def _check_decision(self, decision: pb.Decision) -> None:
        told = self.world.ledger.matches[decision.match_id]
        key = decision.match_id, decision.decision_id
        seat = told.match.seats[decision.seat]
        check(0 <= decision.allowance_us <= told.match.created.spec.clock.allowance_ms * 1_000, "allowance is wrong")
        check(decision.bank_us >= 0, "bank is negative")
        check(decision.untimed == told.match.untimed, "untimed is wrong")
        if key in self.told or key in self.agent.told:
            self.repeats.add(key)
        self.agent.told.add(key)
        self.told[key] = self.world.loop_us(), decision.allowance_us + decision.bank_us
        asked = told.offered.get((seat.seat, decision.decision_id))
        check(asked is not None, f"question {key} was told before it was stored")
        check(bare(decision) == asked, f"question {key} is not what the journal says")

    def _check_verdict(self, verdict: pb.Verdict) -> None:
        told = self.world.ledger.matches.get(verdict.match_id)
        if told is not None and self.agent.name in told.former and verdict.status == event_pb2.ANSWER_STATUS_NOT_OPEN:
            return  # of the time before it gave its seat back
        seats = [seat.seat for seat in told.match.seats if seat.name == self.agent.name] if told is not None else []
        status = verdict.status
        name = event_pb2.AnswerStatus.Name(status)
        if told is None or not seats:
            check(status == event_pb2.ANSWER_STATUS_NO_SEAT, f"{name} on a match that is not the agent's")
            check(not verdict.action, "a verdict tells of a match that is not the agent's")
            return
        key = seats[0], verdict.decision_id
        action, source = told.applied.get(key, ("", 0))
        mine = source == event_pb2.ACTION_SOURCE_AGENT
        where = f"{name} on {verdict.match_id} {key}"
        match status:
            case event_pb2.ANSWER_STATUS_ACCEPTED:
                check(mine and action == verdict.action, f"{where}: the journal has {action or 'nothing'}")
                check((verdict.match_id, *key) not in self.world.accepted, f"{where} is told twice")
                self.world.accepted.add((verdict.match_id, *key))
            case event_pb2.ANSWER_STATUS_FAULTED:
                check(verdict.fault in told.faulted.get(key, ()), f"{where}: no such ruling is stored")
            case event_pb2.ANSWER_STATUS_REPEATED | event_pb2.ANSWER_STATUS_ALREADY_ANSWERED:
                check(mine and action == verdict.action, f"{where}: the journal has {action or 'nothing'}")
            case event_pb2.ANSWER_STATUS_TIMED_OUT | event_pb2.ANSWER_STATUS_DECISION_CLOSED:
                known = key in told.applied and not mine and action == verdict.action
                voided = not verdict.action and verdict.decision_id < len(told.match.seats[key[0]].outcomes)
                check(known or voided, f"{where}: the journal has {action or 'nothing'}")
            case event_pb2.ANSWER_STATUS_MATCH_OVER:
                check(told.match.over, f"{where}: it is not over")

    def _check_events(self, piece: pb.SeatEvents) -> None:
        told = self.world.ledger.matches[piece.match_id]
        view = told.view(piece.seat)
        check(self.wants_events, "events go to an agent that wants none")
        after = self.shown.get(piece.match_id, self.positions.get(piece.match_id, 0))
        for event in piece.events:
            check(event.sequence == after + 1, f"event {event.sequence} of {piece.match_id} follows {after}")
            check(event.sequence <= len(view), f"event {event.sequence} was told before it was stored")
            after = event.sequence
            same = event.SerializeToString(deterministic=True) == view[after - 1]
            check(same, f"event {after} of {piece.match_id} is not the seat's view of the journal")
        self.shown[piece.match_id] = after

    def _check_given_back(self, over: pb.MatchOver) -> None:
        told = self.world.ledger.matches.get(over.match_id)
        former = told is not None and self.agent.name in told.former
        held = told is not None and any(seat.name == self.agent.name for seat in told.match.seats)
        named = over.match_id in self.positions
        check(former or (named and not held), f"{self.agent.name} is told that {over.match_id} is not its own")
        check(over.result.reason == match_pb2.END_REASON_NOT_STARTED, "another end is told without a digest")
        self.positions.pop(over.match_id, None)
        self.shown.pop(over.match_id, None)

    def _check_over(self, over: pb.MatchOver) -> None:
        told = self.world.ledger.matches[over.match_id]
        check(told.final, f"{over.match_id} is told to be over and is not")
        check(over.match_id not in self.over, f"{over.match_id} is told to be over twice")
        self.over.add(over.match_id)
        row = self.world.journal.match(over.match_id)
        check(row is not None and row.digest == over.result.digest, "the digest told is not the journal's")
