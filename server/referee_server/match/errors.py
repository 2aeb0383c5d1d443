"""The caller's mistakes: what was asked for cannot be done, and why."""

from __future__ import annotations

from collections.abc import Sequence

from referee.v1 import error_reason_pb2 as reason_pb

Reason = reason_pb.ErrorReason


class RefusedError(Exception):
    """A request is refused; nothing has changed.

    Attributes:
        reason: the machine-readable reason; also decides the gRPC status.
        message: one sentence for people: what is wrong and what would be right. Never holds anything hidden.
        metadata: everything variable in the message, as documented at the reason.
        field: path of the request's field at fault; empty when it is not about one.
        violations: every field at fault, each with what is wrong with it.
    """

    def __init__(
        self,
        reason: Reason.ValueType,
        message: str,
        *,
        field: str = "",
        violations: Sequence[tuple[str, str]] = (),
        **metadata: object,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.field = field
        self.violations = tuple(violations) or (((field, message),) if field else ())
        self.metadata = {key: str(value) for key, value in metadata.items()}
        if field:
            self.metadata.setdefault("field", field)

    @property
    def name(self) -> str:
        """The reason's name as it goes over the wire, such as `OPTION_INVALID`."""
        return Reason.Name(self.reason).removeprefix("ERROR_REASON_")
