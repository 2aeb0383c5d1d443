"""The match as people read it: plain lines of text from its events, each as soon as it is complete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from referee.v1 import event_pb2, match_pb2
from referee_games.contract import shown
from referee_server.match.seat import BOT
from referee_server.match.state import begin
from referee_server.match.transcript_deals import TELLERS, Teller, row
from referee_server.match.views import ALL

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
        events: a log, or another view of it, from its first event; it may end at any event.
        deal: number of the only deal to be told, from 0; everything by default.

    Raises:
        ValueError: the match has no such deal, or the log is none that this version can tell.
    """
    deals = sum(bool(event.cards_dealt.pack) for event in events)
    if deal is not None and not 0 <= deal < deals:
        raise ValueError(f"there is no deal {deal}; {f'deals are 0 to {deals - 1}' if deals else 'none was dealt'}")
    return _whole(events, Transcript(deal=deal))


def _whole(events: Sequence[event_pb2.MatchEvent], told: Transcript) -> Iterator[str]:
    for event in events:
        yield from told.take(event)
    yield from told.finish()


class Transcript:
    """Tells a match as it happens: takes its events in order, and gives back the lines that each of them completes.

    It knows no more than it is given, so that it tells every view; what a view hides is told as hidden.

    Args:
        audience: whose view the events are of: a seat, `PUBLIC` or `ALL`.
        deal: number of the only deal to be told, from 0; everything by default.
    """

    def __init__(self, audience: int = ALL, deal: int | None = None) -> None:
        self._audience = audience
        self._deal = deal
        self._names: list[str] = []
        self._number = -1  # of the deal that is told; what comes before the first belongs to none
        self._teller: Teller | None = None
        self._ruling = ""  # a ruling whose substitute action is still to come
        self._replaced: dict[int, str] = {}
        self._over = self._revealed = False

    def take(self, event: event_pb2.MatchEvent) -> list[str]:
        """Returns the lines that the next event completes; the first event, which creates the match, gives the header.

        Raises:
            ValueError: it is none that this version can tell.
        """
        try:
            return [_printable(line) for line in self._take(event)]
        except (LookupError, ValueError) as error:
            raise ValueError(f"event {event.sequence} is none that this version can tell ({error})") from error

    def finish(self) -> list[str]:
        """Returns what there is still to say when no more events come, whether or not the match has ended."""
        lines: list[str] = []
        if not self._names:
            return lines
        if self._deal is None or self._deal == self._number:
            lines += self._rest()
        if self._deal is None:
            lines += [] if self._over else ["", "Not over yet"]
            if not self._revealed and not self._match.created.unsealed:
                others = "; other tables play the same cards" if self._over and self._match.held_back else ""
                lines.append(row("secret", f"SEALED: not out yet{others}"))
        return [_printable(line) for line in lines]

    def _take(self, event: event_pb2.MatchEvent) -> Iterator[str]:
        kind = event.WhichOneof("payload")
        if not self._names:
            yield from self._begin(event)
            return
        if kind is None and not event.ignorable:
            raise ValueError("a newer referee wrote it")
        told = list(self._tell(event))
        if self._deal is None or self._deal == self._number:
            yield from told
        if kind in ("match_ended", "secret_revealed") and self._deal is None:
            yield from self._end(event)

    def _begin(self, event: event_pb2.MatchEvent) -> Iterator[str]:
        self._match = begin(event)  # for what it says of itself; it does not evolve, since that takes the whole log
        self._names = [f"{seat.seat} {seat.name or '(open)'}" for seat in self._match.seats]
        self._strikes = [0] * len(self._names)
        self._faults = [Counter[str]() for _ in self._names]
        match, created = self._match, self._match.created
        yield f"{match.game.title}, match {match.match_id}"
        yield ""
        defaults = {option.name: option.default for option in match.game.options}
        differing = [f"{name}={_text(value)}" for name, value in match.options.items() if value != defaults[name]]
        yield row("options", " ".join(differing) or "all defaults")
        yield row("clock", _clock(created.spec.clock))
        for number, (seat, name) in enumerate(zip(match.seats, self._names, strict=True)):
            yield row("seats" if number == 0 else "", f"{name} (house bot)" if seat.kind == BOT else name)
        if match.commitment:
            yield row("commitment", match.commitment)
        if match.deal_id not in ("", match.match_id):
            yield row("deal id", match.deal_id)
        drawn = "drawn from a secret that is revealed at the end"
        yield row("cards", "UNSEALED: the host gave the secret himself" if created.unsealed else drawn)
        yield row("", TELLERS.get(match.game.name, Teller).legend)

    @property
    def _sides(self) -> list[str]:
        return [" + ".join(self._names[seat] for seat in side) for side in self._match.sides]

    def _tell(self, event: event_pb2.MatchEvent) -> Iterator[str]:
        teller = self._teller
        match event.WhichOneof("payload"):
            case "seat_filled":
                seat = event.seat_filled.seat
                self._names[seat.seat] = f"{seat.seat} {seat.name}"
                yield row("seat", f"{self._names[seat.seat]} takes the open seat")
            case "seat_reopened":
                number = event.seat_reopened.seat
                yield row("  .", f"{self._names[number]} {_WENT[event.seat_reopened.cause]}; the seat is open again")
                self._names[number] = f"{number} (open)"
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
                seat_, bot = event.seat_replaced.seat, event.seat_replaced.bot
                self._replaced[seat_] = bot
                yield row("  !", f"{self._names[seat_]} is replaced by the house bot {bot} for the rest of the match")
            case "seat_disconnected":
                yield from self._settle()
                left = event.seat_disconnected.left
                yield row("  .", f"{self._names[event.seat_disconnected.seat]} {'left' if left else 'lost connection'}")
            case "seat_reconnected":
                yield from self._settle()
                yield row("  .", f"{self._names[event.seat_reconnected.seat]} is connected again")
            case "match_resumed":
                yield from self._settle()
                yield row("  .", "the referee was started again")
            case "match_ended":
                self._over = True
                yield from self._rest()
            case "secret_revealed":
                self._revealed = True

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
        if event.pack or self._teller is None:  # few see the pack; but then the deal before has been scored
            self._number = event.deal
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
        hidden = self._audience not in (ALL, event.seat)
        raw = "something" if hidden else shown(event.raw_answer.decode("utf-8", "replace"))
        told = f"{self._names[event.seat]} {_DID[event.kind].format(raw)} ({kind})"
        strikes = self._match.created.spec.policy.strikes
        if event.strike_count > self._strikes[event.seat]:
            told += f", strike {event.strike_count}" + (f" of {strikes}" if strikes else "")
        self._strikes[event.seat] = event.strike_count
        if event.asked_again:
            yield row("  !", f"{told}; it is asked again")
        elif event.action == match_pb2.FAULT_ACTION_SUBSTITUTE:
            bot = self._match.rules[event.kind].bot
            self._ruling = f"{told}; {f'{bot} chooses' if bot else 'drawn instead:'}"
        else:
            yield row("  !", f"{told}; {_DONE[event.action]}")

    def _end(self, event: event_pb2.MatchEvent) -> Iterator[str]:
        if event.HasField("match_ended"):
            yield from self._result(event.match_ended)
            return
        yield row("secret", event.secret_revealed.secret.hex())
        for seat, nonce in enumerate(event.secret_revealed.nonces):
            if nonce:
                yield row(f"nonce {seat}", nonce.hex())

    def _result(self, event: event_pb2.MatchEnded) -> Iterator[str]:
        result, note = event.result, event.note
        yield ""
        deals = f"{result.deal_count} deal" + ("" if result.deal_count == 1 else "s")
        yield f"Result: {_ENDED[result.reason]}, {deals}" + (f" ({note})" if note else "")
        yield ""
        if result.places:
            yield row("place", "official   total   side")
            order = sorted(range(len(result.places)), key=lambda side: (result.places[side], side))
            for side in order:
                official, total = result.official_places[side], result.totals[side]
                yield row(str(result.places[side]), f"{official:<8}   {total:5}   {self._sides[side]}")
        yield from self._blame(result)

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
