"""Credentials of agents: only their hashes are kept."""

from __future__ import annotations

import hashlib


def hash_credential(token: str) -> bytes:
    """Returns the form in which a credential is kept and compared. 256 random bits need no salt."""
    return hashlib.sha256(b"referee.credential.v1\0" + token.encode()).digest()
