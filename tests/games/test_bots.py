"""House bots: always legal, repeatable from the decision alone, and `greedy` finds the plays that anyone would."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from referee_games import bots, registry
from referee_games.contract import CHANCE, OVER, Decision, Game
from referee_games.dealing import Draws, deal_pack, set_secret
from referee_games.views import GuillotineView, RegicideView, Trick, Turn

GUILLOTINE = registry.find("guillotine")
REGICIDE = registry.find("regicide")
SEED = bytes(32)


def configurations(game: Game, draws: Draws, count: int) -> Iterator[dict[str, Any]]:
    """Yields options drawn at random, senseless combinations left out."""
    while count:
        chosen: dict[str, Any] = {}
        for option in game.options:
            if isinstance(option.default, bool):
                chosen[option.name] = bool(draws.below(2))
            elif option.choices:
                chosen[option.name] = option.choices[draws.below(len(option.choices))]
            else:
                chosen[option.name] = option.low + draws.below(min(8, option.high - option.low + 1))
        chosen |= {"max_deals": 3, "target": 1000} if game is REGICIDE else {}
        try:
            full = game.configure(chosen)
        except ValueError:
            continue
        count -= 1
        yield full


def decisions(game: Game, options: dict[str, Any], seed: bytes, bot: bots.Bot) -> Iterator[Decision]:
    """Yields every decision of a match that the bot plays at all seats, forced ones included."""
    state = game.start(options, 0)
    asked = [0] * game.seats(options)
    while (actor := state.actor) != OVER:
        if actor == CHANCE:
            state.deal(deal_pack(seed, state.deal_number, game.pack))
            continue
        legal = {game.texts[action]: action for action in state.legal()}
        decision = Decision("m", game.name, actor, asked[actor], state.view(actor), tuple(legal))
        yield decision
        asked[actor] += 1
        state.apply(legal[bot.choose(decision)])


# What holds for every bot.


@pytest.mark.parametrize("name", bots.names())
@pytest.mark.parametrize("game", [GUILLOTINE, REGICIDE], ids=lambda game: game.name)
def test_every_choice_is_legal_under_every_option_and_repeats(name: str, game: Game) -> None:
    bot, twin = bots.make(name, 1), bots.make(name, 1)
    for number, options in enumerate(configurations(game, Draws(SEED, name), 30)):
        for decision in decisions(game, options, set_secret(SEED, str(number)), bot):
            choice = bot.choose(decision)
            assert choice in decision.legal
            assert twin.choose(decision) == choice


def test_names_are_those_that_can_be_made() -> None:
    assert bots.names() == ("random", "first", "stride", "greedy")
    assert tuple(bots.make(name).name for name in bots.names()) == bots.names()


@pytest.mark.parametrize("name", ["", "Random", "gr\nedy", "x" * 1000])
def test_an_unknown_name_is_refused_in_one_printable_sentence(name: str) -> None:
    with pytest.raises(bots.UnknownBotError, match="there are random, first, stride, greedy") as caught:
        bots.make(name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 120


# The bots that look at no card.


def bare(legal: int = 7, **fields: Any) -> Decision:
    asked: dict[str, Any] = {"match_id": "m", "game": "nim", "seat": 2, "number": 5, "view": None}
    return Decision(**(asked | fields), legal=tuple(f"take:{index}" for index in range(legal)))


@given(st.integers(0, 10**9), st.integers(0, 3), st.integers(1, 60))
def test_stride_is_its_formula(number: int, seat: int, legal: int) -> None:
    choice = bots.make("stride").choose(bare(legal, number=number, seat=seat))
    assert choice == f"take:{(7919 * number + seat) % legal}"


def test_first_takes_the_first() -> None:
    assert bots.make("first").choose(bare()) == "take:0"


@given(
    st.text(st.characters(codec="utf-8")), st.integers(0, 3), st.integers(0, 1000), st.integers(1, 60), st.integers()
)
def test_random_depends_on_seed_match_seat_and_number_only(
    match: str, seat: int, number: int, legal: int, seed: int
) -> None:
    decision = bare(legal, match_id=match, seat=seat, number=number)
    elsewhere = dataclasses.replace(decision, game="other", view="anything", allowance_us=9, bank_us=9)
    bot = bots.make("random", seed)
    for other in range(3):
        bot.choose(bare(match_id="another", number=other))
    assert bot.choose(elsewhere) == bots.make("random", seed).choose(decision)


@pytest.mark.parametrize(
    "change", [{"match_id": "n"}, {"seat": 3}, {"number": 6}, {"seed": 1}], ids=lambda change: next(iter(change))
)
def test_random_depends_on_each_of_them(change: dict[str, Any]) -> None:
    fields = {name: value for name, value in change.items() if name != "seed"}
    choice = bots.make("random").choose(bare(1000))
    assert bots.make("random", change.get("seed", 0)).choose(bare(1000, **fields)) != choice


def test_random_stays_what_it_was() -> None:
    bot = bots.make("random", 7)
    assert [bot.choose(bare(100, number=number)) for number in range(4)] == ["take:79", "take:37", "take:88", "take:84"]


def test_random_is_even() -> None:
    bot = bots.make("random")
    counts = Counter(bot.choose(bare(6, number=number)) for number in range(6000))
    chi_square = sum((count - 1000) ** 2 / 1000 for count in counts.values())
    assert len(counts) == 6
    assert chi_square < 20.5  # passed by 99.9 % of fair draws with five degrees of freedom; this draw is fixed


def test_greedy_draws_in_a_game_it_does_not_know() -> None:
    choices = {bots.make("greedy", seed).choose(bare()) for seed in range(20)}
    assert len(choices) > 3
    assert bots.make("greedy", 4).choose(bare()) == bots.make("random", 4).choose(bare())


# Positions of `greedy`. Seat 0 is asked; what is not said of a position is as usual.


def guillotine(contract: str, hand: str, trick: str = "", tricks: str = "", **options: Any) -> Decision:
    """A decision in a trick contract.

    Args:
        contract: its name.
        hand: cards of seat 0.
        trick: cards on the table, seat 0 being next to play.
        tricks: complete tricks in the order played, comma-separated, all led and taken by seat 0.
    """
    cards, table = tuple(hand.split()), tuple(trick.split())
    past = tuple(Trick(0, tuple(text.split()), 0) for text in tricks.split(",") if text)
    leader = -len(table) % 4
    counts = tuple(len(cards) - (seat >= leader) if table and seat else len(cards) for seat in range(4))
    view = GuillotineView(
        seat=0,
        options=GUILLOTINE.configure(options),
        phase="tricks",
        deal=0,
        dealer=0,
        contract=contract,
        hand=cards,
        hand_counts=counts,
        trick=Trick(leader, table),
        tricks=past,
        turns=(),
        totals=(0, 0, 0, 0),
        deals=(),
    )
    follow = tuple(card for card in cards if table and card[1] == table[0][1])
    return Decision("m", "guillotine", 0, 0, view, follow or cards)


MIXED = "8C JC 9D QD 7H TH 8S KS"


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        # Avoiding.
        pytest.param(guillotine("royalty", "7H AH 9C", "KH 8H TH"), "7H", id="ducks under a king"),
        pytest.param(guillotine("guillotine", "7S TS AS", "JS 9S"), "TS", id="ducks with the highest that ducks"),
        pytest.param(guillotine("guillotine", "QS AS 9H", "7S JS 8S"), "AS", id="last and bound to take: the highest"),
        pytest.param(guillotine("royalty", "7D KD 9C", "7H 8H TH"), "KD", id="throws a king off"),
        pytest.param(guillotine("queens", "7D QD 9C", "7H 8H TH"), "QD", id="throws a queen off"),
        pytest.param(guillotine("spades", "7D AS 9C", "7H 8H TH"), "AS", id="throws the ace of spades off"),
        pytest.param(guillotine("royalty", "QH 7H", "KH 8H TH"), "QH", id="gives a queen to somebody else's king"),
        pytest.param(guillotine("royalty", "7C AC"), "7C", id="leads low when taking costs"),
        pytest.param(
            guillotine("guillotine", MIXED, "JH QH KH", rank_order="french"), "7H", id="french: the ten is high"
        ),
        pytest.param(guillotine("guillotine", MIXED, "JH QH KH"), "TH", id="standard: the ten is low"),
        # Taking.
        pytest.param(guillotine("queens", "8H AH 9C", "7H KH TH"), "AH", id="takes a king in queens"),
        pytest.param(guillotine("queens", "8H KH 9C", "7H JH TH"), "KH", id="takes with a king in queens"),
        pytest.param(guillotine("spades", "8H AH 9C", "7H KH TH"), "AH", id="takes a king in spades"),
        pytest.param(guillotine("parliament", "8C 9C 8D 9D 8H QH AH 8S", "7H JH 9H"), "QH", id="takes cheaply"),
        pytest.param(guillotine("parliament", "8C AD TD", "7H JH 9H"), "8C", id="cannot take: throws the least"),
        pytest.param(guillotine("parliament", "7C AC"), "AC", id="leads high when taking pays"),
        # Counting.
        pytest.param(
            guillotine("parliament", "TH 7C", tricks="AH KH QH JH"), "TH", id="a ten is high once all above it are seen"
        ),
    ],
)
def test_greedy_plays_tricks_of_guillotine(position: Decision, expected: str) -> None:
    assert bots.make("greedy").choose(position) == expected


def announce(hand: str, *contracts: str) -> Decision:
    position = guillotine("", hand)
    view = dataclasses.replace(position.view, phase="contract", trick=None)
    return dataclasses.replace(position, view=view, legal=tuple(f"contract:{name}" for name in contracts))


@pytest.mark.parametrize(
    ("hand", "contracts", "expected"),
    [
        ("7C 8C 9C 7D 8D 7H 8H 7S", ("royalty", "parliament", "guillotine"), "guillotine"),
        ("AC KC AD KD AH KH AS KS", ("royalty", "parliament", "guillotine"), "parliament"),
        ("7C 8C 7D 9D TC 8H 9H TD", ("queens", "parliament"), "queens"),
        ("TC JC QC KC AC JD QD TH", ("royalty", "guillotine", "domino"), "domino"),
    ],
)
def test_greedy_announces_what_its_hand_is_good_for(hand: str, contracts: tuple[str, ...], expected: str) -> None:
    assert bots.make("greedy").choose(announce(hand, *contracts)) == f"contract:{expected}"


def domino(hand: str, laid: str, legal: str, **options: Any) -> Decision:
    """A decision in domino; `laid` are the cards so far, as if the others had laid them in turn."""
    cards = tuple(hand.split())
    view = dataclasses.replace(
        guillotine("domino", hand, **options).view,
        phase="domino",
        trick=None,
        turns=tuple(Turn(1 + step % 3, card) for step, card in enumerate(laid.split())),
        hand_counts=(len(cards), 5, 5, 5),
    )
    return Decision("m", "guillotine", 0, 0, view, tuple(legal.split()))


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        pytest.param(domino("9C TC JC QC KC 9D TD TH", "", "9C TC JC QC KC 9D TD TH"), "TC", id="starts in the middle"),
        pytest.param(domino("QC AC 7D JH", "JC JD", "QC JH"), "QC", id="plays towards its ace"),
        pytest.param(domino("7D QS", "JS TS 9S 8D 9D TD JD", "7D QS"), "7D", id="keeps the way up closed"),
        pytest.param(domino("AC KC 8D", "JC QC", "KC"), "KC", id="takes the only card"),
        pytest.param(domino("AC QD", "QC KC", "AC QD"), "AC", id="lays the ace when all the rest can follow"),
        pytest.param(domino("AC QD 7H", "QC KC", "AC QD"), "AC", id="lays the ace rather than open a row"),
        pytest.param(domino("QD KD", "QC AC", "QD stop"), "QD", id="goes on after an ace when the row is its own"),
        pytest.param(domino("QD 7H", "QC AC", "QD stop"), "stop", id="stops rather than open a row for others"),
        pytest.param(domino("QD", "QC AC", "QD stop"), "QD", id="lays its last card whatever it opens"),
        pytest.param(domino("QD 7H", "QC KC", "QD pass", domino_pass="free"), "pass", id="passes rather than open"),
        pytest.param(domino("7C QD", "QC 8C", "7C QD pass", domino_pass="free"), "7C", id="lays what opens nothing"),
        pytest.param(domino("7C", "8C", "pass"), "pass", id="passes when it must"),
    ],
)
def test_greedy_plays_domino(position: Decision, expected: str) -> None:
    assert bots.make("greedy").choose(position) == expected


def regicide(
    hand: str, trick: str = "", trump: str = "S", *, turned: bool = False, phase: str = "play", **options: Any
) -> Decision:
    """A decision in Regicide: `trick` is on the table, seat 0 is next; `turned` is the order."""
    full = REGICIDE.configure(options)
    seats = REGICIDE.seats(full)
    cards, table = tuple(hand.split()), tuple(trick.split())
    leader = -len(table) % seats
    view = RegicideView(
        seat=0,
        options=full,
        phase=phase,
        deal=0,
        dealer=leader,
        opener=leader,
        opened="2C",
        trump=trump,
        reversed=turned,
        hand=cards,
        hand_counts=tuple(len(cards) - (seat >= leader) if table and seat else len(cards) for seat in range(seats)),
        stock_count=0,
        discard="",
        trick=Trick(leader, table, -1, trump, turned) if phase in ("play", "change") else None,
        tricks=(),
        tricks_taken=(0,) * seats,
        totals=(0,) * len(REGICIDE.sides(full)),
        pot=0,
        deals=(),
    )
    follow = tuple(card for card in cards if table and card[1] == table[0][1])
    return Decision("m", "regicide", 0, 0, view, follow or cards)


def asked(decision: Decision, legal: str, **fields: Any) -> Decision:
    return dataclasses.replace(decision, view=dataclasses.replace(decision.view, **fields), legal=tuple(legal.split()))


PAIRS: dict[str, Any] = {"players": 4, "pairs": True}
WEAK = "2C 3D 4D 9S KS X1"


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        # Tricks.
        pytest.param(regicide("2H 7H KH", "6H"), "7H", id="takes with the cheapest that takes"),
        pytest.param(regicide("2H 5H KH", "6H", turned=True), "5H", id="reversed: takes with the lowest rank needed"),
        pytest.param(regicide("AH 7H KH", "3H", turned=True), "AH", id="reversed: an ace takes"),
        pytest.param(
            regicide("2C 7C KC 4D 9D 2H 5H 3S 8S", "6H", players=4),
            "5H",
            id="throws a middle card, of no use in either order",
        ),
        pytest.param(regicide("2C 3D 4D 5S KS X1", "6H"), "5S", id="takes with a small trump, not a high one"),
        pytest.param(regicide("2C 3D 4D", "X1"), "2C", id="throws little under a joker"),
        pytest.param(regicide("2S 9S X1", "KH AH", players=3), "2S", id="trumps low when last"),
        pytest.param(regicide("AC X1 2D", joker="as_trump", players=4), "X1", id="leads what stands"),
        # Pairs: seat 2 is the partner.
        pytest.param(regicide("2H 9H", "3H KH 4H", **PAIRS), "2H", id="leaves the trick to the partner"),
        pytest.param(regicide("2C 3D 4S 9S", "3H KH 4H", **PAIRS), "2C", id="does not trump the partner's trick"),
        pytest.param(regicide("2H 9H", "3H 4H 5H", **PAIRS), "9H", id="takes it from the opponents"),
        # Trumps and order.
        pytest.param(
            asked(regicide("KC 9C 8C 7C X1 2D", phase="name", trump=""), "name:C name:D name:H name:S"),
            "name:C",
            id="names its long strong suit",
        ),
        pytest.param(
            asked(regicide("KC 9C 8C 7C 6C 2D", phase="change"), "keep trump:C trump:D trump:H reverse"),
            "trump:C",
            id="changes to its suit",
        ),
        pytest.param(
            asked(regicide("KS 9S 8S 7S 6S KD", phase="change"), "keep trump:C trump:D trump:H reverse"),
            "keep",
            id="keeps what suits it",
        ),
        pytest.param(
            asked(regicide("AS 2S 3S 4S AD AH", phase="change"), "keep trump:C trump:D trump:H reverse"),
            "reverse",
            id="reverses for low cards",
        ),
        pytest.param(
            asked(
                regicide("AC 2C 3C 4C 5C AD AH", phase="change", change="both"),
                "keep trump:C trump:D trump:H reverse trump:C+reverse trump:D+reverse trump:H+reverse",
            ),
            "trump:C+reverse",
            id="changes both",
        ),
        # Opening and exchange.
        pytest.param(asked(regicide(WEAK, phase="open"), "open decline"), "open", id="opens for itself"),
        pytest.param(
            asked(regicide(WEAK, phase="open", opened_to="dealer"), "open decline", dealer=1),
            "decline",
            id="does not open for an opponent",
        ),
        pytest.param(
            asked(regicide(WEAK, phase="open", opened_to="dealer", **PAIRS), "open decline", dealer=2),
            "open",
            id="opens for the partner",
        ),
        pytest.param(
            asked(
                regicide(WEAK, phase="discard", stock="exchange"),
                " ".join(f"discard:{card}" for card in WEAK.split()),
            ),
            "discard:2C",
            id="discards its weakest card",
        ),
    ],
)
def test_greedy_plays_regicide(position: Decision, expected: str) -> None:
    assert bots.make("greedy").choose(position) == expected


# Strength: every seating of the same few deals.


@pytest.mark.parametrize(
    ("game", "options"),
    [
        (GUILLOTINE, {}),
        (GUILLOTINE, {"rank_order": "french", "domino_pass": "free"}),
        (REGICIDE, {}),
        (REGICIDE, {"players": 3}),
        (REGICIDE, {"players": 4, "stock": "exchange", "change": "both", "joker": "any_time"}),
        (REGICIDE, PAIRS),
    ],
    ids=lambda value: value.name if isinstance(value, Game) else "-".join(map(str, value.values())) or "default",
)
def test_greedy_beats_random(game: Game, options: dict[str, Any]) -> None:
    full = game.configure(options)
    greedy, other = bots.make("greedy"), bots.make("random")
    sides = game.sides(full)
    mine = theirs = 0.0
    for number in range(3):
        seed = set_secret(SEED, f"strength/{number}")
        for side, seats in enumerate(sides):
            state = game.start(full, 0)
            counts = [0] * game.seats(full)
            while (actor := state.actor) != OVER:
                if actor == CHANCE:
                    state.deal(deal_pack(seed, state.deal_number, game.pack))
                    continue
                legal = {game.texts[action]: action for action in state.legal()}
                bot = greedy if actor in seats else other
                decision = Decision(str(number), game.name, actor, counts[actor], state.view(actor), tuple(legal))
                counts[actor] += 1
                state.apply(legal[bot.choose(decision)])
            totals = state.totals()
            mine += totals[side]
            theirs += (sum(totals) - totals[side]) / (len(sides) - 1)
    assert mine < theirs if game.lowest_wins else mine > theirs
