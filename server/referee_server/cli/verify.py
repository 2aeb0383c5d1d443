"""`referee verify`: logs, matches, or everything in a data folder, on as many cores as there are."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from itertools import chain, islice
from typing import Any, Final

from referee_server.cli.output import ExitCode, Failure, fail, print_json
from referee_server.cli.proving import prove
from referee_server.cli.sources import open_journal, sources
from referee_server.cli.verify_cup import verify_tournaments
from referee_server.cli.workers import in_order, usable_cores

_FEW: Final = 32
"""With fewer logs than this it is done sooner than processes for it have started."""
_WORKER: Final = "referee_server.cli.verify_worker"


def verify_logs(
    what: Sequence[str], data: str, *, everything: bool, digest: str | None, jobs: int | None, as_json: bool
) -> None:
    """Verifies logs and prints a line on each, as soon as those before it have theirs.

    Args:
        what: match ids and log files.
        data: the data folder.
        everything: whether to verify every match that has ended, and every tournament, instead.
        digest: the digest that the log should have, in hex; None for any.
        jobs: how many processes verify at once; None for one on every core.
        as_json: whether to print JSON lines.

    Raises:
        Failure: wrong usage; or, after all were looked at, CHECK_FAILED when one does not hold.
    """
    if everything == bool(what):
        fail("name logs or matches, or say --all")
    if digest is not None and (len(what) != 1 or not re.fullmatch("[0-9a-fA-F]{64}", digest)):
        fail("--digest is 64 hex digits, and checks one log")
    count = bad = 0
    first_bad: dict[str, Any] | None = None
    missing: dict[str, Any] | None = None
    with closing(_rows(what, data, everything=everything, digest=digest, jobs=jobs or usable_cores())) as rows:
        for row in rows:
            count += 1
            if as_json:
                print_json(row)
            else:
                print(f"{row['outcome']:9} {row['log']}  {row['message']}")
            if row["outcome"] in ("refuted", "newer"):
                bad += 1
                first_bad = first_bad or row
            elif row["outcome"] == "missing":
                missing = missing or row
    if first_bad is not None:
        raise Failure(
            f"{bad} of {count} logs cannot be confirmed; first: {first_bad['log']}: {first_bad['message']}",
            ExitCode.CHECK_FAILED,
        )
    if missing is not None:
        raise Failure(missing["message"], ExitCode.NOT_FOUND)
    if not count:
        print("no match has ended yet; nothing to verify")


def _rows(
    what: Sequence[str], data: str, *, everything: bool, digest: str | None, jobs: int
) -> Generator[dict[str, Any], None, None]:
    """Yields a row on each log, in their order, then on each tournament."""
    with ExitStack() as stack:
        found = stack.enter_context(sources(what, data, everything=everything))
        few = list(islice(found, _FEW))
        if jobs == 1 or len(few) < _FEW:
            yield from (prove(name, find, digest) for name, find in chain(few, found))
        else:
            names = (name for name, _ in chain(few, found))
            kind = "stored" if everything else "named"
            yield from stack.enter_context(closing(in_order(_WORKER, [data, kind], names, jobs)))
        if everything:
            yield from verify_tournaments(stack.enter_context(open_journal(data)))
