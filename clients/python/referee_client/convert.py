"""The one place where plain values become protocol messages, and back.

The referee and this package both use it, so that a game played locally and one played through the service hand an
agent the same decision. Nothing here needs gRPC.

A view is converted for every single decision, hence the caches: what does not change from one decision to the next
(options, earlier deals, complete tricks) is kept in wire form and merged as bytes, which is several times faster
than building the messages again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeAlias, TypeVar

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from referee.v1 import agent_service_pb2, game_pb2, match_service_pb2
from referee_games.contract import Decision, GenericView, Options, OptionValue, shown
from referee_games.views import GuillotineDeal, GuillotineView, RegicideDeal, RegicideView, Trick, Turn

__all__ = ["decision_from", "decision_to", "options_from", "options_to", "view_from", "view_into"]

View: TypeAlias = GuillotineView | RegicideView | GenericView
Holder: TypeAlias = agent_service_pb2.Decision | match_service_pb2.WatchMatchResponse

_K = TypeVar("_K")
_V = TypeVar("_V")


class _Memo(dict[_K, _V], Generic[_K, _V]):
    """A dict that is emptied rather than let grow beyond a bound: refilling is cheap, being full is not."""

    __slots__ = ()

    def keep(self, key: _K, value: _V) -> _V:
        if len(self) >= 8192:
            self.clear()
        self[key] = value
        return value


class _Words:
    """An enum of the protocol as the words that the games use: `RANK_ORDER_FRENCH` is `french`."""

    def __init__(self, enum: EnumDescriptor) -> None:
        self.name = enum.name
        prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
        self.words: dict[int, str] = {
            number: value.name.removeprefix(prefix).lower() for number, value in enum.values_by_number.items() if number
        }
        self.numbers: dict[str, int] = {word: number for number, word in self.words.items()}


_WORDS: Final[dict[str, _Words]] = {name: _Words(enum) for name, enum in game_pb2.DESCRIPTOR.enum_types_by_name.items()}
_CONTRACT: Final[dict[str, Any]] = {"": 0, **_WORDS["Contract"].numbers}
_CONTRACT_WORDS: Final = {0: "", **_WORDS["Contract"].words}
_GUILLOTINE_PHASE: Final[dict[str, Any]] = _WORDS["GuillotinePhase"].numbers
_GUILLOTINE_PHASE_WORDS: Final = _WORDS["GuillotinePhase"].words
_REGICIDE_PHASE: Final[dict[str, Any]] = _WORDS["RegicidePhase"].numbers
_REGICIDE_PHASE_WORDS: Final = _WORDS["RegicidePhase"].words


# Options.

_TYPED: Final[dict[str, type[Message]]] = {
    "guillotine": game_pb2.GuillotineOptions,
    "regicide": game_pb2.RegicideOptions,
}


def _typed_options(message_type: type[Message], options: Mapping[str, object]) -> Message:
    fields = message_type.DESCRIPTOR.fields_by_name
    values: dict[str, Any] = {}
    for name, value in options.items():
        field = fields.get(name)
        if field is None:
            raise ValueError(f"{message_type.DESCRIPTOR.name} has no option {shown(name)}")
        if field.enum_type is not None:
            numbers = _WORDS[field.enum_type.name].numbers
            if not isinstance(value, str) or value not in numbers:
                raise ValueError(f"option {name} is one of {', '.join(numbers)}, not {shown(value)}")
            values[name] = numbers[value]
        elif field.type == FieldDescriptor.TYPE_BOOL:
            if not isinstance(value, bool):
                raise ValueError(f"option {name} is true or false, not {shown(value)}")
            values[name] = value
        else:
            if not isinstance(value, int) or isinstance(value, bool) or not -(2**31) <= value < 2**31:
                raise ValueError(f"option {name} is a whole number of 32 bits, not {shown(value)}")
            values[name] = value
    return message_type(**values)


def _plain_options(message: Message, *, all_fields: bool) -> dict[str, OptionValue]:
    options: dict[str, OptionValue] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.enum_type is not None:
            if value:
                word = _WORDS[field.enum_type.name].words.get(value)
                if word is None:
                    raise ValueError(f"field {field.name} has the unknown value {value}")
                options[field.name] = word
        elif message.HasField(field.name) if field.has_presence else value or all_fields:
            options[field.name] = value
    return options


def options_to(game: str, options: Mapping[str, object]) -> game_pb2.GameOptions:
    """Returns the options of a game as a message: typed for the two games of the protocol, by key and text for others.

    Args:
        game: key of the game.
        options: values by name, of their own types; any number of the game's options.

    Raises:
        ValueError: a typed option is unknown or has a value that the message cannot hold. The message names it.
    """
    if game == "guillotine":
        guillotine: Any = _typed_options(game_pb2.GuillotineOptions, options)
        return game_pb2.GameOptions(guillotine=guillotine)
    if game == "regicide":
        regicide: Any = _typed_options(game_pb2.RegicideOptions, options)
        return game_pb2.GameOptions(regicide=regicide)
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    return game_pb2.GameOptions(generic=game_pb2.GenericOptions(values=texts))


def options_from(game: str, message: game_pb2.GameOptions, *, written_out: bool = False) -> dict[str, OptionValue]:
    """Returns those options that a message gives, fit for `Game.configure`.

    Args:
        game: key of the game that they are for.
        message: the options; typed, or by key and text, which is accepted for every game.
        written_out: whether the message is known to give every option, so that a false one counts as given.

    Returns:
        values by name: of their own types from typed options, text from generic ones.

    Raises:
        ValueError: the options are another game's, or a field has a value that is not known; the message names it.
    """
    kind = message.WhichOneof("kind")
    if kind is None:
        return {}
    if kind == "generic":
        return dict(message.generic.values)
    if kind != game:
        raise ValueError(f"options of {kind} were given for a match of {shown(game)}")
    return _plain_options(getattr(message, kind), all_fields=written_out)


_options_wire: Final[_Memo[tuple[object, ...], bytes]] = _Memo()
_options_read: Final[_Memo[tuple[str, bytes], dict[str, OptionValue]]] = _Memo()


def _options_fragment(game: str, options: Options) -> bytes:
    """Returns the options as the bytes of a view that holds nothing else."""
    key = (game, *options.items())
    wire = _options_wire.get(key)
    if wire is None:
        message: Any = _typed_options(_TYPED[game], options)
        view_type = game_pb2.GuillotineView if game == "guillotine" else game_pb2.RegicideView
        wire = _options_wire.keep(key, view_type(options=message).SerializeToString())
    return wire


def _view_options(game: str, message: Message) -> dict[str, OptionValue]:
    key = (game, message.SerializeToString())
    options = _options_read.get(key)
    if options is None:
        options = _options_read.keep(key, _plain_options(message, all_fields=True))
    return options.copy()  # callers may change theirs


# Tricks and earlier deals. A trick is a new value in each view, so it is looked up by value; the earlier deals are one
# and the same tuple for as long as a deal lasts, so they are looked up by identity. Both memos hold what they name.

_guillotine_tricks_wire: Final[_Memo[Trick, bytes]] = _Memo()
_regicide_tricks_wire: Final[_Memo[Trick, bytes]] = _Memo()
_deals_wire: Final[_Memo[int, tuple[object, bytes]]] = _Memo()
_tricks_read: Final[_Memo[bytes, Trick]] = _Memo()
_guillotine_deals_read: Final[_Memo[bytes, GuillotineDeal]] = _Memo()
_regicide_deals_read: Final[_Memo[bytes, RegicideDeal]] = _Memo()


def _trick_to(trick: Trick) -> game_pb2.Trick:
    return game_pb2.Trick(
        leader=trick.leader,
        cards=trick.cards,
        taker=trick.taker if trick.taker >= 0 else None,
        trump=trick.trump,
        reversed=trick.reversed,
    )


def _trick_from(message: game_pb2.Trick) -> Trick:
    key = message.SerializeToString()
    trick = _tricks_read.get(key)
    if trick is None:
        taker = message.taker if message.HasField("taker") else -1
        trick = Trick(message.leader, tuple(message.cards), taker, message.trump, message.reversed)
        _tricks_read.keep(key, trick)
    return trick


def _guillotine_tricks_fragment(tricks: tuple[Trick, ...]) -> bytes:
    wire = b""
    for trick in tricks:
        one = _guillotine_tricks_wire.get(trick)
        if one is None:
            one = game_pb2.GuillotineView(tricks=[_trick_to(trick)]).SerializeToString()
            _guillotine_tricks_wire.keep(trick, one)
        wire += one
    return wire


def _regicide_tricks_fragment(tricks: tuple[Trick, ...]) -> bytes:
    wire = b""
    for trick in tricks:
        one = _regicide_tricks_wire.get(trick)
        if one is None:
            one = game_pb2.RegicideView(tricks=[_trick_to(trick)]).SerializeToString()
            _regicide_tricks_wire.keep(trick, one)
        wire += one
    return wire


def _guillotine_deals_fragment(deals: tuple[GuillotineDeal, ...]) -> bytes:
    known = _deals_wire.get(id(deals))
    if known is not None and known[0] is deals:
        return known[1]
    messages = [
        game_pb2.GuillotineDeal(dealer=deal.dealer, contract=_CONTRACT[deal.contract], scores=deal.scores)
        for deal in deals
    ]
    return _deals_wire.keep(id(deals), (deals, game_pb2.GuillotineView(deals=messages).SerializeToString()))[1]


def _regicide_deals_fragment(deals: tuple[RegicideDeal, ...]) -> bytes:
    known = _deals_wire.get(id(deals))
    if known is not None and known[0] is deals:
        return known[1]
    messages = [
        game_pb2.RegicideDeal(dealer=deal.dealer, tricks=deal.tricks, scores=deal.scores, pot=deal.pot)
        for deal in deals
    ]
    return _deals_wire.keep(id(deals), (deals, game_pb2.RegicideView(deals=messages).SerializeToString()))[1]


def _guillotine_deal_from(message: game_pb2.GuillotineDeal) -> GuillotineDeal:
    key = message.SerializeToString()
    deal = _guillotine_deals_read.get(key)
    if deal is None:
        deal = GuillotineDeal(message.dealer, _CONTRACT_WORDS[message.contract], tuple(message.scores))
        _guillotine_deals_read.keep(key, deal)
    return deal


def _regicide_deal_from(message: game_pb2.RegicideDeal) -> RegicideDeal:
    key = message.SerializeToString()
    deal = _regicide_deals_read.get(key)
    if deal is None:
        deal = RegicideDeal(message.dealer, tuple(message.tricks), tuple(message.scores), message.pot)
        _regicide_deals_read.keep(key, deal)
    return deal


# Views.


def _guillotine_into(view: GuillotineView, message: Holder) -> None:
    out = message.guillotine
    out.MergeFromString(
        _options_fragment("guillotine", view.options)
        + _guillotine_tricks_fragment(view.tricks)
        + (_guillotine_deals_fragment(view.deals) if view.deals else b"")
    )
    if view.seat >= 0:
        out.seat = view.seat
    out.phase = _GUILLOTINE_PHASE[view.phase]
    out.deal = view.deal
    out.dealer = view.dealer
    if view.contract:
        out.contract = _CONTRACT[view.contract]
    out.hand.extend(view.hand)
    out.hand_counts.extend(view.hand_counts)
    if view.trick is not None:
        out.trick.CopyFrom(_trick_to(view.trick))
        out.trick.SetInParent()  # a trick that seat 0 leads, with no card yet, has no field that differs from zero
    if view.turns:
        out.turn_seats.extend([turn.seat for turn in view.turns])
        out.turn_cards.extend([turn.card for turn in view.turns])
    out.totals.extend(view.totals)


def _guillotine_from(message: game_pb2.GuillotineView) -> GuillotineView:
    return GuillotineView(
        seat=message.seat if message.HasField("seat") else -1,
        options=_view_options("guillotine", message.options),
        phase=_GUILLOTINE_PHASE_WORDS[message.phase],
        deal=message.deal,
        dealer=message.dealer,
        contract=_CONTRACT_WORDS[message.contract],
        hand=tuple(message.hand),
        hand_counts=tuple(message.hand_counts),
        trick=_trick_from(message.trick) if message.HasField("trick") else None,
        tricks=tuple([_trick_from(trick) for trick in message.tricks]),
        turns=tuple([Turn(*turn) for turn in zip(message.turn_seats, message.turn_cards, strict=True)]),
        totals=tuple(message.totals),
        deals=tuple([_guillotine_deal_from(deal) for deal in message.deals]),
    )


def _regicide_into(view: RegicideView, message: Holder) -> None:
    out = message.regicide
    out.MergeFromString(
        _options_fragment("regicide", view.options)
        + _regicide_tricks_fragment(view.tricks)
        + (_regicide_deals_fragment(view.deals) if view.deals else b"")
    )
    if view.seat >= 0:
        out.seat = view.seat
    out.phase = _REGICIDE_PHASE[view.phase]
    out.deal = view.deal
    out.dealer = view.dealer
    if view.opener >= 0:
        out.opener = view.opener
    out.opened = view.opened
    out.trump = view.trump
    out.reversed = view.reversed
    out.hand.extend(view.hand)
    out.hand_counts.extend(view.hand_counts)
    out.stock_count = view.stock_count
    out.discard = view.discard
    if view.trick is not None:
        out.trick.CopyFrom(_trick_to(view.trick))
        out.trick.SetInParent()
    out.tricks_taken.extend(view.tricks_taken)
    out.totals.extend(view.totals)
    out.pot = view.pot


def _regicide_from(message: game_pb2.RegicideView) -> RegicideView:
    return RegicideView(
        seat=message.seat if message.HasField("seat") else -1,
        options=_view_options("regicide", message.options),
        phase=_REGICIDE_PHASE_WORDS[message.phase],
        deal=message.deal,
        dealer=message.dealer,
        opener=message.opener if message.HasField("opener") else -1,
        opened=message.opened,
        trump=message.trump,
        reversed=message.reversed,
        hand=tuple(message.hand),
        hand_counts=tuple(message.hand_counts),
        stock_count=message.stock_count,
        discard=message.discard,
        trick=_trick_from(message.trick) if message.HasField("trick") else None,
        tricks=tuple([_trick_from(trick) for trick in message.tricks]),
        tricks_taken=tuple(message.tricks_taken),
        totals=tuple(message.totals),
        pot=message.pot,
        deals=tuple([_regicide_deal_from(deal) for deal in message.deals]),
    )


def _generic_into(view: GenericView, message: Holder) -> None:
    message.generic.SetInParent()
    message.generic.text = view.text
    message.generic.data = view.data


_INTO: Final[dict[type, Callable[[Any, Holder], None]]] = {
    GuillotineView: _guillotine_into,
    RegicideView: _regicide_into,
    GenericView: _generic_into,
}


def view_into(view: View, message: Holder) -> None:
    """Writes a view into a message that holds none yet.

    Args:
        view: what one viewer sees.
        message: a question to a seat, or the first message to somebody who watches.

    Raises:
        TypeError: the view is of a type that the protocol does not know.
        ValueError: the view says something that the protocol has no word for. The message is then half written.
    """
    write = _INTO.get(type(view))
    if write is None:
        raise TypeError(f"a game's view is a GuillotineView, RegicideView or GenericView, not {type(view).__name__}")
    try:
        write(view, message)
    except KeyError as error:
        raise ValueError(f"the protocol has no word for {shown(error.args[0])} in a {type(view).__name__}") from None


def view_from(message: Holder) -> View:
    """Returns the view in a message; the exact inverse of `view_into`.

    Raises:
        ValueError: the message holds no view, or one that this version cannot read.
    """
    try:
        if message.HasField("guillotine"):
            return _guillotine_from(message.guillotine)
        if message.HasField("regicide"):
            return _regicide_from(message.regicide)
    except KeyError as error:
        raise ValueError(f"the view has the unknown value {error.args[0]}") from None
    if message.HasField("generic"):
        return GenericView(message.generic.text, message.generic.data)
    raise ValueError("the message holds no view that this version knows")


# Decisions.


def decision_to(decision: Decision) -> agent_service_pb2.Decision:
    """Returns a question to a seat as a message. The key of the game is not in it: the offer has said it.

    Raises:
        TypeError: the view is of a type that the protocol does not know.
        ValueError: the view says something that the protocol has no word for.
    """
    message = agent_service_pb2.Decision(
        match_id=decision.match_id,
        decision_id=decision.number,
        seat=decision.seat,
        legal=decision.legal,
        allowance_us=decision.allowance_us,
        bank_us=decision.bank_us,
    )
    view_into(decision.view, message)
    return message


def decision_from(message: agent_service_pb2.Decision, game: str) -> Decision:
    """Returns a question to a seat as a plain value; the exact inverse of `decision_to`.

    Args:
        message: the question.
        game: key of the game that is played in its match.

    Raises:
        ValueError: the message holds no view, or one that this version cannot read.
    """
    return Decision(
        match_id=message.match_id,
        game=game,
        seat=message.seat,
        number=message.decision_id,
        view=view_from(message),
        legal=tuple(message.legal),
        allowance_us=message.allowance_us,
        bank_us=message.bank_us,
    )
