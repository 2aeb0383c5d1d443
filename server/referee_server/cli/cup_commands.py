"""What there is to type about tournaments."""

from __future__ import annotations

from typing import Final

import click

from referee_server.cli.data import default_path

_data = click.option(
    "--data",
    metavar="DIR",
    default=default_path,
    help="The data folder. Default: REFEREE_DATA, else ./referee-data.",
)


@click.command()
@click.argument("cup", metavar="CUP.toml")
def init(cup: str) -> None:
    """Writes a commented example of a tournament's file."""
    from referee_server.cli.cup import write_example

    write_example(cup)


@click.command()
@click.argument("cup", metavar="CUP.toml")
@_data
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Where remote entrants connect. Default: 127.0.0.1:7431, or any port where there are none.",
)
@click.option("--insecure", is_flag=True, help="Listen beyond this machine, though nothing is encrypted.")
@click.option("--accept-changes", is_flag=True, help="Go on though the file has changed since the start.")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="error", show_default=True
)
@click.option("--json", "as_json", is_flag=True, help="Print nothing but the results, as JSON.")
def run(
    cup: str, data: str, listen: str | None, insecure: bool, accept_changes: bool, log_level: str, as_json: bool
) -> None:
    """Runs a tournament, or goes on with one that was interrupted."""
    from referee_server.cli.cup import run_cup

    run_cup(
        cup,
        data,
        listen=listen,
        insecure=insecure,
        accept_changes=accept_changes,
        log_level=log_level,
        as_json_=as_json,
    )


@click.command()
@click.argument("cup", required=False, metavar="[NAME|ID]")
@_data
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


CUP_COMMANDS: Final = (init, run, standings)
"""The commands, in the order of a tournament's life."""
