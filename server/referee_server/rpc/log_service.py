"""LogService: logs to take away, and to check."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import log_service_pb2 as pb
from referee_server.journal import MatchRow, pack
from referee_server.match.errors import RefusedError
from referee_server.match.verify import LogError, parse, verify
from referee_server.rpc.gate import Caller, Gate
from referee_server.tables.creation import unknown_match
from referee_server.tables.hall import Hall
from referee_server.tables.revealing import is_digest

_PIECE: Final = 64 * 1024


class LogService:
    """Serves `referee.v1.LogService`."""

    def __init__(self, hall: Hall, gate: Gate) -> None:
        self._hall = hall
        self._gate = gate

    async def DownloadLog(  # noqa: N802
        self, request: pb.DownloadLogRequest, caller: Caller
    ) -> AsyncIterator[pb.DownloadLogResponse]:
        """Streams a log file in pieces."""
        events = self._hall.journal.read(self._row(request.match_id, caller).match_id)
        data = await asyncio.to_thread(pack, request.match_id, events)
        for start in range(0, len(data), _PIECE):
            yield pb.DownloadLogResponse(data=data[start : start + _PIECE])

    async def VerifyLog(self, request: pb.VerifyLogRequest, caller: Caller) -> pb.VerifyLogResponse:  # noqa: N802
        """Verifies a log that the referee holds."""
        row = self._row(request.match_id, caller)
        events = self._hall.journal.read(row.match_id)
        if request.digest and not is_digest(request.digest, row.match_id, events):
            return pb.VerifyLogResponse(
                outcome=pb.VERIFY_OUTCOME_REFUTED,
                sequence=row.event_count,
                message="the log's digest is another one",
                digest=row.digest,
            )
        try:
            # Milliseconds of pure computing, on which nothing else may have to wait.
            report = await asyncio.to_thread(lambda: verify(parse(events)))
        except LogError as error:
            return pb.VerifyLogResponse(
                outcome=pb.VERIFY_OUTCOME_REFUTED, sequence=error.sequence, message=str(error), digest=row.digest
            )
        outcome = pb.VERIFY_OUTCOME_SEALED if report.sealed else pb.VERIFY_OUTCOME_VERIFIED
        return pb.VerifyLogResponse(outcome=outcome, digest=row.digest)

    def _row(self, match_id: str, caller: Caller) -> MatchRow:
        row = self._hall.journal.match(match_id) if len(match_id) <= 64 else None
        if row is None:
            raise unknown_match(match_id)
        if not row.final and not caller.host:
            raise RefusedError(reason_pb.ERROR_REASON_MATCH_RUNNING, "the match has not ended yet", match_id=match_id)
        return row
