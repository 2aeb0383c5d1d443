"""Watchers: each follows one view of a match, and holds every response against the journal."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from referee.v1 import match_service_pb2 as pb
from referee_server.match.views import ALL
from sim.ledger import cards_in, check
from sim.link import reason_of
from sim.referee import HOST_TOKEN
from sim.wire import Call

if TYPE_CHECKING:
    from sim.world import World


def watch(world: World, chance: random.Random) -> None:
    """Watches some match in some view from some position."""
    if world.referee is None or not world.ledger.matches:
        return
    match_id = chance.choice(sorted(world.ledger.matches))
    told = world.ledger.matches[match_id]
    if not told.events:
        return
    audience = chance.choice((-1, ALL, *range(len(told.match.seats))))
    view = pb.View()
    if audience >= 0:
        view.seat = audience
    elif audience == ALL:
        view.all.SetInParent()
    else:
        view.public.SetInParent()
    start = chance.choice((0, chance.randint(0, len(told.view(audience)))))
    request = pb.WatchMatchRequest(match_id=match_id, view=view, after_sequence=start)
    if audience == ALL:
        request.delay_ms = chance.choice((0, 1, 300))
    after = start
    referee = world.referee
    result = False

    def take(data: bytes) -> None:
        nonlocal after, result
        response = pb.WatchMatchResponse.FromString(data)
        seen = told.view(audience)
        check(not result, "something follows the result")
        for event in response.events:
            check(event.sequence == after + 1, f"a watcher of {match_id} sees {event.sequence} after {after}")
            after = event.sequence
            check(after <= len(seen), "a watcher is told what is not stored")
            same = event.SerializeToString(deterministic=True) == seen[after - 1]
            check(same, f"a watcher of {match_id} sees another event {after} than audience {audience} may")
        snapshot = response.WhichOneof("snapshot")
        if snapshot:
            strange = cards_in(getattr(response, snapshot)) - told.known[max(audience, -1)]
            check(not strange, f"a snapshot of {match_id} for {audience} shows {sorted(strange)}")
        if response.HasField("result"):
            result = True
            check(told.final and after == len(seen), "a watcher is told the result too early")

    def written(data: bytes) -> None:
        if not referee.muted:
            world.guard(lambda: take(data))

    def ended() -> None:
        if not referee.muted:
            reason = world.guard(lambda: reason_of(call.status))
            world.guard(lambda: check(reason in ("", "STORAGE", "DRAINING"), f"a watcher is cut off: {reason}"))
            done = call.status is not None and reason == ""
            world.guard(
                lambda: check(not done or result or referee.draining, "a watcher's stream ends without a result")
            )

    call = Call(HOST_TOKEN, written, ended)
    call.start(referee.loop, referee.handlers["MatchService/WatchMatch"], request.SerializeToString())
