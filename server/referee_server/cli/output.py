"""What commands share: exit codes, errors in one line, tables and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from rich.console import RenderableType

_WIDTH: Final = 10_000  # a table is as wide as what is in it; a narrow terminal folds its lines


class ExitCode(IntEnum):
    """How a command ends."""

    DONE = 0
    """It did what was asked."""
    CHECK_FAILED = 1
    """A log does not hold, a match ended without a result, or an agent of the demo ended."""
    USAGE = 2
    """The command, or what it asks for, is not right."""
    NOT_FOUND = 66
    """No such match, agent or file."""
    UNREACHABLE = 69
    """No referee answers at that address."""
    UNFIT = 70
    """Python or a library is of a version that does not fit, or the system allows too little."""
    DATA = 73
    """The data folder cannot be used."""
    STORAGE = 74
    """The storage failed, or a file cannot be written."""
    IN_USE = 75
    """The port or the data folder is in use; try again later."""
    FORBIDDEN = 77
    """The credential does not allow it."""
    CONFIG = 78
    """A tournament's file is not right, or asks for what cannot be done."""
    INTERRUPTED = 130
    """Ctrl-C."""


class Failure(Exception):  # noqa: N818  it ends a command, whosever error it was
    """A command cannot go on.

    Attributes:
        message: one line that says what is wrong and what to do.
        code: the exit code.
    """

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.message = " ".join(message.split())
        self.code = code


def fail(message: str, code: ExitCode = ExitCode.USAGE) -> NoReturn:
    """Ends the command with an error."""
    raise Failure(message, code)


def print_json(value: object) -> None:
    """Prints one JSON value on a line."""
    print(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def print_rows(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, as_json: bool, empty: str) -> None:
    """Prints rows as a table, or as JSON lines with all of their keys.

    Args:
        rows: what to print.
        columns: title of each column by key; a leading `>` in the title aligns it right.
        as_json: whether to print JSON lines.
        empty: what to say when there is nothing.
    """
    if as_json:
        for row in rows:
            print_json(row)
        return
    if not rows:
        print(empty)
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in columns.values():
        # Ids and names are to be copied: never cut, whatever the width.
        table.add_column(title.removeprefix(">"), justify="right" if title.startswith(">") else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(escaped(_cell(row[key])) for key in columns))
    print_rich(table)


def print_rich(renderable: RenderableType) -> None:
    """Prints what rich can show, as wide as it is."""
    from rich.console import Console

    class Piped(Console):
        """Leaves a closed pipe to whoever runs the command; by itself rich would end the program with 1."""

        def on_broken_pipe(self) -> NoReturn:
            raise BrokenPipeError

    Piped(width=_WIDTH).print(renderable)


def escaped(text: str) -> str:
    """Returns text of others in a form that neither rich nor a terminal takes for more than text."""
    from rich.markup import escape

    return escape("".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text))


def _cell(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Iterable):
        return " ".join(_cell(one) for one in value)
    if isinstance(value, float):
        return f"{value:.2f}"
    return "" if value is None else str(value)
