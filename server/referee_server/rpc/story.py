"""What is stored of a match, read, parsed and replayed once for all who come to watch it.

Every watcher begins with the whole history. A thousand of them, who read too slowly and so are cut off and come back
again and again, would otherwise have the referee do little else than replaying the same matches.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from referee.v1 import event_pb2
from referee_server.journal import Journal
from referee_server.journal.follow import Cursor
from referee_server.match.state import Match, begin
from referee_server.match.verify import parse
from referee_server.match.views import Projector
from referee_server.tables.steps import StepBudget

KEPT: Final = 32
"""How many stories are kept: a megabyte or two each."""
_PIECE: Final = 256


class Story:
    """A match as far as it is stored.

    Attributes:
        match: its state, by evolve alone. Not to be changed.
        events: its events. Not to be changed.
    """

    match: Match
    events: list[event_pb2.MatchEvent]

    def __init__(self, match_id: str, steps: StepBudget) -> None:
        self.events = []
        self._steps = steps
        self._cursor = Cursor(match_id, 0)
        self._views: dict[int, tuple[Projector, list[event_pb2.MatchEvent]]] = {}

    def advance(self, journal: Journal) -> bool:
        """Takes in some of what has been stored since; returns whether there was anything.

        Raises:
            UnknownMatchError: there is no such match.
            LogError: the match is damaged, or not one that this version can follow.
            StorageError: the storage failed.
        """
        records, _ = journal.advance(self._cursor, _PIECE)
        self._steps.run(lambda: self._evolve(parse(records)))
        return bool(records)

    def _evolve(self, events: Sequence[event_pb2.MatchEvent]) -> None:
        for event in events:
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
        seen += self._steps.run(lambda: projector.see(self.events[projector.seen_through :]))
        return seen


class Stories:
    """The stories of the matches that were asked for last."""

    def __init__(self, journal: Journal, steps: StepBudget) -> None:
        """Begins without any.

        Args:
            journal: where matches are stored.
            steps: runs what calls the rules of a game.
        """
        self._journal = journal
        self._steps = steps
        self._stories: OrderedDict[str, Story] = OrderedDict()

    async def of(self, match_id: str) -> Story:
        """Returns a match's story, as far as it is stored now: to be used before the next wait.

        Done in the loop, a few milliseconds at a time. A thread would read in competition with the loop, and every
        row it read would make the next commit wait for its turn.

        Raises:
            UnknownMatchError: there is no such match.
            LogError: the match is damaged, or not one that this version can follow.
            StorageError: the storage failed.
        """
        story = self._stories.pop(match_id, None) or Story(match_id, self._steps)
        self._stories[match_id] = story
        if len(self._stories) > KEPT:
            self._stories.popitem(last=False)
        try:
            while story.advance(self._journal):  # noqa: ASYNC110  others get their turn, nothing is waited for
                await asyncio.sleep(0)
        except Exception:
            self._stories.pop(match_id, None)  # it stopped half-way
            raise
        return story
