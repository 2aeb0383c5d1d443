"""Following a match: nothing is missed, nobody is held up, nothing is left behind; the same for every journal."""

from __future__ import annotations

import asyncio
import gc

import pytest

from referee_server.journal import (
    ClosedError,
    Journal,
    UnknownMatchError,
)
from referee_server.journal.follow import GROUP, Followers

from .kit import added, archived, events, final


def followers_of(journal: Journal) -> Followers:
    found = journal._followers  # type: ignore[attr-defined]
    assert isinstance(found, Followers)
    return found


async def test_follower_is_given_history_and_what_comes_then_ends(journal: Journal) -> None:
    journal.commit([added(), events("a", "b")])
    follower = journal.follow("m1")
    assert await anext(follower) == (1, (b"a", b"b"))
    waiting = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0)
    assert not waiting.done()
    journal.commit([events("c")])
    assert await waiting == (3, (b"c",))
    journal.commit([events("d"), final()])
    assert [group async for group in follower] == [(4, (b"d",))]
    assert len(followers_of(journal)) == 0


@pytest.mark.parametrize("stage", ["final", "archived"])
async def test_follower_of_a_match_that_is_over_is_given_all_and_ends(journal: Journal, stage: str) -> None:
    journal.commit([added(), events("a", "b", "c"), final()])
    if stage == "archived":
        journal.commit([archived(journal)])
    assert [group async for group in journal.follow("m1", 1)] == [(2, (b"b", b"c"))]
    assert [group async for group in journal.follow("m1", 3)] == []


async def test_waiting_follower_ends_when_the_match_becomes_final(journal: Journal) -> None:
    journal.commit([added(), events("a")])
    follower = journal.follow("m1", 1)
    waiting = asyncio.ensure_future(anext(follower, None))
    await asyncio.sleep(0)
    journal.commit([final()])
    assert await waiting is None


async def test_follower_half_way_reads_on_when_the_match_is_archived(journal: Journal) -> None:
    texts = [str(n) for n in range(GROUP + 5)]
    journal.commit([added(), events(*texts)])
    follower = journal.follow("m1")
    first, group = await anext(follower)
    assert (first, len(group)) == (1, GROUP)
    journal.commit([final()])
    journal.commit([archived(journal)])
    assert [group async for group in follower] == [(GROUP + 1, tuple(text.encode() for text in texts[GROUP:]))]


async def test_follower_from_beyond_the_end_waits_for_that_event(journal: Journal) -> None:
    journal.commit([added(), events("a")])
    follower = journal.follow("m1", 3)
    waiting = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0)
    journal.commit([events("b", "c")])
    await asyncio.sleep(0)
    journal.commit([events("d", "e")])
    assert await waiting == (4, (b"d", b"e"))
    journal.commit([events("f")])
    assert await anext(follower) == (6, (b"f",))


async def test_other_matches_wake_no_follower(journal: Journal) -> None:
    journal.commit([added("m1"), added("m2")])
    waiting = asyncio.ensure_future(anext(journal.follow("m1")))
    await asyncio.sleep(0)
    journal.commit([events("x", match_id="m2")])
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    journal.commit([events("a")])
    assert await waiting == (1, (b"a",))


async def test_many_followers_are_each_given_everything(journal: Journal) -> None:
    journal.commit([added()])

    async def all_of_it() -> list[bytes]:
        return [event async for _, group in journal.follow("m1") for event in group]

    tasks = [asyncio.create_task(all_of_it()) for _ in range(20)]
    for n in range(50):
        journal.commit([events(str(n))])
        if n % 7 == 0:
            await asyncio.sleep(0)
    journal.commit([final()])
    expected = [str(n).encode() for n in range(50)]
    assert await asyncio.gather(*tasks) == [expected] * 20
    assert len(followers_of(journal)) == 0


async def test_commit_in_another_thread_wakes_a_follower(journal: Journal) -> None:
    asyncio.get_running_loop().set_debug(True)  # so that a call from the wrong thread is an error
    journal.commit([added()])
    waiting = asyncio.ensure_future(anext(journal.follow("m1")))
    await asyncio.sleep(0)
    await asyncio.to_thread(journal.commit, [events("a")])
    assert await waiting == (1, (b"a",))


@pytest.mark.parametrize("how", ["cancelled", "closed", "forgotten", "never started"])
async def test_abandoned_follower_leaves_nothing_behind(journal: Journal, how: str) -> None:
    journal.commit([added(), events("a")])
    follower = journal.follow("m1")
    if how != "never started":
        await anext(follower)
        assert len(followers_of(journal)) == 1
    if how == "cancelled":
        waiting = asyncio.ensure_future(anext(follower))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    elif how == "closed":
        await follower.aclose()
    del follower
    gc.collect()
    for _ in range(5):  # a forgotten one is closed by the loop, in a task of its own
        await asyncio.sleep(0)
    assert len(followers_of(journal)) == 0
    assert followers_of(journal)._bells == {}


async def test_following_an_unknown_match_is_an_error(journal: Journal) -> None:
    with pytest.raises(UnknownMatchError):
        await anext(journal.follow("nobody"))
    assert len(followers_of(journal)) == 0


async def test_waiting_follower_is_told_when_the_journal_closes(journal: Journal) -> None:
    journal.commit([added()])
    waiting = asyncio.ensure_future(anext(journal.follow("m1")))
    await asyncio.sleep(0)
    journal.close()
    with pytest.raises(ClosedError):
        await waiting


def test_follower_of_a_loop_that_is_gone_hinders_no_commit(journal: Journal) -> None:
    journal.commit([added(), events("a")])
    follower = journal.follow("m1")
    loop = asyncio.new_event_loop()
    loop.run_until_complete(anext(follower))
    loop.close()
    journal.commit([events("b")])
    assert journal.read("m1") == [b"a", b"b"]
