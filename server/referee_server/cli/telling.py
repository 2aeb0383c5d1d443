"""Events on standard output: as people read them, and as JSON lines."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Final

from google.protobuf.json_format import MessageToDict

from referee.v1 import event_pb2

# Hearts and diamonds as on paper; the rest as it comes.
_RED_CARD: Final = re.compile(r"(?<![\w:])([A23456789TJQK][DH])(?!\w)")


def painter() -> Callable[[str], str]:
    """Returns what a line of a transcript goes through on its way to standard output: on a terminal, red suits are."""
    return _painted if sys.stdout.isatty() else lambda line: line


def _painted(line: str) -> str:
    return _RED_CARD.sub("\x1b[31m\\1\x1b[0m", line)


def event_line(match_id: str, event: event_pb2.MatchEvent) -> str:
    """Returns an event as JSON on one line, with the match it is of."""
    told = MessageToDict(event, preserving_proto_field_name=True)
    return json.dumps({"match_id": match_id, **told}, ensure_ascii=False, separators=(",", ":"))
