"""Dealing that anyone can check: commitment, match seed, draws and shuffle (`docs/dealing.md` is the contract).

Every card follows from a secret of 32 bytes that is published as a hash beforehand and revealed afterwards, and from
what the seats added once they had seen that hash. Nothing here is random: equal arguments give equal cards, in this
program and in any other that follows the same page.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Final, TypeVar

SECRET_BYTES: Final = 32
"""Length of a secret, of a master secret, of a nonce and of a match seed."""
FIRST_DEALER: Final = "first-dealer"
"""Label of the one draw that gives the first dealer."""

_SPAN = 1 << 32  # a word is four bytes of the stream
_BLOCK = struct.Struct(">8I")
_NO_NONCE = bytes(SECRET_BYTES)

Card = TypeVar("Card")


def deal_label(k: int) -> str:
    """Returns the label of deal `k`, from 0. Each deal has its own, so that none depends on what was drawn before."""
    return f"deal/{k}"


def substitute_label(seat: int, decision: int) -> str:
    """Returns the label of the action that the referee draws in place of a seat's missing answer to a decision."""
    return f"substitute/{seat}/{decision}"


def commitment(deal_id: str, secret: bytes) -> str:
    """Returns the hash to publish before any nonce is taken: 64 lower-case hexadecimal digits.

    Args:
        deal_id: id of the match or of the board set; any text without a zero byte.
        secret: 32 bytes.

    Raises:
        ValueError: the secret has another length, or the id a zero byte.
    """
    return hashlib.sha256(b"referee.commit.v1\0" + _id_bytes(deal_id) + b"\0" + _checked(secret, "secret")).hexdigest()


def match_seed(deal_id: str, secret: bytes, nonces: Sequence[bytes]) -> bytes:
    """Returns the 32 bytes that all draws of a match follow from.

    Args:
        deal_id: id of the match or of the board set; any text without a zero byte.
        secret: 32 bytes.
        nonces: in seat order, 32 bytes each; an empty one stands for a seat that sent none and counts as 32 zeros.

    Raises:
        ValueError: the secret or a nonce has another length, or the id a zero byte.
    """
    message = b"referee.seed.v1\0" + _id_bytes(deal_id) + b"\0"
    for nonce in nonces:
        message += _checked(nonce, "nonce") if nonce else _NO_NONCE
    return hmac.digest(_checked(secret, "secret"), message, "sha256")


def set_secret(master: bytes, deal_id: str) -> bytes:
    """Returns the secret of one board set, or of one match played outside sets, of a tournament.

    Args:
        master: the tournament's master secret, 32 bytes.
        deal_id: id of the set or match, numbered in the order of the schedule.

    Raises:
        ValueError: the master secret has another length, or the id a zero byte.
    """
    return hmac.digest(_checked(master, "master secret"), b"referee.set.v1\0" + _id_bytes(deal_id), "sha256")


def words(seed: bytes, label: str) -> Iterator[int]:
    """Yields the endless stream of a label, four bytes at a time, as numbers from 0 to 2**32 - 1."""
    prefix = label.encode() + b"\0"
    for counter in count():
        yield from _BLOCK.unpack(hmac.digest(seed, prefix + counter.to_bytes(8, "big"), "sha256"))


class Draws:
    """Numbers drawn evenly from the stream of one label.

    Two of them for the same seed and label give the same numbers, from the start.
    """

    __slots__ = ("_span", "_word")

    def __init__(self, seed: bytes, label: str) -> None:
        self._word = words(seed, label).__next__
        self._span = _SPAN

    @classmethod
    def over(cls, source: Iterable[int], span: int = _SPAN) -> Draws:
        """Returns draws from words that are given instead of derived, so that evenness can be checked exhaustively.

        Args:
            source: the words, each from 0 to `span` - 1; a draw beyond the last raises `StopIteration`.
            span: how many different words there are.
        """
        draws = cls.__new__(cls)
        draws._word = iter(source).__next__
        draws._span = span
        return draws

    def below(self, n: int) -> int:
        """Returns a number from 0 to `n` - 1, each equally likely.

        Raises:
            ValueError: `n` is below 1 or above the number of different words.
        """
        if not 1 <= n <= self._span:
            raise ValueError(f"cannot draw below {n}")
        # The highest words would favour small results, so they are thrown away: at most one in n + 1 of them.
        limit = self._span - self._span % n
        word = self._word()
        while word >= limit:
            word = self._word()
        return word % n


def shuffled(pack: Sequence[Card], draws: Draws) -> list[Card]:
    """Returns the cards of `pack` in a new order, each order equally likely; `pack` itself stays as it is."""
    cards = list(pack)
    below = draws.below
    for i in range(len(cards) - 1, 0, -1):
        j = below(i + 1)
        cards[i], cards[j] = cards[j], cards[i]
    return cards


def first_dealer(seed: bytes, players: int) -> int:
    """Returns the seat that deals first, from 0 to `players` - 1. Not to be drawn where the host fixes the dealer."""
    return Draws(seed, FIRST_DEALER).below(players)


def deal_pack(seed: bytes, k: int, pack: Sequence[Card]) -> list[Card]:
    """Returns `pack`, given in canonical order, shuffled for deal `k` (from 0); its first card is dealt first."""
    return shuffled(pack, Draws(seed, deal_label(k)))


def _checked(value: bytes, what: str) -> bytes:
    if len(value) != SECRET_BYTES:
        raise ValueError(f"a {what} has {SECRET_BYTES} bytes, not {len(value)}")
    return value


def _id_bytes(deal_id: str) -> bytes:
    # A zero byte ends the id in the hashed text; inside it, two ids could give the same text.
    if "\0" in deal_id:
        raise ValueError("a deal id holds no zero byte")
    return deal_id.encode()
