"""The cards of a record dealt again from docs/dealing.md alone: SHA-256, HMAC and nothing of the referee's code."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from typing import Any

KEYS = [
    "game",
    "options",
    "first_dealer",
    "packs",
    "steps",
    "deals",
    "totals",
    "places",
    "match_id",
    "deal_id",
    "secret",
    "nonces",
    "commitment",
    "first_dealer_drawn",
    "agents",
    "official_places",
    "rulings",
]

PACKS = {
    "guillotine": [rank + suit for suit in "CDHS" for rank in "789TJQKA"],
    "regicide": [rank + suit for suit in "CDHS" for rank in "A23456789K"] + ["X1", "X2"],
}
HAND = {"guillotine": 8, "regicide": 9}


def _mac(key: bytes, message: bytes) -> bytes:
    return hmac.new(key, message, hashlib.sha256).digest()


def _numbers(seed: bytes, label: str) -> Iterator[int]:
    block = 0
    while True:
        stream = _mac(seed, label.encode() + b"\0" + block.to_bytes(8, "big"))
        for at in range(0, 32, 4):
            yield int.from_bytes(stream[at : at + 4], "big")
        block += 1


def _below(numbers: Iterator[int], count: int) -> int:
    most = 2**32 // count * count
    while (value := next(numbers)) >= most:
        pass
    return value % count


def deal_again(record: dict[str, Any]) -> None:
    """Checks commitment, first dealer and every pack of a record against its secret and nonces."""
    deal_id = record["deal_id"].encode()
    secret = bytes.fromhex(record["secret"])
    nonces = [bytes.fromhex(nonce) or bytes(32) for nonce in record["nonces"]]
    seats = len(nonces)
    committed = hashlib.sha256(b"referee.commit.v1\0" + deal_id + b"\0" + secret).hexdigest()
    assert record["commitment"] == committed
    seed = _mac(secret, b"referee.seed.v1\0" + deal_id + b"\0" + b"".join(nonces))
    if record["first_dealer_drawn"]:
        assert record["first_dealer"] == _below(_numbers(seed, "first-dealer"), seats)
    for number, (pack, deal) in enumerate(zip(record["packs"], record["deals"], strict=True)):
        cards = list(PACKS[record["game"]])
        numbers = _numbers(seed, f"deal/{number}")
        for last in range(len(cards) - 1, 0, -1):
            other = _below(numbers, last + 1)
            cards[last], cards[other] = cards[other], cards[last]
        assert deal["dealer"] == (record["first_dealer"] + number) % seats
        hands: list[list[str]] = [[] for _ in range(seats)]
        for at in range(HAND[record["game"]] * seats):
            hands[(deal["dealer"] + 1 + at) % seats].append(cards[at])
        assert pack["hands"] == hands, f"deal {number}"
        assert pack["stock"] == cards[HAND[record["game"]] * seats :], f"deal {number}"
