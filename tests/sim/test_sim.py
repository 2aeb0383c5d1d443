"""A few hundred simulated worlds; `scripts/soak sim` runs as many as one likes. And worlds in which something is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from referee_server.journal import MemoryJournal
from referee_server.match import views
from referee_server.match.machine import Machine
from referee_server.tables.committer import Committer
from referee_server.tables.hall import Hall
from referee_server.tables.table import Table
from sim.ledger import Broken
from sim.world import World

_CHUNK = 25


@pytest.mark.parametrize("first", range(0, 250, _CHUNK))
def test_everything_that_always_holds_holds_in_seeded_worlds(first: int) -> None:
    for seed in range(first, first + _CHUNK):
        try:
            World(seed).run()
        except Broken as error:
            raise AssertionError(f"python -m sim --seed {seed} --verbose: {error}") from error


def test_a_seed_always_gives_the_same_world() -> None:
    assert [World(seed).run().digest for seed in range(40, 44)] == [World(seed).run().digest for seed in range(40, 44)]


# Seeds that have shown a bug, each by another path through the referee.
@pytest.mark.parametrize(
    ("seed", "fact"),
    [
        (4, "a regained seat is asked once"),
        (44, "a drain ends while a commit is in a thread"),
        (51, "what storing a question takes is not the seat's time"),
        (69, "an agent that is there is not ruled late to get ready while the referee stands still"),
        (123, "a match killed right after its creation verifies"),
        (131, "what is stored while somebody catches up is shown"),
        (178, "an agent busy elsewhere is no no-show"),
        (2533, "nobody is seated at a table that was cancelled"),
    ],
)
def test_a_seed_that_once_failed_passes(seed: int, fact: str) -> None:
    World(seed).run()


# A simulation that finds nothing shows nothing: each of these is broken on purpose.


def _found(seeds: range) -> str:
    for seed in seeds:
        try:
            World(seed).run()
        except Broken as error:
            return str(error)
    return ""


def _early(self: Committer, receiver: Any, item: Any) -> None:
    receiver.push(item)


def _nothing(*given: Any) -> None:
    return None


def _shows_hands(payload: Any, audience: int, game: Any) -> None:
    payload.ClearField("pack")


def _forgets_begin(self: Table, seconds: int, nanos: int) -> None:
    from referee_server.match import inputs

    self.feed(inputs.Resume(seconds, nanos))


@pytest.mark.parametrize(
    ("break_it", "symptom"),
    [
        pytest.param(
            lambda patch: patch.setattr(Committer, "tell", _early), "before it was stored", id="told too early"
        ),
        pytest.param(lambda patch: patch.setitem(views._HIDE, "cards_dealt", _shows_hands), "shows", id="a hand shown"),
        pytest.param(lambda patch: patch.setattr(Table, "_handed", _nothing), "", id="a question never handed over"),
        pytest.param(lambda patch: patch.setattr(Hall, "_tell_ended", _nothing), "never told", id="an end never told"),
        pytest.param(
            lambda patch: patch.setattr(Table, "resume", _forgets_begin), "does not verify", id="begun too late"
        ),
        pytest.param(
            lambda patch: patch.setattr(MemoryJournal, "secret", lambda self, match_id: bytes(range(32))),
            "does not verify",
            id="dealt anew",
        ),
        pytest.param(
            lambda patch: patch.setattr(Machine, "_charged", lambda self, elapsed, late: (elapsed - late, 0)),
            "charged",
            id="the way is charged",
        ),
    ],
)
def test_what_is_broken_is_found(
    monkeypatch: pytest.MonkeyPatch, break_it: Callable[[pytest.MonkeyPatch], None], symptom: str
) -> None:
    break_it(monkeypatch)
    found = _found(range(150))
    assert found
    assert symptom in found
