"""The command itself: starts what starts agents, before gRPC is imported."""

from __future__ import annotations

from collections.abc import Sequence

from referee_games import registry
from referee_server.agents.local import LocalAgents
from referee_server.cli.conformance.agent import Setting
from referee_server.cli.output import fail


def run_conformance(
    command: Sequence[str],
    *,
    games: Sequence[str],
    only: Sequence[str],
    listing: bool,
    quick: bool,
    start_s: float,
    answer_s: float,
    as_json: bool,
) -> None:
    """Examines the agent that a command starts.

    Raises:
        Failure: there is nothing to examine, no such game or check; CHECK_FAILED when the agent does not conform.
    """
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
    setting = Setting(tuple(command), tuple(games), start_s, answer_s, quick)
    # Before gRPC is imported: from then on this process must not fork.
    agents = LocalAgents()
    try:
        from referee_server.cli.conformance.run import run_checks

        run_checks(agents, setting, only, as_json=as_json)
    finally:
        agents.kill()
