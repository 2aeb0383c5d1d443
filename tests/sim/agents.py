"""Simulated agents: good ones, slow ones, and ones that do everything that the protocol forbids."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from referee.v1 import agent_service_pb2 as pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import event_pb2
from referee_games import registry
from sim.ledger import check

if TYPE_CHECKING:
    from sim.link import Link
    from sim.world import World

_DEEDS: Final = {
    "now": 40, "think": 15, "edge": 8, "late": 3, "silent": 2, "illegal": 4, "malformed": 4, "twice": 4, "two": 4,
    "guess": 3, "foreign": 3, "stale": 3, "seat": 2, "strange": 2, "garbage": 1, "leave": 0.3, "cut": 2, "eof": 1,
    "again": 2, "flood": 0.5, "deaf": 0.5,
}  # fmt: skip
"""What a bad agent may do when it is asked, and how often: weights."""
_RUBBISH: Final = (
    "",
    " ",
    "ZZ",
    "7S ",
    "7s",
    "QS\n",
    "pass pass",
    "contract:",
    "\x00",
    "é" * 300,
    "\U0001f0a1",
    "x" * 60_000,
)


@dataclass
class Traits:
    """What an agent is like.

    Attributes:
        honest: whether it keeps to the protocol and to its time.
        think_us: how long it thinks, from and to.
        way_us: how long a message takes, from and to.
        deeds: what it does when it is asked, with weights; for the honest it is of no meaning.
        window: how many messages may be on their way to it.
    """

    honest: bool
    think_us: tuple[int, int] = (0, 2_000)
    way_us: tuple[int, int] = (20, 2_000)
    wants_events: bool = False
    max_matches: int = 8
    max_open: int = 0
    takes_open: bool = True
    nonce: bool = False
    deeds: dict[str, float] = field(default_factory=dict)
    window: int = 1 << 30


def draw_traits(chance: random.Random, *, honest: bool) -> Traits:
    """Returns a kind of agent."""
    traits = Traits(
        honest=honest,
        wants_events=chance.random() < 0.5,
        max_matches=chance.choice((0, 1, 2, 8, 4_096)),
        max_open=chance.choice((0, 0, 1, 2)),
        takes_open=chance.random() < 0.8,
        nonce=chance.random() < 0.5,
        way_us=chance.choice(((0, 0), (20, 200), (20, 3_000), (5_000, 20_000))),
    )
    if not honest:
        names = [name for name in _DEEDS if chance.random() < chance.choice((0.1, 0.3, 1))]
        traits.deeds = {name: _DEEDS[name] for name in names} or {"silent": 1}
        if chance.random() < 0.6:
            traits.deeds["now"] = 40
        traits.window = chance.choice((1, 4, 1 << 30))
    return traits


class Agent:
    """One agent, over all of its streams.

    Attributes:
        ended: the matches whose end it was told.
        offered: the matches that it was offered, and its seat in each.
        gone: whether it has said goodbye, or was told not to come back.
    """

    def __init__(self, world: World, name: str, traits: Traits, chance: random.Random) -> None:
        self.world = world
        self.name = name
        self.traits = traits
        self.chance = chance
        self.token = chance.randbytes(32).hex()
        self.agent_id = ""
        self.link: Link | None = None
        self.positions: dict[str, int] = {}
        self.offered: dict[str, int] = {}
        self.ended: set[str] = set()
        self.asked: dict[str, int] = {}
        self.told: set[tuple[str, int]] = set()
        self.gone = False
        self.deaf = False
        self.quiet = False
        self._away_us = 0
        # By itself, so that worlds without open seats stay as they are.
        self._whims = random.Random(f"whims/{name}/{self.token}")

    # Coming and going.

    def connect(self) -> None:
        """Opens a stream, if the referee is up; otherwise tries again later."""
        if self.gone:
            return
        link = self.world.open_link(self)
        if link is None:
            self.world.after(self.chance.randrange(10_000, 200_000), self.connect)
            return
        self.link = link
        self.deaf = False
        hello = pb.Hello(
            protocol_version=1,
            name=self.name,
            client_version="sim 1",
            max_matches=self.traits.max_matches,
            max_open_decisions=self.traits.max_open,
            takes_open_seats=self.traits.takes_open,
            wants_events=self.traits.wants_events,
        )
        for match_id in sorted(self.offered):
            if match_id not in self.ended:
                hello.positions.add(match_id=match_id, after_sequence=self.positions.get(match_id, 0))
        if not self.traits.honest and self.chance.random() < 0.05:
            self._bad_hello(hello, link)
            return
        link.send([pb.ClientItem(hello=hello)])

    def _bad_hello(self, hello: pb.Hello, link: Link) -> None:
        self.world.trace(f"{self.name} begins badly")
        match self.chance.randrange(6):
            case 0:
                return  # says nothing, and is cut off
            case 1:
                hello.protocol_version = 0
            case 2:
                hello.max_matches = self.chance.choice((-1, 4_097, 2**31 - 1))
            case 3:
                hello.positions.add(match_id="x", after_sequence=-1)
            case 4:
                hello.positions.add(match_id="nowhere", after_sequence=2**62)
            case 5:
                link.send([pb.ClientItem(leave=pb.Leave())])
        link.send([pb.ClientItem(hello=hello)])

    def lost(self, link: Link, reason: str) -> None:
        """Takes note that a stream has ended."""
        if self.traits.honest:
            fine = ("", "SUPERSEDED", "DRAINING", "STORAGE", "CREDENTIAL_REVOKED")
            check(reason in fine, f"the stream of {self.name}, which did nothing wrong, ended: {reason}")
        if link is not self.link:
            return
        self.link = None
        self.asked.clear()
        if reason == "CREDENTIAL_REVOKED":
            self.gone = True
        if not self.gone:
            self.world.after(self._away_us or self.chance.randrange(1_000, 100_000), self.connect)
            self._away_us = 0

    # Reading.

    def receive(self, link: Link, items: list[pb.ServerItem]) -> None:
        """Reads a message."""
        replies: list[pb.ClientItem] = []
        for item in items:
            kind = item.WhichOneof("item")
            match kind:
                case "welcome":
                    self.agent_id = item.welcome.agent_id
                case "match_offered":
                    replies += self._offered(link, item.match_offered)
                case "decision":
                    self._decide(link, item.decision)
                case "verdict":
                    self._judged(item.verdict)
                case "events":
                    self.positions[item.events.match_id] = item.events.events[-1].sequence
                case "match_over":
                    over = item.match_over.match_id
                    if not item.match_over.result.digest:
                        self._given_back(link, over)
                        continue
                    # What was on its way on an old stream may come after what the new one asked for.
                    again = over in self.ended and over not in link.positions and link is self.link
                    check(not again, f"{self.name} is told twice that {over} is over")
                    self.ended.add(over)
                    self.asked.pop(over, None)
                case "ping":
                    if self.traits.honest or self.chance.random() < 0.7:
                        replies.append(pb.ClientItem(pong=pb.Pong(ping_id=item.ping.ping_id)))
                case "rejected" if self.traits.honest:
                    # The match may have ended while the reply was on its way.
                    fine = item.rejected.reason in (
                        reason_pb.ERROR_REASON_MATCH_OVER,
                        reason_pb.ERROR_REASON_NO_SEAT,
                        reason_pb.ERROR_REASON_ALREADY_READY,
                    )
                    check(fine, f"{self.name} did nothing wrong and is rejected: {item.rejected.message}")
        if replies and not self.quiet:
            link.send(replies)

    def _given_back(self, link: Link, match_id: str) -> None:
        """Forgets a match in which it has no seat any more. An old stream may tell so of a seat that it has again."""
        if link is self.link:
            self.offered.pop(match_id, None)
            self.positions.pop(match_id, None)
            self.asked.pop(match_id, None)

    def _shirk(self, link: Link, ready: pb.ClientItem) -> list[pb.ClientItem]:
        """Gives an open seat back, by whatever way there is."""
        leave = pb.ClientItem(leave=pb.Leave())
        match self._whims.randrange(6):
            case 0:
                return []
            case 1:
                return [pb.ClientItem(decline=pb.Decline(match_id=ready.ready.match_id))]
            case 2:
                self.gone = self._whims.random() < 0.3
                return self._whims.choice(([leave], [ready, leave]))
            case 3:
                self._away_us = self._whims.choice((0, 3_000_000, 40_000_000))
                self.world.after(self._whims.randrange(5_000), link.cut)
                return self._whims.choice(([], [ready]))
            case 4:
                link.half_close(self._whims.randrange(5_000))
                return [ready]
        return [pb.ClientItem(answer=pb.Answer(match_id=ready.ready.match_id, action="KS")), ready]

    def _offered(self, link: Link, offer: pb.MatchOffered) -> list[pb.ClientItem]:
        match_id = offer.match_id
        if link is not self.link and self.world.is_open(match_id, offer.seat):
            return []  # what still comes on an old stream may be given back by now
        self.offered[match_id] = offer.seat
        if offer.ready:
            return []
        nonce = self.chance.randbytes(32) if self.traits.nonce else b""
        ready = pb.ClientItem(ready=pb.Ready(match_id=match_id, nonce=nonce))
        if not self.traits.honest and self.world.is_open(match_id, offer.seat) and self._whims.random() < 0.7:
            return self._shirk(link, ready)
        if self.traits.honest or self.chance.random() < 0.9:
            return [ready]
        decline = pb.ClientItem(decline=pb.Decline(match_id=match_id))
        bad = pb.ClientItem(ready=pb.Ready(match_id=match_id, nonce=nonce[:31] + b"xx"))
        return self.chance.choice(
            ([], [decline], [bad], [bad, ready], [ready, ready], [ready, decline], [decline, ready])
        )

    def _judged(self, verdict: pb.Verdict) -> None:
        status = verdict.status
        if status == event_pb2.ANSWER_STATUS_ACCEPTED:
            self.asked.pop(verdict.match_id, None)
        if self.traits.honest:
            fine = (
                event_pb2.ANSWER_STATUS_ACCEPTED,
                event_pb2.ANSWER_STATUS_MATCH_OVER,
                event_pb2.ANSWER_STATUS_REPEATED,
            )
            failed = verdict.match_id in self.world.failed and status == event_pb2.ANSWER_STATUS_NOT_OPEN
            check(
                status in fine or failed,
                f"{self.name} did nothing wrong and is told {event_pb2.AnswerStatus.Name(status)} "
                f"on {verdict.match_id} {verdict.decision_id}",
            )

    # Answering.

    def _decide(self, link: Link, decision: pb.Decision) -> None:
        self.asked[decision.match_id] = decision.decision_id
        check(decision.legal, "a question has no legal action")
        text = self.chance.choice(decision.legal)
        answer = pb.Answer(match_id=decision.match_id, decision_id=decision.decision_id, action=text)
        left_us = decision.allowance_us + decision.bank_us
        deed = "now"
        if self.quiet:
            return
        if self.traits.honest:
            low, high = self.traits.think_us
            high = min(high, max(0, left_us // 2 - 2 * self.traits.way_us[1]))
            think_us = self.chance.randint(min(low, high), high)
        else:
            deed = self.chance.choices(list(self.traits.deeds), list(self.traits.deeds.values()))[0]
            think_us = self.chance.choice((0, 0, 100, 1_000))
        self.world.trace(f"{self.name} is asked {decision.match_id[:4]}/{decision.decision_id}: {deed} {text}")
        getattr(self, f"_do_{deed}")(link, decision, answer, think_us, left_us)

    def _say(self, link: Link, think_us: int, *answers: pb.Answer) -> None:
        items = [pb.ClientItem(answer=answer) for answer in answers]
        link.send(items, after_us=think_us)

    def _do_now(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        self._say(link, think_us, answer)

    def _do_think(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        self._say(link, int(left_us * self.chance.uniform(0.3, 0.99)), answer)

    def _do_edge(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        deadline_us = self.world.deadline_us(decision.match_id)
        if deadline_us is not None:
            link.send(
                [pb.ClientItem(answer=answer)], at_us=deadline_us + self.chance.choice((-1_000, -10, -1, 0, 1, 1_000))
            )

    def _do_late(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        self._say(link, int(left_us * self.chance.uniform(1, 1.5)) + self.chance.randrange(50_000), answer)

    def _do_silent(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        pass

    def _do_illegal(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        game = registry.find("guillotine" if decision.HasField("guillotine") else "regicide")
        answer.action = self.chance.choice(game.texts)
        self._say(link, think_us, answer)

    def _do_malformed(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        answer.action = self.chance.choice(_RUBBISH)
        self._say(link, think_us, answer)

    def _do_twice(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        self._say(link, think_us, answer, answer)
        self._say(link, think_us + self.chance.randrange(5_000), answer)

    def _do_two(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        other = pb.Answer()
        other.CopyFrom(answer)
        other.action = self.chance.choice(decision.legal)
        self._say(link, think_us, answer, other)

    def _do_guess(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        ahead = [
            pb.Answer(match_id=answer.match_id, decision_id=answer.decision_id + number, action=answer.action)
            for number in range(1, self.chance.randint(2, 6))
        ]
        self._say(link, think_us, *self.chance.sample([answer, *ahead], len(ahead) + 1))

    def _do_foreign(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        there = [*self.world.ledger.matches, "nowhere", "", "x" * 100]
        foreign = pb.Answer(match_id=self.chance.choice(there), decision_id=answer.decision_id, action=answer.action)
        self._say(link, think_us, foreign)
        if self.chance.random() < 0.8:
            self._say(link, think_us + 10, answer)

    def _do_stale(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        number = self.chance.choice((-1, -(2**31), 2**31 - 1, 0, answer.decision_id - 1))
        stale = pb.Answer(match_id=answer.match_id, decision_id=number, action=answer.action)
        self._say(link, think_us, stale, answer)

    def _do_seat(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        wrong = pb.Answer()
        wrong.CopyFrom(answer)
        wrong.seat = self.chance.choice((decision.seat + 1, -1, 2**31 - 1, decision.seat))
        self._say(link, think_us, wrong, answer)

    def _do_strange(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        items = [pb.ClientItem(), pb.ClientItem(hello=pb.Hello(protocol_version=1)), pb.ClientItem(answer=answer)]
        link.send(self.chance.sample(items, 3), after_us=think_us)

    def _do_garbage(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        link.send_bytes(self.chance.choice((b"", self.chance.randbytes(40), bytes(65_537), b"\x0a\xff")), think_us)

    def _do_leave(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        self.gone = self.chance.random() < 0.5
        link.send([pb.ClientItem(leave=pb.Leave()), pb.ClientItem(answer=answer)], after_us=think_us)

    def _do_cut(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        if self.chance.random() < 0.5:
            self._say(link, think_us, answer)
        self.world.after(self.chance.randrange(10_000), link.cut)

    def _do_eof(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        link.half_close(think_us)

    def _do_again(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        self.world.after(self.chance.randrange(5_000), self.connect)
        self._say(link, think_us + self.chance.randrange(5_000), answer)

    def _do_flood(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        pongs = [pb.ClientItem(pong=pb.Pong(ping_id=-number)) for number in range(self.chance.randint(50, 250))]
        for _ in range(2):
            link.send(pongs, after_us=think_us)

    def _do_deaf(self, link: Link, decision: pb.Decision, answer: pb.Answer, think_us: int, left_us: int) -> None:
        self.deaf = True
        self._say(link, think_us, answer)
