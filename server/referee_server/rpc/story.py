"""What is stored of a match, read, parsed and replayed once for all who come to watch it.

Every watcher begins with the whole history. A thousand of them, who read too slowly and so are cut off and come back
again and again, would otherwise have the referee do little else than replaying the same matches.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Final

from referee.v1 import event_pb2
from referee_server.journal import Journal
from referee_server.match.state import Match, begin
from referee_server.match.verify import parse
from referee_server.match.views import Projector
from referee_server.tables.creation import unknown_match

KEPT: Final = 8
"""How many stories are kept: some megabytes each at most."""


class Story:
    """A match as far as it is stored.

    Attributes:
        match: its state, by evolve alone. Not to be changed.
        events: its events. Not to be changed.
    """

    match: Match
    events: list[event_pb2.MatchEvent]

    def __init__(self, match_id: str) -> None:
        self.match_id = match_id
        self.events = []
        self._views: dict[int, tuple[Projector, list[event_pb2.MatchEvent]]] = {}

    def catch_up(self, journal: Journal) -> None:
        """Takes in what has been stored since.

        Raises:
            RefusedError: there is no such match.
            LogError: the match is damaged, or not one that this version can follow.
            StorageError: the storage failed.
        """
        row = journal.match(self.match_id)
        if row is None:
            raise unknown_match(self.match_id)
        if self.events and row.event_count == len(self.events) and not row.damaged_at:
            return
        for event in parse(journal.read(self.match_id, len(self.events))):
            if self.events:
                self.match.evolve(event)
            else:
                self.match = begin(event)
            self.events.append(event)

    def view(self, audience: int) -> Sequence[event_pb2.MatchEvent]:
        """Returns what an audience sees of it. Not to be changed."""
        if audience not in self._views:
            self._views[audience] = Projector(audience, self.match.game), []
        projector, seen = self._views[audience]
        seen += projector.see(self.events[projector.seen_through :])
        return seen


class Stories:
    """The stories of the matches that were asked for last. May be asked from any thread, one at a time."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._stories: OrderedDict[str, Story] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def told(self, match_id: str) -> Iterator[Story]:
        """Gives a match's story, as far as it is stored now. It is not to be used afterwards.

        Raises:
            RefusedError: there is no such match.
            LogError: the match is damaged, or not one that this version can follow.
            StorageError: the storage failed.
        """
        with self._lock:
            story = self._stories.pop(match_id, None) or Story(match_id)
            story.catch_up(self._journal)  # one that fails half-way is not kept
            self._stories[match_id] = story
            if len(self._stories) > KEPT:
                self._stories.popitem(last=False)
            yield story
