"""The `referee` command, as far as the base install goes: it says what is missing."""

from __future__ import annotations

import sys
from importlib.util import find_spec

NEEDED = ("click", "openskill", "pydantic", "rich", "structlog", "grpc_status", "grpc_health", "grpc_reflection")


def main() -> int:
    """Runs the command line, or says which extra it needs."""
    if any(find_spec(name) is None for name in NEEDED):
        print(
            "referee: this is the base install, which has what an agent needs; the referee itself needs its extra: "
            "pip install 'referee[server]'",
            file=sys.stderr,
        )
        return 2
    from referee_server.cli.main import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
