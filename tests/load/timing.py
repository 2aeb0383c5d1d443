"""Whether the time that the referee takes tells a seat anything about cards that it cannot see.

Two worlds that look the same to a viewer are played in step, many times over with the same choices. Of each step the
time is taken from an input to what the viewer is told of it. The median over all runs is the step's time in a world,
and the difference between the worlds is what hidden cards shift. What two halves of the runs differ by within one
world, where nothing differs, is how finely that is measured.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from match.driver import Event, spec_of
from match.worlds import Pair, World
from referee.v1 import match_pb2
from referee_games import registry
from referee_server.match import inputs
from referee_server.tables import messages

LIMIT_US: Final = 20.0
"""What may be shifted in all but one step in a hundred: less than a tenth of a round trip on a bare stream on the same
machine, for which `referee bench` found 267 µs.
"""
GAMES: Final[Sequence[tuple[str, Mapping[str, object]]]] = (
    ("guillotine", {"deals_per_dealer": 1}),
    ("regicide", {"players": 4, "target": 5}),
)


class Clocked(World):
    """A world that takes the time of its steps, with the question to the viewer that they lead to."""

    def __init__(self, spec: match_pb2.MatchSpec, packs: Mapping[int, Sequence[int]], viewer: int) -> None:
        self.times_ns: list[int] = []
        self._viewer = viewer
        super().__init__(spec, packs, viewer)

    def step(self, given: inputs.Input, *, after: int = 0) -> list[Event]:
        began = time.perf_counter_ns()
        made = super().step(given, after=after)
        if self.match.actor == self._viewer and self.match.offered_us is not None:
            messages.decision(self.match, self._viewer, self.now).SerializeToString()
        if not isinstance(given, inputs.Stray):  # which comes in one world alone
            self.times_ns.append(time.perf_counter_ns() - began)
        return made


@dataclass(frozen=True)
class Timing:
    """What came of it.

    Attributes:
        steps: how many steps were compared.
        shift_us: what all but one in a hundred of them differ by at most between the worlds, in microseconds.
        mean_us: by how much the second world takes longer, over all steps; cards are swapped at random, so about 0.
        noise_us: like `shift_us`, between two halves of the same runs.
        step_us: what a step takes.
    """

    steps: int
    shift_us: float
    mean_us: float
    noise_us: float
    step_us: float

    def __str__(self) -> str:
        return (
            f"{self.steps:,} steps of {self.step_us:.0f} µs: hidden cards shift 99 % of them by at most "
            f"{self.shift_us:.1f} µs (limit {LIMIT_US:g}), {self.mean_us:+.2f} µs in the mean; measured to "
            f"{self.noise_us:.1f} µs"
        )


def measure(pairs: int, runs: int, seed: int, say: Callable[[str], None], make: type[Clocked] = Clocked) -> Timing:
    """Plays pairs of worlds of both games.

    Args:
        pairs: how many of each game.
        runs: how often each is played; half of them with the second world first.
        seed: what the cards and the choices follow from.
        say: told how far it is.
        make: the worlds.
    """
    shifts: list[float] = []
    noises: list[float] = []
    all_us: list[float] = []
    for game, options in GAMES:
        seats = registry.find(game).seats(registry.find(game).configure(options))
        for number in range(pairs):
            name = f"{seed}/{game}/{number}"
            viewer = random.Random(name).randrange(seats)
            played = [_play(game, options, viewer, name, make, turned=bool(run % 2)) for run in range(runs)]
            # The last step may be the one that tells the difference by the rules.
            for step in range(min(len(one) for run in played for one in run) - 1):
                times = [[run[world][step] / 1e3 for run in played] for world in range(2)]
                one, other = map(statistics.median, times)
                shifts.append(other - one)
                noises.append(statistics.median(times[0][: runs // 2]) - statistics.median(times[0][runs // 2 :]))
                all_us.append(one)
        say(f"{game}: {len(shifts):,} steps so far")
    return Timing(
        len(shifts), _most(shifts), statistics.fmean(shifts), _most(noises), statistics.median(all_us)
    )  # fmt: skip


def _play(
    game: str, options: Mapping[str, object], viewer: int, name: str, make: type[Clocked], *, turned: bool
) -> list[list[int]]:
    specs = [spec_of(game, options=options) for _ in range(2)]
    pair = Pair(specs, viewer, random.Random(name), make, turned=turned)
    pair.play(60)
    return [world.times_ns for world in pair.worlds if isinstance(world, Clocked)]


def _most(values: Sequence[float]) -> float:
    """Returns what all but one in a hundred do not exceed, whatever the sign."""
    ranked = sorted(map(abs, values))
    return ranked[len(ranked) * 99 // 100] if ranked else 0.0
