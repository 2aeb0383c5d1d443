"""What the journal says, followed commit by commit, and what each audience may know of it.

This is what everything that the referee tells is held against. It rebuilds each match by `evolve` alone.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from google.protobuf.message import Message

from referee.v1 import event_pb2, match_pb2
from referee_client import convert
from referee_games.contract import PUBLIC
from referee_server.journal import EventsAdded, MatchAdded, Record, SummaryChanged
from referee_server.match.state import Match, begin
from referee_server.match.verify import parse
from referee_server.match.views import ALL, Projector

CARD: Final = re.compile(r"(?<![0-9A-Za-z])(?:[A2-9TJQK][CDHS]|X[12])(?![0-9A-Za-z])")
Key = tuple[int, int]
"""Seat and decision."""


class BrokenError(AssertionError):
    """Something that always holds does not hold."""


def check(holds: object, what: str) -> None:
    """Raises `BrokenError` unless it holds."""
    if not holds:
        raise BrokenError(what)


def texts(message: Message) -> Iterator[str]:
    """Yields every text in a message."""
    for field, value in message.ListFields():
        values = value if field.is_repeated else [value]
        if isinstance(value, Mapping):
            values = [*value, *value.values()]
        for one in values:
            if isinstance(one, str):
                yield one
            elif isinstance(one, Message):
                yield from texts(one)


def cards_in(message: Message) -> set[str]:
    """Returns the cards that a message names."""
    return {card for text in texts(message) for card in CARD.findall(text)}


class Told:
    """One match by its committed events.

    Attributes:
        match: the match so far.
        events: its events.
        offered: each question that was put, without its times, as bytes.
        offered_us: when each question was first put, in match time.
        applied: the action and its source, by decision.
        faulted: the kinds of fault ruled on an answer, by decision.
        known: the cards of this deal that each seat may know, and the public.
        former: who has given back a seat that was open.
        final: whether it takes no more events.
    """

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self.match: Match = None  # type: ignore[assignment]  # until the first event
        self.events: list[event_pb2.MatchEvent] = []
        self.offered: dict[Key, bytes] = {}
        self.offered_us: dict[Key, int] = {}
        self.former: set[str] = set()
        self.applied: dict[Key, tuple[str, int]] = {}
        self.faulted: dict[Key, list[int]] = {}
        self.faults: dict[int, list[int]] = {}
        self.known: dict[int, set[str]] = {}
        self.final = False
        self.secrets: list[bytes] = [secret, secret.hex().encode()]
        self._views: dict[int, tuple[Projector, list[bytes], int]] = {}

    def add(self, records: Sequence[bytes]) -> list[event_pb2.MatchEvent]:
        """Takes committed events in."""
        events = parse(records)
        for event in events:
            check(not self.final, "an event was committed after the end")
            check(event.sequence == len(self.events) + 1, f"event {event.sequence} follows {len(self.events)}")
            check(
                not self.events or event.match_time_us >= self.events[-1].match_time_us,
                f"event {event.sequence} is earlier than the one before",
            )
            self._before(event)
            self.events.append(event)
            if event.sequence == 1:
                self.match = begin(event)
                self.known = {seat: set() for seat in (PUBLIC, *range(len(self.match.seats)))}
            else:
                self.match.evolve(event)
            self._after(event)
        return events

    def _before(self, event: event_pb2.MatchEvent) -> None:
        kind = event.WhichOneof("payload")
        if kind == "action_applied":
            applied = event.action_applied
            key = applied.seat, applied.decision_id
            check(key not in self.applied, f"decision {key} has two outcomes")
            check(
                applied.decision_id == len(self.match.seats[applied.seat].outcomes),
                f"decision {key} is not the next one of its seat",
            )
            if applied.source == event_pb2.ACTION_SOURCE_AGENT:
                check(self.match.offered_us is not None, f"decision {key} was answered and is not open")
            self.applied[key] = applied.action, applied.source
        elif kind == "decision_offered":
            key = event.decision_offered.seat, event.decision_offered.decision_id
            check(self.match.actor == key[0], f"decision {key} was put out of turn")
            check(key not in self.applied, f"decision {key} was put again after its outcome")
            question = convert.decision_to(self.match.question(key[0]))
            strange = cards_in(question) - self.known[key[0]]
            check(not strange, f"decision {key} shows {sorted(strange)}")
            asked = bare(question)
            check(self.offered.setdefault(key, asked) == asked, f"decision {key} was put again with another content")
            self.offered_us.setdefault(key, event.match_time_us)
        elif kind == "seat_filled":
            seat = event.seat_filled.seat
            check(self.match.seats[seat.seat].kind == match_pb2.SEAT_KIND_OPEN, "a seat was taken that was not open")
            names = [other.name for other in self.match.seats if other.agent_id]
            check(seat.name not in names, f"{seat.name} has two seats")
        elif kind == "seat_reopened":
            seat_state = self.match.seats[event.seat_reopened.seat]
            check(self.match.state == match_pb2.MATCH_STATE_WAITING, "a seat was given back after the start")
            check(
                self.match.created.spec.seats[seat_state.seat].HasField("open"), "a named agent's seat was given away"
            )
            check(seat_state.agent_id, "a seat was given back that nobody had")
            self.former.add(seat_state.name)
        elif kind == "fault_ruled":
            ruled = event.fault_ruled
            was_open = self.match.created.spec.seats[ruled.seat].HasField("open")
            begun = self.match.state == match_pb2.MATCH_STATE_RUNNING
            check(begun or not was_open, "who took an open seat was blamed before the start")
            self.faults.setdefault(ruled.seat, []).append(ruled.kind)
            if ruled.HasField("decision_id"):
                self.faulted.setdefault((ruled.seat, ruled.decision_id), []).append(ruled.kind)

    def _after(self, event: event_pb2.MatchEvent) -> None:
        kind = event.WhichOneof("payload")
        if kind == "seat_ready" and event.seat_ready.nonce:
            nonce = event.seat_ready.nonce
            self.secrets += [nonce, nonce.hex().encode()]
        elif kind == "cards_dealt":
            for seat, known in self.known.items():
                if event.cards_dealt.pack:
                    known.clear()
                known.update(card for hand in event.cards_dealt.hands if hand.seat == seat for card in hand.cards)
        elif kind in ("action_applied", "card_shown", "trick_taken"):
            text = event.action_applied.action
            shown = set() if text.startswith("discard:") else cards_in(event)
            for seat, known in self.known.items():
                known |= cards_in(event) if kind == "action_applied" and event.action_applied.seat == seat else shown

    @property
    def over(self) -> bool:
        """Whether everything may be known."""
        return self.match.over

    def view(self, audience: int) -> list[bytes]:
        """Returns the events that an audience may see, each as bytes, having looked at them for what it may not."""
        projector, seen, upto = self._views.get(audience) or (Projector(audience, self.match.game), [], 0)
        for event in projector.see(self.events[upto:]):
            check(event.sequence == len(seen) + 1, f"the view of {audience} jumps to {event.sequence}")
            data = event.SerializeToString(deterministic=True)
            if audience != ALL:
                self._scan(event, data, audience)
            seen.append(data)
        self._views[audience] = projector, seen, len(self.events)
        return seen

    def _scan(self, event: event_pb2.MatchEvent, data: bytes, audience: int) -> None:
        kind = event.WhichOneof("payload")
        if kind in ("match_ended", "secret_revealed"):
            return
        where = f"event {event.sequence} ({kind}) as {audience} sees it"
        for secret in self.secrets:
            if secret in data:
                check(False, f"{where} holds a secret or a nonce")
        if kind == "cards_dealt":
            check(not event.cards_dealt.pack and not event.cards_dealt.stock, f"{where} shows the pack")
            others = [hand for hand in event.cards_dealt.hands if hand.cards and hand.seat != audience]
            check(not others, f"{where} shows a hand")
        if kind == "match_created":
            created = event.match_created
            seeds = [*[seat.bot_seed for seat in created.seats], *[seat.bot_seed for seat in created.spec.seats]]
            check(not any(seeds), f"{where} shows the seed of a bot")
        if kind in ("action_applied", "card_shown", "trick_taken", "fault_ruled", "answer_ignored"):
            own = kind in ("fault_ruled", "answer_ignored") and getattr(event, kind).seat == audience
            if not own and kind != "answer_ignored":
                hidden = kind == "fault_ruled" and cards_in(event)
                check(not hidden, f"{where} shows {hidden}")
            check(kind != "answer_ignored" or own, f"{where} is another seat's")
            if kind == "action_applied" and event.action_applied.seat != audience:
                check(not (event.action_applied.action.startswith("discard:")), f"{where} shows what was discarded")


class Ledger:
    """All matches of a simulated referee, by what was committed."""

    def __init__(self) -> None:
        self.matches: dict[str, Told] = {}
        self.fresh: list[tuple[str, event_pb2.MatchEvent]] = []
        """What was committed since somebody looked."""

    def commit(self, batch: Sequence[Record]) -> None:
        """Takes a committed batch in."""
        for record in batch:
            match record:
                case MatchAdded():
                    check(record.match_id not in self.matches, "a match was created twice")
                    self.matches[record.match_id] = Told(record.secret)
                case EventsAdded():
                    events = self.matches[record.match_id].add(record.events)
                    self.fresh += [(record.match_id, event) for event in events]
                case SummaryChanged():
                    told = self.matches[record.match_id]
                    told.final = told.final or record.final
                    check(not record.final or told.match.over, "a match is final and has not ended")
                    listed = [seat.agent_id for seat in match_pb2.Match.FromString(record.summary).seats]
                    seated = [seat.agent_id for seat in told.match.seats]
                    check(listed == seated, f"a list shows {listed} at a table of {seated}")


def bare(decision: Any) -> bytes:
    """Returns a question without its times."""
    for field in ("allowance_us", "bank_us", "last", "untimed"):
        decision.ClearField(field)
    return bytes(decision.SerializeToString(deterministic=True))


def fingerprint(match: Match) -> tuple[object, ...]:
    """Returns all that a match is, to be compared."""
    engine = match.engine
    table = None
    if engine is not None:
        views = [repr(engine.view(seat)) for seat in range(-1, len(match.seats))]
        table = views, list(engine.legal()) if engine.actor >= 0 else [], engine.actor, engine.totals()
    seats = [
        (*[getattr(seat, name) for name in type(seat).__slots__ if name != "outcomes"], seat.outcomes.tolist())
        for seat in match.seats
    ]
    plain = [
        getattr(match, name)
        for name in type(match).__slots__
        if name not in ("engine", "seats", "created", "rules", "game", "facts", "result")
    ]
    return table, seats, plain, list(map(repr, match.facts)), match.result


def check_result(result: match_pb2.MatchResult, match: Match) -> None:
    """Checks the places of a result against each other and the rulings, computed another way."""
    if result.reason not in (match_pb2.END_REASON_COMPLETED, match_pb2.END_REASON_FORFEITED):
        check(not result.totals and not result.official_places, "a match without a result has places")
        return
    sides = len(result.totals)
    check(len(result.places) == len(result.official_places) == sides, "places are missing")
    bad = {result.sides[seat.seat] for seat in match.seats if seat.offender}
    better: Callable[[int, int], bool] = operator.lt if match.game.name == "guillotine" else operator.gt
    for side in range(sides):
        ahead = sum(better(result.totals[other], result.totals[side]) for other in range(sides))
        check(result.places[side] == 1 + ahead, f"places {result.places} of totals {result.totals}")
        clean = [
            other
            for other in range(sides)
            if other not in bad and (side in bad or better(result.totals[other], result.totals[side]))
        ]
        check(result.official_places[side] == 1 + len(clean), f"official places {result.official_places} without {bad}")
