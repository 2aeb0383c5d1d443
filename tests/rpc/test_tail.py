"""`referee watch` and the service: what cuts a watch off, how it is taken up again, and where it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2

from match.driver import Driver, spec_of
from referee.v1 import event_pb2, match_pb2
from referee.v1 import match_service_pb2 as pb
from referee_server.cli.data import DataFolder
from referee_server.cli.output import Failure
from referee_server.cli.watch import Tail, watch_match
from referee_server.match.transcript import transcript
from rpc.agent import Agent
from rpc.kit import ALL, HOST, PUBLIC, Client, duel, play_out, seat_view, started
from rpc.server import HOST_TOKEN, Referee, token_of
from rpc.test_held_back import ended
from tables.kit import MS

Make = Callable[..., Agent]


class Watch:
    """A tail, with the waits that it makes and the words it says.

    Attributes:
        waits: what it waited, in seconds.
        said: what it said.
        now_s: its time, which only waits let pass.
        on_wait: what happens meanwhile.
    """

    def __init__(self, call: Any, match_id: str = "m", view: pb.View = ALL, patience_s: float = 60) -> None:
        self.waits: list[float] = []
        self.said: list[str] = []
        self.now_s = 0.0
        self.on_wait: Callable[[float], None] = lambda seconds: None
        tail = Tail(
            call,
            match_id,
            view,
            address="here:1",
            patience_s=patience_s,
            say=self.said.append,
            clock=lambda: self.now_s,
            sleep=self._sleep,
        )
        self.batches = tail.batches()

    def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now_s += seconds
        self.on_wait(seconds)

    def events(self) -> list[event_pb2.MatchEvent]:
        return [event for events in self.batches for event in events]


def of(client: Client, match_id: str, view: pb.View = ALL, who: Any = HOST) -> Watch:
    return Watch(lambda request: client.matches.WatchMatch(request, metadata=who), match_id, view)


# With the service.


@pytest.mark.referee(heartbeat_s=0.02)
def test_who_was_cut_off_for_reading_too_slowly_waits_as_told_and_misses_nothing(
    client: Client, agent: Make, referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    match_id, agents = started(client, agent)
    watch = of(client, match_id)
    events = list(next(watch.batches))

    def meanwhile(seconds: float) -> None:
        monkeypatch.undo()
        referee.advance(round(seconds * 1_000) * MS)
        play_out(agents, match_id, referee)

    monkeypatch.setattr("referee_server.rpc.register.WRITE_DEADLINE_S", 0.0)
    watch.on_wait = meanwhile
    events += watch.events()
    assert events == referee.log(match_id)
    assert watch.said == ["the service cut this watch off because its output is read too slowly; going on where it was"]
    assert watch.waits == [0.1, 0.9]


@pytest.mark.referee(heartbeat_s=0.02)
def test_a_match_that_is_held_back_is_told_to_its_host_as_far_as_it_goes(client: Client, referee: Referee) -> None:
    ended(referee, "one")
    assert of(client, "one").events() == referee.log("one")


def test_a_match_that_was_held_back_is_told_with_its_secret(client: Client, referee: Referee) -> None:
    ended(referee, "one")
    referee.do(lambda: referee.hall.matches.reveal("one"))
    referee.quiet()
    events = of(client, "one").events()
    assert events == referee.log("one")
    assert events[-1].HasField("secret_revealed")


@pytest.mark.parametrize("view", [PUBLIC, seat_view(1), ALL], ids=["public", "seat", "all"])
def test_wherever_it_is_cut_it_goes_on_from_there(client: Client, referee: Referee, view: pb.View) -> None:
    match_id = client.finished(referee, duel("bot:first", "bot:first", options={"deals": 4}))
    whole = of(client, match_id, view).events()

    def cut(request: pb.WatchMatchRequest) -> Iterator[pb.WatchMatchResponse]:
        """Passes on one event a call."""
        for response in client.matches.WatchMatch(request, metadata=HOST):
            if response.events:
                yield pb.WatchMatchResponse(events=response.events[:1])
                return
            yield response

    watch = Watch(cut, match_id, view)
    assert watch.events() == whole
    assert len(watch.said) == len(whole)


# As it is typed.


@pytest.fixture
def typed(grpc_addr: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Returns what `referee watch` prints, for whoever has the credential of a host, of an agent, or none."""

    def run(match_id: str, view: str | None = None, *, host: bool = False, agent: str = "") -> str:
        for name, token in (("host.token", HOST_TOKEN if host else ""), ("agent.token", token_of(agent))):
            if token:
                (tmp_path / name).write_text(token, encoding="ascii")
                (tmp_path / name).chmod(0o600)
        if host:
            DataFolder(tmp_path).say_address(grpc_addr, None)
        capsys.readouterr()  # what the service said
        watch_match(
            match_id,
            view=view,
            credential=str(tmp_path / "agent.token") if agent else None,
            patience_s=10,
            data=str(tmp_path),
            connect=grpc_addr,
            tls=None,
            as_json=False,
        )
        return capsys.readouterr().out

    return run


