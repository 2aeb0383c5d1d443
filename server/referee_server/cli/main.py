"""The `referee` command: what there is to type. Each command imports what it needs only when it runs."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from referee_server import __version__
from referee_server.cli.conformance.command import conformance
from referee_server.cli.cup_commands import CUP_COMMANDS
from referee_server.cli.options import as_json_option, connect_option, data_option, tls_options
from referee_server.cli.output import ExitCode, Failure
from referee_server.installation import misfits_here

if TYPE_CHECKING:
    from referee_client import Tls

_EXIT_CODES = """\b
Exit codes: 0 done; 1 a log does not hold, or a match ended without a result; 2 wrong usage; 66 no such match or file;
69 no referee at that address; 70 an installation that does not fit; 73 unusable data folder; 74 storage failed;
75 port or data in use; 77 not permitted; 78 a tournament's file is not right; 130 interrupted."""


class _Commands(click.Group):
    """Lets no command begin on what does not fit, and keeps click from making an exit code out of a closed pipe."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        if cmd.callback is not None:
            cmd.callback = _on_what_fits(cmd.callback)
        super().add_command(cmd, name)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            done = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise _PipeClosedError from None
        return done


def _on_what_fits(command: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(command)
    def checked(*given: Any, **named: Any) -> Any:
        if lines := misfits_here():
            raise _UnfitError(lines)
        return command(*given, **named)

    return checked


class _UnfitError(Exception):
    """The referee cannot run on what is installed here.

    Attributes:
        lines: what does not fit, each in a line.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(*lines)
        self.lines = lines


class _PipeClosedError(Exception):
    """Whoever reads our output has had enough."""


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog=_EXIT_CODES,
)
@click.version_option(__version__, prog_name="referee")
def cli() -> None:
    """Referees matches of card games between programs: deals fairly, keeps the clock, proves every match."""


@cli.command()
@click.option("--game", metavar="GAME", help="Only this game. Default: every game that comes with the referee.")
@click.option("--matches", type=click.IntRange(1, 100_000), default=8, show_default=True, help="Matches a game.")
@data_option
@as_json_option
def demo(game: str | None, matches: int, data: str, as_json: bool) -> None:
    """Plays matches between house bots in processes of their own, over gRPC, and verifies every log."""
    from referee_server.cli.demo import run_demo

    run_demo(game, matches, data, as_json=as_json)


