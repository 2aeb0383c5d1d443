"""The matches of the hall: how they come to be, are taken up after a restart, and are cancelled or revealed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import match_pb2
from referee_games import dealing
from referee_games.contract import shown
from referee_server import failpoints
from referee_server.journal import EventsAdded, Journal, MatchAdded, MatchRow
from referee_server.match import inputs
from referee_server.match.errors import RefusedError
from referee_server.match.machine import Machine
from referee_server.match.state import Match, begin
from referee_server.match.verify import parse
from referee_server.tables import creation, revealing
from referee_server.tables.host import Host
from referee_server.tables.housekeeping import Housekeeper
from referee_server.tables.resuming import resumable
from referee_server.tables.roster import Roster
from referee_server.tables.seating import Seating
from referee_server.tables.table import Table

_log = structlog.get_logger(__name__)


class House(Host, Protocol):
    """What matches need of the hall, beside what their tables do."""

    journal: Journal
    roster: Roster
    housekeeper: Housekeeper
    seating: Seating

    def check_storage(self) -> None:
        """Refuses when nothing can be stored (STORAGE)."""


class Matches:
    """All matches that can still be played, and what is done to them from outside.

    Attributes:
        running: the matches that have not ended, by id. To be changed by the hall only.
    """

    def __init__(self, house: House, random_bytes: Callable[[int], bytes]) -> None:
        """Begins with no match.

        Args:
            house: the hall, which has its journal, clock, committer and steps already.
            random_bytes: the operating system's generator, for secrets and ids.
        """
        self.running: dict[str, Table] = {}
        self._house = house
        self._journal = house.journal
        self._clock = house.clock
        self._committer = house.committer
        self._steps = house.steps
        self._random_bytes = random_bytes
        # Matches on their way to the journal, by request id.
        self._coming: dict[str, Table] = {}

    def create(self, asked: match_pb2.MatchSpec, request_id: str = "") -> str:
        """Creates a match and returns its id. A repeat with the same request id returns the first one's.

        Raises:
            RefusedError: the spec is not one, or the request id was used for another.
        """
        self._house.check_storage()
        settled, options = self._steps.run(lambda: creation.settle(asked))
        if request_id:
            earlier = self._requested(request_id, asked, settled)
            if earlier is not None:
                return earlier
        given = bool(asked.given_secret)
        secret = asked.given_secret or self._random_bytes(dealing.SECRET_BYTES)
        match_id = creation.id_from(asked, options) if given else creation.id_of(self._random_bytes(16))
        if match_id in self.running or (given and self._journal.match(match_id) is not None):
            raise RefusedError(
                reason_pb.ERROR_REASON_FIELD_INVALID,
                f"this match has been played from the same secret: {match_id}",
                field="spec.given_secret",
            )
        seats = creation.seats_of(settled, self._house.roster.find)
        creation.seed_bots(seats, secret if given else self._random_bytes(dealing.SECRET_BYTES))
        self._open(creation.Origin(match_id, match_id, secret, given=given), settled, seats, request_id)
        return match_id

    def create_table(self, asked: match_pb2.MatchSpec, origin: creation.Origin) -> None:
        """Creates a match of a tournament, unless there is one of that id already.

        Raises:
            RefusedError: the spec is not one, or nothing can be stored.
        """
        self._house.check_storage()
        if origin.match_id in self.running or self._journal.match(origin.match_id) is not None:
            return
        settled, _ = self._steps.run(lambda: creation.settle(asked))
        self._open(origin, settled, creation.seats_of(settled, self._house.roster.find), "")

    def _open(
        self,
        origin: creation.Origin,
        settled: match_pb2.MatchSpec,
        seats: Sequence[match_pb2.Seat],
        request_id: str,
    ) -> None:
        """Opens the table of a new match, and sends the match to the journal."""
        match_id = origin.match_id
        now_ns = self._clock.wall_ns()
        event = creation.created(origin, settled, seats, now_ns)
        match = self._steps.run(lambda: begin(event))
        table = Table(self._house, Machine(match, origin.secret), settled.label, now_ns)
        self.running[match_id] = table
        failpoints.hit("match.create")
        self._committer.store(
            MatchAdded(
                match_id=match_id,
                game=settled.game,
                request_id=request_id,
                secret=origin.secret,
                summary=table.summary().SerializeToString(),
                create_time_ms=now_ns // 10**6,
                state="WAITING",
            )
        )
        self._committer.store(EventsAdded(match_id, (event.SerializeToString(),)))
        _log.info("match_created", match_id=match_id, game=settled.game, label=settled.label)
        if request_id:
            self._coming[request_id] = table
            self._committer.then(lambda: self._coming.__delitem__(request_id))
        # Nothing of the match leaves before its creation is stored.
        self._committer.then(lambda: failpoints.hit("match.created"))
        self._committer.then(table.begin, match_id)
        self._committer.then(self._house.seating.seat_everybody)

    def _requested(self, request_id: str, asked: match_pb2.MatchSpec, settled: match_pb2.MatchSpec) -> str | None:
        """Returns the match that a request id has brought about already; refuses when that was another request."""
        coming = self._coming.get(request_id)
        row = self._journal.match_by_request(request_id) if coming is None else None
        if coming is not None:
            match_id, created, secret = coming.match_id, coming.match.created, coming.machine.secret
        elif row is not None:
            match_id, secret = row.match_id, self._journal.secret(row.match_id)
            created = parse(self._journal.read(match_id, limit=1))[0].match_created
        else:
            return None
        if not creation.is_repeat(created, secret, asked, settled):
            raise RefusedError(reason_pb.ERROR_REASON_REQUEST_ID_REUSED, "that request id was used for another request")
        return match_id

    def resume_all(self) -> int:
        """Takes up every match that was being played when the service last ended; returns how many."""
        count = 0
        for row, match in resumable(self._journal, self._steps):
            try:
                self._resume(row, match)
            except Exception:
                # It stays in the journal as it is. Whatever is wrong with one match, the others are played on.
                self.running.pop(row.match_id, None)
                _log.exception("match_not_resumed", match_id=row.match_id)
                continue
            count += 1
        failpoints.hit("start.resumed")
        return count

    def _resume(self, row: MatchRow, match: Match) -> None:
        machine = Machine(match, self._journal.secret(row.match_id))
        label = match_pb2.Match.FromString(row.summary).label
        table = Table(self._house, machine, label, row.create_time_ms * 10**6)
        failpoints.hit("start.resume")
        self.running[row.match_id] = table
        if any(match.created.tournament.isolation):
            table.sleep()  # programs that this referee starts play there: who goes on with the tournament wakes it
        else:
            self._take_up(table)

    def _take_up(self, table: Table) -> None:
        now_ns = self._clock.wall_ns()
        table.resume(now_ns // 10**9, now_ns % 10**9)

    def wake(self, match_id: str) -> None:
        """Goes on with a match that stood still until its programs were started; without effect on any other."""
        table = self.running.get(match_id)
        if table is None or not table.asleep or table.match.over:
            return
        self._take_up(table)
        for agent_id in {seat.agent_id for seat in table.match.seats}:
            self._committer.then(lambda agent_id=agent_id: self._attach_to(table, agent_id), match_id)  # type: ignore[misc]
        self._committer.then(self._house.seating.seat_everybody, match_id)

    def _attach_to(self, table: Table, agent_id: str) -> None:
        session = self._house.session_of(agent_id)
        if session is not None:
            table.attach(session)

    def cancel(self, match_id: str, note: str) -> None:
        """Ends a match without a result.

        Raises:
            RefusedError: MATCH_UNKNOWN or MATCH_OVER.
        """
        self._house.check_storage()
        table = self.running.get(match_id)
        if table is None or table.match.over or table.broken:
            if table is None and self._journal.match(match_id) is None:
                raise creation.unknown_match(match_id)
            raise RefusedError(reason_pb.ERROR_REASON_MATCH_OVER, "the match has ended", match_id=shown(match_id))
        table.feed(inputs.Stop(match_pb2.END_REASON_CANCELLED, note))

    def reveal(self, match_id: str) -> None:
        """Reveals what was held back of a match that has ended, if it was and that has not been done yet.

        Raises:
            LogError: its log is damaged.
            StorageError: the storage failed.
        """
        row = self._journal.match(match_id)
        records = revealing.reveal(self._journal, row) if row is not None else []
        for record in records:
            self._committer.store(record)
        if records:
            self._committer.then(lambda: self._house.housekeeper.archive(match_id), match_id)
