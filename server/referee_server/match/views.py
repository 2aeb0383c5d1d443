"""What an audience sees of an event: one pure function from event and audience to event or nothing.

A view is also numbered by itself, without gaps, so that what is left out leaves no trace (`Projector`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from referee.v1 import event_pb2, match_pb2
from referee_games.contract import PUBLIC, Game

ALL: Final = -2
"""The audience that sees everything. Seats are audiences by their number, and `PUBLIC` (-1) is everybody."""

ROUND_US: Final = 10_000
"""To what others see times rounded down: microseconds."""


def project(event: event_pb2.MatchEvent, audience: int, game: Game) -> event_pb2.MatchEvent | None:
    """Returns the event as `audience` sees it, or None if it is not to see it at all.

    The sequence is still the journal's and must be replaced before it leaves (`Projector`). The event given stays as
    it is; for `ALL` it is itself returned.
    """
    if audience == ALL:
        return event
    kind = event.WhichOneof("payload")
    if kind is None:
        return None
    payload = getattr(event, kind)
    owner = getattr(payload, "seat", None)
    if owner != audience and (kind in _PRIVATE or (kind == "fault_ruled" and payload.asked_again)):
        return None
    seen = event_pb2.MatchEvent()
    seen.CopyFrom(event)
    hide = _HIDE.get(kind)
    if owner == audience and kind in _OWN:
        return seen
    seen.match_time_us -= seen.match_time_us % ROUND_US
    if hide is not None:
        hide(getattr(seen, kind), audience, game)
    return seen


def seen_result(result: match_pb2.MatchResult, audience: int) -> match_pb2.MatchResult:
    """Returns a result as an audience sees it: how long a seat thought is for that seat alone, and for `ALL`."""
    seen = match_pb2.MatchResult()
    seen.CopyFrom(result)
    if audience != ALL:
        del seen.seat_times[:]
        seen.seat_times.extend(time for time in result.seat_times if time.seat == audience)
    return seen


class Projector:
    """One audience's view of one match, numbered from 1 without gaps."""

    __slots__ = ("_audience", "_game", "seen_through", "through")

    def __init__(self, audience: int, game: Game) -> None:
        self._audience = audience
        self._game = game
        self.through = 0
        """Number of the last event of the view so far."""
        self.seen_through = 0
        """Number, in the journal, of the last event it was given."""

    def see(self, events: Sequence[event_pb2.MatchEvent]) -> list[event_pb2.MatchEvent]:
        """Returns what the audience sees of the next events of the journal; those it was given already are skipped."""
        seen = []
        for event in events:
            if event.sequence <= self.seen_through:
                continue
            self.seen_through = event.sequence
            view = project(event, self._audience, self._game)
            if view is not None:
                self.through += 1
                if view is not event:
                    view.sequence = self.through
                seen.append(view)
        return seen


def _round_bank(payload: Any, audience: int, game: Game) -> None:
    payload.bank_us -= payload.bank_us % ROUND_US
    payload.ClearField("wait_us")
    payload.ClearField("transit_us")


def _hide_created(payload: event_pb2.MatchCreated, audience: int, game: Game) -> None:
    # The seed of a bot and the card it played would narrow down what it could have played.
    for seat in payload.seats:
        seat.ClearField("bot_seed")
    for spec in payload.spec.seats:
        spec.ClearField("bot_seed")
    if payload.tournament.held_back:
        # Whatever tells that two tables play the same cards would help who has seen the one.
        payload.ClearField("deal_id")
        payload.ClearField("commitment")
        payload.tournament.ClearField("board")
        payload.tournament.ClearField("nonces")


def _hide_cards(payload: event_pb2.CardsDealt, audience: int, game: Game) -> None:
    payload.ClearField("pack")
    payload.ClearField("stock")
    for hand in payload.hands:
        if hand.seat != audience:
            hand.ClearField("cards")


def _hide_action(payload: event_pb2.ActionApplied, audience: int, game: Game) -> None:
    number = game.number(payload.action)
    payload.action = game.public_text(number) if number is not None else ""
    payload.ClearField("think_us")
    payload.ClearField("transit_us")
    payload.ClearField("lateness_us")
    payload.bank_us -= payload.bank_us % ROUND_US


def _hide_fault(payload: event_pb2.FaultRuled, audience: int, game: Game) -> None:
    for field in ("raw_answer", "raw_answer_size", "legal", "think_us", "transit_us", "lateness_us"):
        payload.ClearField(field)
    payload.bank_us -= payload.bank_us % ROUND_US


def _hide_end(payload: event_pb2.MatchEnded, audience: int, game: Game) -> None:
    payload.ClearField("ignored_counts")
    payload.result.CopyFrom(seen_result(payload.result, audience))


_OWN: Final = frozenset({"decision_offered", "action_applied", "fault_ruled", "answer_ignored"})
"""Events of one seat that this seat sees whole."""
_PRIVATE: Final = frozenset({"answer_ignored"})
"""Events that nobody but their seat sees. An attempt that was not legal, where the seat is asked again, is another."""
_HIDE: Final[dict[str, Callable[[Any, int, Game], None]]] = {
    "match_created": _hide_created,
    "seat_ready": lambda payload, audience, game: payload.ClearField("nonce"),
    "cards_dealt": _hide_cards,
    "decision_offered": _round_bank,
    "action_applied": _hide_action,
    "fault_ruled": _hide_fault,
    "match_ended": _hide_end,
}

__all__ = ["ALL", "PUBLIC", "Projector", "project"]
