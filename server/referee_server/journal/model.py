"""The journal as its users see it: the records that go in, the rows that come out, and the protocol between.

The journal stores bytes. What an event or a summary says is none of its business; it keeps their order, proves that
they are unchanged, and knows of each match the few facts by which it is found.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from referee_server.journal.follow import Cursor


@dataclass(frozen=True, slots=True)
class MatchAdded:
    """A match came into being.

    Attributes:
        match_id: its id, unique.
        game: key of its game.
        request_id: the id by which its creator would ask for it again, unique; empty for none.
        secret: what its cards follow from. Only `secret()` gives it back.
        summary: what lists show of it, in a form of the caller's.
        create_time_ms: when, in milliseconds since 1970; for display only.
        state: a word of the caller's, by which matches can be filtered.
    """

    match_id: str
    game: str
    request_id: str
    secret: bytes = field(repr=False)
    summary: bytes = field(repr=False)
    create_time_ms: int
    state: str


@dataclass(frozen=True, slots=True)
class EventsAdded:
    """Events were added at the end of a match.

    Attributes:
        match_id: the match.
        events: one or more; they get the next numbers in this order.
    """

    match_id: str
    events: tuple[bytes, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SummaryChanged:
    """What lists show of a match changed.

    Attributes:
        match_id: the match.
        state: the new state.
        summary: the new summary.
        final: whether the last event has been added, the reveal of the secret included. From then on the match takes
            no events, its followers come to an end, and it can be archived. Once final, a match stays so.
    """

    match_id: str
    state: str
    summary: bytes = field(repr=False)
    final: bool = False


@dataclass(frozen=True, slots=True)
class LogStored:
    """The events of a final match were packed into its log file, which replaces them.

    Attributes:
        match_id: the match.
        blob: the log file (`logfile.pack`).
    """

    match_id: str
    blob: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class AgentAdded:
    """An agent registered.

    Attributes:
        agent_id: its id, unique.
        name: its name as shown.
        folded_name: its name in the form in which names are compared, unique.
        credential_hash: hash of its credential, unique. Never given back.
        create_time_ms: when, in milliseconds since 1970; for display only.
    """

    agent_id: str
    name: str
    folded_name: str
    credential_hash: bytes = field(repr=False)
    create_time_ms: int


@dataclass(frozen=True, slots=True)
class AgentRevoked:
    """An agent's credential stopped being good. Its name and credential stay taken.

    Attributes:
        agent_id: the agent.
    """

    agent_id: str


@dataclass(frozen=True, slots=True)
class TournamentAdded:
    """A tournament came into being.

    Attributes:
        tournament_id: its id, unique among tournaments.
        request_id: the id by which its creator would ask for it again, unique among tournaments; empty for none.
        secret: its master secret. Only `tournament_secret()` gives it back.
        create_time_ms: when, in milliseconds since 1970; for display only.
        state: a word of the caller's for where it stands.
    """

    tournament_id: str
    request_id: str
    secret: bytes = field(repr=False)
    create_time_ms: int
    state: str


@dataclass(frozen=True, slots=True)
class TournamentNoted:
    """Facts were added at the end of a tournament's log.

    Attributes:
        tournament_id: the tournament.
        events: the facts; they get the next numbers in this order.
        state: where it stands now.
    """

    tournament_id: str
    events: tuple[bytes, ...] = field(repr=False)
    state: str


@dataclass(frozen=True, slots=True)
class TournamentSummarised:
    """What lists show of a tournament was taken from its log.

    Attributes:
        tournament_id: the tournament.
        through: number of the last fact that it takes into account. It is shown as long as none comes after that.
        summary: what lists show, in a form of the caller's.
    """

    tournament_id: str
    through: int
    summary: bytes = field(repr=False)


Record: TypeAlias = (
    MatchAdded
    | EventsAdded
    | SummaryChanged
    | LogStored
    | AgentAdded
    | AgentRevoked
    | TournamentAdded
    | TournamentNoted
    | TournamentSummarised
)


@dataclass(frozen=True, slots=True)
class MatchRow:
    """What is known of a match without reading its events.

    Attributes:
        match_id: its id.
        number: its place in the order of creation, from 1, without gaps.
        game: key of its game.
        state: the caller's word for where it stands.
        summary: what lists show of it.
        create_time_ms: when it was created, in milliseconds since 1970.
        event_count: how many events it has; of a damaged match, how many are intact.
        digest: digest of the last of these events (see `chain`).
        final: whether it takes no more events.
        damaged_at: number of the first event found damaged when the data was opened; 0 for none.
    """

    match_id: str
    number: int
    game: str
    state: str
    summary: bytes = field(repr=False)
    create_time_ms: int
    event_count: int
    digest: bytes
    final: bool
    damaged_at: int = 0


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent that registered.

    Attributes:
        agent_id: its id.
        name: its name as shown.
        folded_name: its name as compared.
        create_time_ms: when it registered, in milliseconds since 1970.
        revoked: whether its credential is no longer good.
    """

    agent_id: str
    name: str
    folded_name: str
    create_time_ms: int
    revoked: bool


@dataclass(frozen=True, slots=True)
class TournamentRow:
    """What is known of a tournament without reading its log.

    Attributes:
        tournament_id: its id.
        number: its place in the order of creation, from 1, without gaps.
        state: the caller's word for where it stands.
        create_time_ms: when it was created, in milliseconds since 1970.
        summary: what lists show of it; empty where there is none that takes the whole log into account.
    """

    tournament_id: str
    number: int
    state: str
    create_time_ms: int
    summary: bytes = field(default=b"", repr=False)