def test_a_stranger_is_told_why_a_match_that_is_held_back_is_not_for_him(
    typed: Callable[..., str], referee: Referee
) -> None:
    ended(referee, "one")
    with pytest.raises(Failure) as refusal:
        typed("one")
    assert refusal.value.code == 77
    assert refusal.value.message == (
        "other tables play the same cards; until they have ended, only the host sees this one; watch it then, or name "
        "the service's data folder with --data"
    )
    referee.do(lambda: referee.hall.matches.reveal("one"))
    referee.quiet()
    assert typed("one").splitlines()[-1].startswith("  nonce 2 ")


@pytest.mark.referee(heartbeat_s=0.02)
def test_what_a_host_is_told_of_a_match_that_is_held_back_is_what_replay_tells(
    typed: Callable[..., str], referee: Referee
) -> None:
    ended(referee, "one")
    told = typed("one", host=True).splitlines()
    assert told == list(transcript(referee.log("one")))
    assert told[-1] == "  secret      SEALED: not out yet; other tables play the same cards"


def test_an_agent_is_told_that_a_seat_is_not_its_own(typed: Callable[..., str], client: Client, agent: Make) -> None:
    match_id, _ = started(client, agent)
    with pytest.raises(Failure, match="no such seat; name the credential of the agent that has it with --credential"):
        typed(match_id, "seat:1", agent="anna")


def test_a_credential_that_nobody_has_is_not_known(typed: Callable[..., str], client: Client, agent: Make) -> None:
    match_id, _ = started(client, agent)
    with pytest.raises(
        Failure, match="does not know this credential, or not any more; name that of the agent"
    ) as found:
        typed(match_id, "seat:1", agent="zoe")
    assert found.value.code == 77


# Without a service: what could be said on the line.


class Cut(grpc.RpcError):
    """How a call ends."""

    def __init__(self, code: grpc.StatusCode, reason: str = "", details: str = "") -> None:
        self._code, self._details = code, details
        status = status_pb2.Status(code=code.value[0], message=details)
        if reason:
            status.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason, domain="referee.v1"))
        self._metadata = (("grpc-status-details-bin", status.SerializeToString()),)

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> Any:
        return self._metadata


AWAY = Cut(grpc.StatusCode.UNAVAILABLE, details="connection refused")
LOG = Driver(spec_of("regicide", options={"max_deals": 1})).start().play().events
END = pb.WatchMatchResponse(result=match_pb2.MatchResult())


def told(*numbers: int) -> pb.WatchMatchResponse:
    return pb.WatchMatchResponse(events=[LOG[number - 1] for number in numbers])


def line(*calls: Sequence[pb.WatchMatchResponse | grpc.RpcError], patience_s: float = 60) -> Watch:
    """Returns a watch whose calls come to this, the last again and again."""
    left = list(calls)

    def call(request: pb.WatchMatchRequest) -> Iterator[pb.WatchMatchResponse]:
        for one in left.pop(0) if len(left) > 1 else left[0]:
            if isinstance(one, grpc.RpcError):
                raise one
            yield one

    return Watch(call, patience_s=patience_s)


