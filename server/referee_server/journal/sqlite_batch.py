"""One batch on its way into a SQLite journal: what each record writes, and what it leaves to be remembered."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable
from itertools import count, repeat
from typing import Any, Final

from referee_server.journal import chain, logfile
from referee_server.journal.errors import (
    DamagedLogError,
    MatchFinalError,
    MatchNotFinalError,
    UnknownAgentError,
    UnknownMatchError,
    UnknownTournamentError,
    WrongLogError,
)
from referee_server.journal.model import (
    AgentAdded,
    AgentRevoked,
    EventsAdded,
    LogStored,
    MatchAdded,
    Record,
    SummaryChanged,
    TournamentAdded,
    TournamentNoted,
    TournamentSummarised,
)
from referee_server.journal.sqlite_read import STANDING, Standing, tournament_events

_SWEEP: Final = 5000  # the most events one archived match makes go at once: a few milliseconds


class State:
    """What the journal remembers between batches, so that a commit reads nothing.

    Attributes:
        standings: where the matches that are not final stand, by id.
        kept: first key of the matches whose events are still in the table, by number, ascending.
        last_number: number of the newest match.
        last_key: key of the newest event.
        swept: keys up to this one are gone.
        tournaments: number of each tournament that was written to, with the length and digest of its log.
    """

    __slots__ = ("kept", "last_key", "last_number", "standings", "swept", "tournaments")

    def __init__(self) -> None:
        self.standings: dict[str, Standing] = {}
        self.kept: dict[int, int] = {}
        self.last_number = 0
        self.last_key = 0
        self.swept = 0
        self.tournaments: dict[str, tuple[int, int, bytes]] = {}


class Batch:
    """The records of one transaction. Whoever makes it begins the transaction, and commits it or rolls it back.

    Args:
        db: the connection, within a transaction.
        state: what is remembered; changed by `accept` only.
    """

    def __init__(self, db: sqlite3.Connection, state: State) -> None:
        self.standings: dict[str, Standing] = {}
        """Where the matches that the batch touched stand after it."""
        self._db = db
        self._state = state
        self._last_number = state.last_number
        self._last_key = state.last_key
        self._swept = state.swept
        self._rows: list[tuple[int, int, bytes, bytes]] = []
        self._keys: list[tuple[array[int], range]] = []
        self._kept: dict[int, int] = {}
        self._archived: set[int] = set()
        self._tournaments: dict[str, tuple[int, int, bytes]] = {}

    def write(self, record: Record) -> None:
        """Writes one record; its events may wait for `flush`.

        Raises:
            RefusedError: it contradicts what is stored or was written before it.
            LogError: the match it adds to, or the log it brings, is damaged.
            sqlite3.Error: the storage failed, or something unique is taken.
        """
        _WRITE[type(record)](self, record)

    def flush(self) -> None:
        """Writes the events that are waiting, all at once, and drops those that archived matches left behind."""
        if self._rows:
            self._db.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", self._rows)
        if self._archived:
            kept = self._state.kept
            oldest = next((key for number, key in kept.items() if number not in self._archived), self._state.last_key)
            swept = min(oldest, self._swept + _SWEEP)
            if swept > self._swept:
                self._db.execute("DELETE FROM events WHERE key <= ?", (swept,))
                self._swept = swept

    def accept(self) -> None:
        """Remembers what the batch changed; to be called once it is committed."""
        state = self._state
        state.last_number, state.last_key, state.swept = self._last_number, self._last_key, self._swept
        for keys, added in self._keys:
            keys.extend(added)
        for match_id, standing in self.standings.items():
            if standing.final:
                state.standings.pop(match_id, None)
            else:
                state.standings[match_id] = standing
        state.tournaments.update(self._tournaments)
        state.kept.update(self._kept)
        for number in self._archived:
            state.kept.pop(number, None)

    def _standing(self, match_id: str) -> Standing:
        standing = self.standings.get(match_id) or self._state.standings.get(match_id)
        if standing is not None:
            return standing
        found = self._db.execute(STANDING, (match_id,)).fetchone()
        if found is None:
            raise UnknownMatchError(f"there is no match {match_id}")
        number, event_count, digest, damaged_at, _, first_key, last_key = found
        return Standing(number, chain.Head(event_count, 0, digest), damaged_at, True, first_key, last_key)

    def _add_events(self, record: EventsAdded) -> None:
        match_id = record.match_id
        number, head, damaged_at, final, first_key, last_key, keys = self._standing(match_id)
        if final:
            raise MatchFinalError(f"match {match_id} is final")
        if damaged_at:
            raise DamagedLogError(damaged_at, f"match {match_id} is damaged at event {damaged_at} and takes no more")
        head, checks = chain.extend(head, record.events)
        first = self._last_key + 1
        self._last_key += len(checks)
        self._rows.extend(zip(count(first), repeat(number), record.events, checks))
        self.standings[match_id] = Standing(number, head, 0, False, first_key, last_key, keys)
        if keys is not None:
            self._keys.append((keys, range(first, self._last_key + 1)))

    def _change_summary(self, record: SummaryChanged) -> None:
        standing = self._standing(record.match_id)
        number, head = standing.number, standing.head
        if record.final and not standing.final:
            self._db.execute(
                "UPDATE matches SET state = ?, summary = ?, final = 1, event_count = ?, digest = ?, damaged_at = ?,"
                " last_key = ? WHERE number = ?",
                (
                    record.state,
                    record.summary,
                    head.events,
                    head.digest,
                    standing.damaged_at,
                    self._last_key,
                    number,
                ),
            )
            self.standings[record.match_id] = standing._replace(final=True, last_key=self._last_key, keys=None)
        else:
            self._db.execute(
                "UPDATE matches SET state = ?, summary = ? WHERE number = ?", (record.state, record.summary, number)
            )

    def _add_match(self, record: MatchAdded) -> None:
        number = self._last_number + 1
        self._db.execute(
            "INSERT INTO matches"
            " (number, match_id, request_id, game, state, create_time_ms, first_key, secret, summary)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                record.match_id,
                record.request_id or None,
                record.game,
                record.state,
                record.create_time_ms,
                self._last_key,
                record.secret,
                record.summary,
            ),
        )
        self._last_number = number
        self._kept[number] = self._last_key
        head = chain.start(record.match_id)
        self.standings[record.match_id] = Standing(number, head, 0, False, self._last_key, keys=array("q"))

    def _store_log(self, record: LogStored) -> None:
        standing = self._standing(record.match_id)
        number, head = standing.number, standing.head
        if not standing.final:
            raise MatchNotFinalError(f"match {record.match_id} is not final yet")
        log = logfile.unpack(record.blob)
        same = (log.match_id, len(log.events), log.digest) == (record.match_id, head.events, head.digest)
        if not same or standing.damaged_at:  # what is left of a damaged match stays as it is
            raise WrongLogError(f"this is not the log of match {record.match_id}")
        self._db.execute("INSERT OR REPLACE INTO logs VALUES (?, ?)", (number, record.blob))
        self._db.execute("UPDATE matches SET archived = 1 WHERE number = ?", (number,))
        self._archived.add(number)

    def _add_agent(self, record: AgentAdded) -> None:
        self._db.execute(
            "INSERT INTO agents (agent_id, name, folded_name, credential_hash, create_time_ms) VALUES (?, ?, ?, ?, ?)",
            (record.agent_id, record.name, record.folded_name, record.credential_hash, record.create_time_ms),
        )

    def _revoke_agent(self, record: AgentRevoked) -> None:
        changed = self._db.execute("UPDATE agents SET revoked = 1 WHERE agent_id = ?", (record.agent_id,))
        if not changed.rowcount:
            raise UnknownAgentError(f"there is no agent {record.agent_id}")

    def _add_tournament(self, record: TournamentAdded) -> None:
        number = self._db.execute("SELECT coalesce(max(number), 0) + 1 FROM tournaments").fetchone()[0]
        self._db.execute(
            "INSERT INTO tournaments (number, tournament_id, request_id, state, create_time_ms, secret)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (
                number,
                record.tournament_id,
                record.request_id or None,
                record.state,
                record.create_time_ms,
                record.secret,
            ),
        )
        self._tournaments[record.tournament_id] = number, 0, chain.start(record.tournament_id).digest

    def _note_tournament(self, record: TournamentNoted) -> None:
        tournament_id = record.tournament_id
        known = self._tournaments.get(tournament_id) or self._state.tournaments.get(tournament_id)
        if known is None:
            number, events, digest = tournament_events(self._db, tournament_id)
            known = number, len(events), digest
        number, count, digest = known
        for event in record.events:
            digest = chain.link(digest, event)
            count += 1
            self._db.execute(
                "INSERT INTO tournament_events VALUES (?, ?, ?, ?)", (number, count, event, digest[: chain.CHECK_BYTES])
            )
        self._db.execute("UPDATE tournaments SET state = ? WHERE number = ?", (record.state, number))
        self._tournaments[tournament_id] = number, count, digest

    def _summarise_tournament(self, record: TournamentSummarised) -> None:
        changed = self._db.execute(
            "UPDATE tournaments SET summary = ?, summary_through = ? WHERE tournament_id = ?",
            (record.summary, record.through, record.tournament_id),
        )
        if not changed.rowcount:
            raise UnknownTournamentError(f"there is no tournament {record.tournament_id}")


_WRITE: dict[type[Any], Callable[[Batch, Any], None]] = {
    EventsAdded: Batch._add_events,
    SummaryChanged: Batch._change_summary,
    MatchAdded: Batch._add_match,
    LogStored: Batch._store_log,
    AgentAdded: Batch._add_agent,
    AgentRevoked: Batch._revoke_agent,
    TournamentAdded: Batch._add_tournament,
    TournamentNoted: Batch._note_tournament,
    TournamentSummarised: Batch._summarise_tournament,
}
