"""What can happen to a match: the inputs of decide. Times are match time in microseconds."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from referee.v1 import match_pb2

ACCUSATIONS: Final = (match_pb2.FAULT_KIND_CRASH, match_pb2.FAULT_KIND_FLOOD)
"""Faults that show outside of an agent's answers."""
STOP_REASONS: Final = (match_pb2.END_REASON_CANCELLED, match_pb2.END_REASON_REFEREE_FAULT)
"""Why a match may be stopped from outside; every other end is decided."""


class NotNowError(ValueError):
    """The input cannot happen to this match now; the match is as it was."""


class Fill(NamedTuple):
    """An agent takes an open seat."""

    seat: int
    agent_id: str
    name: str


class OfferSeat(NamedTuple):
    """The match was handed to a seat's stream; the time to get ready starts."""

    seat: int


class Ready(NamedTuple):
    """A seat is ready. `nonce` is empty or 32 bytes."""

    seat: int
    nonce: bytes


class Decline(NamedTuple):
    """A seat's agent does not take the match."""

    seat: int


class Ask(NamedTuple):
    """The question that is due is handed to its seat's stream; its clock starts.

    `wait_us`: how long it had to wait. `transit_us`: credit for the way to the agent and back.
    """

    seat: int
    wait_us: int
    transit_us: int = 0


class Answer(NamedTuple):
    """An agent's answer to the decision that is open.

    `received_us`: when it was read from the stream. `lateness_us`: by how much the referee was late meanwhile.
    """

    seat: int
    decision_id: int
    raw: bytes
    received_us: int
    lateness_us: int = 0


class Stray(NamedTuple):
    """An answer that changes nothing, to be put on record. `status` says why."""

    seat: int
    decision_id: int
    raw: bytes
    status: int


class Choose(NamedTuple):
    """A house bot's choice for the seat that acts."""

    seat: int
    decision_id: int
    action: str


class Tick(NamedTuple):
    """Time has passed. `lateness_us`: by how much the referee was late since the question that is open was put."""

    lateness_us: int = 0


class Absent(NamedTuple):
    """A seat's agent does not come, as the referee knows before its time is up: its program could not be started."""

    seat: int


class Lose(NamedTuple):
    """A seat's stream was lost; `left` when its agent said goodbye."""

    seat: int
    left: bool = False


class Regain(NamedTuple):
    """A seat's stream came back."""

    seat: int


class Accuse(NamedTuple):
    """A seat's agent did something that is seen outside of its answers: its process ended, or it floods."""

    seat: int
    kind: match_pb2.FaultKind.ValueType


class Stop(NamedTuple):
    """The match ends without a result: cancelled by the host, or failed by the referee."""

    reason: match_pb2.EndReason.ValueType
    note: str


class Resume(NamedTuple):
    """The referee was started again. `seconds` and `nanos`: wall time, for people."""

    seconds: int
    nanos: int


class Reveal(NamedTuple):
    """The board set's last table has ended, so that the secret that was held back need not be any more."""


Input: TypeAlias = (
    Fill
    | OfferSeat
    | Ready
    | Decline
    | Absent
    | Ask
    | Answer
    | Stray
    | Choose
    | Tick
    | Lose
    | Regain
    | Accuse
    | Stop
    | Resume
    | Reveal
)
