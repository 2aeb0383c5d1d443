"""Watches a match of a running service, live, whatever happens to the connection meanwhile."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import grpc

from referee.v1 import event_pb2
from referee.v1 import match_service_pb2 as pb
from referee.v1.match_service_pb2_grpc import MatchServiceStub
from referee_client import CredentialError, Tls
from referee_client.credential import load
from referee_games.contract import PUBLIC
from referee_server.cli.client import failure, open_channel, reason_of, retry_s
from referee_server.cli.data import DataFolder
from referee_server.cli.output import ExitCode, Failure, fail
from referee_server.cli.telling import event_line, painter
from referee_server.match.transcript import Transcript
from referee_server.match.views import ALL

Call: TypeAlias = Callable[[pb.WatchMatchRequest], Iterator[pb.WatchMatchResponse]]

_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 2.0
_PASSING: Final = ("DRAINING", "STORAGE", "BUSY", "SLOW_CONSUMER", "RATE")
"""Reasons to watch again a little later."""
_BROKEN: Final = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.INTERNAL,
)
"""How a call ends when it was not the referee that ended it: the connection broke, or something in between cut it."""
_INSTEAD: Final[dict[object, str]] = {
    ("VIEW_FORBIDDEN", ALL): "; say --view public, or name the service's data folder with --data",
    ("VIEW_FORBIDDEN", PUBLIC): "; watch it then, or name the service's data folder with --data",
    "NO_SEAT": "; name the credential of the agent that has it with --credential",
    "POSITION_BEYOND_END": ", fewer than were told here; watch it again, from its start",
}
"""What to do about a refusal, by its reason, and where that matters the view."""


class Tail:
    """The events of one view of a match, from the first one to its end, each once and in order.

    A connection that is lost, or a service that is started again, is found again from the last event.

    Args:
        call: begins a watch, as a stub's `WatchMatch` does.
        match_id: the match.
        view: whose view.
        address: where the service is, for words about it.
        patience_s: how long the service may be away, in seconds.
        say: takes one line for whoever watches, about the connection.
        clock: the time, in seconds.
        sleep: waits, in seconds.
    """

    def __init__(
        self,
        call: Call,
        match_id: str,
        view: pb.View,
        *,
        address: str,
        patience_s: float,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._call = call
        self._request = pb.WatchMatchRequest(match_id=match_id, view=view)
        self._address = address
        self._patience_s = patience_s
        self._say = say
        self._clock = clock
        self._sleep = sleep
        self._heard = False
        self._said = False  # that the connection was lost, since it was last there
        self._lost_s: float | None = None  # since when the service has been away
        self._pause_s = _FIRST_PAUSE_S
        self._held_back = self._ended = False

    def batches(self) -> Iterator[Sequence[event_pb2.MatchEvent]]:
        """Yields the events as they come, at least one at a time.

        Raises:
            Failure: the service is not there when it is first asked, or for longer than it may be away; or it refuses.
        """
        while True:
            try:
                for number, response in enumerate(self._call(self._request)):
                    self._heard = True
                    events = self._fresh(response.events)
                    if events or number:
                        self._regain()
                    if events:
                        yield events
                    if response.HasField("result") or (number and not events and self._held_back and self._ended):
                        return
                cut = None
            except grpc.RpcError as error:
                cut = error
            self._bide(cut)

    def _regain(self) -> None:
        """Forgets that the service was away: it does more than to take the call."""
        self._said = False
        self._lost_s = None
        self._pause_s = _FIRST_PAUSE_S

    def _fresh(self, events: Sequence[event_pb2.MatchEvent]) -> list[event_pb2.MatchEvent]:
        fresh = []
        for event in events:
            last = self._request.after_sequence
            if event.sequence <= last:
                continue
            if event.sequence != last + 1:
                raise Failure(f"the service left out what is between events {last} and {event.sequence}; watch again")
            self._request.after_sequence = event.sequence
            # While other tables play its cards, no more than the end comes: who waited for the secret would wait long.
            self._held_back = self._held_back or event.match_created.tournament.held_back
            self._ended = self._ended or event.HasField("match_ended")
            fresh.append(event)
        return fresh

    def _bide(self, cut: grpc.RpcError | None) -> None:
        """Waits a little before the service is asked again, if there is hope.

        Args:
            cut: how the call ended; None if it ended well, though the match did not.
        """
        reason = reason_of(cut) if cut is not None else ""
        if cut is not None and not self._passes(cut, reason):
            raise self._refusal(cut, reason)
        now_s = self._clock()
        told_s = retry_s(cut) if cut is not None else 0.0
        if reason == "RATE":  # it is there, and says when to come back
            self._lost_s = None
            self._tell(f"{self._words(cut)}; trying again")
            self._sleep(max(told_s, self._pause_s))
            return
        if self._lost_s is None:
            self._lost_s = now_s
        if now_s + self._pause_s > self._lost_s + self._patience_s:
            raise Failure(
                f"no referee at {self._address} for {self._patience_s:g} s; once it is back, watch again: the match is "
                "told from its start",
                ExitCode.UNREACHABLE,
            )
        if reason == "SLOW_CONSUMER":
            self._tell("the service cut this watch off because its output is read too slowly; going on where it was")
        else:
            self._tell(f"lost the service at {self._address}; trying again for {self._patience_s:g} s")
        self._sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def _passes(self, cut: grpc.RpcError, reason: str) -> bool:
        if reason:
            return reason == "RATE" or (self._heard and reason in _PASSING)
        return self._heard and cut.code() in _BROKEN

    def _refusal(self, cut: grpc.RpcError, reason: str) -> Failure:
        refused = failure(cut, self._address)
        if cut.code() is grpc.StatusCode.UNAUTHENTICATED:
            words = f"the referee at {self._address} does not know this credential, or not any more"
            return Failure(f"{words}; name that of the agent that has the seat with --credential", refused.code)
        view = self._request.view
        audience = {"all": ALL, "public": PUBLIC}.get(view.WhichOneof("kind") or "", view.seat)
        more = _INSTEAD.get((reason, audience)) or _INSTEAD.get(reason, "")
        return Failure(refused.message + more, refused.code)

    def _words(self, cut: Any) -> str:
        return str(cut.details() or "the service is busy")

    def _tell(self, line: str) -> None:
        if not self._said:
            self._said = True
            self._say(line)


def watch_match(
    match_id: str,
    *,
    view: str | None,
    credential: str | None,
    patience_s: float,
    data: str,
    connect: str | None,
    tls: Tls | None,
    as_json: bool,
) -> None:
    """Prints a match from its first event on, as it happens, and returns at its end.

    Args:
        match_id: the match.
        view: `all`, `public` or `seat:K`; None for what the caller may see whatever the match.
        credential: file with an agent's credential; None for the host's, where the data folder has it and the service
            is the folder's own, or `view` is all.
        patience_s: how long the service may be away, in seconds.
        data: the data folder.
        connect: where the service listens; None for what the folder says, else the usual address.
        tls: whom to trust; None for what the folder says.
        as_json: whether to print events as JSON lines.

    Raises:
        Failure: the service is not there, or refuses.
    """
    folder = DataFolder(data)
    # Who watches somebody else's service does not mean to hand it his own host's credential, and needs none.
    asked = view == "all" or _is_own(folder, connect)
    host = credential is None and asked and os.access(folder.token_path, os.R_OK)
    token = folder.host_token() if host else _credential(credential)
    metadata = (("authorization", f"Bearer {token}"),) if token is not None else ()
    seen, audience = _view(view or ("all" if host else "public"))
    with open_channel(folder, connect, tls) as (channel, address):
        stub = MatchServiceStub(channel)
        tail = Tail(
            lambda request: stub.WatchMatch(request, metadata=metadata),
            match_id,
            seen,
            address=address,
            patience_s=patience_s,
            say=lambda line: print(f"referee: {line}", file=sys.stderr, flush=True),
        )
        lines = _json(match_id, tail) if as_json else _text(audience, tail)
        for some in lines:
            print("".join(f"{line}\n" for line in some), end="", flush=True)


def _is_own(folder: DataFolder, connect: str | None) -> bool:
    said = folder.address()
    return connect is None or (said is not None and said[0] == connect)


def _text(audience: int, tail: Tail) -> Iterator[list[str]]:
    transcript = Transcript(audience)
    paint = painter()
    try:
        for events in tail.batches():
            yield [paint(line) for event in events for line in transcript.take(event)]
    except ValueError as error:
        fail(f"{error}; --json shows it", ExitCode.CHECK_FAILED)
    yield [paint(line) for line in transcript.finish()]


def _json(match_id: str, tail: Tail) -> Iterator[list[str]]:
    for events in tail.batches():
        yield [event_line(match_id, event) for event in events]


def _credential(path: str | None) -> str | None:
    """Returns an agent's credential; None where no file is named: nobody needs one for what is open to all."""
    if path is None:
        return None
    if not os.access(path, os.R_OK):
        fail(f"no credential file {path[:200]!r} that can be read; name that of the agent", ExitCode.NOT_FOUND)
    try:
        return load("", Path(path))
    except CredentialError as error:
        fail(str(error), ExitCode.FORBIDDEN)


def _view(text: str) -> tuple[pb.View, int]:
    """Returns a view as the service takes it, and its audience."""
    if text == "all":
        return pb.View(all=pb.AllView()), ALL
    if text == "public":
        return pb.View(public=pb.PublicView()), PUBLIC
    number = text.removeprefix("seat:")
    if number == text or not (number.isascii() and number.isdigit() and len(number) < 3):
        fail(f"--view is all, public or seat:K, such as seat:0, not {text[:60]!r}")
    return pb.View(seat=int(number)), int(number)
