"""Proving one log: dealt again, refereed again, every event compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from referee_server.cli.output import ExitCode, Failure
from referee_server.cli.sources import Source
from referee_server.journal import LogError as DamageError
from referee_server.journal.errors import NewerLogError
from referee_server.match.verify import LogError, Report, parse, verify
from referee_server.tables.revealing import is_digest


def prove(name: str, find: Callable[[], Source], digest: str | None = None) -> dict[str, Any]:
    """Returns what verifying a log found, as a row to be printed.

    Args:
        name: what to call it.
        find: gets it.
        digest: the digest that it should have, in hex; None for any.

    Raises:
        Failure: it could not be looked at; where there is no such log the row says so.
    """
    row: dict[str, Any] = {"log": name, "outcome": "refuted", "event": 0, "message": "", "digest": ""}
    try:
        source = find()
        row["digest"] = source.digest.hex()
        if digest is not None and not is_digest(bytes.fromhex(digest), source.match_id, source.events):
            row |= {"event": len(source.events), "message": f"its digest is another one: {source.digest.hex()}"}
            return row
        report = verify_source(source)
    except NewerLogError as error:
        return row | {"outcome": "newer", "message": str(error)}
    except DamageError as error:
        return row | {"event": error.place, "message": str(error)}
    except LogError as error:
        outcome = "newer" if error.newer else "refuted"
        return row | {"outcome": outcome, "event": error.sequence, "message": str(error)}
    except Failure as failure:
        if failure.code is not ExitCode.NOT_FOUND:
            raise
        # The others are still to be looked at.
        return row | {"outcome": "missing", "message": failure.message}
    return row | {"outcome": "sealed" if report.sealed else "verified", "message": _found(source, report)}


def verify_source(source: Source) -> Report:
    """Verifies one match.

    Raises:
        LogError: naming the first event that does not hold.
    """
    report = verify(parse(source.events))
    if report.match.match_id != source.match_id:
        raise LogError(1, f"it is of match {report.match.match_id}, not {source.match_id}")
    return report


def _found(source: Source, report: Report) -> str:
    match = report.match
    text = f"{match.game.name}, {len(source.events)} events, {match.deal_count} deals"
    if not report.ended:
        text += ", not ended"
    if report.sealed:
        text += "; SEALED: the cards can be checked once the secret is out"
    if match.created.unsealed:
        text += "; UNSEALED: the host gave the secret"
    return text
