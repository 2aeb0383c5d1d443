"""MatchService: what hosts do with matches, and how anybody watches one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import event_pb2, match_pb2
from referee.v1 import match_service_pb2 as pb
from referee_client import convert
from referee_games.contract import PUBLIC, shown
from referee_server.journal import MatchRow
from referee_server.match.errors import RefusedError
from referee_server.match.state import Match
from referee_server.match.verify import parse
from referee_server.match.views import ALL, Projector
from referee_server.rpc.gate import Caller, Gate, unknown_credential
from referee_server.rpc.listing import from_token, match_of, to_token
from referee_server.rpc.story import Stories, Story
from referee_server.tables.creation import unknown_match
from referee_server.tables.hall import Hall
from referee_server.tables.revealing import ENDED, is_held_back
from referee_server.tables.watchers import Watcher

HEARTBEAT_S: Final = 10.0
"""How often a watcher hears something, in seconds."""
WATCHER_MESSAGES_PER_S: Final = 150
"""How many messages a second all watchers of live matches get together, about; players come first."""
_PIECE: Final = 256
_DEFAULT_PAGE: Final = 100
_MAX_PAGE: Final = 1_000
_DAY_MS: Final = 86_400_000


class MatchService:
    """Serves `referee.v1.MatchService`."""

    def __init__(self, hall: Hall, gate: Gate, heartbeat_s: float = HEARTBEAT_S) -> None:
        self._hall = hall
        self._gate = gate
        self._heartbeat_s = heartbeat_s
        self._stories = Stories(hall.journal, hall.steps)

    async def CreateMatch(self, request: pb.CreateMatchRequest, caller: Caller) -> pb.CreateMatchResponse:  # noqa: N802
        """Creates a match."""
        self._gate.check_host(caller)
        if len(request.request_id) > 64:
            raise _invalid("request_id", "a request id has at most 64 characters")
        match_id = self._hall.matches.create(request.spec, request.request_id)
        await self._hall.committer.settled()
        return pb.CreateMatchResponse(match=match_of(self._row(match_id)))

    async def GetMatch(self, request: pb.GetMatchRequest, caller: Caller) -> pb.GetMatchResponse:  # noqa: N802
        """Returns a match as it stands."""
        self._gate.check_host(caller)
        return pb.GetMatchResponse(match=match_of(self._row(request.match_id)))

    async def ListMatches(self, request: pb.ListMatchesRequest, caller: Caller) -> pb.ListMatchesResponse:  # noqa: N802
        """Lists matches, the newest first."""
        self._gate.check_host(caller)
        if request.page_size < 0:
            raise _invalid("page_size", "a page has no negative size")
        size = min(request.page_size or _DEFAULT_PAGE, _MAX_PAGE)
        states = {match_pb2.MatchState.Name(state).removeprefix("MATCH_STATE_") for state in _known(request.states)}
        rows = self._hall.journal.matches(
            after_number=from_token("m", request.page_token), limit=size + 1, states=sorted(states), newest_first=True
        )
        token = to_token("m", rows[size - 1].number) if len(rows) > size else ""
        return pb.ListMatchesResponse(matches=[match_of(row) for row in rows[:size]], next_page_token=token)

    async def CancelMatch(self, request: pb.CancelMatchRequest, caller: Caller) -> pb.CancelMatchResponse:  # noqa: N802
        """Ends a match without a result."""
        self._gate.check_host(caller)
        if len(request.note) > 200 or not request.note.isprintable():
            raise _invalid("note", "a note is at most 200 printable characters")
        self._hall.matches.cancel(request.match_id, request.note)
        await self._hall.committer.settled()
        return pb.CancelMatchResponse(match=match_of(self._row(request.match_id)))

    async def WatchMatch(  # noqa: N802
        self, request: pb.WatchMatchRequest, caller: Caller
    ) -> AsyncIterator[pb.WatchMatchResponse]:
        """Streams one view of a match, history and live in one."""
        audience = self._audience(request, caller)
        if request.after_sequence < 0:
            raise _invalid("after_sequence", "a position is 0 or more")
        if not 0 <= request.delay_ms <= _DAY_MS or (request.delay_ms and audience != ALL):
            raise _invalid("delay_ms", f"delay_ms is from 0 to {_DAY_MS}, and only for the view `all`")
        watcher = self._hall.watchers.admit(caller.who)
        slow = False
        try:
            story = await self._stories.of(request.match_id)
            holder = "" if caller.host or caller.agent is None or audience < 0 else caller.agent.agent_id
            watch = _Watch(self._hall, request, audience, story, watcher, holder)
            async for response in watch.responses(self._heartbeat_s):
                watcher.check()
                yield response
            watcher.check()
        except RefusedError as error:
            slow = error.reason == reason_pb.ERROR_REASON_SLOW_CONSUMER
            raise
        finally:
            self._hall.watchers.leave(watcher, slow=slow)

    def _audience(self, request: pb.WatchMatchRequest, caller: Caller) -> int:
        """Returns the audience of a view, if the caller may have it."""
        row = self._hall.journal.match(request.match_id) if len(request.match_id) <= 64 else None
        kind = request.view.WhichOneof("kind")
        if kind is None:
            raise _invalid("view", "a view is public, a seat, or all")
        summary = match_pb2.Match.FromString(row.summary) if row is not None else match_pb2.Match()
        if caller.host:
            if row is None:
                raise unknown_match(request.match_id)
            if kind == "seat" and not 0 <= request.view.seat < len(summary.seats):
                raise _invalid("view.seat", f"the match has seats 0 to {len(summary.seats) - 1}")
        elif kind == "seat":
            if caller.agent is None:
                raise unknown_credential()
            seats = [seat.seat for seat in summary.seats if seat.agent_id == caller.agent.agent_id]
            if request.view.seat not in seats:
                # The same for a match that does not exist, so that nobody learns whether it does.
                raise _no_seat(request.match_id)
        elif kind == "all" and (row is None or not row.final):
            raise RefusedError(
                reason_pb.ERROR_REASON_VIEW_FORBIDDEN, "before the end, only the host sees all", view="all"
            )
        if row is None:
            raise unknown_match(request.match_id)
        if kind == "public" and not caller.host and is_held_back(row):
            raise RefusedError(
                reason_pb.ERROR_REASON_VIEW_FORBIDDEN,
                "other tables play the same cards; until they have ended, only the host sees this one",
                view="public",
            )
        return {"public": PUBLIC, "all": ALL}.get(kind, request.view.seat)

    def _row(self, match_id: str) -> MatchRow:
        row = self._hall.journal.match(match_id)
        if row is None:
            raise unknown_match(match_id)
        return row


class _Watch:
    """One watcher: reads the journal at its own pace, so that it holds up nobody."""

    def __init__(
        self, hall: Hall, request: pb.WatchMatchRequest, audience: int, story: Story, watcher: Watcher, holder: str
    ) -> None:
        self._hall = hall
        # Whose seat it is that is watched, where only that agent may: no longer than it has it.
        self._holder = holder
        self._audience = audience
        if holder and story.match.seats[audience].agent_id != holder:
            raise _no_seat(request.match_id)
        self._watcher = watcher
        self._request = request
        history = story.view(audience)
        self._projector = Projector(audience, story.match.game)
        self._projector.through, self._projector.seen_through = len(history), len(story.events)
        if request.after_sequence > len(history):
            raise RefusedError(
                reason_pb.ERROR_REASON_POSITION_BEYOND_END,
                f"the view has {len(history)} events so far",
                newest=len(history),
            )
        self._history = history[request.after_sequence :]
        self._known = len(story.events)
        self._first = pb.WatchMatchResponse(through_sequence=request.after_sequence)
        if request.delay_ms == 0:
            hall.steps.run(lambda: _snapshot(story.match, audience, self._first))
        self._failure: Exception | None = None

    async def responses(self, heartbeat_s: float) -> AsyncIterator[pb.WatchMatchResponse]:
        yield self._first
        if self._request.delay_ms == 0:
            through = self._request.after_sequence
            for start in range(0, len(self._history), _PIECE):
                piece = self._history[start : start + _PIECE]
                through += len(piece)
                yield pb.WatchMatchResponse(events=piece, through_sequence=through)
            self._history = []
        async for response in self._live(heartbeat_s):
            yield response
        row = self._hall.journal.match(self._request.match_id)
        if row is not None and row.state in ENDED:
            yield pb.WatchMatchResponse(through_sequence=self._projector.through, result=match_of(row).result)

    async def _live(self, heartbeat_s: float) -> AsyncIterator[pb.WatchMatchResponse]:
        delay_us = self._request.delay_ms * 1_000
        queue: asyncio.Queue[list[event_pb2.MatchEvent] | None] = asyncio.Queue(4)
        follower = asyncio.ensure_future(self._follow(queue, delayed=bool(delay_us)))
        self._watcher.on_end = lambda: _end(queue)
        through = self._projector.through if not delay_us else self._request.after_sequence
        try:
            while True:
                try:
                    # Not `wait_for`: in Python 3.11 it swallows a cancellation that comes together with an event.
                    async with asyncio.timeout(heartbeat_s):
                        events = await queue.get()
                except TimeoutError:
                    yield pb.WatchMatchResponse(through_sequence=through)
                    continue
                if events is None:
                    break
                for event in events:
                    while delay_us and self._behind_us(event) < delay_us:
                        pause_s = (delay_us - self._behind_us(event)) / 1_000_000
                        await self._watcher.pause(min(pause_s, heartbeat_s))
                        yield pb.WatchMatchResponse(through_sequence=through)
                    through = event.sequence
                    if delay_us:
                        yield pb.WatchMatchResponse(events=[event], through_sequence=through)
                if not delay_us:
                    yield pb.WatchMatchResponse(events=events, through_sequence=through)
            if self._failure is not None:
                raise self._failure
        finally:
            follower.cancel()
            await asyncio.wait((follower,))

    def _behind_us(self, event: event_pb2.MatchEvent) -> int:
        table = self._hall.matches.running.get(self._request.match_id)
        return table.now_us - event.match_time_us if table is not None else _DAY_MS * 1_000

    async def _follow(self, queue: asyncio.Queue[list[event_pb2.MatchEvent] | None], *, delayed: bool) -> None:
        if delayed and self._history:
            await queue.put(list(self._history))
        try:
            async for _, records in self._hall.journal.follow(self._request.match_id, self._known):
                events, given_back = self._own(parse(records))
                seen = self._hall.steps.run(partial(self._projector.see, events))
                for start in range(0, len(seen), _PIECE):
                    await queue.put(seen[start : start + _PIECE])
                if given_back:
                    self._failure = _no_seat(self._request.match_id)
                    break
                # The more watch, the more each of them is told at once: together they cost no more than they may.
                await asyncio.sleep(self._hall.watchers.count / WATCHER_MESSAGES_PER_S)
        except Exception as error:
            self._failure = error  # raised where the watcher waits
        await queue.put(None)

    def _own(self, events: list[event_pb2.MatchEvent]) -> tuple[list[event_pb2.MatchEvent], bool]:
        """Returns the events up to where the seat is open again, if whoever watches had it; and whether it is."""
        if self._holder:
            for place, event in enumerate(events):
                if event.HasField("seat_reopened") and event.seat_reopened.seat == self._audience:
                    return events[: place + 1], True
        return events, False


def _no_seat(match_id: str) -> RefusedError:
    return RefusedError(reason_pb.ERROR_REASON_NO_SEAT, "this agent has no such seat", match_id=shown(match_id))


def _end(queue: asyncio.Queue[list[event_pb2.MatchEvent] | None]) -> None:
    """Lets who waits for events find that there are no more."""
    while not queue.empty():
        queue.get_nowait()
    queue.put_nowait(None)


def _snapshot(match: Match, audience: int, into: pb.WatchMatchResponse) -> None:
    """Shows the table as it stands; for `all`, as everybody sees it, since the events hold the rest."""
    if match.engine is not None:
        convert.view_into(match.engine.view(max(audience, PUBLIC)), into)


def _invalid(field: str, message: str) -> RefusedError:
    return RefusedError(reason_pb.ERROR_REASON_FIELD_INVALID, message, field=field)


def _known(states: object) -> list[match_pb2.MatchState.ValueType]:
    known = [state for state in list(states) if state in match_pb2.MatchState.values() and state]  # type: ignore[call-overload]
    if len(known) != len(list(states)):  # type: ignore[call-overload]
        raise _invalid("states", "a state is one of those of MatchState")
    return known
