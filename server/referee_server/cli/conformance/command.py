"""The command itself. It imports what it needs when it runs, and what starts agents before gRPC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from referee_server.cli.output import fail

if TYPE_CHECKING:
    from referee_server.cli.conformance.agent import Setting


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, metavar="-- CMD…", type=click.UNPROCESSED)
@click.option("--game", "games", multiple=True, metavar="GAME", help="Only this game; may be repeated.")
@click.option("--only", multiple=True, metavar="CHECK", help="Only this check; may be repeated.")
@click.option("--list", "listing", is_flag=True, help="Say what is checked, and end.")
@click.option("--quick", is_flag=True, help="Fewer matches and shorter waits.")
@click.option(
    "--start",
    type=click.FloatRange(0.1, 3600),
    default=30.0,
    show_default=True,
    metavar="S",
    help="How long the agent may take from its start to Hello, and from an offer to Ready.",
)
@click.option(
    "--answer",
    type=click.FloatRange(0.1, 3600),
    default=10.0,
    show_default=True,
    metavar="S",
    help="How long it may take for a decision.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of text.")
def conformance(
    command: Sequence[str],
    games: Sequence[str],
    only: Sequence[str],
    listing: bool,
    quick: bool,
    start: float,
    answer: float,
    as_json: bool,
) -> None:
    """Examines an agent in any language: starts it by CMD and checks that it keeps to the protocol.

    In CMD, {address}, {name} and {credential} stand for what the agent is to use; REFEREE_ADDRESS, REFEREE_NAME and
    REFEREE_CREDENTIAL in its environment hold the same. See docs/conformance.md.
    """
    from referee_games import registry
    from referee_server.cli.conformance.agent import Setting

    if listing:
        from referee_server.cli.conformance.run import list_checks

        list_checks(as_json=as_json)
        return
    if not command:
        fail("say how the agent is started: referee conformance -- CMD…, with {address}, {name} and {credential} in it")
    for game in games:
        try:
            registry.find(game)
        except registry.UnknownGameError as error:
            fail(str(error))
    _examine(Setting(tuple(command), tuple(games), start, answer, quick), only, as_json=as_json)


def _examine(setting: Setting, only: Sequence[str], *, as_json: bool) -> None:
    from referee_server.agents.local import LocalAgents

    # Before gRPC is imported: from then on this process must not fork.
    agents = LocalAgents()
    try:
        from referee_server.cli.conformance.run import run_checks

        run_checks(agents, setting, only, as_json=as_json)
    finally:
        agents.kill()
