"""Helpers to play: shuffles that can be repeated, deals that are laid out by hand, and matches played by name."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from referee_games import registry
from referee_games.conformance import shuffled
from referee_games.contract import CHANCE, OVER, DealScored, Fact, Game, State


def pack_of(game: Game, dealer: int, hands: Sequence[Sequence[str]], stock: Sequence[str]) -> list[int]:
    """Puts dealt cards back into the pack that they were dealt from: one a seat, clockwise from the dealer's left."""
    order = [(dealer + 1 + step) % len(hands) for step in range(len(hands))]
    texts = [card for layer in zip(*(hands[seat] for seat in order), strict=True) for card in layer]
    numbers = [game.texts.index(text) for text in (*texts, *stock)]
    assert sorted(numbers) == list(game.pack)
    return numbers


class Table:
    """A match played by name; seat 0 deals first, and hands are written as text."""

    def __init__(self, name: str, **options: object) -> None:
        self.game = registry.find(name)
        self.options = self.game.configure(options)
        self.state: State = self.game.start(self.options, 0)
        self.facts: list[Fact] = []

    def deal(self, *hands: str, stock: str = "") -> Table:
        """Deals these hands by seat; what is missing from the last ones and from the stock is filled up in order."""
        size = {"guillotine": 8, "regicide": 9}[self.game.name]
        given = [hand.split() for hand in (*hands, *[""] * (self.game.seats(self.options) - len(hands)))]
        top = stock.split()
        used = {card for cards in (*given, top) for card in cards}
        rest = [self.game.texts[card] for card in self.game.pack if self.game.texts[card] not in used]
        for hand in given:
            while len(hand) < size:
                hand.append(rest.pop(0))
        self.facts += self.state.deal(pack_of(self.game, self.state.dealer, given, [*top, *rest]))
        return self

    def play(self, actions: str) -> Table:
        """Plays actions, each of which must be legal."""
        for text in actions.split():
            assert text in self.legal.split(), f"{text} is not among {self.legal}"
            self.facts += self.state.apply(self.game.texts.index(text))
        return self

    def finish(self, seed: int = 0) -> Table:
        """Plays the deal to its end at random."""
        draw = random.Random(seed)
        while self.state.actor >= 0:
            self.facts += self.state.apply(draw.choice(self.state.legal()))
        return self

    @property
    def legal(self) -> str:
        return " ".join(self.game.texts[action] for action in self.state.legal())

    @property
    def scores(self) -> list[tuple[int, ...]]:
        return [fact.scores for fact in self.facts if isinstance(fact, DealScored)]


def random_match(game: Game, options: dict[str, object], seed: int, deals: int) -> Iterator[tuple[State, int]]:
    """Plays some deals of a random match; yields the state before each decision, with the action about to be taken."""
    draw = random.Random(seed)
    config = game.configure(options)
    state = game.start(config, draw.randrange(game.seats(config)))
    while state.actor != OVER and state.deal_number < deals:
        if state.actor == CHANCE:
            state.deal(shuffled(game.pack, draw.randrange))
            continue
        action = draw.choice(state.legal())
        yield state, action
        state.apply(action)


def referee_again(vector: dict[str, Any]) -> None:
    """Plays a vector, or an exported record, again: the same seats asked, the same actions legal, all scores equal."""
    game = registry.find(vector["game"])
    state = game.start(game.configure(vector["options"]), vector["first_dealer"])
    packs = iter(vector["packs"])
    deals: list[dict[str, Any]] = []

    def note(facts: tuple[Fact, ...]) -> None:
        deals.extend(
            {"dealer": fact.dealer, **fact.details, "score": list(fact.scores)}
            for fact in facts
            if isinstance(fact, DealScored)
        )

    for step in vector["steps"]:
        if state.actor == CHANCE:
            pack = next(packs)
            note(state.deal(pack_of(game, state.dealer, pack["hands"], pack["stock"])))
        legal = [game.texts[action] for action in state.legal()]
        assert (state.deal_number, state.actor, sorted(legal)) == (step["deal"], step["seat"], sorted(step["legal"]))
        action = game.number(step["action"])
        assert action is not None
        note(state.apply(action))

    assert state.actor == OVER
    assert next(packs, None) is None
    assert deals == vector["deals"]
    assert list(state.totals()) == vector["totals"]
    assert list(state.places()) == vector["places"]
