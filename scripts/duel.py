"""Plays house bot A against house bot B on the same deals and prints by how much A is better.

    PYTHONPATH=server python scripts/duel.py guillotine greedy random --sets 100
    PYTHONPATH=server python scripts/duel.py guillotine greedy random --sets 50 --sides 2
    PYTHONPATH=server python scripts/duel.py regicide greedy random --sets 100 players=4 pairs=true

Duplicate play: every set has its own deals and first dealer, and is played once by each way to give `--sides` of the
sides to A and the others to B, so that both bots hold every hand equally often. The figure of a set is A's points a
side less B's, averaged over these matches; sets are independent of each other, matches within a set are not, so the
95 % interval comes from a bootstrap over sets. Bots play straight on the engine, without service or clock; the time
a decision takes is processor time of the bot alone.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations
from time import process_time

from referee_games import bots, registry
from referee_games.contract import CHANCE, OVER, Decision, Game, Options, State
from referee_games.dealing import deal_pack, first_dealer, set_secret

RESAMPLES = 4000


@dataclass
class Player:
    """A bot and what is counted of it.

    Attributes:
        bot: the bot.
        places: how often one of its sides came first, second and so on.
        decisions: how many decisions it took.
        seconds: the processor time of all of them.
        longest: the processor time of the longest.
    """

    bot: bots.Bot
    places: Counter[int] = field(default_factory=Counter)
    decisions: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    def choose(self, decision: Decision) -> str:
        """Asks the bot and keeps the time."""
        start = process_time()
        action = self.bot.choose(decision)
        spent = process_time() - start
        self.decisions += 1
        self.seconds += spent
        self.longest = max(self.longest, spent)
        return action


def play(game: Game, options: Options, match_id: str, seed: bytes, seats: list[Player]) -> State:
    """Plays one match whose deals follow from `seed` and returns its end.

    Args:
        game: the game.
        options: a value for every option.
        match_id: what the bots are told; `random` draws by it.
        seed: 32 bytes.
        seats: who sits where.
    """
    state = game.start(options, first_dealer(seed, len(seats)))
    asked = [0] * len(seats)
    while (actor := state.actor) != OVER:
        if actor == CHANCE:
            state.deal(deal_pack(seed, state.deal_number, game.pack))
        elif state.forced():
            state.apply(state.legal()[0])
        else:
            legal = {game.texts[action]: action for action in state.legal()}
            decision = Decision(match_id, game.name, actor, asked[actor], state.view(actor), tuple(legal))
            asked[actor] += 1
            state.apply(legal[seats[actor].choose(decision)])
    return state


def duel(
    game: Game, options: Options, pair: tuple[Player, Player], taken: int, master: bytes, sets: int
) -> list[float]:
    """Plays the sets; returns the figure of each and counts places in `pair`.

    Args:
        game: the game.
        options: a value for every option.
        pair: A and B.
        taken: how many sides A gets.
        master: 32 bytes that all deals follow from.
        sets: how many sets.
    """
    sides = game.sides(options)
    figures = []
    for number in range(sets):
        seed = set_secret(master, f"set/{number}")
        gains = []
        for mine in combinations(range(len(sides)), taken):
            by_side = [pair[side not in mine] for side in range(len(sides))]
            seats = [
                by_side[side] for seat in range(game.seats(options)) for side, own in enumerate(sides) if seat in own
            ]
            state = play(game, options, f"{number}/{mine}", seed, seats)
            totals, places = state.totals(), state.places()
            for side, player in enumerate(by_side):
                player.places[places[side]] += 1
            gains.append(
                statistics.fmean(totals[side] for side in mine)
                - statistics.fmean(totals[side] for side in range(len(sides)) if side not in mine)
            )
        figures.append(statistics.fmean(gains))
    return figures


def interval(figures: list[float]) -> tuple[float, float]:
    """Returns the 95 % interval of the mean, by bootstrap."""
    draw = random.Random(0)
    means = sorted(statistics.fmean(draw.choices(figures, k=len(figures))) for _ in range(RESAMPLES))
    return means[RESAMPLES // 40], means[-1 - RESAMPLES // 40]


def main() -> None:
    """Reads the command line, plays and prints."""
    parser = argparse.ArgumentParser(description="Plays bot A against bot B on the same deals.")
    parser.add_argument("game", help="key of the game")
    parser.add_argument("a", help="bot A")
    parser.add_argument("b", help="bot B")
    parser.add_argument("options", nargs="*", help="options of the game, as NAME=VALUE")
    parser.add_argument("--sets", type=int, default=100, help="how many sets of deals (default 100)")
    parser.add_argument("--sides", type=int, default=1, help="how many sides A gets (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="a number that everything follows from (default 0)")
    given = parser.parse_intermixed_args()
    try:
        game = registry.find(given.game)
        options = game.configure(dict(option.partition("=")[::2] for option in given.options))
        pair = Player(bots.make(given.a, given.seed)), Player(bots.make(given.b, given.seed))
    except (LookupError, ValueError) as error:
        parser.error(str(error))
    if given.sets < 2 or not 1 <= given.sides < len(game.sides(options)):
        parser.error(f"--sets is at least 2, --sides from 1 to {len(game.sides(options)) - 1}")

    figures = duel(game, options, pair, given.sides, given.seed.to_bytes(32, "big", signed=True), given.sets)

    low, high = interval(figures)
    better = f"{'lower' if game.lowest_wins else 'higher'} is better"
    print(f"{given.game} {' '.join(given.options)}: {given.a} (A) against {given.b} (B), {given.sets} sets")
    print(f"A - B a match: {statistics.fmean(figures):+.1f} points, 95 % from {low:+.1f} to {high:+.1f}; {better}")
    for letter, player in zip("AB", pair, strict=True):
        count = player.places.total()
        shares = "  ".join(f"{place}: {100 * player.places[place] / count:.1f} %" for place in sorted(player.places))
        micros = 1e6 * player.seconds / max(1, player.decisions)
        print(f"{letter} by places  {shares}   ({micros:.0f} us a decision, {1e6 * player.longest:.0f} at most)")


if __name__ == "__main__":
    main()
