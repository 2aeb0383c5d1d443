"""What a host asks for, checked, with every default written out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import match_pb2
from referee_games import bots, registry
from referee_games.contract import Game, OptionError, OptionValue, shown
from referee_server.match.errors import RefusedError

DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
US: Final = 1_000
"""Microseconds in a millisecond."""

_LIMITS: Final = {
    "allowance_ms": (0, DAY_MS, 5_000),
    "bank_ms": (0, DAY_MS, 60_000),
    "increment_ms": (0, HOUR_MS, 0),
    "connect_ms": (1, DAY_MS, 30_000),
    "ready_ms": (1, DAY_MS, 60_000),
    "reconnect_grace_ms": (0, DAY_MS, 30_000),
    "shutdown_ms": (0, HOUR_MS, 10_000),
    "liveness_ms": (1, DAY_MS, 600_000),
}
_DECISION_LIMITS: Final = ("allowance_ms", "bank_ms", "increment_ms")

_SUBSTITUTE = match_pb2.FAULT_ACTION_SUBSTITUTE
_REPLACE = match_pb2.FAULT_ACTION_REPLACE
_CANCEL = match_pb2.FAULT_ACTION_CANCEL
_ON_ANSWERS: Final = (_SUBSTITUTE, _REPLACE, match_pb2.FAULT_ACTION_VOID_DEAL, match_pb2.FAULT_ACTION_FORFEIT)
_ON_START: Final = (_CANCEL, _REPLACE)
_ON_LOSS: Final = (_REPLACE, match_pb2.FAULT_ACTION_FORFEIT)
# Kind: what may be done about it, and whether it is a strike by default. The first action is the default.
_RULES: Final[dict[match_pb2.FaultKind.ValueType, tuple[tuple[match_pb2.FaultAction.ValueType, ...], bool]]] = {
    match_pb2.FAULT_KIND_NO_SHOW: (_ON_START, False),
    match_pb2.FAULT_KIND_START_TIMEOUT: (_ON_START, False),
    match_pb2.FAULT_KIND_TIMEOUT: (_ON_ANSWERS, True),
    match_pb2.FAULT_KIND_ILLEGAL: (_ON_ANSWERS, True),
    match_pb2.FAULT_KIND_MALFORMED: (_ON_ANSWERS, True),
    match_pb2.FAULT_KIND_DISCONNECT: (_ON_LOSS, False),
    match_pb2.FAULT_KIND_CRASH: (_ON_LOSS, False),
    match_pb2.FAULT_KIND_FLOOD: (_ON_LOSS, False),
}
_MAY_ASK_AGAIN: Final = (match_pb2.FAULT_KIND_ILLEGAL, match_pb2.FAULT_KIND_MALFORMED)
_STRIKES: Final = 3
_REPLACEMENT_BOT: Final = "greedy"


def _invalid(field: str, message: str) -> RefusedError:
    return RefusedError(reason_pb.ERROR_REASON_FIELD_INVALID, message, field=field)


def find_game(name: str) -> Game:
    """Returns the game.

    Raises:
        RefusedError: GAME_UNKNOWN.
    """
    try:
        return registry.find(name)
    except registry.UnknownGameError as error:
        raise RefusedError(reason_pb.ERROR_REASON_GAME_UNKNOWN, str(error), game=shown(name)) from None


def configure(game: Game, given: Mapping[str, object]) -> dict[str, OptionValue]:
    """Returns the options of a game, defaults written out.

    Raises:
        RefusedError: OPTION_INVALID.
    """
    try:
        return game.configure(given)
    except OptionError as error:
        raise RefusedError(
            reason_pb.ERROR_REASON_OPTION_INVALID, str(error), field="spec.options", option=shown(error.name)
        ) from None


def check_bot(name: str, field: str) -> None:
    """Refuses the name of a house bot that does not exist (BOT_UNKNOWN)."""
    if name not in bots.names():
        raise RefusedError(
            reason_pb.ERROR_REASON_BOT_UNKNOWN,
            f"there is no house bot {shown(name)}; there are {', '.join(bots.names())}",
            field=field,
            bot=shown(name),
        )


def settle_clock(clock: match_pb2.Clock) -> match_pb2.Clock:
    """Returns a clock with its defaults written out.

    Raises:
        RefusedError: FIELD_INVALID, naming the field and its range.
    """
    settled = match_pb2.Clock(untimed=clock.untimed)
    for name, (low, high, default) in _LIMITS.items():
        given = clock.HasField(name)  # type: ignore[arg-type]  # the names are those of the message
        if clock.untimed and name in _DECISION_LIMITS:
            if given and getattr(clock, name):
                raise _invalid(f"spec.clock.{name}", f"{name} has no meaning in an untimed match; leave it out")
            continue
        value = getattr(clock, name) if given else default
        if not low <= value <= high:
            raise _invalid(f"spec.clock.{name}", f"{name} is from {low} to {high}, not {value}")
        setattr(settled, name, value)
    if not clock.untimed and settled.allowance_ms == 0 and settled.bank_ms == 0:
        raise _invalid("spec.clock.allowance_ms", "allowance_ms and bank_ms are both 0; say untimed instead")
    return settled


def settle_policy(policy: match_pb2.FaultPolicy) -> match_pb2.FaultPolicy:
    """Returns a fault policy with a rule for every kind.

    Raises:
        RefusedError: FIELD_INVALID or BOT_UNKNOWN, naming the field.
    """
    strikes = policy.strikes if policy.HasField("strikes") else _STRIKES
    if not 0 <= strikes <= 1_000:
        raise _invalid("spec.policy.strikes", f"strikes is from 0 to 1000, not {strikes}")
    bot = policy.replacement_bot or _REPLACEMENT_BOT
    check_bot(bot, "spec.policy.replacement_bot")
    given: dict[int, match_pb2.FaultRule] = {}
    for place, rule in enumerate(policy.rules):
        if rule.kind in given:
            raise _invalid(f"spec.policy.rules[{place}].kind", "two rules for one kind of fault")
        given[rule.kind] = _check_rule(rule, f"spec.policy.rules[{place}]")
    settled = match_pb2.FaultPolicy(strikes=strikes, replacement_bot=bot)
    for kind, (actions, strike) in _RULES.items():
        asked = given.get(kind, match_pb2.FaultRule())
        settled.rules.add(
            kind=kind,
            action=asked.action or actions[0],
            ask_again_count=asked.ask_again_count,
            bot=asked.bot,
            strike=asked.strike if asked.HasField("strike") else strike,
        )
    return settled


def _check_rule(rule: match_pb2.FaultRule, path: str) -> match_pb2.FaultRule:
    if rule.kind not in _RULES:
        raise _invalid(f"{path}.kind", "a rule names one of the kinds of fault")
    actions = _RULES[rule.kind][0]
    if rule.action and rule.action not in actions:
        allowed = ", ".join(match_pb2.FaultAction.Name(action) for action in actions)
        raise _invalid(f"{path}.action", f"on {match_pb2.FaultKind.Name(rule.kind)} the referee can do: {allowed}")
    if not 0 <= rule.ask_again_count <= 10:
        raise _invalid(f"{path}.ask_again_count", f"ask_again_count is from 0 to 10, not {rule.ask_again_count}")
    if rule.ask_again_count and rule.kind not in _MAY_ASK_AGAIN:
        raise _invalid(f"{path}.ask_again_count", "only a wrong answer can be asked for again")
    if rule.bot:
        check_bot(rule.bot, f"{path}.bot")
        if (rule.action or actions[0]) != _SUBSTITUTE:
            raise _invalid(f"{path}.bot", "only a substitute action has a bot to choose it")
    return rule


def check_seats(spec: match_pb2.MatchSpec, game: Game, options: Mapping[str, OptionValue]) -> None:
    """Refuses another number of seats than the game has, and seats or a first dealer that cannot be.

    Raises:
        RefusedError: SEAT_COUNT, FIELD_INVALID, BOT_UNKNOWN or AGENT_REPEATED.
    """
    needed = game.seats(options)
    if len(spec.seats) != needed:
        raise RefusedError(
            reason_pb.ERROR_REASON_SEAT_COUNT,
            f"{game.name} with these options has {needed} seats, not {len(spec.seats)}",
            field="spec.seats",
            needed=needed,
            given=len(spec.seats),
        )
    named: set[str] = set()
    for number, seat in enumerate(spec.seats):
        path = f"spec.seats[{number}]"
        match seat.WhichOneof("kind"):
            case "bot":
                check_bot(seat.bot, f"{path}.bot")
            case "agent":
                if not seat.agent:
                    raise _invalid(f"{path}.agent", "a seat of an agent names the agent")
                if seat.agent in named:
                    raise RefusedError(
                        reason_pb.ERROR_REASON_AGENT_REPEATED, "an agent takes one seat of a match", field=path
                    )
                named.add(seat.agent)
            case None:
                raise _invalid(path, "a seat is for an agent, a house bot, or open")
    if spec.HasField("first_dealer") and not 0 <= spec.first_dealer < needed:
        raise _invalid("spec.first_dealer", f"first_dealer is a seat from 0 to {needed - 1}, not {spec.first_dealer}")


def settle(spec: match_pb2.MatchSpec) -> match_pb2.MatchSpec:
    """Returns a copy of a host's spec with clock, policy and auto-play settled, and the given secret taken out.

    Game, options and seats are checked apart; the options are written out by whoever converts them.

    Raises:
        RefusedError: FIELD_INVALID or BOT_UNKNOWN.
    """
    settled = match_pb2.MatchSpec()
    settled.CopyFrom(spec)
    settled.ClearField("given_secret")
    settled.clock.CopyFrom(settle_clock(spec.clock))
    settled.policy.CopyFrom(settle_policy(spec.policy))
    if spec.auto_play not in match_pb2.AutoPlay.values():
        raise _invalid("spec.auto_play", "auto_play is public or never")
    settled.auto_play = spec.auto_play or match_pb2.AUTO_PLAY_PUBLIC
    if len(spec.given_secret) not in (0, 32):
        raise _invalid("spec.given_secret", f"a given secret has 32 bytes, not {len(spec.given_secret)}")
    if len(spec.label) > 80 or not spec.label.isprintable():
        raise _invalid("spec.label", "a label is at most 80 printable characters")
    return settled
