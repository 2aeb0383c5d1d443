"""What the last run left behind: the matches to go on with."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import structlog

from referee_server.journal import Journal, MatchRow
from referee_server.match.state import Match
from referee_server.match.verify import rebuild
from referee_server.tables.revealing import ENDED
from referee_server.tables.steps import StepBudget

_log = structlog.get_logger(__name__)


def resumable(journal: Journal, steps: StepBudget) -> Iterator[tuple[MatchRow, Match]]:
    """Yields the matches that go on, as the journal tells them; those that cannot be rebuilt stay in it as they are."""
    matches = _rebuilt(journal, steps)
    for row in journal.running():
        if row.damaged_at:
            _log.error("match_damaged", match_id=row.match_id, place=row.damaged_at)
        elif row.match_id in matches and row.state not in ENDED:
            yield row, matches[row.match_id]


def _rebuilt(journal: Journal, steps: StepBudget) -> dict[str, Match]:
    matches: dict[str, Match | None] = {}
    failed: set[str] = set()
    for match_id, record in journal.running_events():
        if match_id in failed:
            continue
        try:
            matches[match_id] = steps.run(partial(rebuild, matches.get(match_id), record))
        except Exception:
            failed.add(match_id)
            _log.exception("match_not_resumed", match_id=match_id)
    return {match_id: match for match_id, match in matches.items() if match is not None and match_id not in failed}
