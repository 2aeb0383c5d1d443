"""One seat of a match: who has it, and what its events say of it."""

from __future__ import annotations

from array import array
from typing import Final

from referee.v1 import match_pb2

AGENT = match_pb2.SEAT_KIND_AGENT
BOT = match_pb2.SEAT_KIND_BOT
OPEN = match_pb2.SEAT_KIND_OPEN

QUOTA_US: Final = 1_000_000
"""Credit for the way to an agent and back that a seat has at most, in microseconds; it begins with that."""
REFILL_US: Final = 100_000
"""What each decision adds to the credit, in microseconds: a way of up to that is always credited."""

VOIDED: Final = 0xFFFF
"""What stands in place of an action where the deal was voided instead."""

# An outcome of a decision in 32 bits: the action, whose choice it was, whether time had run out.
_SOURCE_SHIFT: Final = 16
_TIMED_OUT: Final = 1 << 24


class SeatState:
    """One seat of a running match."""

    __slots__ = (
        "agent_id",
        "asked_count",
        "bank_us",
        "bot",
        "bot_seed",
        "fault_count",
        "forfeited",
        "former_id",
        "gone_us",
        "ignored_kept",
        "kind",
        "last",
        "lateness_us",
        "left",
        "name",
        "nonce",
        "offered_us",
        "outcomes",
        "quota_us",
        "ready",
        "replaced",
        "seat",
        "strike_count",
        "substitute_count",
        "think_us",
        "transit_us",
        "was_open",
    )

    def __init__(self, seat: match_pb2.Seat, bank_us: int) -> None:
        self.seat = seat.seat
        self.kind = seat.kind
        # Whether it was asked for as open.
        self.was_open = seat.kind == OPEN
        # Whose it was last, while it is open again.
        self.former_id = ""
        self.agent_id = seat.agent_id
        self.name = seat.name
        self.bot = seat.name if seat.kind == BOT else ""
        self.bot_seed = seat.bot_seed
        self.ready = seat.kind == BOT
        self.nonce = b""
        self.offered_us: int | None = None
        self.bank_us = bank_us
        self.strike_count = 0
        self.fault_count = 0
        self.substitute_count = 0
        self.replaced = False
        self.forfeited = False
        self.gone_us: int | None = None
        self.left = False
        self.ignored_kept = 0
        self.last: tuple[int, int, int] | None = None
        self.quota_us = QUOTA_US
        self.asked_count = 0
        self.think_us = self.transit_us = self.lateness_us = 0
        self.outcomes = array("L")

    @property
    def offender(self) -> bool:
        """Whether its agent was found at fault so far that it is officially last."""
        return self.kind == AGENT and (self.replaced or self.forfeited)

    @property
    def played_by_agent(self) -> bool:
        """Whether an agent is asked here."""
        return self.kind == AGENT and not self.replaced

    def spent(self, think_us: int, transit_us: int, lateness_us: int) -> None:
        """Books where the time of a decision went."""
        self.last = think_us, transit_us, lateness_us
        self.think_us += think_us
        self.transit_us += transit_us
        self.lateness_us += lateness_us

    def close(self, action: int, source: int = 0, *, timed_out: bool = False) -> None:
        """Books the outcome of the decision that was due: the action, or `VOIDED`, and whose choice it was."""
        self.outcomes.append(action | source << _SOURCE_SHIFT | (_TIMED_OUT if timed_out else 0))

    def outcome(self, number: int) -> tuple[int, int, bool]:
        """Returns action, source and whether time had run out, of a decision that is closed."""
        packed = self.outcomes[number]
        return packed & 0xFFFF, packed >> _SOURCE_SHIFT & 0xFF, bool(packed & _TIMED_OUT)

    def to_message(self) -> match_pb2.Seat:
        """Returns the seat as listings show it."""
        return match_pb2.Seat(
            seat=self.seat, kind=self.kind, agent_id=self.agent_id, name=self.name, bot_seed=self.bot_seed
        )
