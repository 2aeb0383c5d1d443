"""The text of a tournament's file, and how a host is told what is wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from referee_server.cli.output import ExitCode, fail


def read_cup(path: str) -> str:
    """Returns the text of a tournament's file.

    Raises:
        Failure: it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        fail(f"{path} is not text (UTF-8)", ExitCode.CONFIG)
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}", ExitCode.NOT_FOUND)


def refuse_cup(path: str, problems: Sequence[str]) -> NoReturn:
    """Ends the command with all that is wrong with a tournament's file, one a line.

    Args:
        path: the file.
        problems: what is wrong, at least one.
    """
    for problem in problems[:-1]:
        print(f"{path}: {' '.join(problem.split())}", file=sys.stderr)
    fail(f"{path}: {problems[-1]}", ExitCode.CONFIG)
