"""The match as people read it: plain lines of text from a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from referee.v1 import event_pb2, match_pb2
from referee_games.contract import shown
from referee_server.match.state import BOT, Match, begin
from referee_server.match.transcript_deals import TELLERS, Teller, row

_DID: Final = {
    match_pb2.FAULT_KIND_NO_SHOW: "was not connected in time",
    match_pb2.FAULT_KIND_START_TIMEOUT: "was not ready in time, or declined",
    match_pb2.FAULT_KIND_TIMEOUT: "ran out of time",
    match_pb2.FAULT_KIND_ILLEGAL: "answered {}, which is not legal here",
    match_pb2.FAULT_KIND_MALFORMED: "answered {}, which is no action of the game",
    match_pb2.FAULT_KIND_DISCONNECT: "was lost and did not come back",
    match_pb2.FAULT_KIND_CRASH: "crashed",
    match_pb2.FAULT_KIND_FLOOD: "sent far more than it was asked for",
}
_WENT: Final = {
    event_pb2.REOPEN_CAUSE_LEFT: "is not waited for",
    event_pb2.REOPEN_CAUSE_LOST: "did not come back in time",
    event_pb2.REOPEN_CAUSE_DECLINED: "declined",
    event_pb2.REOPEN_CAUSE_NOT_READY: "was not ready in time",
}
_DONE: Final = {
    match_pb2.FAULT_ACTION_REPLACE: "the seat is replaced",
    match_pb2.FAULT_ACTION_VOID_DEAL: "the deal is voided",
    match_pb2.FAULT_ACTION_FORFEIT: "the match is forfeited",
    match_pb2.FAULT_ACTION_CANCEL: "the match is called off",
}
_ENDED: Final = {
    match_pb2.END_REASON_COMPLETED: "played to the end",
    match_pb2.END_REASON_CANCELLED: "cancelled by the host, no result",
    match_pb2.END_REASON_NOT_STARTED: "never started, no result",
    match_pb2.END_REASON_REFEREE_FAULT: "ended by a fault of the referee, no result and nobody to blame",
    match_pb2.END_REASON_FORFEITED: "forfeited",
}
_SUBSTITUTES: Final = (event_pb2.ACTION_SOURCE_SUBSTITUTE, event_pb2.ACTION_SOURCE_SUBSTITUTE_BOT)


def transcript(events: Sequence[event_pb2.MatchEvent], deal: int | None = None) -> Iterator[str]:
    """Returns a match line by line: who played, every deal with its rulings and scores, the result.

    Args:
        events: a log as the view `all` has it; it may end at any event.
        deal: number of the only deal to be told, from 0; everything by default.

    Raises:
        ValueError: the match has no such deal, or the log is none that this version can follow.
    """
    deals = sum(bool(event.cards_dealt.pack) for event in events)
    if deal is not None and not 0 <= deal < deals:
        raise ValueError(f"there is no deal {deal}; {f'deals are 0 to {deals - 1}' if deals else 'none was dealt'}")
    return _Transcript(events).lines(deal)


class _Transcript:
    def __init__(self, events: Sequence[event_pb2.MatchEvent]) -> None:
        self._events = events
        self._match: Match = begin(events[0])
        names = [_printable(seat.name) for seat in self._match.seats]
        for event in events:
            if event.HasField("seat_filled"):
                names[event.seat_filled.seat.seat] = _printable(event.seat_filled.seat.name)
            elif event.HasField("seat_reopened"):
                names[event.seat_reopened.seat] = ""
        self._names = [f"{seat} {name or '(open)'}" for seat, name in enumerate(names)]
        self._sides = [" + ".join(self._names[seat] for seat in side) for side in self._match.sides]
        self._teller: Teller | None = None
        self._ruling = ""  # a ruling whose substitute action is still to come
        self._faults = [Counter[str]() for _ in names]
        self._replaced: dict[int, str] = {}

    def lines(self, deal: int | None) -> Iterator[str]:
        yield from self._header()
        number = -1  # of the deal that is told; what comes before the first belongs to none
        for event in self._events[1:]:
            if event.cards_dealt.pack:
                number = event.cards_dealt.deal
            told = list(self._tell(event))
            if deal is None or deal == number:
                yield from told
            self._match.evolve(event)
        if deal is None or deal == number:
            yield from self._rest()
        if deal is None:
            yield from self._end()

    def _header(self) -> Iterator[str]:
        match, created = self._match, self._match.created
        yield f"{match.game.title}, match {match.match_id}"
        yield ""
        defaults = {option.name: option.default for option in match.game.options}
        differing = [f"{name}={_text(value)}" for name, value in match.options.items() if value != defaults[name]]
        yield row("options", " ".join(differing) or "all defaults")
        yield row("clock", _clock(created.spec.clock))
        for number, (seat, name) in enumerate(zip(match.seats, self._names, strict=True)):
            yield row("seats" if number == 0 else "", f"{name} (house bot)" if seat.kind == BOT else name)
        yield row("commitment", match.commitment)
        if match.deal_id != match.match_id:
            yield row("deal id", _printable(match.deal_id))
        yield row("cards", self._seal())
        yield row("", TELLERS.get(match.game.name, Teller).legend)

    def _seal(self) -> str:
        out = self._events[-1].WhichOneof("payload") == "secret_revealed"
        if self._match.created.unsealed:
            return "UNSEALED: the host gave the secret himself"
        return "drawn from a secret that is revealed below" if out else "SEALED: the secret is not out yet"

    def _tell(self, event: event_pb2.MatchEvent) -> Iterator[str]:
        teller = self._teller
        match event.WhichOneof("payload"):
            case "match_started":
                yield row("start", f"{self._names[event.match_started.first_dealer]} deals first")
            case "cards_dealt":
                yield from self._dealt(event.cards_dealt)
            case "action_applied" if teller:
                applied = event.action_applied
                if self._ruling and applied.source in _SUBSTITUTES:
                    self._ruling += f" {applied.action}"
                yield from self._flush()
                yield from teller.applied(applied)
            case "card_shown" if teller:
                yield from teller.shown(event.card_shown)
            case "trick_taken" if teller:
                yield from teller.taken(event.trick_taken)
            case "deal_scored":
                yield from self._scored(event.deal_scored)
            case "fault_ruled":
                yield from self._settle()
                yield from self._ruled(event.fault_ruled)
            case "seat_replaced":
                yield from self._settle()
                seat, bot = event.seat_replaced.seat, event.seat_replaced.bot
                self._replaced[seat] = bot
                yield row("  !", f"{self._names[seat]} is replaced by the house bot {bot} for the rest of the match")
            case "seat_disconnected":
                yield from self._settle()
                left = event.seat_disconnected.left
                yield row(
                    "  .", f"{self._holder(event.seat_disconnected.seat)} {'left' if left else 'lost connection'}"
                )
            case "seat_reconnected":
                yield from self._settle()
                yield row("  .", f"{self._holder(event.seat_reconnected.seat)} is connected again")
            case "seat_reopened":
                reopened = event.seat_reopened
                yield row("  .", f"{self._holder(reopened.seat)} {_WENT[reopened.cause]}; the seat is open again")
            case "match_resumed":
                yield from self._settle()
                yield row("  .", "the referee was started again")

    def _holder(self, seat: int) -> str:
        """Returns who has a seat at this point; before the start that need not be who plays there."""
        return f"{seat} {_printable(self._match.seats[seat].name) or '(open)'}"

    def _flush(self) -> Iterator[str]:
        if self._ruling:
            yield row("  !", self._ruling)
        self._ruling = ""

    def _settle(self) -> Iterator[str]:
        yield from self._flush()
        if self._teller is not None:
            yield from self._teller.settle()

    def _rest(self) -> Iterator[str]:
        yield from self._flush()
        if self._teller is not None:
            yield from self._teller.rest()

    def _dealt(self, event: event_pb2.CardsDealt) -> Iterator[str]:
        if event.pack or self._teller is None:
            yield from ("", f"Deal {event.deal}, dealt by {self._names[event.dealer]}", "")
            make = TELLERS.get(self._match.game.name, Teller)
            self._teller = make(self._match.game, self._names, event.dealer)
        yield from self._teller.dealt(event)

    def _scored(self, event: event_pb2.DealScored) -> Iterator[str]:
        yield from self._rest()
        self._teller = None
        voided = "   (voided)" if event.voided else ""
        scores = [f"{score:+d}" if score else "0" for score in event.scores]
        totals = [str(total) for total in event.totals]
        widths = [max(len(score), len(total)) for score, total in zip(scores, totals, strict=True)]
        for label, numbers, note in (("score", scores, voided), ("total", totals, "")):
            cells = [
                f"{side} {number:>{width}}" for side, number, width in zip(self._sides, numbers, widths, strict=True)
            ]
            yield row(label, "   ".join(cells) + note)
        for detail in event.details:
            if detail.name == "pot" and detail.json != "0":
                yield row("pot", f"{detail.json} for the next scorer")

    def _ruled(self, event: event_pb2.FaultRuled) -> Iterator[str]:
        kind = match_pb2.FaultKind.Name(event.kind).removeprefix("FAULT_KIND_").lower()
        self._faults[event.seat][kind] += 1
        raw = shown(event.raw_answer.decode("utf-8", "replace"))
        told = f"{self._names[event.seat]} {_DID[event.kind].format(raw)} ({kind})"
        strikes = self._match.created.spec.policy.strikes
        if event.strike_count > self._match.seats[event.seat].strike_count:
            told += f", strike {event.strike_count}" + (f" of {strikes}" if strikes else "")
        if event.asked_again:
            yield row("  !", f"{told}; it is asked again")
        elif event.action == match_pb2.FAULT_ACTION_SUBSTITUTE:
            bot = self._match.rules[event.kind].bot
            self._ruling = f"{told}; {f'{bot} chooses' if bot else 'drawn instead:'}"
        else:
            yield row("  !", f"{told}; {_DONE[event.action]}")

    def _end(self) -> Iterator[str]:
        result = self._match.result
        yield ""
        if result is None:
            yield "Not over yet"
            return
        note = next((event.match_ended.note for event in self._events if event.HasField("match_ended")), "")
        deals = f"{result.deal_count} deal" + ("" if result.deal_count == 1 else "s")
        yield f"Result: {_ENDED[result.reason]}, {deals}" + (f" ({_printable(note)})" if note else "")
        yield ""
        if result.places:
            yield row("place", "official   total   side")
            order = sorted(range(len(result.places)), key=lambda side: (result.places[side], side))
            for side in order:
                official, total = result.official_places[side], result.totals[side]
                yield row(str(result.places[side]), f"{official:<8}   {total:5}   {self._sides[side]}")
        yield from self._blame(result)
        for event in self._events[-1:]:
            if event.HasField("secret_revealed"):
                yield row("secret", event.secret_revealed.secret.hex())
                for seat, nonce in enumerate(event.secret_revealed.nonces):
                    if nonce:
                        yield row(f"nonce {seat}", nonce.hex())

    def _blame(self, result: match_pb2.MatchResult) -> Iterator[str]:
        for seat, faults in enumerate(self._faults):
            if not faults:
                continue
            told = ", ".join(f"{times} x {kind}" for kind, times in faults.items())
            if result.substitute_counts[seat]:
                count = result.substitute_counts[seat]
                told += f"; {count} decision{'' if count == 1 else 's'} played for it"
            if seat in self._replaced:
                told += f"; replaced by {self._replaced[seat]}"
            yield row("faults", f"{self._names[seat]}: {told}")


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _clock(clock: match_pb2.Clock) -> str:
    if clock.untimed:
        return "untimed"
    told = [f"{clock.allowance_ms / 1000:g} s a decision", f"bank {clock.bank_ms / 1000:g} s"]
    if clock.increment_ms:
        told.append(f"increment {clock.increment_ms / 1000:g} s")
    return ", ".join(told)
