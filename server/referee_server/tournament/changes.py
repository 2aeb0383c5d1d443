"""What changed in a tournament's file between its start and now, and whether it can go on like that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from referee_games.contract import shown
from referee_server.tournament.cup import Cup

_FREE: Final = ("running", "clock", "faults")
"""Parts that change neither who meets whom nor over which cards."""
_FREE_OF_ENTRANT: Final = ("command", "folder", "env", "limits", "isolation", "reads")


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes, each in words with its place.

    Attributes:
        allowed: with which a tournament can go on, if its host says so.
        barred: with which it would be another one.
    """

    allowed: tuple[str, ...]
    barred: tuple[str, ...]

    @property
    def any(self) -> bool:
        """Whether there are changes at all."""
        return bool(self.allowed or self.barred)


def changes(old: Cup, new: Cup) -> Changes:
    """Returns what changed from one description to another."""
    allowed: list[str] = []
    barred: list[str] = []
    for path, before, after in _differences("", old.model_dump(), new.model_dump()):
        parts = path.split(".")
        free = parts[0] in _FREE or (parts[0] == "entrant" and len(parts) > 2 and parts[2] in _FREE_OF_ENTRANT)
        # A program that becomes a house bot, or the other way round, is another entrant.
        same_kind = None not in (before, after) or parts[-1] != "command"
        (allowed if free and same_kind else barred).append(f"{path} was {_said(before)} and is {_said(after)}")
    return Changes(tuple(allowed), tuple(barred))


def _differences(path: str, old: Any, new: Any) -> list[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*old, *(key for key in new if key not in old)]
        return [found for key in keys for found in _differences(_under(path, key), old.get(key), new.get(key))]
    if isinstance(old, list) and isinstance(new, list) and path == "entrant":
        found = [
            one for n, pair in enumerate(zip(old, new, strict=False)) for one in _differences(f"{path}.{n}", *pair)
        ]
        if len(old) != len(new):
            found.append((path, f"{len(old)} entrants", f"{len(new)} entrants"))
        return found
    return [] if old == new else [(path, old, new)]


def _under(path: str, key: object) -> str:
    text = str(key)
    text = text if text.isidentifier() else shown(text)
    return f"{path}.{text}" if path else text


def _said(value: Any) -> str:
    return "left out" if value is None else shown(value)
