"""The questions a SQLite journal answers, for the referee itself and for commands that run beside it."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple

from referee_server.journal import chain, logfile
from referee_server.journal.errors import (
    ClosedError,
    DamagedLogError,
    LogError,
    TruncatedLogError,
    UnknownMatchError,
    UnknownTournamentError,
)
from referee_server.journal.model import AgentRow, MatchRow, TournamentRow
from referee_server.journal.sqlite_open import storage_error

_MATCH: Final = (
    "SELECT number, match_id, game, state, summary, create_time_ms, final, event_count, digest, damaged_at, first_key"
    " FROM matches"
)
_TOURNAMENT: Final = (
    "SELECT tournament_id, number, state, create_time_ms, CASE summary_through WHEN"
    " (SELECT max(sequence) FROM tournament_events AS e WHERE e.number = t.number) THEN summary ELSE x'' END"
    " FROM tournaments AS t"
)
_AGENT: Final = "SELECT agent_id, name, folded_name, create_time_ms, revoked FROM agents"
STANDING: Final = (
    "SELECT number, event_count, digest, damaged_at, final, first_key, last_key FROM matches WHERE match_id = ?"
)
_NO_LIMIT: Final = (1 << 63) - 1
_PAGE: Final = 2_000


class Standing(NamedTuple):
    """Where a match stands.

    Attributes:
        number: its number.
        head: head of its chain; of a damaged match, up to the last intact event.
        damaged_at: number of the first damaged event, 0 for none.
        final: whether it takes no more events.
        first_key: its events have keys above this one.
        last_key: its events have keys up to this one.
        keys: the keys of its events, if whoever asks has them at hand.
    """

    number: int
    head: chain.Head
    damaged_at: int
    final: bool
    first_key: int
    last_key: int = _NO_LIMIT
    keys: array[int] | None = None


def tournament_events(db: sqlite3.Connection, tournament_id: str) -> tuple[int, list[bytes], bytes]:
    """Returns number, log and last digest of a tournament.

    Raises:
        UnknownTournamentError: there is no such tournament.
        DamagedLogError: an event is damaged or missing.
    """
    found = db.execute("SELECT number FROM tournaments WHERE tournament_id = ?", (tournament_id,)).fetchone()
    if found is None:
        raise UnknownTournamentError(f"there is no tournament {tournament_id}")
    digest = chain.start(tournament_id).digest
    events = []
    query = "SELECT sequence, event, mark FROM tournament_events WHERE number = ? ORDER BY sequence"
    for place, (sequence, event, mark) in enumerate(db.execute(query, found), 1):
        digest = chain.link(digest, event)
        if sequence != place or digest[: chain.CHECK_BYTES] != mark:
            raise DamagedLogError(place, f"the log of tournament {tournament_id} is damaged at event {place}")
        events.append(bytes(event))
    return found[0], events, digest


class SqliteReader:
    """Implements `JournalReader` on one connection.

    Args:
        db: the connection, in autocommit mode; the reader closes it.
        path: the file, for messages.
        snapshots: whether somebody else may be writing, so that each question has to see one state of the data.
    """

    def __init__(self, db: sqlite3.Connection, path: Path, *, snapshots: bool = True) -> None:
        self._db = db
        self._path = path
        self._snapshots = snapshots
        self._lock = Lock()
        self._closed = False
        self._unpacked: tuple[int, logfile.Log] | None = None  # the archived match read last; it is often read on

    def match(self, match_id: str) -> MatchRow | None:
        """See `JournalReader.match`."""
        with self._session():
            return next(iter(self._match_rows(f"{_MATCH} WHERE match_id = ?", match_id)), None)

    def match_by_request(self, request_id: str) -> MatchRow | None:
        """See `JournalReader.match_by_request`."""
        with self._session():
            return next(iter(self._match_rows(f"{_MATCH} WHERE request_id = ?", request_id)), None)

    def matches(
        self, *, after_number: int = 0, limit: int = 100, states: Collection[str] = (), newest_first: bool = False
    ) -> list[MatchRow]:
        """See `JournalReader.matches`."""
        if limit < 1:
            raise ValueError("a page holds at least one match")
        wanted = [f"number {'<' if newest_first and after_number else '>'} ?"]
        if states:
            wanted.append(f"state IN ({','.join('?' * len(states))})")
        order = "DESC" if newest_first else "ASC"
        query = f"{_MATCH} WHERE {' AND '.join(wanted)} ORDER BY number {order} LIMIT ?"
        first = 0 if newest_first and not after_number else after_number
        with self._session():
            return self._match_rows(query, first, *states, limit)

    def running(self) -> list[MatchRow]:
        """See `JournalReader.running`."""
        with self._session():
            return self._match_rows(f"{_MATCH} WHERE final = 0 ORDER BY number")

    def unarchived(self) -> list[MatchRow]:
        """See `JournalReader.unarchived`."""
        with self._session():
            rows = self._match_rows(f"{_MATCH} WHERE final = 1 AND archived = 0 ORDER BY number")
        return [row for row in rows if not row.damaged_at]

    def secret(self, match_id: str) -> bytes:
        """See `JournalReader.secret`."""
        with self._session():
            for (secret,) in self._query("SELECT secret FROM matches WHERE match_id = ?", match_id):
                return bytes(secret)
        raise UnknownMatchError(f"there is no match {match_id}")

    def read(self, match_id: str, after: int = 0, limit: int | None = None) -> list[bytes]:
        """See `JournalReader.read`."""
        if after < 0 or (limit is not None and limit < 0):
            raise ValueError("events are numbered from 1, and a limit is no less than 0")
        with self._session():
            events, _, damage = self._walk(match_id, self._standing(match_id), after, limit, None)
        if damage is not None:
            raise damage
        return events

    def running_events(self) -> Iterator[tuple[str, bytes]]:
        """See `JournalReader.running_events`."""
        wanted = {row.number: row.match_id for row in self.running() if not row.damaged_at}
        if not wanted:
            return
        after = self._query("SELECT min(first_key) FROM matches WHERE final = 0")[0][0]
        while True:
            # Page by page, so that nobody else has to wait, and without sorting: keys are in order of arrival.
            with self._session():
                page = self._query(
                    "SELECT key, number, event FROM events WHERE key > ? ORDER BY key LIMIT ?", after, _PAGE
                )
            if not page:
                return
            after = page[-1][0]
            for _, number, event in page:
                match_id = wanted.get(number)
                if match_id is not None:
                    yield match_id, event

    def agent(self, agent_id: str) -> AgentRow | None:
        """See `JournalReader.agent`."""
        return self._first_agent("agent_id = ?", agent_id)

    def agent_by_hash(self, credential_hash: bytes) -> AgentRow | None:
        """See `JournalReader.agent_by_hash`."""
        return self._first_agent("credential_hash = ?", credential_hash)

    def agent_by_name(self, folded_name: str) -> AgentRow | None:
        """See `JournalReader.agent_by_name`."""
        return self._first_agent("folded_name = ?", folded_name)

    def agents(self) -> list[AgentRow]:
        """See `JournalReader.agents`."""
        with self._session():
            return [_agent_row(values) for values in self._query(f"{_AGENT} ORDER BY number")]

    def tournament(self, tournament_id: str) -> TournamentRow | None:
        """See `JournalReader.tournament`."""
        return next(iter(self._tournament_rows("WHERE tournament_id = ?", tournament_id)), None)

    def tournament_by_request(self, request_id: str) -> TournamentRow | None:
        """See `JournalReader.tournament_by_request`."""
        return next(iter(self._tournament_rows("WHERE request_id = ?", request_id)), None)

    def tournaments(self) -> list[TournamentRow]:
        """See `JournalReader.tournaments`."""
        return self._tournament_rows("ORDER BY number")

    def newest_tournaments(self, *, before_number: int = 0, limit: int = 100) -> list[TournamentRow]:
        """See `JournalReader.newest_tournaments`."""
        if limit < 1:
            raise ValueError("a page holds at least one tournament")
        before = before_number or _NO_LIMIT
        return self._tournament_rows("WHERE number < ? ORDER BY number DESC LIMIT ?", before, limit)

    def _tournament_rows(self, condition: str, *values: object) -> list[TournamentRow]:
        with self._session():
            return [TournamentRow(*row) for row in self._query(f"{_TOURNAMENT} {condition}", *values)]

    def tournament_secret(self, tournament_id: str) -> bytes:
        """See `JournalReader.tournament_secret`."""
        with self._session():
            for (secret,) in self._query("SELECT secret FROM tournaments WHERE tournament_id = ?", tournament_id):
                return bytes(secret)
        raise UnknownTournamentError(f"there is no tournament {tournament_id}")

    def tournament_log(self, tournament_id: str) -> list[bytes]:
        """See `JournalReader.tournament_log`."""
        with self._session():
            try:
                return tournament_events(self._db, tournament_id)[1]
            except sqlite3.Error as error:
                raise storage_error(error, self._path) from error

    def close(self) -> None:
        """See `JournalReader.close`."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._db.close()

    @contextmanager
    def _session(self) -> Iterator[None]:
        """Keeps other threads out and, where somebody else may write, shows one state of the data throughout."""
        with self._lock:
            if self._closed:
                raise ClosedError("the journal is closed")
            if not self._snapshots:
                yield
                return
            self._query("BEGIN")
            try:
                yield
            finally:
                self._query("COMMIT")

    def _query(self, query: str, *values: Any) -> list[Any]:
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise storage_error(error, self._path) from error

    def _match_rows(self, query: str, *values: Any) -> list[MatchRow]:
        found = self._query(query, *values)
        live = self._live([(row[0], row[1], row[-1]) for row in found if not row[6]])
        rows = []
        for number, match_id, game, state, summary, create_time_ms, final, event_count, digest, damaged_at, _ in found:
            if not final:
                _, (event_count, _, digest), damaged_at, *_ = live[number]
            rows.append(
                MatchRow(
                    match_id=match_id,
                    number=number,
                    game=game,
                    state=state,
                    summary=summary,
                    create_time_ms=create_time_ms,
                    event_count=event_count,
                    digest=digest,
                    final=bool(final),
                    damaged_at=damaged_at,
                )
            )
        return rows

    def _first_agent(self, condition: str, key: str | bytes) -> AgentRow | None:
        with self._session():
            for values in self._query(f"{_AGENT} WHERE {condition}", key):
                return _agent_row(values)
            return None

    def _standing(self, match_id: str) -> Standing:
        """Returns where a match stands.

        Raises:
            UnknownMatchError: there is no such match.
        """
        for number, event_count, digest, damaged_at, final, first_key, last_key in self._query(STANDING, match_id):
            if not final:
                return self._live([(number, match_id, first_key)])[number]
            return Standing(number, chain.Head(event_count, 0, digest), damaged_at, True, first_key, last_key)
        raise UnknownMatchError(f"there is no match {match_id}")

    def _live(self, matches: Sequence[tuple[int, str, int]]) -> dict[int, Standing]:
        """Returns, by number, where matches that are not final stand, by computing their chains from the events.

        Args:
            matches: number, id and first key of each.
        """
        standings = {
            number: Standing(number, chain.start(match_id), 0, False, first_key)
            for number, match_id, first_key in matches
        }
        if not standings:
            return standings
        after = min(standing.first_key for standing in standings.values())
        # One pass for all of them: their events lie among each other. A referee that starts waits for it, so it is
        # kept lean.
        digests = {number: standing.head.digest for number, standing in standings.items()}
        sizes = dict.fromkeys(digests, 0)
        keys = {number: array("q") for number in digests}
        damaged: set[int] = set()
        link, check = chain.link, chain.CHECK_BYTES
        try:
            for key, number, event, mark in self._db.execute(
                "SELECT * FROM events WHERE key > ? ORDER BY key", (after,)
            ):
                if number not in digests or number in damaged:
                    continue
                digest = link(digests[number], event)
                if digest[:check] != mark:
                    damaged.add(number)
                    continue
                digests[number] = digest
                sizes[number] += len(event)
                keys[number].append(key)
        except sqlite3.Error as error:
            raise storage_error(error, self._path) from error
        for number, digest in digests.items():
            count = len(keys[number])
            standings[number] = standings[number]._replace(
                head=chain.Head(count, sizes[number], digest),
                damaged_at=count + 1 if number in damaged else 0,
                keys=keys[number],
            )
        return standings

    def _stored(self, standing: Standing, after: int, last: int) -> Iterator[tuple[bytes, bytes]]:
        """Yields the stored events behind `after` up to `last`, and their checks; fewer if some are missing."""
        try:
            if standing.keys is not None:
                for first, final in _runs(standing.keys[after:last]):
                    yield from self._db.execute(
                        "SELECT event, mark FROM events WHERE key BETWEEN ? AND ? ORDER BY key", (first, final)
                    )
            else:
                yield from self._db.execute(
                    "SELECT event, mark FROM events WHERE key > ? AND key <= ? AND number = ?"
                    " ORDER BY key LIMIT ? OFFSET ?",
                    (standing.first_key, standing.last_key, standing.number, max(0, last - after), after),
                )
        except sqlite3.Error as error:
            raise storage_error(error, self._path) from error

    def _walk(
        self, match_id: str, standing: Standing, after: int, limit: int | None, digest: bytes | None
    ) -> tuple[list[bytes], bytes | None, LogError | None]:
        """Returns the events behind `after`, the digest of the last of them, and what is wrong behind that.

        `digest` is that of event `after` if the caller knows it; otherwise the chain is computed from its start.
        """
        head, damaged_at = standing.head, standing.damaged_at
        end = chain.MAX_EVENTS + 1 if limit is None else after + limit
        last = min(end, head.events)
        if standing.final:
            log = self._archived(match_id, standing)
            if log is not None:
                return list(log.events[after:last]), None, None
        events: list[bytes] = []
        place = after
        if digest is None:
            place, digest = 0, chain.start(match_id).digest
        for event, mark in self._stored(standing, place, last):
            linked = chain.link(digest, event)
            if linked[: chain.CHECK_BYTES] != mark:
                return events, digest, _damage(match_id, place + 1)
            place, digest = place + 1, linked
            if place > after:
                events.append(event)
        if place < last:
            fault = f"TRUNCATED at event {place} of match {match_id}: the journal had {head.events} events of it"
            return events, digest, TruncatedLogError(place, fault)
        if damaged_at and end >= damaged_at:
            return events, digest, _damage(match_id, damaged_at)
        if place == head.events and digest != head.digest:
            return events[:-1], None, _damage(match_id, place)
        return events, digest, None

    def _archived(self, match_id: str, standing: Standing) -> logfile.Log | None:
        """Returns the log of a match that was archived, None for one that was not."""
        if self._unpacked is not None and self._unpacked[0] == standing.number:
            return self._unpacked[1]
        for (blob,) in self._query("SELECT log FROM logs WHERE number = ?", standing.number):
            log = logfile.unpack(blob)
            if (log.match_id, len(log.events), log.digest) != (match_id, standing.head.events, standing.head.digest):
                raise DamagedLogError(len(log.events), f"the log stored for match {match_id} is of another match")
            self._unpacked = (standing.number, log)
            return log
        return None


def _runs(keys: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yields the first and last of every run of consecutive keys: what a match got in one commit lies together."""
    start = 0
    for place in range(1, len(keys) + 1):
        if place == len(keys) or keys[place] != keys[place - 1] + 1:
            yield keys[start], keys[place - 1]
            start = place


def _damage(match_id: str, place: int) -> DamagedLogError:
    return DamagedLogError(
        place, f"HASH_MISMATCH at event {place} of match {match_id}: it is not what was written there"
    )


def _agent_row(values: tuple[Any, ...]) -> AgentRow:
    agent_id, name, folded_name, create_time_ms, revoked = values
    return AgentRow(agent_id, name, folded_name, create_time_ms, bool(revoked))
