"""A tournament as its file describes it: what may stand there, and what it means."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from referee.v1 import match_pb2
from referee_client import convert
from referee_games import registry
from referee_games.contract import Game, OptionValue
from referee_server.match import spec
from referee_server.match.errors import RefusedError
from referee_server.match.names import check_name


def _name(value: str) -> str:
    try:
        return check_name(value)
    except RefusedError as error:
        raise ValueError(error.message) from None


def _bot(value: str) -> str:
    try:
        spec.check_bot(value, "")
    except RefusedError as error:
        raise ValueError(error.message) from None
    return value


def _seed(value: str) -> str:
    if len(value) != 64 or not set(value) <= set("0123456789abcdef"):
        raise ValueError("a seed is 64 hex digits, in lower case")
    return value


def _text(value: str) -> str:
    if "\0" in value:
        raise ValueError("a zero byte cannot be handed to a program")
    return value


Name = Annotated[str, AfterValidator(_name)]
Bot = Annotated[str, AfterValidator(_bot)]
Text = Annotated[str, AfterValidator(_text), Field(max_length=4_096)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Format(_Part):
    """Who meets whom (`docs/formats.md`).

    Attributes:
        kind: the format.
        rounds: how many rounds; 0 leaves it to the format.
        sets: how many board sets, or matches outside of duplicate play, a group plays.
        challengers: in a gauntlet, how many of the first entrants meet all others.
    """

    kind: Literal["round_robin", "swiss", "knockout", "gauntlet", "ladder"] = "round_robin"
    rounds: int = Field(default=0, ge=0, le=100_000)
    sets: int = Field(default=1, ge=1, le=100_000)
    challengers: int = Field(default=1, ge=1, le=1_000)


class Duplicate(_Part):
    """How cards are shared between tables.

    Attributes:
        mode: `auto` is `rotation` where no entrant can remember, else `once`.
        seatings: in `rotation`, which seatings of a group play each board set.
        trust_memory: lets entrants that might remember play in `rotation`; standings and logs say so.
        fillers: house bots that sit beside the entrants: in `once` at every table, else where a table is not full.
    """

    mode: Literal["auto", "rotation", "once", "none"] = "auto"
    seatings: Literal["cyclic", "all"] = "cyclic"
    trust_memory: bool = False
    fillers: list[Bot] = Field(default_factory=list, max_length=8)


class Clock(_Part):
    """Time limits in milliseconds, as in `docs/protocol.md`; what is left out has its default."""

    allowance_ms: int | None = None
    bank_ms: int | None = None
    increment_ms: int | None = None
    connect_ms: int | None = None
    ready_ms: int | None = None
    reconnect_grace_ms: int | None = None
    shutdown_ms: int | None = None
    liveness_ms: int | None = None
    untimed: bool = False


class Fault(_Part):
    """What happens on one kind of fault; what is left out has its default."""

    action: Literal["substitute", "replace", "void_deal", "forfeit", "cancel"] | None = None
    ask_again: int = 0
    bot: str = ""
    strike: bool | None = None


class Faults(_Part):
    """What happens on faults."""

    strikes: int | None = None
    replacement_bot: Bot | None = None
    no_show: Fault | None = None
    start_timeout: Fault | None = None
    timeout: Fault | None = None
    illegal: Fault | None = None
    malformed: Fault | None = None
    disconnect: Fault | None = None
    crash: Fault | None = None
    flood: Fault | None = None


class Limits(_Part):
    """What a local program may use; what is left out has the default of `docs/isolation.md`."""

    cpu_s: int | None = Field(default=None, ge=1, le=10_000_000)
    memory_mb: int | None = Field(default=None, ge=64, le=16_000_000)
    file_mb: int | None = Field(default=None, ge=1, le=16_000_000)
    files: int | None = Field(default=None, ge=16, le=1_000_000)
    processes: int | None = Field(default=None, ge=1, le=4_000_000)


class Entrant(_Part):
    """Somebody who plays: exactly one of `bot`, `command` and `remote`.

    Attributes:
        name: the name in the standings.
        bot: a house bot.
        command: a program that the referee starts, with its arguments.
        remote: name or id of a registered agent that connects by itself.
        folder: working folder of the program, relative to the file.
        env: what its environment holds beside the little that every program gets.
        isolation: how it is kept apart from the machine.
        reads: files and folders that it can read in a sandbox beside its own folder and the system's programs.
        fresh: whether it is started anew for every table, so that it remembers nothing; unset: in `rotation` only.
        limits: what it may use.
    """

    name: Name
    bot: Bot | None = None
    command: list[Text] | None = Field(default=None, min_length=1, max_length=256)
    remote: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    folder: Text | None = None
    env: dict[str, Text] = Field(default_factory=dict)
    isolation: Literal["process", "bubblewrap"] = "process"
    reads: list[Text] = Field(default_factory=list, max_length=64)
    fresh: bool | None = None
    limits: Limits = Limits()


class Running(_Part):
    """How it is run. Nothing here changes who meets whom over which cards.

    Attributes:
        concurrency: how many tables at once, at most.
        share: how many of them one entrant may sit at, at most; 0: three quarters, or all where one table seats
            everybody.
        attempts: how often a table is played that ends through the referee's own fault, at most.
        start_at_once: how many local programs start up at the same time.
        auto_play: whether decisions of which everybody can tell that they are forced are played by the referee.
    """

    concurrency: int = Field(default=8, ge=1, le=1_000)
    share: int = Field(default=0, ge=0, le=1_000)
    attempts: int = Field(default=3, ge=1, le=100)
    start_at_once: int = Field(default=2, ge=1, le=100)
    auto_play: bool = True


class Stop(_Part):
    """Ends the tournament early: once it is as good as certain whether one entrant is better than another.

    Attributes:
        better: the one.
        than: the other.
        by: what is compared over each board set.
        confidence: how certain the verdict has to be.
        effect: the difference that would matter, in standard deviations of one board set.
    """

    better: str
    than: str
    by: Literal["place", "points"] = "place"
    confidence: float = Field(default=0.95, gt=0.5, lt=1.0)
    effect: float = Field(default=0.1, gt=0.0, le=10.0)


class Cup(_Part):
    """A tournament as its file describes it.

    Attributes:
        name: its name.
        game: key of the game.
        options: options of the game; what is left out has its default.
        seed: the master secret, 64 hex digits; given, everything follows from it and all is marked UNSEALED.
        first_dealer: the seat that deals first; unset draws it by lot.
        format: who meets whom.
        duplicate: how cards are shared between tables.
        clock: time limits.
        faults: what happens on faults.
        running: how it is run.
        stop: when it ends early.
        entrant: who plays, at least one.
    """

    name: Name
    game: str
    options: dict[str, Any] = Field(default_factory=dict)
    seed: Annotated[str, AfterValidator(_seed)] | None = None
    first_dealer: int | None = Field(default=None, ge=0)
    format: Format = Format()
    duplicate: Duplicate = Duplicate()
    clock: Clock = Clock()
    faults: Faults = Faults()
    running: Running = Running()
    stop: Stop | None = None
    entrant: list[Entrant] = Field(min_length=1, max_length=10_000)

    @property
    def mode(self) -> str:
        """The mode of duplicate play: `rotation`, `once` or `none`."""
        if self.duplicate.mode != "auto":
            return self.duplicate.mode
        return "rotation" if self.duplicate.trust_memory or not any(map(remembers, self.entrant)) else "once"

    @property
    def rules(self) -> Game:
        """The game."""
        return registry.find(self.game)

    @property
    def game_options(self) -> dict[str, OptionValue]:
        """The options of the game, defaults written out."""
        given: dict[str, object] = dict(self.options)
        if self.mode != "none" and {"target", "max_deals"} <= {option.name for option in self.rules.options}:
            # Tables are compared deal by deal, so that all of them have to play equally many.
            given.setdefault("target", 1_000_000)
            given.setdefault("max_deals", _DUPLICATE_DEALS)
        return self.rules.configure(given)

    def is_fresh(self, number: int) -> bool:
        """Tells whether a local entrant is started anew for every table."""
        entrant = self.entrant[number]
        if entrant.fresh is not None:
            return entrant.fresh
        return self.mode == "rotation" and not self.duplicate.trust_memory

    def match_spec(self) -> match_pb2.MatchSpec:
        """Returns what every match of it has in common: all but the seats, defaults written out.

        Raises:
            RefusedError: clock or policy is not one; `field` names it.
        """
        common = match_pb2.MatchSpec(
            game=self.game,
            label=self.name[:80],
            clock=match_pb2.Clock(**self.clock.model_dump(exclude_none=True)),
            policy=self._policy(),
            auto_play=match_pb2.AUTO_PLAY_PUBLIC if self.running.auto_play else match_pb2.AUTO_PLAY_NEVER,
        )
        if self.first_dealer is not None:
            common.first_dealer = self.first_dealer
        settled = spec.settle(common)
        settled.options.CopyFrom(convert.options_to(self.game, self.game_options))
        return settled

    def _policy(self) -> match_pb2.FaultPolicy:
        policy = match_pb2.FaultPolicy(replacement_bot=self.faults.replacement_bot or "")
        if self.faults.strikes is not None:
            policy.strikes = self.faults.strikes
        given = [(kind, getattr(self.faults, kind)) for kind in KINDS]
        policy.rules.extend(rule_of(kind, fault) for kind, fault in given if fault is not None)
        return policy


def rule_of(kind: str, fault: Fault) -> match_pb2.FaultRule:
    """Returns a rule of the file as a match has it."""
    rule = match_pb2.FaultRule(
        kind=match_pb2.FaultKind.Value(f"FAULT_KIND_{kind.upper()}"), ask_again_count=fault.ask_again, bot=fault.bot
    )
    if fault.action is not None:
        rule.action = match_pb2.FaultAction.Value(f"FAULT_ACTION_{fault.action.upper()}")
    if fault.strike is not None:
        rule.strike = fault.strike
    return rule


KINDS: Final = tuple(name for name in Faults.model_fields if name not in ("strikes", "replacement_bot"))
"""The kinds of fault that have a rule of their own."""
_DUPLICATE_DEALS: Final = 24
"""How many deals a table of duplicate play has where neither the game nor the file says."""


def remembers(entrant: Entrant) -> bool:
    """Tells whether an entrant could know at one table what it saw at another."""
    return entrant.remote is not None or (entrant.command is not None and entrant.fresh is False)
