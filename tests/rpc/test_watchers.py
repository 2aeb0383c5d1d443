"""What ends a watch before the match ends, and who may watch how much."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from google.rpc import error_details_pb2
from grpc import StatusCode
from grpc_status import rpc_status

from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import registry_service_pb2 as registry_pb
from referee_server.match.errors import RefusedError
from referee_server.tables.watchers import WELL_US, Watchers, WatchLimits
from rpc.agent import Agent, bearer, refused
from rpc.kit import ALL, HOST, NOBODY, PUBLIC, Client, duel, seat_view, started, until
from rpc.server import Referee, token_of
from tables.fake_clock import FakeClock
from tables.kit import MS, S

Make = Callable[..., Agent]
ANNA, BERT = bearer(token_of("anna")), bearer(token_of("bert"))


def revoke(client: Client, name: str) -> None:
    client.registry.RevokeAgent(registry_pb.RevokeAgentRequest(agent=name), metadata=HOST, timeout=20)


def watching(referee: Referee) -> int:
    return referee.do(lambda: referee.hall.watchers.count)


@pytest.mark.parametrize("view", [seat_view(0), PUBLIC], ids=["seat", "public"])
def test_revoking_ends_what_the_agent_watches(client: Client, agent: Make, view: object) -> None:
    match_id, _ = started(client, agent)
    watch = client.watch(match_id, view, who=ANNA)  # type: ignore[arg-type]  # a View
    next(watch)
    next(watch)
    revoke(client, "anna")
    assert refused(lambda: watch)[:2] == (StatusCode.UNAUTHENTICATED, "CREDENTIAL_REVOKED")


def test_revoking_one_ends_nobody_elses_watch(client: Client, agent: Make, referee: Referee) -> None:
    match_id, _ = started(client, agent)
    others = [client.watch(match_id, seat_view(1), who=BERT), client.watch(match_id, ALL), client.watch(match_id)]
    for one in others:
        next(one)
    assert watching(referee) == 3
    revoke(client, "anna")
    client.cancel(match_id)
    for one in others:
        assert [response.HasField("result") for response in one][-1]


def test_an_agent_that_was_revoked_sees_its_seat_no_more(client: Client, agent: Make) -> None:
    match_id, _ = started(client, agent)
    revoke(client, "anna")
    found = refused(lambda: client.watch(match_id, seat_view(0), who=ANNA))
    assert found.code == StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("delay_ms", [0, 86_400_000])
def test_when_the_service_ends_watchers_are_told_so(client: Client, referee: Referee, delay_ms: int) -> None:
    match_id = client.create(duel("open", "open"))
    watch = client.watch(match_id, ALL, delay_ms=delay_ms)
    next(watch)
    referee.run(referee.hall.close)
    assert refused(lambda: watch)[:2] == (StatusCode.UNAVAILABLE, "DRAINING")


def test_when_the_service_ends_nobody_begins_to_watch(client: Client, referee: Referee) -> None:
    match_id = client.create(duel("open", "open"))
    referee.run(referee.hall.close)
    assert refused(lambda: client.watch(match_id))[:2] == (StatusCode.UNAVAILABLE, "DRAINING")


def test_who_has_gone_or_has_seen_the_end_watches_no_more(client: Client, referee: Referee) -> None:
    running, finished = client.create(duel("open", "open")), client.finished(referee)
    watch = client.watch(running, who=NOBODY)
    next(watch)
    list(client.watch(finished, who=NOBODY))
    assert watching(referee) == 1
    watch.cancel()
    until(lambda: watching(referee) == 0, referee)


# Who reads too slowly, and who watches too much. The clock stands still here; gRPC's own patience is not waited for.


class Line:
    """The watches of a service without the service."""

    def __init__(self, **limits: int) -> None:
        self.clock = FakeClock()
        self.watchers = Watchers(self.clock, WatchLimits(**limits))

    def refused_ms(self, who: str = "anna") -> int:
        """Tries to watch; returns how long to wait, or 0 if it may."""
        try:
            self.watchers.leave(self.watchers.admit(who))
        except RefusedError as error:
            return int(error.metadata["retry_ms"]) if error.reason == reason_pb.ERROR_REASON_RATE else -1
        return 0

    def cut_off(self, who: str = "anna", after_us: int = 20 * S) -> None:
        watcher = self.watchers.admit(who)
        self.clock.advance(after_us)
        self.watchers.leave(watcher, slow=True)


async def test_who_is_cut_off_again_and_again_waits_ever_longer() -> None:
    line = Line()
    waits = []
    for _ in range(9):
        line.cut_off()
        waits.append(line.refused_ms())
        line.clock.advance(waits[-1] * MS)
    assert waits == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]


async def test_the_wait_is_over_when_it_is_over_and_not_before() -> None:
    line = Line()
    line.cut_off()
    line.clock.advance(S - 1)
    assert line.refused_ms() == 1
    line.clock.advance(1)
    assert line.refused_ms() == 0


async def test_nobody_else_waits() -> None:
    line = Line()
    line.cut_off()
    assert line.refused_ms("bert") == 0


async def test_many_that_are_cut_off_together_count_as_one() -> None:
    line = Line()
    watchers = [line.watchers.admit("anna") for _ in range(50)]
    for watcher in watchers:
        line.clock.advance(10)
        line.watchers.leave(watcher, slow=True)
    assert 0 < line.refused_ms() <= 1_000


@pytest.mark.parametrize("slow", [False, True])
async def test_a_watch_that_was_read_for_a_while_makes_what_was_before_forgotten(slow: bool) -> None:
    line = Line()
    for _ in range(5):
        line.cut_off()
        line.clock.advance(60 * S)
    watcher = line.watchers.admit("anna")
    line.clock.advance(WELL_US)
    line.watchers.leave(watcher, slow=slow)
    assert line.refused_ms() == (1_000 if slow else 0)
    line.clock.advance(60 * S)
    if not slow:
        line.cut_off()
        assert line.refused_ms() == 1_000


async def test_a_short_watch_makes_nothing_forgotten() -> None:
    line = Line()
    line.cut_off()
    line.clock.advance(S)
    line.watchers.leave(line.watchers.admit("anna"))
    line.cut_off()
    assert line.refused_ms() == 2_000


async def test_one_watches_no_more_matches_at_once_than_it_may() -> None:
    line = Line(host=3, other=2)
    for who, most in (("host", 3), ("anna", 2), ("from ipv4:127.0.0.1", 2)):
        held = [line.watchers.admit(who) for _ in range(most)]
        assert line.refused_ms(who) > 0
        line.watchers.leave(held[0])
        assert line.refused_ms(who) == 0


@pytest.mark.referee(heartbeat_s=0.02)
def test_who_was_cut_off_is_told_how_long_to_wait(
    client: Client, referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    match_id = client.create(duel("open", "open"))
    slow = client.watch(match_id)
    next(slow)
    with monkeypatch.context() as patched:
        patched.setattr("referee_server.rpc.register.WRITE_DEADLINE_S", 0.0)
        assert refused(lambda: slow)[:2] == (StatusCode.RESOURCE_EXHAUSTED, "SLOW_CONSUMER")
    call = client.watch(match_id)
    found = refused(lambda: call)
    assert (found.code, found.reason) == (StatusCode.RESOURCE_EXHAUSTED, "RATE")
    status = rpc_status.from_call(call)
    assert status is not None
    retry = error_details_pb2.RetryInfo()
    assert [detail.Unpack(retry) for detail in status.details][-1]
    assert retry.retry_delay.ToMilliseconds() == 1_000
    assert next(client.watch(match_id, who=NOBODY)).through_sequence == 0
    referee.advance(S)
    assert next(client.watch(match_id)).through_sequence == 0


def test_each_agent_and_each_address_is_counted_by_itself(client: Client, agent: Make, referee: Referee) -> None:
    match_id, _ = started(client, agent)
    held = [client.watch(match_id, PUBLIC, who=who) for who in (ANNA, BERT, NOBODY, HOST)]
    for one in held:
        next(one)
    who = referee.do(lambda: sorted(referee.hall.watchers._watching))
    names = {row.agent_id for row in referee.do(lambda: referee.journal.agents())}
    assert names < set(who)
    assert "host" in who
    assert [one for one in who if one.startswith("from ")] == ["from ipv4:127.0.0.1"]
