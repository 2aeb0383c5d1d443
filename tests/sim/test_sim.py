"""Simulated worlds, and some in which something is broken. `scripts/soak sim` runs as many as one likes."""

from __future__ import annotations

import pytest

from referee.v1 import agent_service_pb2 as agent_pb
from referee_server.journal import MemoryJournal
from referee_server.match import inputs, views
from referee_server.tables.committer import Committer, Receiver
from referee_server.tables.hall import Hall
from referee_server.tables.table import Table
from sim.ledger import BrokenError
from sim.world import World

_CHUNK = 25


@pytest.mark.parametrize("opened", [False, True], ids=["", "open seats"])
@pytest.mark.parametrize("first", range(0, 150, _CHUNK))
def test_everything_that_always_holds_holds_in_seeded_worlds(first: int, *, opened: bool) -> None:
    for seed in range(first, first + _CHUNK):
        try:
            World(seed, opened=opened).run()
        except BrokenError as error:
            flags = "--open-seats --verbose" if opened else "--verbose"
            raise AssertionError(f"python -m sim --seed {seed} {flags}: {error}") from error


def test_a_seed_always_gives_the_same_world() -> None:
    assert [World(seed).run().digest for seed in range(40, 44)] == [World(seed).run().digest for seed in range(40, 44)]


# Seeds that have shown a bug, each by another path through the referee.
@pytest.mark.parametrize(
    ("seed", "fact"),
    [
        (4, "a regained seat is asked once"),
        (44, "a drain ends while a commit is in a thread"),
        (51, "what storing a question takes is not the seat's time"),
        (58, "what the rules fail over is not told to be accepted"),
        (69, "an agent that is there is not ruled late to get ready while the referee stands still"),
        (123, "a match killed right after its creation verifies"),
        (131, "what is stored while somebody catches up is shown"),
        (178, "an agent busy elsewhere is no no-show"),
        (1338, "no outcome is told that the rules failed over"),
        (2533, "nobody is seated at a table that was cancelled"),
        (10806, "no two matches wait for each other's agents"),
        (11273, "who is told while the referee stands still is told when it goes on"),
        (20201, "what storing a creation takes is no time in which to come"),
        (400439, "nobody is offered a seat that was his only while the rules failed"),
        (402302, "the end of a match may wait while the referee stands still twice"),
        (412028, "who comes back with a match in mind is told of its end though it was not offered again"),
        (301999, "who comes back just as a match ends is told so on the old stream and, since it asks, on the new one"),
        (201657, "an end that was decided and lost is not told"),
        (101697, "who connects while the referee stands still has not used up what it may say"),
    ],
)
def test_a_seed_that_once_failed_passes(seed: int, fact: str) -> None:
    World(seed).run()


# A simulation that finds nothing shows nothing: in each of these one thing is broken on purpose.


def _too_early(self: Committer, receiver: Receiver, item: agent_pb.ServerItem, match_id: str = "") -> None:
    receiver.push(item)


def _not_at_all(*given: object) -> None:
    return None


def _without_begin(self: Table, seconds: int, nanos: int) -> None:
    self._missing = {seat.seat for seat in self.match.seats if seat.agent_id}
    self.feed(inputs.Resume(seconds, nanos))


def _another_secret(self: MemoryJournal, match_id: str) -> bytes:
    return bytes(range(32))


@pytest.mark.parametrize(
    ("where", "name", "broken", "seed", "symptom"),
    [
        pytest.param(Committer, "tell", _too_early, 44, "before it was stored", id="told before it is stored"),
        pytest.param(Hall, "_tell_ended", _not_at_all, 91, "never told", id="an end is not told again"),
        pytest.param(Table, "resume", _without_begin, 123, "does not verify", id="a match resumes before it begins"),
        pytest.param(
            MemoryJournal,
            "secret",
            _another_secret,
            69,
            "not the one that was committed",
            id="dealt anew after a restart",
        ),
    ],
)
def test_what_is_broken_is_found(
    monkeypatch: pytest.MonkeyPatch, where: type, name: str, broken: object, seed: int, symptom: str
) -> None:
    monkeypatch.setattr(where, name, broken)
    with pytest.raises(BrokenError, match=symptom):
        World(seed).run()


def test_a_hand_shown_to_others_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(views._HIDE, "cards_dealt", _not_at_all)
    with pytest.raises(BrokenError, match="shows the pack"):
        World(44).run()


def test_a_seat_shown_to_who_has_given_it_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Table, "_given_back", _not_at_all)
    with pytest.raises(BrokenError, match="events of seat 1 goes to"):
        World(202, opened=True).run()
