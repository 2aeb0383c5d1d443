"""A world in which referees, agents, disks and networks do what one integer says."""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from referee.v1 import event_pb2, log_service_pb2, match_pb2, match_service_pb2
from referee_server.journal import MemoryJournal, Record
from referee_server.match.verify import LogError, parse, replay, verify
from sim.agents import Agent, draw_traits
from sim.ledger import CARD, BrokenError, Ledger, check, check_result, fingerprint
from sim.link import Link, reason_of
from sim.logs import captured
from sim.plan import Plan, draw_plan
from sim.referee import FailingMachine, Referee
from sim.watcher import watch
from sim.wire import Call

T = TypeVar("T")

LIMIT_US: Final = 3_600_000_000
"""By then every match has ended."""
_OPEN_FOR_US: Final = 15_000_000
"""How long the host waits for open seats to be taken."""
SLACK_US: Final = 4_000
"""What the referee may take from a seat's time: its timers are exact to a millisecond, and turns take time."""
STALL_SLACK_US: Final = 25_000
"""The same where it stands still at times: it notices by a beat every ten milliseconds, on both ends of a question."""


class World:
    """A simulated world.

    Attributes:
        now_us: the time.
        journal: what outlives the referee.
        ledger: what the journal says.
        referee: the run of the referee there is; None while it is down.
        failed: the matches whose rules were made to fail.
        accepted: the answers whose acceptance was told.
        counts: what happened, for the curious.
    """

    def __init__(self, seed: int, say: Callable[[str], None] | None = None, *, opened: bool = False) -> None:
        self.seed = seed
        self.now_us = 1_000_000
        self.journal = MemoryJournal()
        self.ledger = Ledger()
        self.referee: Referee | None = None
        self.accepted: set[tuple[str, int, int]] = set()
        self.failure: BrokenError | None = None
        self.counts: dict[str, int] = {}
        self.failed: set[str] = set()
        self._say = say
        self._digest = hashlib.sha256()
        self._chance = random.Random(f"world/{seed}")
        self._heap: list[tuple[int, float, int, Callable[[], None]]] = []
        self._count = 0
        self._runs = 0
        self._started_us = 0
        self._kill = False
        self._commits = 0
        self._created: dict[str, str] = {}
        self.plan: Plan = draw_plan(random.Random(f"plan/{seed}"), random.Random(f"opened/{seed}") if opened else None)
        self.agents = [
            Agent(
                self,
                f"agent{number}",
                draw_traits(random.Random(f"traits/{seed}/{number}"), honest=honest),
                random.Random(f"agent/{seed}/{number}"),
            )
            for number, honest in enumerate(self.plan.honest)
        ]
        self._slack_us = STALL_SLACK_US if self.plan.stalls else SLACK_US
        self.by_name = {agent.name: agent for agent in self.agents}

    # Time.

    def at(self, when_us: int, callback: Callable[[], None]) -> None:
        """Does something at that time."""
        self._count += 1
        heapq.heappush(self._heap, (max(when_us, self.now_us), self._chance.random(), self._count, callback))

    def after(self, pause_us: int, callback: Callable[[], None]) -> None:
        """Does something after that time."""
        self.at(self.now_us + pause_us, callback)

    def next_us(self) -> int:
        """Returns when the next thing happens outside of the referee."""
        return self._heap[0][0] if self._heap else self.now_us + 1_000_000

    def loop_us(self) -> int:
        """Returns the referee's time, which is ahead while it is busy."""
        return max(self.now_us, self.referee.loop.now_us) if self.referee is not None else self.now_us

    # Watching it.

    def trace(self, text: str) -> None:
        """Notes what happens."""
        line = f"{self.loop_us() / 1_000_000:12.6f}  {text}"
        self._digest.update(line.encode() + b"\n")
        if self._say is not None:
            self._say(line)

    @property
    def digest(self) -> str:
        """A digest of everything that happened."""
        return self._digest.hexdigest()

    def fail(self, what: str) -> None:
        """Notes that something that always holds did not hold, also where an exception would be swallowed."""
        if self.failure is None:
            self.failure = BrokenError(what)

    def guard(self, look: Callable[[], T]) -> T | None:
        """Looks at something from inside the referee, where an exception would be swallowed."""
        try:
            return look()
        except BrokenError as error:
            self.failure = self.failure or error
            return None

    def check_text(self, text: str) -> None:
        """Checks a text that leaves the referee: no card, no secret, no nonce."""
        found = CARD.findall(text)
        hidden = any(secret.decode() in text for told in self.ledger.matches.values() for secret in told.secrets[1::2])
        if found or hidden:
            self.fail(f"a text for outside names {found or 'a secret'}: {text}")

    # The host.

    def _create(self, number: int) -> None:
        """Has a match created, and asks again until it is told which."""
        if f"request{number}" in self._created:
            return
        self.after(300_000, lambda: self._create(number))
        for _ in range(1 + (self._chance.random() < 0.05)):
            if self.referee is not None and not self.referee.draining:
                self._request(number, self.referee)

    def _request(self, number: int, referee: Referee) -> None:
        request_id, spec = f"request{number}", self.plan.matches[number]

        def created(call: Call, got: list[bytes]) -> None:
            if not got:
                reason = reason_of(call.status)
                check(reason in ("STORAGE", "DRAINING", "AGENT_UNKNOWN"), f"no match was made: {reason}")
                return
            match_id = match_service_pb2.CreateMatchResponse.FromString(got[0]).match.match_id
            check(self._created.setdefault(request_id, match_id) == match_id, "one request made two matches")
            check(match_id in self.ledger.matches, "a match was told before it was stored")
            self.trace(f"match {match_id} for {[seat.WhichOneof('kind') for seat in spec.seats]}")

        request = match_service_pb2.CreateMatchRequest(request_id=request_id, spec=spec)
        referee.call("MatchService/CreateMatch", request, created)

    def _cancel(self, number: int) -> None:
        match_id = self._created.get(f"request{number}")
        if self.referee is None or match_id is None:
            self.after(500_000, lambda: self._cancel(number))
            return

        def cancelled(call: Call, got: list[bytes]) -> None:
            reason = reason_of(call.status)
            check(got or reason in ("MATCH_OVER", "STORAGE", "DRAINING"), f"{match_id} is not cancelled: {reason}")
            if not got and reason != "MATCH_OVER":
                self.after(500_000, lambda: self._cancel(number))

        request = match_service_pb2.CancelMatchRequest(match_id=match_id, note="rain")
        self.referee.call("MatchService/CancelMatch", request, cancelled)

    def _cancel_open(self) -> None:
        """Ends the matches whose open seats nobody takes."""
        self.after(_OPEN_FOR_US, self._cancel_open)
        for number in range(len(self.plan.matches)):
            told = self.ledger.matches.get(self._created.get(f"request{number}", ""))
            if told is not None and told.match.filled_us is None and not told.over:
                self._cancel(number)

    # The referee's life.

    def _start(self) -> None:
        if self.referee is not None:
            return
        self._runs += 1
        self._started_us = self.now_us
        self.referee = Referee(self, random.Random(f"referee/{self.seed}/{self._runs}"), power=self.plan.power)
        self.referee.vault.before_commit = self._before_commit
        self.referee.vault.after_commit = self._after_commit
        self.trace(f"the referee starts; {self.referee.resumed} matches go on")

    def _die(self, why: str) -> None:
        if self.referee is None:
            return
        self.trace(f"the referee is gone: {why}")
        if why == "killed":
            self._note("kills")
        referee, self.referee = self.referee, None
        now_us = referee.loop.now_us
        referee.kill()
        self.now_us = max(self.now_us, min(now_us, self.now_us + 1_000_000))
        for agent in self.agents:
            if agent.link is not None:
                self.after(self._chance.randrange(5_000), agent.link.cut)
        self.after(self._chance.choice((0, 1_000, 300_000, 20_000_000)), self._start)

    def _before_commit(self) -> None:
        self._commits += 1
        if self._commits in self.plan.kills_before and self.referee is not None:
            self._kill = self.referee.vault.gone = self.referee.muted = True

    def _after_commit(self) -> None:
        if self._commits in self.plan.kills_after and self.referee is not None:
            self._kill = self.referee.vault.gone = self.referee.muted = True

    def _drain(self) -> None:
        if self.referee is not None and not self.referee.draining:
            self.trace("the referee drains")
            self._note("drains")
            self.referee.drain(self.plan.drain_s)

    def _fill(self, until_us: int) -> None:
        if self.referee is not None:
            self.trace("the disk is full")
            self._note("full")
            vault = self.referee.vault
            vault.full = True

            def free() -> None:
                vault.full = False
                self.trace("the disk has space")

            self.at(until_us, free)

    def _break(self) -> None:
        if self.referee is not None:
            self.trace("the disk breaks")
            self._note("broken")
            self.referee.vault.broken = True

    def _bug(self) -> None:
        """Lets the rules of a match fail half-way through its next step, with memory changed and nothing stored."""
        running = self.referee.hall.matches.running if self.referee is not None else {}
        for match_id, table in running.items():
            if not table.broken and not table.match.over and match_id in self.ledger.matches:
                self.trace(f"the rules of {match_id} will fail")
                self._note("bugs")
                self.failed.add(match_id)
                table.machine = FailingMachine(table.machine)  # type: ignore[assignment]  # stands in for it
                return

    def _stall(self, duration_us: int) -> None:
        if self.referee is not None:
            self.trace(f"the referee stands still for {duration_us} us")
            self.referee.loop.stall(self.now_us, duration_us)

    # What the journal gets.

    def committed(self, batch: Sequence[Record]) -> None:
        """Looks at what was committed."""
        self.guard(lambda: self._look(batch))

    def _look(self, batch: Sequence[Record]) -> None:
        self.ledger.commit(batch)
        for match_id, event in self.ledger.fresh:
            kind = event.WhichOneof("payload")
            if kind in ("action_applied", "fault_ruled"):
                self._look_at_time(match_id, event)
            if kind == "fault_ruled":
                self._look_at_fault(match_id, event.fault_ruled)
            if kind == "seat_reopened":
                self._look_at_reopening(match_id, event.seat_reopened)
            if kind == "match_ended":
                self.trace(f"match {match_id} ends: {match_pb2.EndReason.Name(event.match_ended.result.reason)}")
                reason = event.match_ended.result.reason
                failed = reason == match_pb2.END_REASON_REFEREE_FAULT
                check(not failed or match_id in self.failed, f"the referee failed in {match_id}")
                check_result(event.match_ended.result, self.ledger.matches[match_id].match)
        self.ledger.fresh.clear()

    def _look_at_fault(self, match_id: str, ruled: event_pb2.FaultRuled) -> None:
        name = self.ledger.matches[match_id].match.seats[ruled.seat].name
        kind = match_pb2.FaultKind.Name(ruled.kind)
        self.trace(f"{name} in {match_id[:4]}: {kind} at {ruled.decision_id}")
        self._note(kind)
        agent = self.by_name.get(name)
        check(agent is None or not agent.traits.honest, f"{name} did nothing wrong and is ruled {kind} in {match_id}")

    def _look_at_reopening(self, match_id: str, reopened: event_pb2.SeatReopened) -> None:
        match = self.ledger.matches[match_id].match
        former_id = match.seats[reopened.seat].former_id
        cause = event_pb2.ReopenCause.Name(reopened.cause)
        self.trace(f"seat {reopened.seat} of {match_id[:4]} is open again: {cause}")
        self._note(cause)
        for agent in self.agents:
            check(
                agent.agent_id != former_id or not agent.traits.honest,
                f"{agent.name} did nothing wrong and loses its seat in {match_id}: {cause}",
            )

    def is_open(self, match_id: str, seat: int) -> bool:
        """Tells whether a seat was asked for as open."""
        told = self.ledger.matches.get(match_id)
        return told is not None and told.match.created.spec.seats[seat].HasField("open")

    def _look_at_time(self, match_id: str, event: event_pb2.MatchEvent) -> None:
        """Checks that what a seat is charged is its own time, and that its time is not cut."""
        payload = event.action_applied if event.HasField("action_applied") else event.fault_ruled
        told = self.ledger.matches[match_id]
        agent = self.by_name.get(told.match.seats[payload.seat].name)
        key = match_id, payload.decision_id
        link = agent.link if agent is not None else None
        if agent is None or link is None or link.dead or self.referee is None or not agent.traits.honest:
            return
        if key not in link.told or key in link.repeats or link.call.blocked:
            return
        told_us, left_us = link.told[key]
        if isinstance(payload, event_pb2.FaultRuled):
            if payload.kind == match_pb2.FAULT_KIND_TIMEOUT and not told.match.untimed:
                table = self.referee.hall.matches.running.get(match_id)
                had_us = event.match_time_us + table.epoch_us - told_us if table is not None else left_us
                check(
                    had_us < 0 or had_us >= left_us - self._slack_us, f"{key} timed out after {had_us} us of {left_us}"
                )
        elif payload.source == event_pb2.ACTION_SOURCE_AGENT and key in link.arrived:
            own_us = link.arrived[key] - told_us
            first = told.offered_us[payload.seat, payload.decision_id] + payload.think_us <= event.match_time_us
            check(first, f"{key} is charged more than it took")
            check(
                payload.think_us <= max(0, own_us) + self._slack_us, f"{key}: charged {payload.think_us} us of {own_us}"
            )

    def _note(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    # Agents.

    def open_link(self, agent: Agent) -> Link | None:
        """Opens a stream for an agent; None while the referee is down."""
        if self.referee is None or self.referee.draining:
            return None
        link = Link(self, agent)
        link.call.start(self.referee.loop, self.referee.handlers["AgentService/Play"])
        return link

    def deadline_us(self, match_id: str) -> int | None:
        """Returns when the time of the open question of a match runs out."""
        table = self.referee.hall.matches.running.get(match_id) if self.referee is not None else None
        deadline_us = table.match.deadline_us if table is not None else None
        return deadline_us + table.epoch_us if table is not None and deadline_us is not None else None

    # Running.

    def run(self) -> World:
        """Lets everything happen, and checks it all."""
        try:
            with captured(self.check_text, self.fail, self.failed, lambda: self.referee is None or self.referee.muted):
                try:
                    self._prepare()
                    while not self._finished():
                        self._step()
                    self._close()
                finally:
                    if self.referee is not None:
                        self.referee.kill()
        except BrokenError:
            raise
        except Exception as error:
            raise BrokenError(f"{type(error).__name__}: {error}") from error
        self._check_logs()
        return self

    def _prepare(self) -> None:
        plan = self.plan
        self.at(self.now_us, self._start)
        for agent in self.agents:
            self.after(self._chance.randrange(3_000), agent.connect)
        for number, create_us in enumerate(plan.create_us):
            self.after(10_000 + create_us, lambda number=number: self._create(number))  # type: ignore[misc]
        for number, cancel_us in plan.cancels:
            self.after(cancel_us, lambda number=number: self._cancel(number))  # type: ignore[misc]
        for kill_us in plan.kills_us:
            self.after(kill_us, lambda: self._die("killed"))
        for stall_us, duration_us in plan.stalls:
            self.after(stall_us, lambda duration_us=duration_us: self._stall(duration_us))  # type: ignore[misc]
        for full_us, duration_us in plan.full_us:
            self.after(full_us, lambda until=self.now_us + full_us + duration_us: self._fill(until))  # type: ignore[misc]
        for break_us in plan.breaks_us:
            self.after(break_us, self._break)
        for drain_us in plan.drains_us:
            self.after(drain_us, self._drain)
        for watch_us in plan.watches_us:
            self.after(watch_us, lambda: watch(self, self._chance))
        for bug_us in plan.bugs_us:
            self.after(bug_us, self._bug)
        self.after(_OPEN_FOR_US, self._cancel_open)

    def _finished(self) -> bool:
        if len(self._created) < len(self.plan.matches):
            return False
        return self.referee is not None and all(told.final for told in self.ledger.matches.values())

    def _step(self) -> None:
        """Lets the next thing happen."""
        next_us = self.referee.loop.next_us() if self.referee is not None else None
        if self._heap and (next_us is None or self._heap[0][0] <= next_us):
            when_us, _, _, callback = heapq.heappop(self._heap)
            self.now_us = max(self.now_us, when_us)
            if self.referee is not None:
                self.referee.loop.reach(self.now_us)
            callback()
        else:
            assert self.referee is not None
            assert next_us is not None
            self.now_us = max(self.now_us, next_us)
            self.referee.loop.run_next()
        if self._kill:
            self._kill = False
            self._die("killed")
        elif self.referee is not None and self.referee.hall.stopped.is_set():
            self._die("its storage failed")
        elif self.referee is not None and self.referee.closed:
            self._die("drained")
        if self.failure is not None:
            raise self.failure
        if self.now_us > LIMIT_US:
            left = [match_id for match_id, told in self.ledger.matches.items() if not told.final]
            raise BrokenError(f"these matches do not end: {left}, of {len(self._created)}")
        if self.referee is not None and self._chance.random() < 0.002:
            self.referee.compare()

    def _wanted(self, match_id: str) -> bool:
        """Tells whether a match is one of the plan's."""
        return True

    def _close(self) -> None:
        """Lets what is on its way arrive, and looks at what everybody was told."""
        for agent in self.agents:
            agent.quiet = True
        began_us = self.loop_us()
        while self.now_us < max(began_us, self._started_us) + 3_000_000 or self.referee is None:
            self._step()
            if self.loop_us() > self.now_us + 1_000_000:
                began_us = self.loop_us()  # it stands still, perhaps again
        for agent in self.agents:
            if agent.traits.honest and not agent.gone:
                missing = set(agent.offered) - agent.ended
                check(not missing, f"{agent.name} was never told that {missing} are over")
        for match_id in self.ledger.matches:
            self._fetch(match_id)
        until_us = self.loop_us() + 1_000_000
        while self.now_us < until_us or self.referee is None:
            self._step()

    def _fetch(self, match_id: str) -> None:
        def verified(call: Call, got: list[bytes]) -> None:
            reason = reason_of(call.status)
            if not got:
                check(reason in ("STORAGE", "DRAINING"), f"the log of {match_id} cannot be verified: {reason}")
                return
            response = log_service_pb2.VerifyLogResponse.FromString(got[0])
            check(response.outcome == log_service_pb2.VERIFY_OUTCOME_VERIFIED, f"{match_id}: {response.message}")

        if self.referee is not None and self._chance.random() < 0.1:
            self.referee.call("LogService/VerifyLog", log_service_pb2.VerifyLogRequest(match_id=match_id), verified)

    def _check_logs(self) -> None:
        """Checks each log by itself."""
        for match_id, told in self.ledger.matches.items():
            if not self._wanted(match_id):
                continue
            events = parse(self.journal.read(match_id))
            check(events == told.events, f"the log of {match_id} is not what was committed")
            try:
                report = verify(events)
            except LogError as error:
                raise BrokenError(f"the log of {match_id} does not verify: {error}") from error
            check(report.ended and not report.sealed, f"the log of {match_id} is not whole")
            check(fingerprint(replay(events)) == fingerprint(told.match), f"{match_id} replays otherwise")
            for seat in (-1, *range(len(told.match.seats))):
                told.view(seat)
