"""What a reply says beyond the caller's own words, which come back to it where they are wrong."""

from __future__ import annotations

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from referee_games.contract import shown
from sim.ledger import texts


def without_own(reply: str, kind: Descriptor, request: bytes) -> str:
    """Returns a reply's text without what the caller itself said, in the form in which such text is shown.

    Args:
        reply: the text.
        kind: what the request was taken for.
        request: what the caller sent; from what is no such message nothing comes back.
    """
    try:
        message = message_factory.GetMessageClass(kind).FromString(request)
    except DecodeError:
        return reply
    # The longest first: one of them may stand in another.
    for own in sorted(map(shown, texts(message)), key=len, reverse=True):
        reply = reply.replace(own, "")
    return reply
