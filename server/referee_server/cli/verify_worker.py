"""A process that verifies logs for `referee verify`, which says which ones. It knows no network."""

from __future__ import annotations

import sys

from referee_server.cli.proving import prove
from referee_server.cli.sources import source_of
from referee_server.cli.workers import work


def main(data: str, kind: str) -> None:
    """Works.

    Args:
        data: the data folder.
        kind: `stored` where all jobs are matches of its journal; `named` where they may be files.
    """
    work(lambda name: prove(name, lambda: source_of(name, data, files=kind == "named")))


if __name__ == "__main__":
    main(*sys.argv[1:])
