"""The data folder: the journal, the host's credential, and where the service listens."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from referee_server import failpoints
from referee_server.cli.mounts import MOUNTS, file_system_of, is_network
from referee_server.cli.output import ExitCode, fail
from referee_server.journal import (
    DataInUseError,
    Durability,
    OpenError,
    SqliteJournal,
    StorageError,
    open_read_only,
)
from referee_server.journal.sqlite_read import SqliteReader

DEFAULT: Final = "referee-data"
"""The folder when neither `--data` nor the environment's REFEREE_DATA says another."""
_MARK: Final = "referee-data"
_MARK_TEXT: Final = "This folder belongs to a referee. Format 1.\n"


class DataFolder:
    """A folder with everything that a referee keeps.

    Args:
        path: where it is.
        mounts: the system's list of what is mounted.

    Attributes:
        path: where it is.
        notes: what opening it brought up that its host should know.
    """

    def __init__(self, path: str | Path, mounts: Path = MOUNTS) -> None:
        self._mounts = mounts
        self.path = Path(path)
        self.notes: list[str] = []
        self.journal_path = self.path / "journal.db"
        self.token_path = self.path / "host.token"
        self._mark = self.path / _MARK
        self._address = self.path / "address"

    def open(self, durability: Durability = "process") -> SqliteJournal:
        """Opens the folder for a service; makes it when there is none.

        Raises:
            Failure: it is something else's folder, in use, or cannot be used.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not self._marked():
                if any(entry != self._mark for entry in self.path.iterdir()):
                    fail(f"{self.path} is not empty and not a referee's data folder; name another", ExitCode.DATA)
                with self._mark.open("w", encoding="utf-8") as file:
                    failpoints.hit("start.mark")
                    file.write(_MARK_TEXT)
            self._check_mark()
            self._look_for_network()
            failpoints.hit("start.open")
            return SqliteJournal(self.journal_path, durability=durability, warn=self.notes.append)
        except DataInUseError:
            fail(f"another referee is using {self.path}; stop it or name another folder", ExitCode.IN_USE)
        except OpenError as error:
            fail(f"{self.path}: {error}", ExitCode.DATA)
        except StorageError as error:
            fail(f"{self.path}: {error}", ExitCode.STORAGE)
        except OSError as error:
            fail(f"{self.path} cannot be used as a data folder: {error.strerror}", ExitCode.DATA)

    def read(self) -> SqliteReader:
        """Opens the journal for reading, also while a service is using it.

        Raises:
            Failure: there is none, or it is not one.
        """
        try:
            if not self._mark.exists():
                fail(f"{self.path} is not a referee's data folder; name one with --data", ExitCode.DATA)
            self._check_mark()
            return open_read_only(self.journal_path)
        except OpenError as error:
            fail(f"{self.path}: {error}", ExitCode.DATA)
        except StorageError as error:
            fail(f"{self.path}: {error}", ExitCode.STORAGE)
        except OSError as error:
            fail(f"{self.path} cannot be read: {error.strerror}", ExitCode.DATA)

    def _look_for_network(self) -> None:
        kind = file_system_of(self.path, self._mounts)
        if kind is not None and is_network(kind):
            self.notes.append(
                f"{self.path} is on a network file system ({kind}): use it from this machine alone, since locks and "
                "the journal's shared memory may not reach another, and expect slow commits; a local disk is better"
            )

    def _marked(self) -> bool:
        """Tells whether the folder bears a whole mark; whoever made it may have been killed over it."""
        return self._mark.exists() and self._mark.stat().st_size > 0

    def _check_mark(self) -> None:
        if self._mark.read_text(encoding="utf-8", errors="replace") != _MARK_TEXT:
            fail(f"{self.path} was made by another release of the referee; name another folder", ExitCode.DATA)

    def host_token(self, *, make: bool = False) -> str:
        """Returns the host's credential; makes it at the first start of a service.

        Raises:
            Failure: there is none, it is readable by others, or it is not one.
        """
        if make and not self.token_path.exists():
            self._make_token()
        try:
            if self.token_path.stat().st_mode & 0o077:
                fail(f"{self.token_path} is readable by others; chmod 600 it", ExitCode.DATA)
            token = self.token_path.read_text(encoding="ascii", errors="replace").strip()
        except OSError as error:
            fail(f"no host's credential in {self.path} ({error.strerror}); name the service's --data", ExitCode.DATA)
        if len(token) != 64 or not all(char in "0123456789abcdef" for char in token):
            fail(f"{self.token_path} does not hold a credential: 64 hex digits", ExitCode.DATA)
        return token

    def _make_token(self) -> None:
        """Makes the credential, whole or not at all: a half one would have to be mended by hand."""
        part = self.token_path.with_suffix(".part")
        try:
            part.unlink(missing_ok=True)  # left by somebody who was killed
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                failpoints.hit("start.token")
                file.write(secrets.token_hex(32) + "\n")
            part.replace(self.token_path)
        except OSError as error:
            fail(f"cannot write the host's credential to {self.path}: {error.strerror}", ExitCode.DATA)

    def say_address(self, address: str, certificate: Path | None = None) -> None:
        """Leaves word of where the service listens, for commands on the same machine.

        Args:
            address: host and port.
            certificate: the file with the service's certificate, where connections are encrypted.
        """
        lines = [address] if certificate is None else [address, str(certificate.resolve())]
        self._address.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def forget_address(self) -> None:
        """Takes the word back."""
        self._address.unlink(missing_ok=True)

    def address(self) -> tuple[str, str | None] | None:
        """Returns where the service listens, or last did, and its certificate's file; None when nobody said."""
        try:
            lines = self._address.read_text(encoding="utf-8").splitlines()
        except OSError:
            return None
        return (lines[0], lines[1] if len(lines) > 1 else None) if lines and lines[0] else None


def default_path() -> str:
    """Returns the data folder to use when none is named."""
    return os.environ.get("REFEREE_DATA") or DEFAULT
