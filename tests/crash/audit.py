"""Holds what agents were told against what the journal has, after any number of kills."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from referee.v1 import event_pb2, match_pb2
from referee_client import convert
from referee_server.journal import JournalReader, MatchRow, open_read_only
from referee_server.match.state import begin
from referee_server.match.verify import parse, verify

from .agent import shown

Entry = Mapping[str, Any]


@dataclass
class Found:
    """What an audit found. Every list is empty if the referee keeps its promises; its members say where it did not.

    Attributes:
        lost: acknowledged answers, registrations, matches or results that are not on record.
        doubled: decisions acknowledged or applied twice, and matches made twice.
        redealt: questions that showed something else than what is on record.
        charged: faults ruled on agents that made none.
        broken: logs that do not verify, and a database that is not whole.
        matches: how many matches were looked at.
        resumed: how often one of them was taken up again.
        decisions: how many decisions were applied.
        acknowledged: how many of them some agent knows to be accepted.
    """

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    redealt: list[str] = field(default_factory=list)
    charged: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    matches: int = 0
    resumed: int = 0
    decisions: int = 0
    acknowledged: int = 0

    @property
    def good(self) -> bool:
        return not (self.lost or self.doubled or self.redealt or self.charged or self.broken)

    def __str__(self) -> str:
        counts = ", ".join(
            f"{len(getattr(self, kind))} {kind.replace('redealt', 're-dealt')}"
            for kind in ("lost", "doubled", "redealt", "charged", "broken")
        )
        looked = f"{self.matches} matches taken up {self.resumed} times, {self.decisions:,} decisions"
        return f"{counts}; {looked}, {self.acknowledged:,} acknowledged"

    def details(self) -> str:
        kinds = (self.lost, self.doubled, self.redealt, self.charged, self.broken)
        return "\n".join(line for kind in kinds for line in kind[:10])


class Tail:
    """Reads ledgers as they grow."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._at: dict[Path, int] = {}
        self.entries: dict[str, list[Entry]] = {}

    def read(self) -> Iterator[Entry]:
        """Yields what is new, and keeps all of it in `entries`, by agent."""
        for path in sorted(self._folder.glob("*.ledger")):
            with path.open("rb") as file:
                file.seek(self._at.get(path, 0))
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._at[path] = self._at.get(path, 0) + len(whole)
            for line in whole.splitlines():
                entry = json.loads(line)
                self.entries.setdefault(path.stem, []).append(entry)
                yield entry


@dataclass
class _Log:
    """What the log of a match says of its decisions, by seat and number."""

    seats: dict[str, int]
    digest: str
    actions: dict[tuple[int, int], str] = field(default_factory=dict)
    shown: dict[tuple[int, int], str] = field(default_factory=dict)


def audit(
    database: Path,
    ledgers: Mapping[str, Sequence[Entry]],
    created: Mapping[str, str],
    visitors: Iterable[tuple[str, str]] = (),
    *,
    all_ended: bool = True,
) -> Found:
    """Compares.

    Args:
        database: the journal's file; nobody is writing to it.
        ledgers: what each agent noted, by its name.
        created: ids of the matches that the referee said it created, by request id.
        visitors: name and id of the agents that the referee said it registered.
        all_ended: whether every match has to have a result.
    """
    found = Found()
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as db:
        verdict = db.execute("PRAGMA integrity_check").fetchall()
        if verdict != [("ok",)]:
            found.broken.append(f"integrity_check: {verdict}")
        requests = dict(db.execute("SELECT request_id, match_id FROM matches WHERE request_id IS NOT NULL"))
    for request_id, match_id in created.items():
        if requests.get(request_id) != match_id:
            found.lost.append(f"request {request_id} made match {match_id}, on record is {requests.get(request_id)}")
    with closing(open_read_only(database)) as journal:
        known = {(row.name, row.agent_id) for row in journal.agents()}
        found.lost += [
            f"agent {name} was registered as {agent_id}" for name, agent_id in visitors if (name, agent_id) not in known
        ]
        logs = {}
        after = 0
        while rows := journal.matches(after_number=after, limit=500):
            for row in rows:
                logs[row.match_id] = _read(journal, row, found, all_ended=all_ended)
            after = rows[-1].number
    for name, entries in ledgers.items():
        _compare(name, entries, logs, found)
    return found


def _read(journal: JournalReader, row: MatchRow, found: Found, *, all_ended: bool) -> _Log | None:
    found.matches += 1
    summary = match_pb2.Match.FromString(row.summary)
    log = _Log({seat.name: seat.seat for seat in summary.seats}, row.digest.hex())
    where = f"match {row.match_id}"
    try:
        events = parse(journal.read(row.match_id))
        report = verify(events)
    except Exception as error:
        found.broken.append(f"{where}: {type(error).__name__}: {error}")
        return None
    if all_ended and not (report.ended and row.final):
        found.broken.append(f"{where} has not ended")
    match = begin(events[0])
    for event in events[1:]:
        kind = event.WhichOneof("payload")
        if kind == "decision_offered":
            offered = event.decision_offered
            question = convert.decision_from(convert.decision_to(match.question(offered.seat)), match.game.name)
            log.shown[offered.seat, offered.decision_id] = shown(question)
        elif kind == "action_applied":
            key = event.action_applied.seat, event.action_applied.decision_id
            found.decisions += 1
            if key in log.actions:
                found.doubled.append(f"{where}: decision {key} applied twice")
            log.actions[key] = event.action_applied.action
        elif kind == "fault_ruled":
            found.charged.append(f"{where}: {event_pb2.MatchEvent(fault_ruled=event.fault_ruled)}".replace("\n", " "))
        elif kind == "match_resumed":
            found.resumed += 1
        elif kind == "match_ended" and event.match_ended.result.reason != match_pb2.END_REASON_COMPLETED:
            found.broken.append(f"{where} ended otherwise: {event.match_ended.note or event.match_ended.result.reason}")
        match.evolve(event)
    return log


def _compare(name: str, entries: Sequence[Entry], logs: Mapping[str, _Log | None], found: Found) -> None:
    accepted: Counter[tuple[str, int]] = Counter()
    for entry in entries:
        match_id, number = entry["match"], entry.get("number")
        where = f"{name}, match {match_id}, decision {number}"
        if match_id not in logs:
            found.lost.append(f"{where}: no such match on record")
            continue
        log = logs[match_id]
        if log is None:
            continue  # named already
        seat = log.seats[name]
        match entry["kind"]:
            case "asked":
                if log.shown.get((seat, entry["number"])) != entry["shown"]:
                    found.redealt.append(f"{where}: it was shown deal {entry['deal']} with {entry['hand']}")
            case "verdict" if entry["status"] in ("accepted", "repeated"):
                if log.actions.get((seat, entry["number"])) != entry["action"]:
                    on_record = log.actions.get((seat, entry["number"]))
                    found.lost.append(f"{where}: {entry['action']} {entry['status']}, on record is {on_record}")
                if entry["status"] == "accepted":
                    accepted[match_id, entry["number"]] += 1
            case "verdict":
                found.charged.append(f"{where}: {entry['status']}")
            case "over":
                if entry["digest"] != log.digest:
                    found.lost.append(f"{where}: its end was told with digest {entry['digest']}, not {log.digest}")
    found.acknowledged += len(accepted)
    found.doubled += [f"{name}: {key} accepted {count} times" for key, count in accepted.items() if count > 1]
