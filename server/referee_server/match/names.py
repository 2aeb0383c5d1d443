"""Names of agents: what may be in one, and when two read the same."""

from __future__ import annotations

import unicodedata
from typing import Final

from referee.v1 import error_reason_pb2 as reason_pb
from referee_server.match.errors import RefusedError

MAX_LENGTH: Final = 64
"""Most characters of a name, combining marks not counted."""
_MAX_MARKS: Final = 4  # on one character: real writing needs no more
# Characters that are letters, marks or symbols by their category, and yet nobody sees them. Unicode lists most
# of them as "default ignorable"; the blank of Braille is one by its looks.
_INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
# Letters of other scripts that look like Latin ones; a name that differs only by these would pass for another's.
_CYRILLIC: Final = "аbвкмнорстухіјѕԁеɡ"  # noqa: RUF001  the look-alikes are the point
_GREEK: Final = "αορντυικβεζημχ"
_DIGITS: Final = "01"
_LOOKALIKES: Final = str.maketrans(_CYRILLIC + _GREEK + _DIGITS, "abbkmhopctyxijsdeg" + "aopvtuikbezhmx" + "ol")


def check_name(name: str, field: str = "name") -> str:
    """Returns a name in its stored form (NFC).

    Raises:
        RefusedError: NAME_INVALID.
    """
    name = unicodedata.normalize("NFC", name) if len(name) <= 16 * MAX_LENGTH else ""
    letters = [char for char in name if not _is_mark(char)]
    marks = 0
    sound = bool(letters) and len(letters) <= MAX_LENGTH and name == name.strip()
    for char in name:
        marks = marks + 1 if _is_mark(char) else 0
        # Other: controls, invisible format characters (bidi overrides, zero width), surrogates, unassigned.
        kind = unicodedata.category(char)
        if marks > _MAX_MARKS or kind[0] == "C" or kind in ("Zl", "Zp") or char in _INVISIBLE:
            sound = False
    if not sound:
        raise RefusedError(
            reason_pb.ERROR_REASON_NAME_INVALID,
            f"a name has 1 to {MAX_LENGTH} visible characters, no controls, and no spaces at its ends",
            field=field,
        )
    return name


def fold_name(name: str) -> str:
    """Returns the form in which names are compared: two names with the same form read the same."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name).casefold())
    letters = "".join(char for char in plain if not _is_mark(char))
    return "".join(letters.split()).translate(_LOOKALIKES)


def _is_mark(char: str) -> bool:
    """Tells whether a character only adds to the one before: accents, enclosing circles, variation selectors."""
    selector = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return selector or bool(unicodedata.combining(char)) or unicodedata.category(char) == "Me"
