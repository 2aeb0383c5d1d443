"""The events of one match on their way to one seat's stream: first what it missed, then what comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import event_pb2
from referee_games.contract import Game
from referee_server.match.verify import parse
from referee_server.match.views import Projector
from referee_server.tables.session import Session
from referee_server.tables.steps import StepBudget

_PIECE: Final = 100
"""How many events of a history go into one item."""


class Source(Protocol):
    """Where a feed comes from."""

    steps: StepBudget

    def stored_events(self, match_id: str) -> list[bytes]:
        """Returns the events of a match that are committed."""


class Feed:
    """One seat's view of a match, sent over one stream. Told only what is committed, it numbers what the seat sees.

    The history is read from the journal when the stream has come to it, not before: an agent that comes back to
    hundreds of matches holds up nobody, and takes no memory for what it has not read.
    """

    __slots__ = ("_after", "_closed", "_host", "_match_id", "_projector", "_seat", "_session", "_through", "_waiting")

    def __init__(self, session: Session, match_id: str, seat: int, game: Game, after: int, host: Source) -> None:
        """Makes a feed. To be started by `start` once everything up to now is committed.

        Args:
            session: the stream.
            match_id: the match.
            seat: whose view.
            game: the game.
            after: number, in the view, of the last event that the agent has.
            host: has the committed events of a match.
        """
        self._session = session
        self._match_id = match_id
        self._seat = seat
        self._projector = Projector(seat, game)
        self._after = after
        self._host = host
        self._closed = False
        # Number of the last event, in the journal, that has been seen; and what came while the history was being sent.
        self._through = 0
        self._waiting: list[event_pb2.MatchEvent] | None = []

    def start(self) -> None:
        """Puts the history into the stream's queue."""
        self._session.push_all(self._history())

    def close(self) -> None:
        """Tells no more, not even of what is in the stream's queue: the seat is its agent's no longer."""
        self._closed = True

    def tell(self, events: Sequence[event_pb2.MatchEvent]) -> None:
        """Takes events that have been committed."""
        if self._closed:
            return
        if self._waiting is not None:
            self._waiting.extend(events)
        else:
            for item in self._items(self._see(events)):
                self._session.push(item)

    def _history(self) -> Iterator[agent_pb.ServerItem]:
        if self._closed:
            return
        seen = self._see(parse(self._host.stored_events(self._match_id)))
        if self._after > len(seen):
            rejected = agent_pb.Rejected(
                reason=reason_pb.ERROR_REASON_POSITION_BEYOND_END,
                message=f"the view has {len(seen)} events so far; they follow from the first",
                match_id=self._match_id,
            )
            yield agent_pb.ServerItem(rejected=rejected)
            self._after = 0
        yield from self._items(seen[self._after :])
        while self._waiting:
            events, self._waiting = self._waiting, []
            yield from self._items(self._see(events))
        self._waiting = None

    def _see(self, events: Sequence[event_pb2.MatchEvent]) -> list[event_pb2.MatchEvent]:
        # What was committed and is about to be told may have been read from the journal already.
        new = [event for event in events if event.sequence > self._through]
        if new:
            self._through = new[-1].sequence
        return self._host.steps.run(lambda: self._projector.see(new))

    def _items(self, events: Sequence[event_pb2.MatchEvent]) -> Iterator[agent_pb.ServerItem]:
        for start in range(0, len(events), _PIECE):
            piece = agent_pb.SeatEvents(match_id=self._match_id, seat=self._seat, events=events[start : start + _PIECE])
            yield agent_pb.ServerItem(events=piece)
