"""The one table from reasons to gRPC statuses, and the way a refusal goes over the wire."""

from __future__ import annotations

from typing import Final, NoReturn, Protocol

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from referee.v1 import error_reason_pb2 as pb
from referee_server.match.errors import RefusedError

DOMAIN: Final = "referee.v1"

_CODES: Final[dict[int, tuple[pb.ErrorReason.ValueType, ...]]] = {
    code_pb2.UNAUTHENTICATED: (pb.ERROR_REASON_CREDENTIAL_UNKNOWN, pb.ERROR_REASON_CREDENTIAL_REVOKED),
    code_pb2.PERMISSION_DENIED: (
        pb.ERROR_REASON_HOST_ONLY,
        pb.ERROR_REASON_AGENT_ONLY,
        pb.ERROR_REASON_REGISTRATION_CLOSED,
        pb.ERROR_REASON_NO_SEAT,
        pb.ERROR_REASON_VIEW_FORBIDDEN,
    ),
    code_pb2.INVALID_ARGUMENT: (
        pb.ERROR_REASON_NOT_PARSEABLE,
        pb.ERROR_REASON_FIELD_INVALID,
        pb.ERROR_REASON_UNKNOWN_VARIANT,
        pb.ERROR_REASON_OPTION_INVALID,
        pb.ERROR_REASON_SEAT_COUNT,
        pb.ERROR_REASON_AGENT_REPEATED,
        pb.ERROR_REASON_NONCE_LENGTH,
        pb.ERROR_REASON_NAME_INVALID,
        pb.ERROR_REASON_PAGE_TOKEN_INVALID,
        pb.ERROR_REASON_TOURNAMENT_INVALID,
    ),
    code_pb2.NOT_FOUND: (
        pb.ERROR_REASON_MATCH_UNKNOWN,
        pb.ERROR_REASON_GAME_UNKNOWN,
        pb.ERROR_REASON_AGENT_UNKNOWN,
        pb.ERROR_REASON_BOT_UNKNOWN,
        pb.ERROR_REASON_TOURNAMENT_UNKNOWN,
    ),
    code_pb2.ALREADY_EXISTS: (pb.ERROR_REASON_NAME_TAKEN, pb.ERROR_REASON_REQUEST_ID_REUSED),
    code_pb2.FAILED_PRECONDITION: (
        pb.ERROR_REASON_NO_HELLO,
        pb.ERROR_REASON_MATCH_OVER,
        pb.ERROR_REASON_ALREADY_READY,
        pb.ERROR_REASON_PROTOCOL_VERSION,
        pb.ERROR_REASON_HELLO_REPEATED,
        pb.ERROR_REASON_MATCH_RUNNING,
        pb.ERROR_REASON_TOURNAMENT_STATE,
    ),
    code_pb2.ABORTED: (pb.ERROR_REASON_SUPERSEDED,),
    code_pb2.OUT_OF_RANGE: (pb.ERROR_REASON_POSITION_BEYOND_END,),
    code_pb2.RESOURCE_EXHAUSTED: (
        pb.ERROR_REASON_RATE,
        pb.ERROR_REASON_MESSAGE_TOO_LARGE,
        pb.ERROR_REASON_SLOW_CONSUMER,
        pb.ERROR_REASON_TOO_MANY_MATCHES,
    ),
    code_pb2.UNAVAILABLE: (pb.ERROR_REASON_DRAINING, pb.ERROR_REASON_STORAGE, pb.ERROR_REASON_BUSY),
    code_pb2.DATA_LOSS: (pb.ERROR_REASON_LOG_DAMAGED, pb.ERROR_REASON_TOURNAMENT_DAMAGED),
    code_pb2.UNIMPLEMENTED: (pb.ERROR_REASON_SCHEMA,),
    code_pb2.INTERNAL: (pb.ERROR_REASON_INTERNAL,),
}
CODE_OF: Final = {reason: code for code, reasons in _CODES.items() for reason in reasons}
"""The gRPC status of every reason."""


class Aborting(Protocol):
    """What is needed of a call to end it with an error."""

    async def abort_with_status(self, status: grpc.Status) -> NoReturn:
        """Ends the call."""


def to_status(error: RefusedError) -> status_pb2.Status:
    """Returns a refusal as `google.rpc.Status`, with its ErrorInfo and what else there is to say.

    BadRequest is there where a field is at fault, and RetryInfo where waiting helps.
    """
    details: list[Message] = [error_details_pb2.ErrorInfo(reason=error.name, domain=DOMAIN, metadata=error.metadata)]
    if error.violations:
        violations = [
            error_details_pb2.BadRequest.FieldViolation(field=field, description=description)
            for field, description in error.violations
        ]
        details.append(error_details_pb2.BadRequest(field_violations=violations))
    if "retry_ms" in error.metadata:
        pause = Duration()
        pause.FromMilliseconds(int(error.metadata["retry_ms"]))
        details.append(error_details_pb2.RetryInfo(retry_delay=pause))
    status = status_pb2.Status(code=CODE_OF[error.reason], message=error.message)
    for detail in details:
        status.details.add().Pack(detail)
    return status


async def abort(context: Aborting, error: RefusedError) -> None:
    """Ends a call with a refusal; the library raises from inside."""
    await context.abort_with_status(rpc_status.to_status(to_status(error)))


def internal(incident: str) -> RefusedError:
    """Returns what a caller is told of a failure of ours: nothing but a number to ask the host about."""
    return RefusedError(pb.ERROR_REASON_INTERNAL, f"the referee failed; incident {incident}", incident_id=incident)
