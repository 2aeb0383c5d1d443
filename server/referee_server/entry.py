"""The `referee` command, as far as the base install goes: it says what is missing."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from referee_server import installation

NEEDED = ("click", "openskill", "pydantic", "rich", "structlog", "grpc_status", "grpc_health", "grpc_reflection")


def main() -> int:
    """Runs the command line, or says what it needs first."""
    if sys.version_info < installation.PYTHON:  # what follows could not even be read
        print("\n".join(f"referee: {line}" for line in installation.misfits_here()), file=sys.stderr)
        return 70
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
