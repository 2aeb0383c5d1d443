"""The options that several commands have."""

from __future__ import annotations

import functools
from collections.abc import Callable

import click

from referee_server.cli.data import default_path

data_option = click.option(
    "--data",
    metavar="DIR",
    default=default_path,
    help="The data folder. Default: REFEREE_DATA, else ./referee-data.",
)
connect_option = click.option(
    "--connect", metavar="HOST:PORT", help="The service. Default: the one of the data folder."
)
as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of a table.")
_TLS_HELP = {
    "tls_ca": "The certificate to trust; makes the connection encrypted.",
    "tls_cert": "The caller's own certificate, where the service asks for one.",
    "tls_key": "Its key.",
}


def tls_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of an encrypted connection, handed on as one `tls`."""

    @functools.wraps(command)
    def with_tls(*, tls_ca: str | None, tls_cert: str | None, tls_key: str | None, **given: object) -> None:
        from referee_client import Tls

        encrypted = tls_ca or tls_cert or tls_key
        command(**given, tls=Tls(tls_ca, tls_cert, tls_key) if encrypted else None)

    wrapped: Callable[..., None] = with_tls
    for name, text in reversed(_TLS_HELP.items()):
        wrapped = click.option(f"--{name.replace('_', '-')}", metavar="FILE", help=text)(wrapped)
    return wrapped
