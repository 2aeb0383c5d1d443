"""A house bot as an ordinary remote agent: `python -m referee_client.house BOT --connect HOST:PORT --name NAME`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from referee_client import PolicyAgent, RefereeError, Tls, run
from referee_games import bots


def play_bot(
    bot: str,
    address: str,
    name: str,
    *,
    seed: int = 0,
    credential: str | None = None,
    matches: int | None = None,
    max_matches: int = 64,
    open_seats: bool = True,
    tls: Tls | None = None,
) -> None:
    """Plays a house bot at a referee until it has played `matches`, or is stopped.

    Raises:
        UnknownBotError: there is no such bot.
        RefereeError: the referee cannot be reached, or refuses.
    """
    agent = PolicyAgent(bots.make(bot, seed), name, max_matches=max_matches, takes_open_seats=open_seats)
    run(agent, address, credential=credential, matches=matches, tls=tls)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one house bot from the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m referee_client.house", description="Plays a house bot.")
    parser.add_argument("bot", choices=bots.names())
    parser.add_argument("--connect", required=True, metavar="HOST:PORT")
    parser.add_argument("--name", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--credential", help="credential file")
    parser.add_argument("--matches", type=int, help="leave after so many matches")
    parser.add_argument("--max-matches", type=int, default=64, help="matches at once")
    parser.add_argument("--tls-ca", metavar="FILE", help="certificate to trust; makes the connection encrypted")
    parser.add_argument("--tls-cert", metavar="FILE", help="the agent's own certificate, where one is asked for")
    parser.add_argument("--tls-key", metavar="FILE", help="its key")
    given = parser.parse_args(argv)
    encrypted = given.tls_ca or given.tls_cert or given.tls_key
    try:
        play_bot(
            given.bot,
            given.connect,
            given.name,
            seed=given.seed,
            credential=given.credential,
            matches=given.matches,
            max_matches=given.max_matches,
            tls=Tls(given.tls_ca, given.tls_cert, given.tls_key) if encrypted else None,
        )
    except RefereeError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
