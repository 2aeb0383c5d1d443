"""What a match tells the agents at its seats: that it is offered, questions, events, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from referee.v1 import event_pb2
from referee_server import failpoints
from referee_server.tables import messages
from referee_server.tables.feed import Feed
from referee_server.tables.host import Host
from referee_server.tables.session import Session

if TYPE_CHECKING:
    from referee_server.tables.table import Table


class Telling:
    """Tells the agents of one match; nothing before that which it tells of is stored.

    Attributes:
        feeds: the events on their way to the streams that want them, by seat.
        unsaid: verdicts that are told once the end of the match is stored, since they say that it is over.
    """

    __slots__ = ("_host", "_match_id", "_table", "feeds", "unsaid")

    def __init__(self, table: Table, host: Host) -> None:
        """Makes it for one match.

        Args:
            table: the match.
            host: the hall.
        """
        self.feeds: dict[int, Feed] = {}
        self.unsaid: list[Callable[[], None]] = []
        self._table = table
        self._match_id = table.match_id
        self._host = host

    def offered(self, session: Session, seat: int) -> None:
        """Offers the match, perhaps again, and sends the events if they are wanted: those missed, then new ones."""
        match = self._table.match
        self._host.committer.tell(session, messages.match_offered(match, seat), self._match_id)
        if session.hello.wants_events:
            after = session.positions.get(self._match_id, 0)
            feed = self.feeds[seat] = Feed(session, self._match_id, seat, match.game, after, self._host)
            self._host.committer.then(feed.start)

    def question(self, session: Session, seat: int) -> None:
        """Puts the question that is open."""
        table, host = self._table, self._host
        question = host.steps.run(lambda: messages.decision(table.match, seat, table.now_us))
        host.committer.tell(session, question, self._match_id)

    def events(self, events: Sequence[event_pb2.MatchEvent]) -> None:
        """Sends events that have been stored to the streams that want them."""
        for seat, feed in tuple(self.feeds.items()):
            try:
                feed.tell(events)
            except Exception:
                del self.feeds[seat]
                self._table.fail()

    def unfollow(self, seat: int) -> None:
        """Sends a seat no more events, not even those that are on their way."""
        feed = self.feeds.pop(seat, None)
        if feed is not None:
            feed.close()

    def not_playing(self, session: Session, seat: int) -> None:
        """Tells an agent that the seat is not its own any more."""
        self._host.committer.tell(session, messages.not_playing(self._match_id, seat), self._match_id)

    def over(self) -> None:
        """Tells how the match has ended. To be called once its end is stored."""
        failpoints.hit("match.over")
        match, match_id = self._table.match, self._match_id
        assert match.result is not None
        self.say_unsaid()
        digest = self._host.digest(match_id)
        for seat in match.seats:
            session = self._host.session_of(seat.agent_id) if seat.agent_id else None
            # Who came back with a match in mind is told, too, when it was not offered again before its end.
            if session is not None and (match_id in session.tables or match_id in session.positions):
                session.push(messages.match_over(match_id, seat.seat, match.result, digest))

    def say_unsaid(self) -> None:
        """Tells the verdicts that had to wait for the end of the match."""
        for say in self.unsaid:
            say()
        self.unsaid.clear()
