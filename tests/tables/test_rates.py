"""Buckets of tokens: what they allow, also where time comes out of order."""

from __future__ import annotations

import pytest

from referee_server.tables.rates import Bucket

S = 1_000_000


def taken(bucket: Bucket, now_us: int) -> int:
    count = 0
    while bucket.take(now_us):
        count += 1
    return count


@pytest.mark.parametrize(("after_us", "back"), [(0, 0), (S // 10 - 1, 0), (S // 10, 1), (S, 10), (100 * S, 20)])
def test_tokens_come_back_at_their_rate_up_to_the_burst(after_us: int, back: int) -> None:
    bucket = Bucket(10, 20, 5 * S)
    assert taken(bucket, 5 * S) == 20
    assert taken(bucket, 5 * S + after_us) == back


def test_what_was_read_before_the_bucket_was_made_costs_a_token_and_no_more() -> None:
    bucket = Bucket(10, 20, 6 * S)
    assert bucket.take(1 * S)
    assert taken(bucket, 6 * S) == 19


def test_time_that_goes_back_and_forth_gives_nothing_twice() -> None:
    bucket = Bucket(10, 20, 0)
    assert taken(bucket, 0) == 20
    assert taken(bucket, S) == 10
    assert taken(bucket, 0) == 0
    assert taken(bucket, S) == 0
