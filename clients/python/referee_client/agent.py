"""What the author of an agent writes: a subclass of `Agent` with one method."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Protocol

from referee_client.values import Event, Offer, Result, Verdict
from referee_games.contract import Decision


class Policy(Protocol):
    """Anything that can answer a decision: an agent, or a house bot."""

    def choose(self, decision: Decision, /) -> str | Awaitable[str]:
        """Returns one of `decision.legal`."""


class Agent:
    """A program that plays. Subclass it and write `choose`; everything else has a default.

    All methods can be plain or `async`. Plain ones run in the event loop, which is fastest: an instant `choose` makes
    tens of thousands of decisions a second there. One that thinks for more than some milliseconds would keep the loop
    from its other work, such as showing the referee that the agent is alive; set `slow`, or write it `async`.

    Attributes:
        name: the name shown to people, 1 to 64 characters; empty means the name of the class. It is fixed when the
            credential is first used.
        games: keys of the games it plays; empty means all.
        max_matches: how many matches it plays at once, from 1 to 4,096.
        max_open_decisions: how many decisions it can have open at once, from 1 to 4,096; 0 means as many as matches.
        takes_open_seats: whether it takes seats that are open to anybody.
        wants_events: whether `on_event` is to be called. A decision's view alone is enough to play.
        slow: whether the plain methods run in a thread of their own, one call after the other. Costs about a tenth of
            a millisecond a call. Methods that are `async` stay in the event loop.
    """

    name: str = ""
    games: Sequence[str] = ()
    max_matches: int = 1
    max_open_decisions: int = 0
    takes_open_seats: bool = True
    wants_events: bool = False
    slow: bool = False

    def choose(self, decision: Decision) -> str | Awaitable[str]:
        """Answers a decision. An exception ends the run.

        If it is `async`, there can be several calls at once, one a match at most. A call whose decision has run out of
        time is cancelled.

        Args:
            decision: the question; everything the seat may see is in its view.

        Returns:
            one of `decision.legal`. Anything else is sent as it is, and the referee rules on it.
        """
        raise NotImplementedError(f"{type(self).__name__} has no choose(decision)")

    def on_match_start(self, offer: Offer) -> Awaitable[None] | None:
        """Is called when a seat is offered, before the agent says it is ready: the place to load things.

        Also called for a match in play that a restarted agent comes back to.
        """

    def on_event(self, match_id: str, seat: int, event: Event) -> Awaitable[None] | None:
        """Is called for each event of the agent's matches, in order and once each, if `wants_events`."""

    def on_verdict(self, verdict: Verdict) -> Awaitable[None] | None:
        """Is called for what became of each answer. Faults and lost time are logged as warnings in any case."""

    def on_match_over(self, result: Result) -> Awaitable[None] | None:
        """Is called when a match has ended. Nothing follows on it.

        An open seat that goes to another agent before the start is such an end, too: `not_started`, without a digest.
        The same match may be offered anew later.
        """


class PolicyAgent(Agent):
    """An agent out of anything that can answer a decision, such as a house bot.

    Args:
        policy: answers the decisions.
        name: the agent's name.
        attributes: other attributes of `Agent`, by name.
    """

    def __init__(self, policy: Policy, name: str, **attributes: Any) -> None:
        self.name = name
        self.policy = policy
        for key, value in attributes.items():
            if not hasattr(Agent, key):
                raise TypeError(f"an agent has no attribute {key!r}")
            setattr(self, key, value)

    def choose(self, decision: Decision) -> str | Awaitable[str]:
        """Answers as the policy does."""
        return self.policy.choose(decision)


def name_of(agent: Agent) -> str:
    """Returns the name an agent goes by: its own, else that of its class."""
    return agent.name or type(agent).__name__
