"""What there is to type about tournaments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from referee_server.cli.options import as_json_option, connect_option, data_option, tls_options

if TYPE_CHECKING:
    from referee_client import Tls


@click.command()
@click.argument("cup", metavar="CUP.toml")
def init(cup: str) -> None:
    """Writes a commented example of a tournament's file."""
    from referee_server.cli.cup import write_example

    write_example(cup)


@click.command()
@click.argument("cup", metavar="CUP.toml")
@data_option
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Where remote entrants connect. Default: 127.0.0.1:7431, or any port where there are none.",
)
@click.option("--tls-cert", metavar="FILE", help="The certificate chain, PEM; encrypts the connections.")
@click.option("--tls-key", metavar="FILE", help="Its key, PEM.")
@click.option("--tls-client-ca", metavar="FILE", help="Ask clients for a certificate of this authority, PEM.")
@click.option("--insecure", is_flag=True, help="Listen beyond this machine, though nothing is encrypted.")
@click.option("--accept-changes", is_flag=True, help="Go on though the file has changed since the start.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="error", show_default=True
)
@click.option("--json", "as_json", is_flag=True, help="Print nothing but the results, as JSON.")
def run(
    cup: str,
    data: str,
    listen: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    tls_client_ca: str | None,
    insecure: bool,
    accept_changes: bool,
    log_level: str,
    as_json: bool,
) -> None:
    """Runs a tournament, or goes on with one that was interrupted."""
    from referee_server.cli.cup import run_cup

    run_cup(
        cup,
        data,
        listen=listen,
        tls=(tls_cert, tls_key, tls_client_ca),
        insecure=insecure,
        accept_changes=accept_changes,
        log_level=log_level,
        as_json_=as_json,
    )


@click.command()
@click.argument("cup", required=False, metavar="[NAME|ID]")
@data_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "csv", "markdown", "html", "parquet"]),
    default="text",
    show_default=True,
    help="Text for a terminal, a table for other programs, one page with pictures, or files for analysis.",
)
@click.option("-o", "--out", metavar="OUT", help="File, or folder for parquet. Default: standard output.")
def standings(cup: str | None, data: str, form: str, out: str | None) -> None:
    """Shows the standings of a tournament, while it runs or afterwards."""
    from referee_server.cli.standings import show_standings

    show_standings(cup, data, form=form, out=out)


@click.group()
def cups() -> None:
    """Lists, makes and steers the tournaments of a running service. CUP is an id or a name."""


@cups.command(name="list")
@data_option
@connect_option
@tls_options
@as_json_option
def cups_list(data: str, connect: str | None, as_json: bool, tls: Tls | None) -> None:
    """Lists the tournaments, the newest first."""
    from referee_server.cli.cups import list_cups

    list_cups(data=data, connect=connect, tls=tls, as_json=as_json)


@cups.command(name="create")
@click.argument("path", metavar="CUP.toml")
@click.option("--start", is_flag=True, help="Start it as well.")
@data_option
@connect_option
@tls_options
def cups_create(path: str, start: bool, data: str, connect: str | None, tls: Tls | None) -> None:
    """Creates a tournament from its file; the same file again is the same tournament."""
    from referee_server.cli.cups import create_cup

    create_cup(path, start=start, data=data, connect=connect, tls=tls)


@cups.command(name="start")
@click.argument("cup")
@data_option
@connect_option
@tls_options
def cups_start(cup: str, data: str, connect: str | None, tls: Tls | None) -> None:
    """Starts a tournament, or goes on with one that was paused."""
    from referee_server.cli.cups import start_cup

    start_cup(cup, data=data, connect=connect, tls=tls)


@cups.command(name="pause")
@click.argument("cup")
@data_option
@connect_option
@tls_options
def cups_pause(cup: str, data: str, connect: str | None, tls: Tls | None) -> None:
    """Begins no more tables; those at play finish."""
    from referee_server.cli.cups import pause_cup

    pause_cup(cup, data=data, connect=connect, tls=tls)


@cups.command(name="cancel")
@click.argument("cup")
@data_option
@connect_option
@tls_options
def cups_cancel(cup: str, data: str, connect: str | None, tls: Tls | None) -> None:
    """Ends a tournament; tables at play are cancelled."""
    from referee_server.cli.cups import cancel_cup

    cancel_cup(cup, data=data, connect=connect, tls=tls)


@cups.command(name="enter")
@click.argument("cup")
@click.argument("name")
@click.option("--bot", metavar="BOT", help="A house bot.")
@click.option("--agent", metavar="AGENT", help="An agent that connects by itself: its name or id.")
@data_option
@connect_option
@tls_options
def cups_enter(
    cup: str, name: str, bot: str | None, agent: str | None, data: str, connect: str | None, tls: Tls | None
) -> None:
    """Lets somebody in late, for the rounds that are paired from then on."""
    from referee_server.cli.cups import enter_cup

    enter_cup(cup, name, bot=bot, agent=agent, data=data, connect=connect, tls=tls)


@cups.command(name="withdraw")
@click.argument("cup")
@click.argument("name")
@data_option
@connect_option
@tls_options
def cups_withdraw(cup: str, name: str, data: str, connect: str | None, tls: Tls | None) -> None:
    """Takes an entrant out of all rounds that are not paired yet."""
    from referee_server.cli.cups import withdraw_from_cup

    withdraw_from_cup(cup, name, data=data, connect=connect, tls=tls)


CUP_COMMANDS: Final = (init, run, standings, cups)
"""The commands, in the order of a tournament's life."""
