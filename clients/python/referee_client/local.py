"""The same agents at the same games in this process: to train, to search, to try something out.

No server, no network, no clock. Rules, cards and decisions are those of the service: a match with the same id, secret
and answers gives the same decisions, number for number, except for their times and for what other seats' nonces do to
the cards.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import secrets
import threading
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from referee_client.agent import Agent, Policy, name_of
from referee_client.errors import IllegalAnswer
from referee_client.values import Offer, Result, SeatInfo
from referee_games import dealing, registry
from referee_games.contract import CHANCE, OVER, DealScored, Decision, Options

Seat: TypeAlias = Policy | str
AutoPlay: TypeAlias = Literal["public", "never"]


@dataclass(frozen=True, slots=True)
class Step:
    """One decision of a match, as it was taken.

    Attributes:
        deal: number of the deal, from 0.
        seat: who decided.
        number: number of the decision, dense per seat, from 0.
        legal: the legal actions, in canonical order.
        action: the action taken.
        auto: whether it was forced and played without asking.
    """

    deal: int
    seat: int
    number: int
    legal: tuple[str, ...]
    action: str
    auto: bool


@dataclass(frozen=True, slots=True)
class LocalResult:
    """How a local match ended.

    Attributes:
        match_id: its id.
        game: key of the game.
        options: every option.
        secret: the 32 bytes that the cards follow from; handed in as `seed` they give the same cards.
        first_dealer: the seat that dealt first.
        totals: points by side.
        places: places by side, from 1; equals share one.
        sides: the seats of each side.
        deals: the score of each deal, in order.
        decisions: how many decisions there were, the forced ones included.
        steps: every decision in order, if they were asked for.
    """

    match_id: str
    game: str
    options: Options
    secret: bytes
    first_dealer: int
    totals: tuple[int, ...]
    places: tuple[int, ...]
    sides: tuple[tuple[int, ...], ...]
    deals: tuple[DealScored, ...]
    decisions: int
    steps: tuple[Step, ...] = ()


class LocalMatch:
    """A match that waits for one answer after the other: the way in for search and for learning step by step.

    Args:
        game: key of the game.
        options: options of the game; the others have their defaults.
        seed: the secret that the cards follow from: 32 bytes, or a number that stands for them; None draws one.
        match_id: the match's id, which the cards follow from as well.
        first_dealer: the seat that deals first; None draws it by lot.
        auto_play: `public` plays by itself what everybody can tell is forced, as the service does; `never` asks.
        steps: whether to keep every step.

    Attributes:
        decision: the question that waits for its answer; None once the match is over.
        result: how the match ended; None before.

    Raises:
        UnknownGameError: there is no such game.
        OptionError: an option is unknown, out of range or senseless.
        ValueError: the seed has another length than 32 bytes, or the first dealer is no seat.
    """

    def __init__(
        self,
        game: str,
        *,
        options: Mapping[str, object] | None = None,
        seed: bytes | int | None = None,
        match_id: str = "local",
        first_dealer: int | None = None,
        auto_play: AutoPlay = "public",
        steps: bool = False,
    ) -> None:
        if auto_play not in ("public", "never"):
            raise ValueError(f"auto_play is public or never, not {auto_play!r}")
        self.game = registry.find(game)
        self.options = self.game.configure(options or {})
        self.match_id = match_id
        self.secret = _secret(seed)
        self.seats = self.game.seats(self.options)
        self.decision: Decision | None = None
        self.result: LocalResult | None = None
        self._seed = dealing.match_seed(match_id, self.secret, [b""] * self.seats)
        if first_dealer is None:
            first_dealer = dealing.first_dealer(self._seed, self.seats)
        elif not 0 <= first_dealer < self.seats:
            raise ValueError(f"first_dealer is a seat from 0 to {self.seats - 1}, not {first_dealer}")
        self.first_dealer = first_dealer
        self.state = self.game.start(self.options, first_dealer)
        self._auto = auto_play == "public"
        self._numbers = [0] * self.seats
        self._deals: list[DealScored] = []
        self._steps: list[Step] | None = [] if steps else None
        self._legal: Sequence[int] = ()
        self._go_on()

    def answer(self, action: str) -> Decision | None:
        """Answers the decision and returns the next one; None when the match is over.

        Raises:
            IllegalAnswer: the action is not legal. The decision still waits for an answer.
            RuntimeError: the match is over.
        """
        decision = self.decision
        if decision is None:
            raise RuntimeError("the match is over: there is nothing to answer")
        try:
            # The texts and the numbers of the legal actions have the same order.
            number = self._legal[decision.legal.index(action)]
        except ValueError:
            raise IllegalAnswer(decision.seat, action, decision.legal) from None
        if self._steps is not None:
            deal = self.state.deal_number
            self._steps.append(Step(deal, decision.seat, decision.number, decision.legal, action, auto=False))
        self._numbers[decision.seat] += 1
        self._note(self.state.apply(number))
        self._go_on()
        return self.decision

    def _go_on(self) -> None:
        """Deals and plays what is forced, up to the next question or the end."""
        state, texts, auto = self.state, self.game.texts, self._auto
        while (seat := state.actor) >= 0 or seat == CHANCE:
            if seat == CHANCE:
                self._note(state.deal(dealing.deal_pack(self._seed, state.deal_number, self.game.pack)))
                continue
            legal = state.legal()
            if auto and state.forced():
                if self._steps is not None:
                    text = texts[legal[0]]
                    self._steps.append(Step(state.deal_number, seat, self._numbers[seat], (text,), text, auto=True))
                self._numbers[seat] += 1
                self._note(state.apply(legal[0]))
                continue
            self._legal = legal
            self.decision = Decision(
                self.match_id,
                self.game.name,
                seat,
                self._numbers[seat],
                state.view(seat),
                tuple([texts[action] for action in legal]),
            )
            return
        assert seat == OVER
        self.decision = None
        self.result = LocalResult(
            match_id=self.match_id,
            game=self.game.name,
            options=self.options,
            secret=self.secret,
            first_dealer=self.first_dealer,
            totals=state.totals(),
            places=state.places(),
            sides=self.game.sides(self.options),
            deals=tuple(self._deals),
            decisions=sum(self._numbers),
            steps=tuple(self._steps or ()),
        )

    def _note(self, facts: tuple[Any, ...]) -> None:
        for fact in facts:
            if type(fact) is DealScored:
                self._deals.append(fact)


def play_local(
    game: str,
    seats: Sequence[Seat],
    *,
    options: Mapping[str, object] | None = None,
    seed: bytes | int | None = None,
    match_id: str = "local",
    first_dealer: int | None = None,
    auto_play: AutoPlay = "public",
    steps: bool = False,
) -> LocalResult:
    """Plays one match between agents in this process.

    Of the agents' other methods `on_match_start` and `on_match_over` are called, `on_event` and `on_verdict` are not.
    One agent can sit at several seats.

    Args:
        game: key of the game.
        seats: who sits where, seat 0 first: an agent, anything else that has `choose`, or the name of a house bot.
        options: options of the game; the others have their defaults.
        seed: the secret that the cards follow from: 32 bytes, or a number that stands for them; None draws one.
        match_id: the match's id, which the cards follow from as well.
        first_dealer: the seat that deals first; None draws it by lot.
        auto_play: `public` plays by itself what everybody can tell is forced, as the service does; `never` asks.
        steps: whether the result is to list every step.

    Raises:
        IllegalAnswer: an agent answered something that is not legal.
        UnknownGameError: there is no such game.
        OptionError: an option is unknown, out of range or senseless.
        ValueError: the number of seats is not the game's, or the seed or the first dealer cannot be.
        Exception: whatever an agent raises.
    """
    match = LocalMatch(
        game,
        options=options,
        seed=seed,
        match_id=match_id,
        first_dealer=first_dealer,
        auto_play=auto_play,
        steps=steps,
    )
    if len(seats) != match.seats:
        raise ValueError(f"{game} has {match.seats} seats with these options, not {len(seats)}")
    policies = [_policy(seat, match, number) for number, seat in enumerate(seats)]
    with _Waiter() as waiter:
        offer = Offer(match.match_id, match.game.name, match.options, 0, _seat_infos(seats), auto_play=auto_play)
        for number, policy in enumerate(policies):
            if isinstance(policy, Agent) and type(policy).on_match_start is not Agent.on_match_start:
                waiter.settle(policy.on_match_start(replace(offer, seat=number)))
        chooses = [policy.choose for policy in policies]
        decision = match.decision
        answer = match.answer
        while decision is not None:
            action = chooses[decision.seat](decision)
            if not isinstance(action, str):
                action = waiter.settle(action)
            decision = answer(action)
        result = match.result
        assert result is not None
        for number, policy in enumerate(policies):
            if isinstance(policy, Agent) and type(policy).on_match_over is not Agent.on_match_over:
                waiter.settle(policy.on_match_over(_result_for(number, result)))
    return result


def _policy(seat: Seat, match: LocalMatch, number: int) -> Policy:
    if not isinstance(seat, str):
        return seat
    bots = importlib.import_module("referee_games.bots")  # only who asks for a house bot waits for them
    # A bot's chance follows from the match's secret, so that a repeat is one.
    seed = dealing.Draws(match._seed, f"local-bot/{number}").below(2**31)
    bot: Policy = bots.make(seat, seed)
    return bot


def _seat_infos(seats: Sequence[Seat]) -> tuple[SeatInfo, ...]:
    infos = []
    for number, seat in enumerate(seats):
        if isinstance(seat, str):
            infos.append(SeatInfo(number, "bot", seat))
        else:
            name = name_of(seat) if isinstance(seat, Agent) else type(seat).__name__
            infos.append(SeatInfo(number, "agent", name))
    return tuple(infos)


def _result_for(seat: int, result: LocalResult) -> Result:
    side_of = {member: side for side, members in enumerate(result.sides) for member in members}
    return Result(
        match_id=result.match_id,
        game=result.game,
        seat=seat,
        side=side_of[seat],
        reason="completed",
        totals=result.totals,
        places=result.places,
        official_places=result.places,
        sides=tuple(side_of[member] for member in sorted(side_of)),
        faults=(0,) * len(side_of),
        substitutes=(0,) * len(side_of),
        deals=len(result.deals),
    )


def _secret(seed: bytes | int | None) -> bytes:
    if seed is None:
        return secrets.token_bytes(32)
    if isinstance(seed, int):
        if not 0 <= seed < 2**256:
            raise ValueError("a seed given as a number is from 0 to below 2**256")
        return seed.to_bytes(32, "big")
    if len(seed) != 32:
        raise ValueError(f"a seed has 32 bytes, not {len(seed)}")
    return bytes(seed)


class _Waiter:
    """Waits for what `async` agents return. The loop is made at the first need: most agents have none."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._elsewhere: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> _Waiter:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._runner is not None:
            self._runner.close()
        if self._elsewhere is not None:
            self._elsewhere.call_soon_threadsafe(self._elsewhere.stop)

    def settle(self, value: Any) -> Any:
        """Returns what an awaitable gives; anything else as it is."""
        if not inspect.isawaitable(value):
            return value
        if self._runner is None and self._elsewhere is None:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                self._runner = asyncio.Runner()
            else:
                self._elsewhere = self._start_elsewhere()
        if self._runner is not None:
            return self._runner.run(_await(value))
        assert self._elsewhere is not None
        return asyncio.run_coroutine_threadsafe(_await(value), self._elsewhere).result()

    @staticmethod
    def _start_elsewhere() -> asyncio.AbstractEventLoop:
        """Starts a loop in a thread: the one that runs here, as in a notebook, is blocked by our caller."""
        loop = asyncio.new_event_loop()

        def work() -> None:
            try:
                loop.run_forever()
            finally:
                loop.close()

        threading.Thread(target=work, name="referee-local", daemon=True).start()
        return loop


async def _await(value: Awaitable[Any]) -> Any:
    return await value
