"""Matches whose cards are played elsewhere too: their secret is held back after the end, and revealed later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from referee.v1 import event_pb2, match_pb2
from referee_server.journal import EventsAdded, Journal, MatchRow, Record, SummaryChanged, chain
from referee_server.match.verify import parse

ENDED: Final = ("FINISHED", "CANCELLED")
"""States of matches that have ended, in the journal's words."""


def is_held_back(row: MatchRow) -> bool:
    """Tells whether nobody but the host may see a match from outside: other tables play its cards."""
    return not row.final and match_pb2.Match.FromString(row.summary).held_back


def reveal(journal: Journal, row: MatchRow) -> list[Record]:
    """Returns what reveals the secret of a match that has ended and was held back; nothing in any other case.

    Raises:
        LogError: its log is damaged.
        StorageError: the storage failed.
    """
    if row.state not in ENDED or not is_held_back(row):
        return []
    records = journal.read(row.match_id)
    first, last = parse([records[0], records[-1]])
    created = first.match_created
    event = event_pb2.MatchEvent(
        sequence=len(records) + 1,
        match_time_us=last.match_time_us,
        secret_revealed=event_pb2.SecretRevealed(
            secret=journal.secret(row.match_id), nonces=created.tournament.nonces, deal_id=created.deal_id
        ),
    )
    summary = match_pb2.Match.FromString(row.summary)
    summary.held_back = False
    return [
        EventsAdded(row.match_id, (event.SerializeToString(),)),
        SummaryChanged(row.match_id, row.state, summary.SerializeToString(), final=True),
    ]


def end_digest(match_id: str, records: Sequence[bytes]) -> bytes:
    """Returns the digest that was given out with a match's end: where the secret was held back, that before it."""
    held_back = event_pb2.MatchEvent.FromString(records[-1]).secret_revealed.deal_id != ""
    return chain.extend(chain.start(match_id), records[:-1] if held_back else records)[0].digest


def is_digest(digest: bytes, match_id: str, records: Sequence[bytes]) -> bool:
    """Tells whether a digest is that of a match's log, as it is or as it was when the match ended.

    What a secret that was held back adds later is bound by the commitment.
    """
    whole = chain.extend(chain.start(match_id), records)[0].digest
    return digest in (whole, end_digest(match_id, records))