@cli.command()
@click.option("--listen", metavar="HOST:PORT", default="127.0.0.1:7431", show_default=True, help="Where to listen.")
@data_option
@click.option("--practice", is_flag=True, help="Seat idle agents with house bots, so that they play at once.")
@click.option(
    "--registration",
    type=click.Choice(["open", "closed"]),
    default="open",
    show_default=True,
    help="Whether unknown agents may register themselves.",
)
@click.option(
    "--durability",
    type=click.Choice(["process", "power"]),
    default="process",
    show_default=True,
    help="What a commit survives: the end of the process, or a power cut as well.",
)
@click.option("--tls-cert", metavar="FILE", help="The service's certificate chain, PEM; encrypts the connections.")
@click.option("--tls-key", metavar="FILE", help="Its key, PEM.")
@click.option("--tls-client-ca", metavar="FILE", help="Ask clients for a certificate of this authority, PEM.")
@click.option(
    "--hello-timeout",
    type=click.FloatRange(0.1, 600),
    default=10.0,
    show_default=True,
    metavar="S",
    help="How long a stream may take to begin with Hello.",
)
@click.option(
    "--keepalive",
    type=click.FloatRange(1, 3600),
    default=20.0,
    show_default=True,
    metavar="S",
    help="After how long without a byte a connection is probed.",
)
@click.option(
    "--ping-timeout",
    type=click.FloatRange(0.1, 600),
    default=10.0,
    show_default=True,
    metavar="S",
    help="How long the probe may go unanswered; a dead agent is noticed after both together.",
)
@click.option(
    "--step-budget",
    type=click.FloatRange(0.1, 600),
    default=5.0,
    show_default=True,
    metavar="S",
    help="How long the rules of a game may take for one step; then that match is stopped.",
)
@click.option("--insecure", is_flag=True, help="Listen beyond this machine, though nothing is encrypted.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
@click.option("--log-format", type=click.Choice(["auto", "text", "json"]), default="auto", show_default=True)
def serve(
    listen: str,
    data: str,
    practice: bool,
    registration: str,
    durability: str,
    tls_cert: str | None,
    tls_key: str | None,
    tls_client_ca: str | None,
    hello_timeout: float,
    keepalive: float,
    ping_timeout: float,
    step_budget: float,
    insecure: bool,
    log_level: str,
    log_format: str,
) -> None:
    """Runs the service until it is told to stop."""
    from referee_server.cli.serve import run_service
    from referee_server.rpc.server import Patience

    run_service(
        listen=listen,
        data=data,
        practice=practice,
        open_registration=registration == "open",
        durability="power" if durability == "power" else "process",
        tls=(tls_cert, tls_key, tls_client_ca),
        insecure=insecure,
        log_level=log_level,
        log_json=None if log_format == "auto" else log_format == "json",
        patience=Patience(hello_s=hello_timeout, keepalive_s=keepalive, ping_timeout_s=ping_timeout),
        step_budget_s=step_budget,
    )


cli.add_command(conformance)
for command in CUP_COMMANDS:
    cli.add_command(command)


@cli.command(name="match")
@click.argument("game")
@click.option(
    "--seat",
    "seats",
    multiple=True,
    metavar="WHO",
    help="Who sits next, seat 0 first: a house bot (`greedy`, `random:SEED`), `agent:NAME`, or `open`.",
)
@click.option("--option", "options", multiple=True, metavar="K=V", help="An option of the game.")
@click.option("--matches", type=click.IntRange(1, 100_000), default=1, show_default=True, help="How many.")
@click.option("--first-dealer", type=int, metavar="SEAT", help="Who deals first. Default: drawn by lot.")
@click.option("--seed", metavar="HEX", help="The secret, 64 hex digits, for repeats; marks logs UNSEALED.")
@click.option("--allowance", type=float, metavar="S", help="Time a decision, in seconds. Default: 5.")
@click.option("--bank", type=float, metavar="S", help="Time a match on top, in seconds. Default: 60.")
@click.option("--increment", type=float, metavar="S", help="Added to the bank after each answer. Default: 0.")
@click.option("--untimed", is_flag=True, help="Play without time limits.")
@click.option("--auto-play", type=click.Choice(["public", "never"]), default="public", show_default=True)
@click.option("--label", default="", metavar="TEXT", help="Words to find it by.")
@click.option("--no-wait", is_flag=True, help="Print the ids and do not wait for the end.")
@data_option
@connect_option
@tls_options
@as_json_option
def match_(
    game: str,
    seats: Sequence[str],
    options: Sequence[str],
    matches: int,
    first_dealer: int | None,
    seed: str | None,
    allowance: float | None,
    bank: float | None,
    increment: float | None,
    untimed: bool,
    auto_play: str,
    label: str,
    no_wait: bool,
    data: str,
    connect: str | None,
    as_json: bool,
    tls: Tls | None,
) -> None:
    """Has matches played by a running service, and shows how they end."""
    from referee_server.cli.host import Clocks, create_matches, make_spec

    clocks = Clocks(allowance, bank, increment, untimed=untimed)
    spec = make_spec(game, seats, options, clocks, first_dealer=first_dealer, auto_play=auto_play, label=label)
    create_matches(spec, matches, seed=seed, data=data, connect=connect, tls=tls, wait=not no_wait, as_json=as_json)


@cli.command()
@click.argument("match_id", metavar="MATCH")
@click.option("--note", default="", help="Why, for the log.")
@data_option
@connect_option
@tls_options
def cancel(match_id: str, note: str, data: str, connect: str | None, tls: Tls | None) -> None:
    """Ends a match without a result."""
    from referee_server.cli.host import cancel_match

    cancel_match(match_id, note, data=data, connect=connect, tls=tls)


@cli.group()
def agents() -> None:
    """Lists, adds and revokes the agents of a running service."""


@agents.command(name="list")
@data_option
@connect_option
@tls_options
@as_json_option
def agents_list(data: str, connect: str | None, as_json: bool, tls: Tls | None) -> None:
    """Lists the registered agents."""
    from referee_server.cli.host import list_agents

    list_agents(data=data, connect=connect, tls=tls, as_json=as_json)


@agents.command(name="add")
@click.argument("name")
@click.option("-o", "--out", metavar="FILE", help="Where to put the credential. Default: NAME.token here.")
@data_option
@connect_option
@tls_options
def agents_add(name: str, out: str | None, data: str, connect: str | None, tls: Tls | None) -> None:
    """Registers an agent and writes a credential to pass on to its author."""
    from referee_server.cli.host import add_agent

    add_agent(name, out, data=data, connect=connect, tls=tls)


@agents.command(name="revoke")
@click.argument("agent")
@data_option
@connect_option
@tls_options
def agents_revoke(agent: str, data: str, connect: str | None, tls: Tls | None) -> None:
    """Revokes an agent's credential."""
    from referee_server.cli.host import revoke_agent

    revoke_agent(agent, data=data, connect=connect, tls=tls)


@cli.command()
@click.argument("bot")
@click.option("--connect", metavar="HOST:PORT", default="127.0.0.1:7431", show_default=True, help="The service.")
@click.option("--name", required=True, help="The agent's name.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bot.")
@click.option("--credential", metavar="FILE", help="Credential file. Default: one by the name, made when needed.")
@click.option("--matches", type=click.IntRange(1), help="Leave after so many. Default: stay.")
@click.option("--max-matches", type=click.IntRange(1, 4096), default=64, show_default=True, help="Matches at once.")
@tls_options
def agent(
    bot: str,
    connect: str,
    name: str,
    seed: int,
    credential: str | None,
    matches: int | None,
    max_matches: int,
    tls: Tls | None,
) -> None:
    """Plays a house bot as an ordinary remote agent."""
    from referee_server.cli.host import play_agent

    play_agent(bot, connect, name, seed=seed, credential=credential, matches=matches, max_matches=max_matches, tls=tls)


@cli.command()
@data_option
@as_json_option
def matches(data: str, as_json: bool) -> None:
    """Lists the matches in a data folder, the newest first."""
    from referee_server.cli.archive import list_matches

    list_matches(data, as_json=as_json)


@cli.command()
@click.argument("match_id", metavar="MATCH")
@click.option("--view", metavar="VIEW", help="`all`, `public` or `seat:K`. Default: all for the host, else public.")
@click.option("--credential", metavar="FILE", help="Credential of an agent. Default: the host's, if it is there.")
@click.option(
    "--patience",
    type=click.FloatRange(0, 86_400),
    default=60.0,
    show_default=True,
    metavar="S",
    help="How long the service may be away.",
)
@data_option
@connect_option
@tls_options
@click.option("--json", "as_json", is_flag=True, help="Print events as JSON lines, as `export --format jsonl` does.")
def watch(
    match_id: str,
    view: str | None,
    credential: str | None,
    patience: float,
    data: str,
    connect: str | None,
    as_json: bool,
    tls: Tls | None,
) -> None:
    """Tells a match of a running service as people read it, live."""
    from referee_server.cli.watch import watch_match

    watch_match(
        match_id,
        view=view,
        credential=credential,
        patience_s=patience,
        data=data,
        connect=connect,
        tls=tls,
        as_json=as_json,
    )


@cli.command()
@click.argument("what", metavar="MATCH|FILE")
@click.option("--deal", type=click.IntRange(0), help="Only this deal, from 0.")
@data_option
def replay(what: str, deal: int | None, data: str) -> None:
    """Tells a match as people read it."""
    from referee_server.cli.archive import replay_match

    replay_match(what, deal, data)


@cli.command()
@click.argument("what", nargs=-1, metavar="FILE|MATCH…")
@click.option("--all", "everything", is_flag=True, help="Every match of the data folder that has ended.")
@click.option("--digest", metavar="HEX", help="The digest that seats and watchers were given; for one log.")
@click.option("--jobs", type=click.IntRange(1, 1_024), help="How many processes at once. Default: one on every core.")
@data_option
@as_json_option
def verify(
    what: Sequence[str], everything: bool, digest: str | None, jobs: int | None, data: str, as_json: bool
) -> None:
    """Deals again, referees again, and checks chain, clocks, scores and result of logs."""
    from referee_server.cli.verify import verify_logs

    verify_logs(what, data, everything=everything, digest=digest, jobs=jobs, as_json=as_json)


@cli.command()
@click.argument("what", nargs=-1, metavar="MATCH…")
@click.option("--all", "everything", is_flag=True, help="Every match of the data folder that has ended.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["log", "jsonl", "record"]),
    default="log",
    show_default=True,
    help="Log files, events as JSON lines, or matches as JSON lines for another referee.",
)
@click.option("-o", "--out", metavar="OUT", help="File, or folder for log files. Default: standard output, or here.")
@data_option
def export(what: Sequence[str], everything: bool, form: str, out: str | None, data: str) -> None:
    """Writes matches to files."""
    from referee_server.cli.archive import export_matches

    export_matches(what, data, everything=everything, form=form, out=out)


@cli.command()
@click.option("--quick", is_flag=True, help="Measure little, only to see that it works.")
@click.option("--only", multiple=True, metavar="LETTER", help="Measure only this figure, a to g.")
@as_json_option
def bench(quick: bool, only: Sequence[str], as_json: bool) -> None:
    """Measures speed: ratios of runs taken in turn, against their budgets."""
    from referee_server.cli.bench import run_bench

    run_bench(only, quick=quick, as_json=as_json)


def run(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        cli.main(args=None if argv is None else list(argv), prog_name="referee", standalone_mode=False)
    except Failure as failure:
        print(f"referee: {failure.message}", file=sys.stderr)
        return failure.code
    except _UnfitError as unfit:
        for line in unfit.lines:
            print(f"referee: {line}", file=sys.stderr)
        return ExitCode.UNFIT
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return ExitCode.USAGE
    except click.ClickException as error:
        command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "referee"
        print(f"{command}: {' '.join(error.format_message().split())}", file=sys.stderr)
        return ExitCode.USAGE
    except UnicodeEncodeError as error:
        # How Python hands on bytes of an argument that are not UTF-8. As part of a path they would be welcome.
        if error.reason != "surrogates not allowed":
            raise
        print(f"referee: {error.object!a} is not text in UTF-8", file=sys.stderr)
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except _PipeClosedError:
        # As `head` does. What is left is thrown away, or the interpreter would complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    return ExitCode.DONE
