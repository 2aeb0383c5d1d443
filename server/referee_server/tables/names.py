"""Names of agents: what may be in one, and when two read the same."""

from __future__ import annotations

import unicodedata
from typing import Final

from referee.v1 import error_reason_pb2 as reason_pb
from referee_server.match.errors import RefusedError

MAX_LENGTH: Final = 64
"""Most characters of a name, combining marks not counted."""
_MAX_MARKS: Final = 4  # on one character: real writing needs no more
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
    letters = [char for char in name if not unicodedata.combining(char)]
    marks = 0
    sound = bool(letters) and len(letters) <= MAX_LENGTH and name == name.strip()
    for char in name:
        marks = marks + 1 if unicodedata.combining(char) else 0
        # Other: controls, invisible format characters (bidi overrides, zero width), surrogates, unassigned.
        if marks > _MAX_MARKS or unicodedata.category(char)[0] == "C" or unicodedata.category(char) in ("Zl", "Zp"):
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
    letters = "".join(char for char in plain if not unicodedata.combining(char))
    return "".join(letters.split()).translate(_LOOKALIKES)