class JournalReader(Protocol):
    """The questions a journal answers. All of them see what is committed, and nothing else.

    Every method raises `StorageError` when the storage fails, and `ClosedError` after `close`.
    """

    def match(self, match_id: str) -> MatchRow | None:
        """Returns the match with that id."""

    def match_by_request(self, request_id: str) -> MatchRow | None:
        """Returns the match that was created under that request id."""

    def matches(
        self, *, after_number: int = 0, limit: int = 100, states: Collection[str] = (), newest_first: bool = False
    ) -> list[MatchRow]:
        """Returns one page of the matches in the order of their numbers.

        Args:
            after_number: the number of the last match of the page before, 0 for the first page.
            limit: the most matches to return, at least 1.
            states: only matches in one of these states; all when empty.
            newest_first: in descending order.
        """

    def running(self) -> list[MatchRow]:
        """Returns the matches that are not final, oldest first."""

    def unarchived(self) -> list[MatchRow]:
        """Returns the intact matches that are final and whose log file has not been stored, oldest first."""

    def secret(self, match_id: str) -> bytes:
        """Returns the secret of a match. Nothing else gives it away.

        Raises:
            UnknownMatchError: there is no such match.
        """

    def read(self, match_id: str, after: int = 0, limit: int | None = None) -> list[bytes]:
        """Returns events of a match, wherever they are kept, once the chain up to them has proved right.

        Args:
            match_id: the match.
            after: the number of the last event not wanted, 0 for none.
            limit: the most events to return; None for all there are.

        Raises:
            UnknownMatchError: there is no such match.
            LogError: an event up to the last one asked for is damaged or missing; `place` names it.
        """

    def running_events(self) -> Iterator[tuple[str, bytes]]:
        """Yields the events of all intact matches that are not final, each with the id of its match, in one pass.

        Those of one match come in their order; the matches lie among each other. For taking up many matches at once:
        asking for one after the other takes several times as long.
        """

    def agent(self, agent_id: str) -> AgentRow | None:
        """Returns the agent with that id, revoked or not."""

    def agent_by_hash(self, credential_hash: bytes) -> AgentRow | None:
        """Returns the agent whose credential has that hash, revoked or not."""

    def agent_by_name(self, folded_name: str) -> AgentRow | None:
        """Returns the agent of that folded name, revoked or not."""

    def agents(self) -> list[AgentRow]:
        """Returns all agents in the order in which they registered."""

    def tournament(self, tournament_id: str) -> TournamentRow | None:
        """Returns the tournament with that id."""

    def tournament_by_request(self, request_id: str) -> TournamentRow | None:
        """Returns the tournament that was created under that request id."""

    def tournaments(self) -> list[TournamentRow]:
        """Returns all tournaments, oldest first."""

    def newest_tournaments(self, *, before_number: int = 0, limit: int = 100) -> list[TournamentRow]:
        """Returns a page of tournaments, newest first.

        Args:
            before_number: only those with a lower number; 0 for all.
            limit: the most to return, at least 1.
        """

    def tournament_secret(self, tournament_id: str) -> bytes:
        """Returns the master secret of a tournament. Nothing else gives it away.

        Raises:
            UnknownTournamentError: there is no such tournament.
        """

    def tournament_log(self, tournament_id: str) -> list[bytes]:
        """Returns the log of a tournament, once its chain has proved right.

        Raises:
            UnknownTournamentError: there is no such tournament.
            DamagedLogError: an event is damaged or missing; `place` names it.
        """

    def close(self) -> None:
        """Gives everything back. Closing twice does no harm."""


class Journal(JournalReader, Protocol):
    """A store that only ever grows: matches, their events, agents.

    Calls may come from any thread and wait for each other; `follow` belongs to the event loop that iterates it.
    """

    def commit(self, batch: Sequence[Record]) -> None:
        """Writes all records, which may be of many matches, in one transaction and in their order.

        When it returns, everything is stored as durably as was asked for, and followers have been woken. When it
        raises, nothing is.

        Raises:
            RefusedError: a record contradicts what is stored.
            LogError: events were to be added to a match that is damaged, or a log file is damaged.
            StorageError: the storage failed.
        """

    def follow(self, match_id: str, after: int = 0) -> AsyncGenerator[tuple[int, tuple[bytes, ...]], None]:
        """Yields the events of a match, those there are and those to come, in one sequence without gaps.

        Ends once the match is final and all has been given. A slow follower holds up nobody. One that is
        abandoned leaves nothing behind: at once when it is cancelled or closed (`aclose`), soon when it is forgotten.

        Args:
            match_id: the match.
            after: the number of the last event not wanted, 0 for none.

        Yields:
            The number of the first event of a group, and the group, never empty.

        Raises:
            UnknownMatchError: there is no such match.
            LogError: the next event is damaged; all before it have been given.
            ClosedError: the journal was closed meanwhile.
        """

    def advance(self, cursor: Cursor, limit: int) -> tuple[list[bytes], bool]:
        """Returns the next events for a cursor, at most `limit`, and whether none will ever follow; moves it on.

        Costs as much as there is that is new, however long the match is.

        Raises:
            UnknownMatchError: there is no such match.
            LogError: the next event is damaged; all before it have been given.
        """

    def checkpoint(self) -> int:
        """Moves what was committed from the side files to where it stays. Nothing becomes safer by it, only tidier.

        Commits wait meanwhile (milliseconds, if it is called often), so call it when little is going on.

        Returns:
            How many pages are still to be moved, because somebody is reading.
        """
