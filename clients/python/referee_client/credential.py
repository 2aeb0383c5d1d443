"""The agent's credential: 256 random bits in a file that only its owner can read."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
from pathlib import Path

from referee_client.errors import CredentialError

_TOKEN = re.compile(r"[0-9a-fA-F]{64}")


def default_path(name: str) -> Path:
    """Returns where the credential of the agent with that name is kept unless its author says otherwise."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".")
    if plain != name:
        # Names may hold what file names may not; two of them must not end up with one file.
        plain = f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    home = os.environ.get("XDG_CONFIG_HOME")
    base = Path(home) if home and Path(home).is_absolute() else Path.home() / ".config"
    return base / "referee" / f"{plain}.token"


def load(name: str, given: str | Path | None = None) -> str:
    """Returns the credential of an agent, made now if there is none yet.

    Args:
        name: the agent's name; it names the file where none is given.
        given: a path, or the credential itself as 64 hex digits.

    Raises:
        CredentialError: the file cannot be read or written, others can read it, or it holds no credential.
    """
    if isinstance(given, str) and _TOKEN.fullmatch(given):
        return given.lower()
    path = Path(given).expanduser() if given is not None else default_path(name)
    try:
        if not path.exists():
            _create(path)
        return _read(path)
    except OSError as error:
        raise CredentialError(f"the credential file {path} cannot be used: {error.strerror or error}") from error


def _read(path: Path) -> str:
    with path.open(encoding="ascii", errors="replace") as file:
        # Asked of the open file, so that nobody can put another one in its place in between.
        if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
            raise CredentialError(f"the credential file {path} is open to others; run `chmod 600` on it")
        text = file.read(200).strip()
    if not _TOKEN.fullmatch(text):
        raise CredentialError(f"the credential file {path} does not hold 64 hex digits; move it away to get a new one")
    return text.lower()


def _create(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
            file.flush()
            os.fsync(file.fileno())
        # Unlike a rename, a link never replaces a file that another process made meanwhile: that one stands.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
