"""Random playouts from a Python loop: decisions a second of both games and, where it is installed, OpenSpiel's hearts.

Processor time is measured, and short rounds alternate between the games, so that a busy machine slows all of them
alike; what counts is the median, over the rounds, of the ratio to hearts in the same round. All are driven the same
way: ask for the legal actions, draw one, apply it. Our figure counts the decisions of seats only; the time it takes to
shuffle and deal is in it, the cards dealt are not counted. Hearts is counted twice: `decisions` likewise leaves out the
chance nodes (one a card dealt) though not their time; `applies` counts every `apply_action`, chance included, and is
the strict figure to beat.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from time import process_time
from typing import Any, Final

from referee_games import registry
from referee_games.contract import CHANCE, OVER, Game

Playout = Callable[[], tuple[int, int]]
"""Plays one match to its end; returns how many decisions it took, and how many applies with chance among them."""

OURS: Final = {
    "guillotine": ("guillotine", {}),
    "regicide": ("regicide", {}),
    "regicide, 4 players": ("regicide", {"players": 4}),
}


@dataclass(frozen=True)
class Playouts:
    """What the rounds came to: medians.

    Attributes:
        rates: decisions a second, by game.
        hearts: decisions and applies a second of hearts; empty without OpenSpiel.
        ratios: by game, the ratio to hearts' applies, which is the smaller one; empty without OpenSpiel.
        rounds: how many rounds there were.
    """

    rates: dict[str, float]
    hearts: dict[str, float]
    ratios: dict[str, float]
    rounds: int


def ours(game: Game, options: dict[str, object]) -> Playout:
    """Returns the playout of one of our games."""
    config = game.configure(options)
    pack = game.pack
    draw = random.random

    def playout() -> tuple[int, int]:
        state = game.start(config, 0)
        decisions = 0
        while (actor := state.actor) != OVER:
            if actor == CHANCE:
                # Sorting by random keys is the quickest fair shuffle in Python.
                keys = [draw() for _ in pack]
                state.deal(sorted(pack, key=keys.__getitem__))
            else:
                legal = state.legal()
                state.apply(legal[int(draw() * len(legal))])
                decisions += 1
        return decisions, decisions

    return playout


def hearts() -> Playout | None:
    """Returns the playout of OpenSpiel's hearts; None where OpenSpiel is not installed."""
    if find_spec("pyspiel") is None:
        return None
    pyspiel: Any = import_module("pyspiel")
    game: Any = pyspiel.load_game("hearts")
    draw = random.random

    def playout() -> tuple[int, int]:
        state = game.new_initial_state()
        decisions = chances = 0
        while not state.is_terminal():
            if state.is_chance_node():
                outcomes = state.chance_outcomes()
                state.apply_action(outcomes[int(draw() * len(outcomes))][0])  # hearts deals with equal chances
                chances += 1
            else:
                legal = state.legal_actions()
                state.apply_action(legal[int(draw() * len(legal))])
                decisions += 1
        return decisions, decisions + chances

    return playout


def rates(playout: Playout, seconds: float) -> tuple[float, float]:
    """Runs playouts for so long; returns decisions and applies a second."""
    decisions = applies = 0
    start = process_time()
    while (spent := process_time() - start) < seconds:
        more = playout()
        decisions += more[0]
        applies += more[1]
    return decisions / spent, applies / spent


def measure(rounds: int, seconds: float) -> Playouts:
    """Runs the rounds."""
    games = {name: ours(registry.find(key), dict(options)) for name, (key, options) in OURS.items()}
    other = hearts()
    measured: dict[str, list[float]] = {name: [] for name in games}
    reference: dict[str, list[float]] = {"decisions": [], "applies": []}
    for _ in range(rounds):
        if other is not None:
            for name, rate in zip(reference, rates(other, seconds), strict=True):
                reference[name].append(rate)
        for name, playout in games.items():
            measured[name].append(rates(playout, seconds)[0])
    applies = reference["applies"]
    return Playouts(
        rates={name: statistics.median(figures) for name, figures in measured.items()},
        hearts={name: statistics.median(figures) for name, figures in reference.items() if figures},
        ratios={
            name: statistics.median(mine / theirs for mine, theirs in zip(figures, applies, strict=True))
            for name, figures in measured.items()
            if applies
        },
        rounds=rounds,
    )
