"""What the author of an agent imports.

    from referee_client import Agent, run

    class First(Agent):
        def choose(self, decision):
            return decision.legal[0]

    run(First(), "localhost:7431")

Importing this package is quick: gRPC comes with the first `run` or `play`, and the games with the first `play_local`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from referee_client.agent import Agent, PolicyAgent
from referee_client.errors import (
    CredentialError,
    IllegalAnswer,
    NameInvalidError,
    NameTakenError,
    NotReachableError,
    ProtocolVersionError,
    RefereeError,
    RefusedError,
    RegistrationClosedError,
    SupersededError,
)
from referee_client.running import play, run
from referee_client.tls import Tls
from referee_client.values import Event, Offer, Result, SeatInfo, Verdict
from referee_games.contract import Decision, GenericView
from referee_games.views import GuillotineDeal, GuillotineView, RegicideDeal, RegicideView, Trick, Turn

if TYPE_CHECKING:
    from referee_client.local import LocalMatch, LocalResult, play_local

__all__ = [
    "Agent",
    "CredentialError",
    "Decision",
    "Event",
    "GenericView",
    "GuillotineDeal",
    "GuillotineView",
    "IllegalAnswer",
    "LocalMatch",
    "LocalResult",
    "NameInvalidError",
    "NameTakenError",
    "NotReachableError",
    "Offer",
    "PolicyAgent",
    "ProtocolVersionError",
    "RefereeError",
    "RefusedError",
    "RegicideDeal",
    "RegicideView",
    "RegistrationClosedError",
    "Result",
    "SeatInfo",
    "SupersededError",
    "Tls",
    "Trick",
    "Turn",
    "Verdict",
    "play",
    "play_local",
    "run",
]


def __getattr__(name: str) -> Any:
    if name in ("LocalMatch", "LocalResult", "play_local"):
        from referee_client import local

        return getattr(local, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
