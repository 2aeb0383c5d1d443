"""A journal that lives in memory: for tests, and for matches that need no keeping."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from referee_server.journal import chain, logfile
from referee_server.journal.errors import (
    ClosedError,
    DuplicateError,
    MatchFinalError,
    MatchNotFinalError,
    UnknownAgentError,
    UnknownMatchError,
    UnknownTournamentError,
    WrongLogError,
)
from referee_server.journal.follow import Cursor, Followers
from referee_server.journal.model import (
    AgentAdded,
    AgentRevoked,
    AgentRow,
    EventsAdded,
    LogStored,
    MatchAdded,
    MatchRow,
    Record,
    SummaryChanged,
    TournamentAdded,
    TournamentNoted,
    TournamentRow,
    TournamentSummarised,
)


@dataclass(slots=True)
class _Match:
    row: MatchRow
    secret: bytes = field(repr=False)
    head: chain.Head
    events: list[bytes]
    added: list[bytes]  # by the batch in hand; they join the events when the whole batch has been accepted
    log: bytes | None = None


@dataclass(frozen=True, slots=True)
class _Tournament:
    row: TournamentRow
    request_id: str
    secret: bytes = field(repr=False)
    events: tuple[bytes, ...] = ()
    summary: bytes = field(default=b"", repr=False)
    summary_through: int = 0

    @property
    def shown(self) -> TournamentRow:
        """The row with the summary, if that is of the whole log."""
        return replace(self.row, summary=self.summary) if self.summary_through == len(self.events) else self.row


@dataclass(slots=True)
class _Agent:
    row: AgentRow
    credential_hash: bytes = field(repr=False)


class _Staged:
    """What a batch would change. Nothing of the journal is touched until all of it has been accepted."""

    def __init__(self, journal: MemoryJournal) -> None:
        self.matches: dict[str, _Match] = {}
        self.requests: dict[str, str] = {}
        self.agents: dict[str, _Agent] = {}
        self.tournaments: dict[str, _Tournament] = {}
        self._journal = journal
        self._apply: dict[type[Any], Callable[[Any], None]] = {
            MatchAdded: self._add_match,
            EventsAdded: self._add_events,
            SummaryChanged: self._change_summary,
            LogStored: self._store_log,
            AgentAdded: self._add_agent,
            AgentRevoked: self._revoke_agent,
            TournamentAdded: self._add_tournament,
            TournamentNoted: self._note_tournament,
            TournamentSummarised: self._summarise_tournament,
        }

    def apply(self, record: Record) -> None:
        self._apply[type(record)](record)

    def _match(self, match_id: str) -> _Match:
        match = self.matches.get(match_id)
        if match is None:
            kept = self._journal._matches.get(match_id)
            if kept is None:
                raise UnknownMatchError(f"there is no match {match_id}")
            match = self.matches[match_id] = replace(kept, added=[])
        return match

    def _add_match(self, record: MatchAdded) -> None:
        kept = self._journal._matches
        if record.match_id in kept or record.match_id in self.matches:
            raise DuplicateError("match_id")
        if record.request_id:
            if record.request_id in self._journal._requests or record.request_id in self.requests:
                raise DuplicateError("request_id")
            self.requests[record.request_id] = record.match_id
        head = chain.start(record.match_id)
        number = len(kept) + sum(match_id not in kept for match_id in self.matches) + 1
        row = MatchRow(
            match_id=record.match_id,
            number=number,
            game=record.game,
            state=record.state,
            summary=record.summary,
            create_time_ms=record.create_time_ms,
            event_count=0,
            digest=head.digest,
            final=False,
        )
        self.matches[record.match_id] = _Match(row, record.secret, head, [], [])

    def _add_events(self, record: EventsAdded) -> None:
        match = self._match(record.match_id)
        if match.row.final:
            raise MatchFinalError(f"match {record.match_id} is final")
        match.head, _ = chain.extend(match.head, record.events)
        match.added.extend(record.events)
        match.row = replace(match.row, event_count=match.head.events, digest=match.head.digest)

    def _change_summary(self, record: SummaryChanged) -> None:
        match = self._match(record.match_id)
        final = match.row.final or record.final
        match.row = replace(match.row, state=record.state, summary=record.summary, final=final)

    def _store_log(self, record: LogStored) -> None:
        match = self._match(record.match_id)
        if not match.row.final:
            raise MatchNotFinalError(f"match {record.match_id} is not final yet")
        log = logfile.unpack(record.blob)
        if (log.match_id, len(log.events), log.digest) != (record.match_id, match.head.events, match.head.digest):
            raise WrongLogError(f"this is not the log of match {record.match_id}")
        match.log, match.events, match.added = record.blob, [], []

    def _add_agent(self, record: AgentAdded) -> None:
        for other in (*self._journal._agents.values(), *self.agents.values()):
            if other.row.agent_id == record.agent_id:
                raise DuplicateError("agent_id")
            if other.row.folded_name == record.folded_name:
                raise DuplicateError("folded_name")
            if other.credential_hash == record.credential_hash:
                raise DuplicateError("credential_hash")
        row = AgentRow(record.agent_id, record.name, record.folded_name, record.create_time_ms, revoked=False)
        self.agents[record.agent_id] = _Agent(row, record.credential_hash)

    def _revoke_agent(self, record: AgentRevoked) -> None:
        agent = self.agents.get(record.agent_id) or self._journal._agents.get(record.agent_id)
        if agent is None:
            raise UnknownAgentError(f"there is no agent {record.agent_id}")
        self.agents[record.agent_id] = replace(agent, row=replace(agent.row, revoked=True))

    def _add_tournament(self, record: TournamentAdded) -> None:
        others = {**self._journal._tournaments, **self.tournaments}
        if record.tournament_id in others:
            raise DuplicateError("tournament_id")
        if record.request_id and any(other.request_id == record.request_id for other in others.values()):
            raise DuplicateError("request_id")
        row = TournamentRow(record.tournament_id, len(others) + 1, record.state, record.create_time_ms)
        self.tournaments[record.tournament_id] = _Tournament(row, record.request_id, record.secret)

    def _tournament(self, tournament_id: str) -> _Tournament:
        kept = self.tournaments.get(tournament_id) or self._journal._tournaments.get(tournament_id)
        if kept is None:
            raise UnknownTournamentError(f"there is no tournament {tournament_id}")
        return kept

    def _note_tournament(self, record: TournamentNoted) -> None:
        kept = self._tournament(record.tournament_id)
        self.tournaments[record.tournament_id] = replace(
            kept, row=replace(kept.row, state=record.state), events=kept.events + record.events
        )

    def _summarise_tournament(self, record: TournamentSummarised) -> None:
        self.tournaments[record.tournament_id] = replace(
            self._tournament(record.tournament_id), summary=record.summary, summary_through=record.through
        )


class MemoryJournal:
    """Implements `Journal` in memory."""

    def __init__(self) -> None:
        self._matches: dict[str, _Match] = {}
        self._requests: dict[str, str] = {}
        self._agents: dict[str, _Agent] = {}
        self._tournaments: dict[str, _Tournament] = {}
        self._followers = Followers(self)
        self._lock = Lock()
        self._closed = False

    def commit(self, batch: Sequence[Record]) -> None:
        """See `Journal.commit`."""
        with self._session():
            staged = _Staged(self)
            for record in batch:
                staged.apply(record)
            for match in staged.matches.values():
                match.events.extend(match.added)
                match.added = []
            self._matches.update(staged.matches)
            self._requests.update(staged.requests)
            self._agents.update(staged.agents)
            self._tournaments.update(staged.tournaments)
        self._followers.wake(staged.matches)

    def match(self, match_id: str) -> MatchRow | None:
        """See `JournalReader.match`."""
        with self._session():
            match = self._matches.get(match_id)
            return match.row if match else None

    def match_by_request(self, request_id: str) -> MatchRow | None:
        """See `JournalReader.match_by_request`."""
        with self._session():
            match_id = self._requests.get(request_id)
            return self._matches[match_id].row if match_id else None

    def matches(
        self, *, after_number: int = 0, limit: int = 100, states: Collection[str] = (), newest_first: bool = False
    ) -> list[MatchRow]:
        """See `JournalReader.matches`."""
        if limit < 1:
            raise ValueError("a page holds at least one match")
        with self._session():
            rows = [match.row for match in self._matches.values() if not states or match.row.state in states]
        if newest_first:
            rows = [row for row in reversed(rows) if not after_number or row.number < after_number]
        else:
            rows = [row for row in rows if row.number > after_number]
        return rows[:limit]

    def running(self) -> list[MatchRow]:
        """See `JournalReader.running`."""
        with self._session():
            return [match.row for match in self._matches.values() if not match.row.final]

    def unarchived(self) -> list[MatchRow]:
        """See `JournalReader.unarchived`."""
        with self._session():
            return [match.row for match in self._matches.values() if match.row.final and match.log is None]

    def secret(self, match_id: str) -> bytes:
        """See `JournalReader.secret`."""
        with self._session():
            return self._known(match_id).secret

    def read(self, match_id: str, after: int = 0, limit: int | None = None) -> list[bytes]:
        """See `JournalReader.read`."""
        if after < 0 or (limit is not None and limit < 0):
            raise ValueError("events are numbered from 1, and a limit is no less than 0")
        with self._session():
            return self._events(match_id, after, limit)

    def running_events(self) -> Iterator[tuple[str, bytes]]:
        """See `JournalReader.running_events`."""
        for row in self.running():
            if not row.damaged_at:
                yield from ((row.match_id, event) for event in self.read(row.match_id))

    def follow(self, match_id: str, after: int = 0) -> AsyncGenerator[tuple[int, tuple[bytes, ...]], None]:
        """See `Journal.follow`."""
        return self._followers.follow(match_id, after)

    def advance(self, cursor: Cursor, limit: int) -> tuple[list[bytes], bool]:
        """See `follow.Source`."""
        with self._session():
            events = self._events(cursor.match_id, cursor.after, limit)
            cursor.after += len(events)
            row = self._matches[cursor.match_id].row
            return events, row.final and cursor.after >= row.event_count

    def agent(self, agent_id: str) -> AgentRow | None:
        """See `JournalReader.agent`."""
        return self._find_agent(lambda agent: agent.row.agent_id == agent_id)

    def agent_by_hash(self, credential_hash: bytes) -> AgentRow | None:
        """See `JournalReader.agent_by_hash`."""
        return self._find_agent(lambda agent: agent.credential_hash == credential_hash)

    def agent_by_name(self, folded_name: str) -> AgentRow | None:
        """See `JournalReader.agent_by_name`."""
        return self._find_agent(lambda agent: agent.row.folded_name == folded_name)

    def agents(self) -> list[AgentRow]:
        """See `JournalReader.agents`."""
        with self._session():
            return [agent.row for agent in self._agents.values()]

    def tournament(self, tournament_id: str) -> TournamentRow | None:
        """See `JournalReader.tournament`."""
        with self._session():
            found = self._tournaments.get(tournament_id)
            return found.shown if found is not None else None

    def tournament_by_request(self, request_id: str) -> TournamentRow | None:
        """See `JournalReader.tournament_by_request`."""
        with self._session():
            found = (one.shown for one in self._tournaments.values() if one.request_id == request_id)
            return next(found, None) if request_id else None

    def tournaments(self) -> list[TournamentRow]:
        """See `JournalReader.tournaments`."""
        with self._session():
            return [tournament.shown for tournament in self._tournaments.values()]

    def newest_tournaments(self, *, before_number: int = 0, limit: int = 100) -> list[TournamentRow]:
        """See `JournalReader.newest_tournaments`."""
        if limit < 1:
            raise ValueError("a page holds at least one tournament")
        rows = [row for row in reversed(self.tournaments()) if not before_number or row.number < before_number]
        return rows[:limit]

    def tournament_secret(self, tournament_id: str) -> bytes:
        """See `JournalReader.tournament_secret`."""
        return self._tournament(tournament_id).secret

    def tournament_log(self, tournament_id: str) -> list[bytes]:
        """See `JournalReader.tournament_log`."""
        return list(self._tournament(tournament_id).events)

    def _tournament(self, tournament_id: str) -> _Tournament:
        with self._session():
            found = self._tournaments.get(tournament_id)
        if found is None:
            raise UnknownTournamentError(f"there is no tournament {tournament_id}")
        return found

    def checkpoint(self) -> int:
        """See `Journal.checkpoint`. There is nothing to move."""
        with self._session():
            return 0

    def close(self) -> None:
        """See `JournalReader.close`."""
        self._closed = True
        self._followers.wake_all()

    @contextmanager
    def _session(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise ClosedError("the journal is closed")
            yield

    def _known(self, match_id: str) -> _Match:
        match = self._matches.get(match_id)
        if match is None:
            raise UnknownMatchError(f"there is no match {match_id}")
        return match

    def _events(self, match_id: str, after: int, limit: int | None) -> list[bytes]:
        match = self._known(match_id)
        events: Sequence[bytes] = match.events if match.log is None else logfile.unpack(match.log).events
        return list(events[after:] if limit is None else events[after : after + limit])

    def _find_agent(self, fits: Callable[[_Agent], bool]) -> AgentRow | None:
        with self._session():
            return next((agent.row for agent in self._agents.values() if fits(agent)), None)
