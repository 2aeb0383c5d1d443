"""`referee run`: a tournament from its file, from the first table to the report, whatever happens on the way."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final

from referee_server.agents.local import LocalAgents
from referee_server.cli.cup_progress import Progress
from referee_server.cli.cup_text import read_cup, refuse_cup
from referee_server.cli.data import DataFolder
from referee_server.cli.logs import configure
from referee_server.cli.output import ExitCode, Failure, fail, print_rich
from referee_server.cli.report.of_book import report_of
from referee_server.cli.report.tables import as_json, as_rich
from referee_server.cli.serve import StopSignals, check_exposed, tls_files
from referee_server.cli.service import ProgramSettings, Service, ServiceSettings, TlsFiles
from referee_server.cli.standings import name_of
from referee_server.director.executor import ExecutorError
from referee_server.director.tournaments import OVER, Tournaments
from referee_server.journal import JournalReader, TournamentRow
from referee_server.match.names import fold_name
from referee_server.tournament.book import CANCELLED, Book
from referee_server.tournament.changes import changes
from referee_server.tournament.cup import Cup
from referee_server.tournament.cupfile import CupError, parse_cup

DEFAULT_LISTEN: Final = "127.0.0.1:7431"
_DRAIN_S: Final = 60.0
"""How long tables at play may take to end after the first Ctrl-C, in seconds; what is not done then goes on later."""


def run_cup(
    path: str,
    data: str,
    *,
    listen: str | None,
    tls: tuple[str | None, str | None, str | None],
    insecure: bool,
    accept_changes: bool,
    log_level: str,
    as_json_: bool,
) -> None:
    """Runs a tournament from its file, or goes on with it.

    Raises:
        Failure: the file is not a tournament, or it cannot be run.
    """
    text = read_cup(path)
    cup = _parsed(path, text)
    files = tls_files(*tls)
    check_exposed(listen or DEFAULT_LISTEN, encrypted=files is not None, insecure=insecure)
    configure(log_level)
    # Where nobody connects from outside any port will do, so that several can run beside each other.
    remote = any(entrant.remote is not None for entrant in cup.entrant)
    address = listen or (DEFAULT_LISTEN if remote else "127.0.0.1:0")
    run = _Run(path, text, cup, DataFolder(data), accept_changes=accept_changes, as_json=as_json_)
    # Before gRPC is in use: what starts programs is a process of its own, and a process that runs gRPC cannot fork.
    agents = LocalAgents() if any(entrant.command is not None for entrant in cup.entrant) else None
    try:
        asyncio.run(run.run(address, files, agents))
    finally:
        if agents is not None:
            agents.kill()


def _parsed(path: str, text: str) -> Cup:
    try:
        cup = parse_cup(text)
        Book.check(cup)
    except CupError as error:
        refuse_cup(path, [str(problem) for problem in error.problems])
    return cup


class _Run:
    """One run of a tournament."""

    def __init__(
        self, path: str, text: str, cup: Cup, data: DataFolder, *, accept_changes: bool, as_json: bool
    ) -> None:
        self._path = path
        self._folder = Path(path).resolve().parent
        self._text = text
        self._cup = cup
        self._data = data
        self._accept_changes = accept_changes
        self._as_json = as_json

    async def run(self, address: str, tls: TlsFiles | None, agents: LocalAgents | None) -> None:
        stop = StopSignals()
        programs = None
        if agents is not None:
            # Without a network there is only the socket; and where connections are encrypted it saves programs of this
            # machine the trouble.
            socket = tls is not None or any(entrant.isolation != "process" for entrant in self._cup.entrant)
            programs = ProgramSettings(agents, self._folder, socket=socket)
        settings = ServiceSettings(address=address, tls=tls, programs=programs)
        async with Service(self._data, settings) as service:
            tournaments = service.tournaments
            tournament_id = await self._enter(service, tournaments)
            book = tournaments.book(tournament_id)
            if not book.over:
                await self._play(service, tournament_id, stop)
                book = tournaments.book(tournament_id)
            self._show(book)

    async def _enter(self, service: Service, tournaments: Tournaments) -> str:
        """Returns the tournament of the file: the one that the data folder has, or a new one."""
        row = _found(service.hall.journal, self._cup)
        if row is None:
            return await tournaments.create(self._text)
        book = tournaments.book(row.tournament_id)
        found = changes(book.described, self._cup)
        if book.over or not found.any:
            return row.tournament_id
        if found.barred:
            fail(
                f"{self._path} has changed since the tournament began, and cannot go on like that: "
                f"{'; '.join(found.barred)}; restore the file, or name other --data for a new tournament",
                ExitCode.CONFIG,
            )
        if not self._accept_changes:
            fail(
                f"{self._path} has changed since the tournament began: {'; '.join(found.allowed)}; "
                "say --accept-changes to go on with it as it is now",
                ExitCode.CONFIG,
            )
        await tournaments.change(row.tournament_id, self._text)
        return row.tournament_id

    async def _play(self, service: Service, tournament_id: str, stop: StopSignals) -> None:
        director = service.tournaments.start(tournament_id)
        playing = asyncio.ensure_future(service.tournaments.wait(tournament_id))
        once, twice = (asyncio.ensure_future(stop.wait(count)) for count in (1, 2))
        failed = asyncio.ensure_future(service.hall.stopped.wait())
        with Progress(director, service.address, quiet=self._as_json) as progress:
            await director.go_on()
            ticking = asyncio.ensure_future(progress.tick())
            try:
                await asyncio.wait((playing, once, failed), return_when=asyncio.FIRST_COMPLETED)
                if once.done() and not playing.done():
                    progress.say("stopping: tables at play may finish; Ctrl-C again stops at once")
                    director.drain()
                    await asyncio.wait((playing, twice, failed), timeout=_DRAIN_S, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (ticking, once, twice, failed):
                    task.cancel()
        if playing.done():
            try:
                playing.result()
            except ExecutorError as error:
                fail(f"{self._path}: {error}", ExitCode.CONFIG)

    def _show(self, book: Book) -> None:
        report = report_of(book)
        if self._as_json:
            print(as_json(report))
        else:
            print_rich(as_rich(report))
            print(f"standings again, or as a page: {_again(self._data, 'standings')} [--format html -o FILE]")
        if book.state == CANCELLED:
            raise Failure("the tournament was cancelled", ExitCode.CHECK_FAILED)
        if not book.over:
            raise Failure(f"not finished; go on with: {_again(self._data, 'run', self._path)}", ExitCode.INTERRUPTED)


def _again(data: DataFolder, *words: str) -> str:
    """Returns a command as it is to be typed here."""
    command = sys.argv[0] if sys.argv[0].endswith("referee") else "referee"
    flag = [] if str(data.path) == "referee-data" else ["--data", str(data.path)]
    return " ".join([command, *words, *flag])


def _found(journal: JournalReader, cup: Cup) -> TournamentRow | None:
    """Returns the tournament of that name which a data folder has.

    Raises:
        Failure: the folder belongs to another tournament that has not ended.
    """
    mine = None
    for row in journal.tournaments():
        name = name_of(journal, row)
        if fold_name(name) == fold_name(cup.name):
            mine = row
        elif row.state not in OVER:
            fail(
                f"the data folder holds another tournament that has not ended ({name}); name another with --data",
                ExitCode.DATA,
            )
    return mine


def write_example(path: str) -> None:
    """Writes a commented example of a tournament's file.

    Raises:
        Failure: there is such a file, or it cannot be written.
    """
    from referee_server.cli.cup_example import EXAMPLE

    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(EXAMPLE)
    except FileExistsError:
        fail(f"{path} exists already; name another file")
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}", ExitCode.STORAGE)
    print(f"{path} describes a tournament of house bots; change what you like, then: referee run {path}")
