"""Rate limits: a bucket of tokens that refills with time."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

MESSAGES_PER_S: Final = 50
"""Messages an agent may send each second beyond the answers it was asked for."""
MESSAGES_BURST: Final = 100
REFUSALS: Final = 200
"""How many items over the limit end the stream: a flood."""
STREAMS_PER_S: Final = 1
"""Streams an agent may begin each second: each one costs two events in every match it plays."""
STREAMS_BURST: Final = 32
LOSSES_BORNE: Final = 500
"""How often an agent may lose its stream in one match before that is taken for a flood: the log has an end."""
STRANGERS_PER_S: Final = 5
"""Calls a second from one address without a known credential."""
STRANGERS_BURST: Final = 20
_ADDRESSES: Final = 4_096


class Bucket:
    """Takes a token for each thing done, and gets them back at a steady rate."""

    __slots__ = ("_at_us", "_burst", "_per_s", "_tokens")

    def __init__(self, per_s: float, burst: float, now_us: int) -> None:
        self._per_s = per_s
        self._burst = burst
        self._tokens = burst
        self._at_us = now_us

    def take(self, now_us: int) -> bool:
        """Takes a token if there is one.

        `now_us` may be the time at which something was read that had to wait; what has come back since stays.
        """
        passed_us = max(0, now_us - self._at_us)
        self._tokens = min(self._burst, self._tokens + passed_us * self._per_s / 1_000_000)
        self._at_us += passed_us
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def wait_ms(self) -> int:
        """Returns how long until there is a token again, in milliseconds."""
        return max(0, round((1 - self._tokens) / self._per_s * 1_000))


class Strangers:
    """Buckets by address, for callers that nobody knows. Keeps the latest few thousand addresses."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, address: str, now_us: int) -> Bucket | None:
        """Takes a token of an address; returns its bucket if there was none left."""
        bucket = self._buckets.pop(address, None) or Bucket(STRANGERS_PER_S, STRANGERS_BURST, now_us)
        self._buckets[address] = bucket
        if len(self._buckets) > _ADDRESSES:
            self._buckets.popitem(last=False)
        return None if bucket.take(now_us) else bucket
