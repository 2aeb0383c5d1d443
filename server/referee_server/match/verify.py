"""Replay and verification of a log: evolve alone, and deciding again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from referee.v1 import event_pb2, match_pb2
from referee_client import convert
from referee_games import dealing
from referee_games.contract import OptionError
from referee_games.registry import UnknownGameError
from referee_server.match import inputs
from referee_server.match.chance import SealedChance
from referee_server.match.errors import RefusedError
from referee_server.match.inputs import NotNowError
from referee_server.match.machine import FIELDS, Machine
from referee_server.match.seat import AGENT, BOT, OPEN
from referee_server.match.spec import check_seats, settle
from referee_server.match.state import DECIDE_VERSION, Match, begin

_RAW_MOST: Final = 65_536
"""How many bytes an answer can have: what a message of the protocol can carry."""


class LogError(Exception):
    """A log does not hold.

    Attributes:
        sequence: number of the first bad event.
        newer: whether the log is merely newer than this version of the referee.
    """

    def __init__(self, sequence: int, message: str, *, newer: bool = False) -> None:
        super().__init__(f"event {sequence}: {message}")
        self.sequence = sequence
        self.newer = newer


@dataclass(frozen=True, slots=True)
class Report:
    """What verifying a log found, where all of it holds.

    Attributes:
        match: the match, played out.
        sealed: whether the cards could not be checked because the secret is not out yet.
        ended: whether the log has the match's end.
    """

    match: Match
    sealed: bool
    ended: bool


class _Checker(Machine):
    """A machine that holds each event it decides against the one that is stored.

    Attributes:
        log: the events.
        kinds: of each of them the payload's field, None where this version knows none.
        place: of the stored event that has to be decided next.
    """

    __slots__ = ("kinds", "log", "place")

    def __init__(
        self,
        match: Match,
        secret: bytes | None,
        log: Sequence[event_pb2.MatchEvent],
        kinds: Sequence[str | None],
    ) -> None:
        super().__init__(match, secret)
        self.log = log
        self.kinds = kinds
        self.place = 1
        if secret is None:
            self.chance = _LogChance(self)

    @property
    def due(self) -> event_pb2.MatchEvent:
        """The stored event that has to be decided next."""
        if self.place >= len(self.log):
            raise LogError(self.log[-1].sequence, "the log ends before what must follow")
        return self.log[self.place]

    def check(self) -> None:
        """Decides the whole log again."""
        self.begin()
        while self.place < len(self.log):
            event, kind = self.log[self.place], self.kinds[self.place]
            try:
                self.step(_input_of(kind, event, self.match), event.match_time_us)
            except ValueError as error:
                # It may be one that follows from this input.
                newer = not self.due.WhichOneof("payload")
                raise LogError(self.due.sequence, str(error), newer=newer) from None

    def begin(self) -> list[event_pb2.MatchEvent]:
        """Decides what follows from the creation, unless the log ends with that: it is stored by itself."""
        return super().begin() if len(self.log) > 1 else []

    def _events(self, payload: Message | None, now_us: int) -> list[event_pb2.MatchEvent]:
        """Holds each decided event against the stored one, and takes the stored one in."""
        match = self.match
        while payload is not None:
            stored = self.due
            kind = FIELDS[type(payload)]
            same = (
                self.kinds[self.place] == kind
                and getattr(stored, kind) == payload
                and stored.match_time_us == now_us
                and not stored.ignorable
                and not len(UnknownFieldSet(stored))
            )
            if not same:
                mine = self._envelope(payload, now_us)
                raise LogError(stored.sequence, _difference(mine, stored), newer=not stored.WhichOneof("payload"))
            match.take(stored.sequence, now_us, kind, payload)
            self.place += 1
            payload = self._follow()
        return []

    def _substitute(self) -> Message:
        if self.secret is not None:
            return super()._substitute()
        match = self.match
        text = self.due.action_applied.action
        action = match.game.number(text)
        if action is None or action not in match.playing.legal():
            raise LogError(self.due.sequence, "a substitute action, and a legal one, must follow")
        seat = match.seats[match.playing.actor]
        return event_pb2.ActionApplied(
            seat=seat.seat,
            decision_id=len(seat.outcomes),
            action=text,
            source=event_pb2.ACTION_SOURCE_SUBSTITUTE,
            bank_us=seat.bank_us,
        )


class _LogChance(SealedChance):
    """Chance of a sealed log: what the log says, within what could have been drawn."""

    def __init__(self, checker: _Checker) -> None:
        self._checker = checker

    def first_dealer(self, seats: int) -> int:
        """Takes the first dealer of the log."""
        event = self._checker.due
        if not 0 <= event.match_started.first_dealer < seats:
            raise LogError(event.sequence, "there is no such first dealer")
        return event.match_started.first_dealer

    def pack(self, deal: int, pack: Sequence[int]) -> Sequence[int]:
        """Takes the pack of the log."""
        event = self._checker.due
        if not event.HasField("cards_dealt"):
            return pack  # any: it is not what follows
        given = list(event.cards_dealt.pack)
        if sorted(given) != list(pack):
            raise LogError(event.sequence, "the pack does not hold every card once")
        return given


def parse(records: Sequence[bytes]) -> list[event_pb2.MatchEvent]:
    """Returns the events of a log's stored bytes.

    Raises:
        LogError: an event is no event.
    """
    events = []
    for number, record in enumerate(records, 1):
        try:
            events.append(event_pb2.MatchEvent.FromString(record))
        except DecodeError:
            raise LogError(number, "its bytes are not an event") from None
    return events


def replay(events: Sequence[event_pb2.MatchEvent]) -> Match:
    """Returns the match that a log of ours tells, by evolve alone.

    Raises:
        LogError: the log is not one that this version can follow.
    """
    match = _begin(events)
    for event in events[1:]:
        match.evolve(event)
    return match


def rebuild(match: Match | None, record: bytes) -> Match:
    """Returns a match with one more event of a log of ours, by evolve alone.

    Args:
        match: the match so far, which is changed; None before the first event.
        record: the event.

    Raises:
        LogError: it does not follow, or is not one that this version can follow.
    """
    number = match.sequence + 1 if match is not None else 1
    try:
        event = event_pb2.MatchEvent.FromString(record)
    except DecodeError:
        raise LogError(number, "its bytes are not an event") from None
    if match is None:
        return _begin([event])
    if event.sequence != number:
        raise LogError(number, f"it says that it is event {event.sequence}")
    match.evolve(event)
    return match


def verify(events: Sequence[event_pb2.MatchEvent]) -> Report:
    """Decides a log again and compares: cards, legality, clocks, rulings, scores, result.

    While the secret is not in the log, draws are taken as given and everything else is checked.

    Raises:
        LogError: naming the first event that does not hold.
    """
    match = _begin(events)
    created = match.created
    _check_first(events[0], match)
    revealed = _secret(events)
    secret = None
    if revealed is not None:
        number, secret = revealed
        if _commitment(created.deal_id, secret) != created.commitment:
            raise LogError(number, "the secret is not the one that was committed to")
    kinds = [event.WhichOneof("payload") for event in events]
    if None in kinds:
        # What a newer referee lets others pass over is no part of what is decided.
        events = [event for event, kind in zip(events, kinds, strict=True) if kind or not event.ignorable]
        kinds = [event.WhichOneof("payload") for event in events]
    checker = _Checker(match, secret, events, kinds)
    _take_stray_counts(checker, events)
    checker.check()
    return Report(match=match, sealed=secret is None, ended=match.over)


def _input_of(kind: str | None, event: event_pb2.MatchEvent, match: Match) -> inputs.Input:
    """Returns the input that an event of that kind was caused by and holds.

    Raises:
        NotNowError: no input causes such an event: it should have followed from the one before.
    """
    match kind:
        case "action_applied":
            applied = event.action_applied
            if applied.source == event_pb2.ACTION_SOURCE_AGENT:
                received_us = (match.offered_us or 0) + _elapsed_us(applied)
                raw = applied.action.encode()
                return inputs.Answer(applied.seat, applied.decision_id, raw, received_us, applied.lateness_us)
            if applied.source in (event_pb2.ACTION_SOURCE_BOT, event_pb2.ACTION_SOURCE_SUBSTITUTE_BOT):
                return inputs.Choose(applied.seat, applied.decision_id, applied.action)
        case "decision_offered":
            offered = event.decision_offered
            return inputs.Ask(offered.seat, offered.wait_us, offered.transit_us)
        case "seat_filled":
            seat = event.seat_filled.seat
            return inputs.Fill(seat.seat, seat.agent_id, seat.name)
        case "seat_reopened":
            declined = event.seat_reopened.cause == event_pb2.REOPEN_CAUSE_DECLINED
            return inputs.Decline(event.seat_reopened.seat) if declined else inputs.Tick()
        case "seat_offered":
            return inputs.OfferSeat(event.seat_offered.seat)
        case "seat_ready":
            return inputs.Ready(event.seat_ready.seat, event.seat_ready.nonce)
        case "fault_ruled":
            return _fault_input(event.fault_ruled, match)
        case "answer_ignored":
            stray = event.answer_ignored
            return inputs.Stray(stray.seat, stray.decision_id, stray.raw_answer, stray.status)
        case "match_ended" if event.match_ended.result.reason in inputs.STOP_REASONS:
            return inputs.Stop(event.match_ended.result.reason, event.match_ended.note)
        case "match_resumed":
            at = event.match_resumed.resume_time
            return inputs.Resume(at.seconds, at.nanos)
        case "secret_revealed" if match.held_back:
            return inputs.Reveal()
        case "seat_disconnected":
            return inputs.Lose(event.seat_disconnected.seat, event.seat_disconnected.left)
        case "seat_reconnected":
            return inputs.Regain(event.seat_reconnected.seat)
    raise NotNowError(f"{kind or 'an unknown event'} does not follow here")


def _fault_input(ruled: event_pb2.FaultRuled, match: Match) -> inputs.Input:
    if ruled.kind in (match_pb2.FAULT_KIND_ILLEGAL, match_pb2.FAULT_KIND_MALFORMED):
        if ruled.raw_answer_size > _RAW_MOST:
            raise NotNowError("no answer has as many bytes as that")
        # What was cut off the raw answer cannot have been an action: those are far shorter than what is kept.
        raw = ruled.raw_answer + bytes(max(0, ruled.raw_answer_size - len(ruled.raw_answer)))
        received_us = (match.offered_us or 0) + _elapsed_us(ruled)
        return inputs.Answer(ruled.seat, ruled.decision_id, raw, received_us, ruled.lateness_us)
    # To decline has the same outcome as to let the time run out, and can come when another seat's has run out too.
    if ruled.kind == match_pb2.FAULT_KIND_START_TIMEOUT:
        return inputs.Decline(ruled.seat)
    # So has not coming at all.
    if ruled.kind == match_pb2.FAULT_KIND_NO_SHOW:
        return inputs.Absent(ruled.seat)
    if ruled.kind in inputs.ACCUSATIONS:
        return inputs.Accuse(ruled.seat, ruled.kind)
    return inputs.Tick(ruled.lateness_us)


def _elapsed_us(payload: event_pb2.ActionApplied | event_pb2.FaultRuled) -> int:
    return payload.think_us + payload.transit_us + payload.lateness_us


def _begin(events: Sequence[event_pb2.MatchEvent]) -> Match:
    if not events:
        raise LogError(1, "there is no event")
    for number, event in enumerate(events, 1):
        if event.sequence != number:
            raise LogError(number, f"it says that it is event {event.sequence}")
    first = events[0]
    version = first.match_created.decide_version
    if version > DECIDE_VERSION:
        raise LogError(1, f"decided by rules of version {version}; this referee knows {DECIDE_VERSION}", newer=True)
    try:
        return begin(first)
    except (UnknownGameError, OptionError, ValueError) as error:
        raise LogError(1, str(error)) from None


def _check_first(event: event_pb2.MatchEvent, match: Match) -> None:
    """Refuses a first event that no referee writes: what follows is decided by all that it says."""
    created = event.match_created
    if created.decide_version < 1 or event.match_time_us or event.ignorable:
        raise LogError(1, "it is not how a match begins")
    if created.tournament.held_back and created.nonces_taken:
        raise LogError(1, "seats add no nonces to the cards of a board set")
    if any(len(nonce) not in (0, dealing.SECRET_BYTES) for nonce in created.tournament.nonces):
        raise LogError(1, "a nonce has not 32 bytes")
    spec = created.spec
    try:
        check_seats(spec, match.game, match.options)
        settled = settle(spec)
    except RefusedError as error:
        raise LogError(1, error.message) from None
    if settled != spec or spec.given_secret:
        raise LogError(1, "spec is not written out")
    if convert.options_from(spec.game, spec.options, written_out=True).keys() != match.options.keys():
        raise LogError(1, "options of spec are not written out")
    if len(created.seats) != len(spec.seats):
        raise LogError(1, "seats and spec differ")
    for number, (seat, asked) in enumerate(zip(created.seats, spec.seats, strict=True)):
        match asked.WhichOneof("kind"):
            case "bot":
                fits = seat.kind == BOT and seat.name == asked.bot and asked.bot_seed in (0, seat.bot_seed)
            case "agent":
                fits = seat.kind == AGENT and bool(seat.agent_id) and not seat.bot_seed
            case _:
                fits = seat.kind == OPEN and not seat.name and not seat.bot_seed
        if not fits or seat.seat != number or (seat.kind != AGENT and seat.agent_id):
            raise LogError(1, f"seat {number} and spec differ")


def _commitment(deal_id: str, secret: bytes) -> str:
    try:
        return dealing.commitment(deal_id, secret)
    except ValueError as error:
        raise LogError(1, str(error)) from None


def _secret(events: Sequence[event_pb2.MatchEvent]) -> tuple[int, bytes] | None:
    """Returns the secret and the number of the event that reveals it, or None while it is sealed."""
    for event in reversed(events):
        if event.WhichOneof("payload") == "secret_revealed":
            if len(event.secret_revealed.secret) != dealing.SECRET_BYTES:
                raise LogError(event.sequence, "the secret has not 32 bytes")
            return event.sequence, event.secret_revealed.secret
    return None


def _take_stray_counts(machine: Machine, events: Sequence[event_pb2.MatchEvent]) -> None:
    for event in events[-2:]:
        if event.WhichOneof("payload") == "match_ended":
            counts = list(event.match_ended.ignored_counts)
            if len(counts) == len(machine.stray_counts) and min(counts) >= 0:
                machine.stray_counts = counts


def _difference(mine: event_pb2.MatchEvent, stored: event_pb2.MatchEvent) -> str:
    kinds = mine.WhichOneof("payload"), stored.WhichOneof("payload")
    if kinds[0] != kinds[1]:
        return f"it is {kinds[1] or 'of a kind unknown here'}, where {kinds[0]} must follow"
    if mine.match_time_us != stored.match_time_us:
        return f"{kinds[1]} is not at the time of its cause"
    mine_payload, stored_payload = getattr(mine, str(kinds[0])), getattr(stored, str(kinds[0]))
    for field in mine_payload.DESCRIPTOR.fields:
        if getattr(mine_payload, field.name) != getattr(stored_payload, field.name):
            return f"{field.name} of {kinds[1]} is not what deciding again gives"
    return f"{kinds[1]} is not what deciding again gives"