def numbers_of(watch: Watch) -> list[int]:
    return [event.sequence for event in watch.events()]


PASSING = {
    "gone": AWAY,
    "reset": Cut(grpc.StatusCode.INTERNAL, details="RST_STREAM"),
    "proxy": Cut(grpc.StatusCode.CANCELLED, details="stream closed"),
    "drained": Cut(grpc.StatusCode.UNAVAILABLE, "DRAINING"),
    "storage": Cut(grpc.StatusCode.UNAVAILABLE, "STORAGE"),
    "busy": Cut(grpc.StatusCode.UNAVAILABLE, "BUSY"),
}


@pytest.mark.parametrize("cut", PASSING.values(), ids=PASSING)
def test_what_passes_is_waited_for_and_said_once(cut: grpc.RpcError) -> None:
    watch = line([told(1, 2), cut], [cut], [cut], [told(3)], [told(3), END])
    assert numbers_of(watch) == [1, 2, 3]
    assert watch.waits == [0.1, 0.2, 0.4, 0.1]
    assert watch.said == ["lost the service at here:1; trying again for 60 s"] * 2


def test_events_that_come_again_are_not_told_again() -> None:
    assert numbers_of(line([told(1, 2), AWAY], [told(1, 2, 3), told(3), told(4), END])) == [1, 2, 3, 4]


def test_events_that_are_missing_end_it() -> None:
    watch = line([told(1), AWAY], [told(3), END])
    with pytest.raises(Failure, match="left out what is between events 1 and 3"):
        watch.events()


def test_a_service_that_is_not_there_at_first_is_not_waited_for() -> None:
    watch = line([AWAY])
    with pytest.raises(Failure, match="no referee answers at here:1") as found:
        watch.events()
    assert (found.value.code, watch.waits, watch.said) == (69, [], [])


@pytest.mark.parametrize("patience_s", [0.0, 0.5, 60.0])
def test_it_gives_up_within_its_patience_and_close_to_its_end(patience_s: float) -> None:
    watch = line([told(1), AWAY], [AWAY], patience_s=patience_s)
    with pytest.raises(Failure, match=f"no referee at here:1 for {patience_s:g} s; once it is back, watch again"):
        watch.events()
    assert max(0.0, patience_s - 2) <= watch.now_s <= patience_s


def test_patience_begins_anew_whenever_the_service_was_there() -> None:
    calls: list[list[Any]] = [[told(number), AWAY] for number in range(1, 10)]
    assert numbers_of(line(*calls, [told(10), END], patience_s=0.15)) == list(range(1, 11))


def test_a_service_that_takes_the_call_and_no_more_is_given_up() -> None:
    watch = line([told(1), AWAY], [pb.WatchMatchResponse(), AWAY], patience_s=5)
    with pytest.raises(Failure, match="no referee at here:1 for 5 s"):
        watch.events()
    assert len(watch.said) == 1


REFUSED = {
    "revoked": (Cut(grpc.StatusCode.UNAUTHENTICATED, "CREDENTIAL_REVOKED"), 77, "or not any more"),
    "damaged": (Cut(grpc.StatusCode.DATA_LOSS, "LOG_DAMAGED", "the log is damaged"), 1, "the log is damaged"),
    "failed": (Cut(grpc.StatusCode.INTERNAL, "INTERNAL", "the referee failed; incident 12"), 2, "incident 12"),
    "shorter": (
        Cut(grpc.StatusCode.OUT_OF_RANGE, "POSITION_BEYOND_END", "the view has 1 events so far"),
        2,
        "1 events so far, fewer than were told here; watch it again, from its start",
    ),
}


@pytest.mark.parametrize(("cut", "code", "words"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_pass_ends_it_in_the_middle(cut: grpc.RpcError, code: int, words: str) -> None:
    watch = line([told(1, 2), cut])
    with pytest.raises(Failure, match=words) as found:
        watch.events()
    assert (found.value.code, watch.waits) == (code, [])
