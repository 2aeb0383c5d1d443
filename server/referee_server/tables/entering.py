"""Nonces for a tournament: asked of its agents once, before it starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee_games import dealing
from referee_games.contract import shown
from referee_server.match.errors import RefusedError
from referee_server.tables.clock import Clock
from referee_server.tables.session import Session

LIMIT_S: Final = 10
"""How long an agent may take, in seconds; the tournament then starts without its share."""


class Entering:
    """The agents that are asked for their share in the cards of a tournament."""

    def __init__(self, clock: Clock, session_of: Callable[[str], Session | None]) -> None:
        self._clock = clock
        self._session_of = session_of
        self._asked: dict[tuple[str, str], asyncio.Future[bytes]] = {}
        self._offers: dict[tuple[str, str], agent_pb.TournamentOffered] = {}

    async def nonce(self, agent_id: str, offer: agent_pb.TournamentOffered) -> bytes:
        """Asks an agent for its share; returns 32 bytes, or none if it gives none in time."""
        key = (offer.tournament_id, agent_id)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked[key], self._offers[key] = answer, offer

        def give_up() -> None:
            if not answer.done():
                answer.set_result(b"")

        timer = self._clock.call_at(self._clock.now_us() + LIMIT_S * 1_000_000, give_up)
        try:
            self.attached(agent_id)
            return await answer
        finally:
            timer.cancel()
            del self._asked[key], self._offers[key]

    def attached(self, agent_id: str) -> None:
        """Asks an agent that has connected, if its share is awaited."""
        session = self._session_of(agent_id)
        for (_, asked), offer in self._offers.items():
            if asked == agent_id and session is not None:
                session.push(agent_pb.ServerItem(tournament_offered=offer))

    def take(self, agent_id: str, enter: agent_pb.Enter) -> None:
        """Takes an agent's share.

        Raises:
            RefusedError: nobody asked for it, it came already or too late, or it has another length.
        """
        if len(enter.nonce) not in (0, dealing.SECRET_BYTES):
            raise RefusedError(
                reason_pb.ERROR_REASON_NONCE_LENGTH, f"a nonce has {dealing.SECRET_BYTES} bytes, not {len(enter.nonce)}"
            )
        answer = self._asked.get((enter.tournament_id, agent_id))
        if answer is None or answer.done():
            raise RefusedError(
                reason_pb.ERROR_REASON_ALREADY_READY,
                "that tournament takes no share in its cards from this agent, or no more",
                tournament_id=shown(enter.tournament_id),
            )
        answer.set_result(enter.nonce)
