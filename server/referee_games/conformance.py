"""The laws that every game keeps, as checks that a new game gets for nothing.

Each check takes a game and raises `BreachError` with a sentence on the law that does not hold. Those that play take a
`Draw` besides, so that a run can be repeated: `random.Random(7).randrange` is one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from referee_games.contract import (
    CHANCE,
    OVER,
    PUBLIC,
    CardsDealt,
    CardShown,
    DealScored,
    Fact,
    Game,
    Option,
    OptionError,
    Options,
    OptionValue,
    State,
    rank_places,
)

Draw: TypeAlias = Callable[[int], int]
"""Draws a whole number from 0 to below its argument."""

_LONGEST_MATCH = 1_000_000
"""Steps after which a match is taken to be endless."""
_LONG_DEAL = 60
"""Decisions that a long deal takes."""


class BreachError(AssertionError):
    """A game does not keep a law."""


def require(holds: object, law: str) -> None:
    """Raises `BreachError` with that law unless it holds."""
    if not holds:
        raise BreachError(law)


def check_all(game: Game, draw: Draw) -> None:
    """Runs every check of this module."""
    check_description(game)
    check_options(game)
    for options in variants(game, draw):
        check_match(game, options, draw)
        check_voiding(game, options, draw)
        check_secrecy(game, options, draw)


def check_description(game: Game) -> None:
    """Checks name, pack and notation: every action has a text of its own and is found by it."""
    require(game.name and game.title, "a game has a key and a title")
    require(game.name.isascii() and game.name == game.name.lower(), "the key of a game is lower-case ASCII")
    require(len(set(game.texts)) == len(game.texts), "every action has a text of its own")
    require(tuple(game.pack) == tuple(range(len(game.pack))), "the cards are the first actions, in canonical order")
    require(len(game.pack) <= len(game.texts), "every card has a text")
    for number, text in enumerate(game.texts):
        require(text and text.isascii() and text.isprintable() and " " not in text, f"{text!r} is printable ASCII")
        require(game.number(text) == number, f"{text!r} is read back as the action it was written for")
        require(game.public_text(number), f"others see something of {text!r}")
    for text in ("", " ", "no such action", game.texts[0] + " ", game.texts[0].swapcase()):
        require(text in game.texts or game.number(text) is None, f"{text!r} is no action")


def check_options(game: Game) -> None:
    """Checks that options are described, that defaults hold, and that what is wrong is refused by name."""
    defaults = {option.name: option.default for option in game.options}
    require(len(defaults) == len(game.options), "no two options share a name")
    require(game.configure({}) == defaults, "with nothing given the defaults are in force")
    require(game.configure(defaults) == defaults, "the defaults can be given")
    _refused(game, {"no_such_option": 1}, "no_such_option")
    for option in game.options:
        require(option.name == option.name.lower(), f"option {option.name} has a lower-case name")
        require(option.doc, f"option {option.name} is described")
        for value in values(option):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            require(option.parse(value) == value, f"option {option.name} takes {value!r}")
            require(option.parse(text) == value, f"option {option.name} takes {text!r} as typed")
        wrong: list[object] = ["no-such-value", None, 1.5, [], ""]
        if isinstance(option.default, bool):
            wrong += [0, 1, "True"]
        elif isinstance(option.default, int):
            wrong += [True, option.low - 1, option.high + 1, str(option.high + 1), " 1", "9" * 99]
            require(option.parse(option.high) == option.high, f"option {option.name} takes its highest value")
        else:
            wrong += [0, True]
        for bad in wrong:
            _refused(game, {option.name: bad}, option.name)


def _refused(game: Game, given: Mapping[str, object], name: str) -> None:
    try:
        game.configure(given)
    except OptionError as error:
        require(error.name == name, f"{dict(given)!r} is refused by the name {name}, not {error.name}")
        require(str(error).isprintable(), f"{dict(given)!r} is refused in one printable line")
    else:
        raise BreachError(f"{dict(given)!r} is refused")


def values(option: Option) -> tuple[OptionValue, ...]:
    """Returns the values of an option that are worth playing: all, or of a wide range the two least and the default."""
    if isinstance(option.default, bool):
        return (False, True)
    if isinstance(option.default, int):
        if option.high - option.low < 10:
            return tuple(range(option.low, option.high + 1))
        return tuple(sorted({option.low, option.low + 1, option.default}))
    return option.choices


def variants(game: Game, draw: Draw) -> Iterator[Options]:
    """Yields the defaults, and for each value of each option a configuration with it, the others drawn.

    Raises:
        BreachError: no configuration with some value was found in a thousand tries, so the value can never be used.
    """
    yield game.configure({})
    for option in game.options:
        for value in values(option):
            for _ in range(1000):
                given = {other.name: values(other)[draw(len(values(other)))] for other in game.options}
                try:
                    options = game.configure({**given, option.name: value})
                except OptionError:
                    continue
                yield options
                break
            else:
                raise BreachError(f"option {option.name} can be {value!r}")


def check_match(game: Game, options: Options, draw: Draw, deals: int = 3) -> None:
    """Plays a match at random to its end; for the first few deals every law is checked at every step."""
    seats = game.seats(options)
    sides = game.sides(options)
    state = game.start(options, draw(seats))
    require(sorted(seat for side in sides for seat in side) == list(range(seats)), "every seat is of one side")
    require(state.actor == CHANCE and state.deal_number == 0, "a match begins with a deal")
    require(state.totals() == (0,) * len(sides), "a match begins with nothing scored")
    while state.actor != OVER and state.deal_number < deals:
        _check_deal(game, state, seats, draw)
    for _ in range(_LONGEST_MATCH):
        if state.actor == OVER:
            break
        _step(state, _choice(game, state, draw))
    require(state.actor == OVER, "every match ends")
    require(state.places() == rank_places(state.totals(), lowest_wins=game.lowest_wins), "places follow from totals")


def _check_deal(game: Game, state: State, seats: int, draw: Draw) -> None:
    number, dealer, before = state.deal_number, state.dealer, state.totals()
    require(0 <= dealer < seats, "a seat deals")
    facts = [*_check_step(game, state, seats, draw)]
    while state.actor >= 0:
        require((state.deal_number, state.dealer) == (number, dealer), "number and dealer last as long as the deal")
        require(state.totals() == before, "nothing is scored before the end of a deal")
        require(state.actor < seats, "a seat acts")
        facts += _check_step(game, state, seats, draw)
    require(state.deal_number == number + (state.actor == CHANCE), "deals are numbered without a gap")

    dealt = [fact.hands for fact in facts if isinstance(fact, CardsDealt)]
    cards = [card for hands in dealt for hand in hands for card in hand]
    require(cards and all(len(hands) == seats for hands in dealt), "cards are dealt, to every seat a hand")
    require(len(set(cards)) == len(cards) and set(cards) <= set(game.pack), "no card is dealt twice")
    scored = [fact for fact in facts if isinstance(fact, DealScored)]
    require(len(scored) == 1 and facts[-1] is scored[0], "a deal ends with its score, and has one")
    _check_score(scored[0], number, dealer, before, state)
    require(not scored[0].voided, "a deal that was played out is not voided")


def _check_score(scored: DealScored, number: int, dealer: int, before: tuple[int, ...], state: State) -> None:
    require((scored.deal, scored.dealer) == (number, dealer), "a score names its deal and dealer")
    expected = tuple(total + score for total, score in zip(before, scored.scores, strict=True))
    require(scored.totals == expected == state.totals(), "totals are the sum of the scores")
    require(json.loads(json.dumps(scored.details)) == scored.details, "details are plain JSON values")


def _check_step(game: Game, state: State, seats: int, draw: Draw) -> tuple[Fact, ...]:
    """Takes one random step on a copy and on the state itself; both must come to the same, each for itself."""
    if state.actor >= 0:
        legal = state.legal()
        require(legal, "legal actions are never empty")
        require(all(low < high for low, high in pairwise(legal)), "legal actions ascend without repeats")
        require(legal[0] >= 0 and legal[-1] < len(game.texts), "every legal action has a text")
        require(len(legal) == 1 or not state.forced(), "a forced seat has one legal action")
    before = _seen(state, seats)
    twin = state.copy()
    require(type(twin) is type(state) and _seen(twin, seats) == before, "a copy looks like its original")
    choice = _choice(game, state, draw)
    facts = _step(twin, choice)
    require(_seen(state, seats) == before, "what happens to a copy does not happen to its original")
    require(_step(state, choice) == facts, "equal calls bring about equal facts")
    after = _seen(state, seats)
    require(_seen(twin, seats) == after, "equal calls give equal states")
    if twin.actor != OVER:
        _step(twin, _choice(game, twin, draw))
        require(_seen(state, seats) == after, "what happens to a copy does not happen to its original")
    return facts


def _choice(game: Game, state: State, draw: Draw) -> Sequence[int]:
    """Returns a shuffled pack, or one legal action."""
    if state.actor == CHANCE:
        return shuffled(game.pack, draw)
    legal = state.legal()
    return (legal[draw(len(legal))],)


def _step(state: State, choice: Sequence[int]) -> tuple[Fact, ...]:
    return state.deal(choice) if state.actor == CHANCE else state.apply(choice[0])


def _seen(state: State, seats: int) -> tuple[object, ...]:
    """Returns everything that can be asked of a state."""
    acting = (list(state.legal()), state.forced()) if state.actor >= 0 else ()
    views = [state.view(viewer) for viewer in range(PUBLIC, seats)]
    return (state.actor, state.deal_number, state.dealer, state.totals(), state.places(), acting, views)


def shuffled(cards: Sequence[int], draw: Draw) -> list[int]:
    """Returns the cards in a random order."""
    pack = list(cards)
    for last in range(len(pack) - 1, 0, -1):
        other = draw(last + 1)
        pack[last], pack[other] = pack[other], pack[last]
    return pack


def check_voiding(game: Game, options: Options, draw: Draw, longest: int = 12) -> None:
    """Voids every deal of a match after a few random steps: each scores nothing and counts as dealt."""
    state = game.start(options, draw(game.seats(options)))
    totals = state.totals()
    for _ in range(_LONGEST_MATCH):
        if state.actor == OVER:
            break
        number, dealer = state.deal_number, state.dealer
        _step(state, _choice(game, state, draw))
        for _ in range(draw(longest)):
            twin = state.copy()
            _step(twin, _choice(game, twin, draw))
            if twin.actor < 0:
                break
            state = twin
        (scored,) = state.void_deal()
        require(isinstance(scored, DealScored) and scored.voided, "a voided deal brings about its score, marked")
        if isinstance(scored, DealScored):
            _check_score(scored, number, dealer, totals, state)
        require(state.totals() == totals, "a voided deal scores nothing")
        require(state.deal_number == number + (state.actor == CHANCE), "a voided deal counts as dealt")
    require(state.actor == OVER, "every match ends, though all its deals are voided")


def check_secrecy(game: Game, options: Options, draw: Draw, worlds: int = 3) -> None:
    """Plays a deal again in worlds that differ only in cards that a viewer cannot know: he must see the same.

    A viewer knows the cards dealt to him, shown, or played; the other cards are swapped about in the pack. A world in
    which the same deal could not have been played is dropped.
    """
    seats = game.seats(options)
    dealer = draw(seats)
    state = game.start(options, dealer)
    pack = shuffled(game.pack, draw)
    facts = [*state.deal(pack)]
    actions: list[int] = []
    steps = [state.copy()]
    for _ in range(draw(_LONG_DEAL)):
        action = _choice(game, state, draw)[0]
        more = state.apply(action)
        if state.actor < 0:
            break
        facts += more
        actions.append(action)
        steps.append(state.copy())
    open_to_all = {action for action in actions if action < len(game.pack)}
    open_to_all |= {fact.card for fact in facts if isinstance(fact, CardShown)}
    for viewer in range(PUBLIC, seats):
        known = set(open_to_all)
        if viewer != PUBLIC:
            known.update(card for fact in facts if isinstance(fact, CardsDealt) for card in fact.hands[viewer])
        secret = [place for place, card in enumerate(pack) if card not in known]
        for _ in range(worlds if len(secret) > 1 else 0):
            other = pack[:]
            for _ in range(1 + draw(3)):
                one, two = secret[draw(len(secret))], secret[draw(len(secret))]
                other[one], other[two] = other[two], other[one]
            world = game.start(options, dealer)
            world.deal(other)
            _compare(game, steps, actions, world, viewer)


def _compare(game: Game, steps: Sequence[State], actions: Sequence[int], world: State, viewer: int) -> None:
    """Plays the actions in another world, as far as others can see them, and compares what the viewer is told."""
    law = f"viewer {viewer} is told nothing that he cannot know"
    for state, action in zip(steps, actions, strict=False):
        legal = world.legal()
        if action not in legal and world.actor != viewer:
            # Where part of an action is its owner's secret, another one that looks the same stands for it.
            alike = [other for other in legal if game.public_text(other) == game.public_text(action)]
            action = alike[0] if alike else action
        if action not in legal:
            return
        require(_told(world, viewer) == _told(state, viewer), law)
        require(world.forced() == state.forced(), "a seat is forced only where the table can tell")
        world.apply(action)
    require(_told(world, viewer) == _told(steps[-1], viewer), law)


def _told(state: State, viewer: int) -> tuple[object, ...]:
    """Returns all that a viewer is told of a state: of the legal actions only his own."""
    return (state.actor, state.view(viewer), list(state.legal()) if state.actor == viewer else ())
