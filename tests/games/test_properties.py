"""What holds in every match, whatever is dealt and played: random matches against naive restatements of the rules.

The restatements work on views and texts alone, so that they share nothing with the engines.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee_games import conformance, registry
from referee_games.contract import OVER, PUBLIC, DealScored, Fact, OptionError, TrickTaken
from referee_games.views import Trick, Turn

from .play import random_match

few = settings(max_examples=25)
seeds = st.integers(0, 2**32)
GUILLOTINE = "7C 8C 9C TC JC QC KC AC 7D 8D 9D TD JD QD KD AD 7H 8H 9H TH JH QH KH AH 7S 8S 9S TS JS QS KS AS"
REGICIDE = (
    "AC 2C 3C 4C 5C 6C 7C 8C 9C KC AD 2D 3D 4D 5D 6D 7D 8D 9D KD AH 2H 3H 4H 5H 6H 7H 8H 9H KH "
    "AS 2S 3S 4S 5S 6S 7S 8S 9S KS X1 X2"
)


def options_of(name: str) -> st.SearchStrategy[dict[str, object]]:
    """Draws options that the game takes."""
    game = registry.find(name)

    def taken(given: dict[str, object]) -> bool:
        try:
            game.configure(given)
        except OptionError:
            return False
        return True

    drawn: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
        {option.name: st.sampled_from([*conformance.values(option)]) for option in game.options}
    )
    return drawn.filter(taken)


guillotine = options_of("guillotine")
regicide = options_of("regicide")
either = st.one_of(
    st.tuples(st.just("guillotine"), guillotine), st.tuples(st.just("regicide"), regicide)
)  # name and options


def rank_order(name: str, options: Any, *, reverse: bool = False) -> str:
    if name == "regicide":
        return "K98765432A" if reverse else "A23456789K"
    return "789JQKTA" if options["rank_order"] == "french" else "789TJQKA"


def naive_taker(name: str, options: Any, trick: Trick, seats: int) -> int:
    """Returns who takes a trick, by G5 and R9."""
    ranks = rank_order(name, options, reverse=trick.reversed)
    jokers = [card for card in trick.cards if card[0] == "X"]
    trumps = [card for card in trick.cards if card[1] == trick.trump]
    led = [card for card in trick.cards if card[1] == trick.cards[0][1]]
    best = jokers[0] if jokers else max(trumps or led, key=lambda card: ranks.index(card[0]))
    return (trick.leader + trick.cards.index(best)) % seats


def naive_plays(options: Any, hand: Sequence[str], trick: Trick) -> set[str]:
    """Returns the cards that may be played to a trick, by G5 and R8."""
    rule = options.get("joker", "when_void")

    def suit(card: str) -> str:
        if card[0] != "X":
            return card[1]
        return trick.trump if rule == "as_trump" else ""

    if not trick.cards:
        return set(hand)
    led = suit(trick.cards[0])
    following = {card for card in hand if led and suit(card) == led}
    if not following:
        return set(hand)
    return following | {card for card in hand if card[0] == "X" and rule == "any_time"}


ORDER = {
    "guillotine": f"""{GUILLOTINE}
        contract:royalty contract:queens contract:spades contract:parliament contract:guillotine contract:domino
        stop pass""",
    "regicide": f"""{REGICIDE} open decline name:C name:D name:H name:S
        {" ".join(f"discard:{card}" for card in REGICIDE.split())}
        keep trump:C trump:D trump:H trump:S reverse
        trump:C+reverse trump:D+reverse trump:H+reverse trump:S+reverse""",
}


@pytest.mark.parametrize("name", ORDER)
def test_actions_are_numbered_in_canonical_order(name: str) -> None:
    assert list(registry.find(name).texts) == ORDER[name].split()


@few
@given(either, seeds)
def test_tricks_are_followed_and_taken_by_the_rules(setting: tuple[str, dict[str, object]], seed: int) -> None:
    name, options = setting
    game = registry.find(name)
    for state, _ in random_match(game, options, seed, 2):
        view = state.view(state.actor)
        if view.phase in ("play", "tricks"):
            assert {game.texts[action] for action in state.legal()} == naive_plays(options, view.hand, view.trick)
        for trick in view.tricks[-1:]:
            assert trick.taker == naive_taker(name, options, trick, len(view.hand_counts))


@few
@given(either, seeds)
def test_forced_is_exactly_what_the_table_can_tell(setting: tuple[str, dict[str, object]], seed: int) -> None:
    name, options = setting
    game = registry.find(name)
    for state, _ in random_match(game, options, seed, 24):
        view = state.view(PUBLIC)
        legal = [game.texts[action] for action in state.legal()]
        last_card = view.hand_counts[state.actor] == 1
        if view.phase == "domino":
            told = options["domino_pass"] == "forced" and "stop" not in legal and (last_card or legal == ["pass"])
        else:
            told = (view.phase in ("tricks", "play") and last_card) or (
                view.phase in ("contract", "open") and len(legal) == 1
            )
        assert state.forced() == told


@few
@given(either, seeds)
def test_no_card_is_lost_or_doubled(setting: tuple[str, dict[str, object]], seed: int) -> None:
    name, options = setting
    game = registry.find(name)
    for state, _ in random_match(game, options, seed, 2):
        view = state.view(PUBLIC)
        hands = [state.view(seat) for seat in range(len(view.hand_counts))]
        held = [card for own in hands for card in own.hand]
        played = [card for trick in view.tricks for card in trick.cards]
        played += view.trick.cards if view.trick else ()
        hidden = 0
        if name == "guillotine":
            played += [turn.card for turn in view.turns if turn.card]
        else:
            held += [own.discard for own in hands if own.discard]
            hidden = view.stock_count
        assert [len(own.hand) for own in hands] == list(view.hand_counts)
        assert len(set(held + played)) == len(held + played) == len(game.pack) - hidden


@few
@given(either, seeds)
def test_no_view_depends_on_what_its_viewer_cannot_know(setting: tuple[str, dict[str, object]], seed: int) -> None:
    name, options = setting
    game = registry.find(name)
    conformance.check_secrecy(game, game.configure(options), random.Random(seed).randrange)


@few
@given(regicide.filter(lambda options: options["stock"] == "exchange"), seeds)
def test_nobody_else_can_tell_one_discard_from_another(options: dict[str, object], seed: int) -> None:
    game = registry.find("regicide")
    for state, action in random_match(game, options, seed, 3):
        if game.texts[action].startswith("discard:"):
            others = [
                viewer for viewer in range(PUBLIC, state.view(PUBLIC).options["players"]) if viewer != state.actor
            ]
            worlds = []
            for choice in state.legal():
                twin = state.copy()
                twin.apply(choice)
                worlds.append([twin.actor, *(twin.view(viewer) for viewer in others)])
            assert all(world == worlds[0] for world in worlds)


# Scores


def played_deal(options: dict[str, object], contract: str, seed: int) -> tuple[list[TrickTaken], DealScored]:
    """Plays a first deal of Guillotine with that contract; returns its tricks and its score."""
    game = registry.find("guillotine")
    draw = random.Random(seed)
    state = game.start(game.configure(options), draw.randrange(4))
    state.deal(conformance.shuffled(game.pack, draw.randrange))
    facts = [*state.apply(game.texts.index(f"contract:{contract}"))]
    while state.actor >= 0:
        facts += state.apply(draw.choice(state.legal()))
    scored = facts.pop()
    assert isinstance(scored, DealScored)
    return [fact for fact in facts if isinstance(fact, TrickTaken)], scored


def naive_points(contract: str, unit: str, card: str) -> int:
    """Returns the points of one card by the table of G6."""
    king, queen, spade = card[0] == "K", card[0] == "Q", card[1] == "S"
    return {
        "royalty": 20 * king + 10 * queen,
        "queens": 10 * queen - 10 * king,
        "spades": 5 * spade - 10 * king,
        "parliament": -10 * king,
        "guillotine": 10 * king + 10 * queen + 5 * (unit == "card") + 5 * (unit == "spade" and spade),
    }[contract]


@few
@given(guillotine, st.sampled_from(["royalty", "queens", "spades", "parliament", "guillotine"]), seeds)
def test_a_trick_contract_scores_by_the_table(options: dict[str, object], contract: str, seed: int) -> None:
    tricks, scored = played_deal(options, contract, seed)
    unit = str(options["guillotine_unit"])
    texts = registry.find("guillotine").texts
    expected = [0] * 4
    for number, (seat, cards) in enumerate(tricks):
        expected[seat] += sum(naive_points(contract, unit, texts[card]) for card in cards)
        if contract == "parliament":
            expected[seat] -= 5
        if contract == "guillotine":
            expected[seat] += 5 * (number in (0, 7)) + 5 * (unit == "trick")
    assert list(scored.scores) == expected


@few
@given(guillotine, st.sampled_from(["royalty", "queens", "spades", "parliament", "guillotine", "domino"]), seeds)
def test_a_whole_deal_sums_to_what_its_contract_holds(options: dict[str, object], contract: str, seed: int) -> None:
    _, scored = played_deal(options, contract, seed)
    sums = {"royalty": 120, "queens": 0, "spades": 0, "parliament": -80, "domino": -40}
    guillotine_sum = 250 if options["guillotine_unit"] == "card" else 130
    assert sum(scored.scores) == sums.get(contract, guillotine_sum)


@few
@given(guillotine, seeds)
def test_domino_ends_when_the_second_player_is_out_and_skips_the_first(options: dict[str, object], seed: int) -> None:
    game = registry.find("guillotine")
    draw = random.Random(seed)
    state = game.start(game.configure(options), 0)
    state.deal(conformance.shuffled(game.pack, draw.randrange))
    state.apply(game.texts.index("contract:domino"))
    out: list[int] = []
    facts: tuple[Fact, ...] = ()
    while state.actor >= 0:
        seat = state.actor
        assert seat not in out
        cards = state.view(PUBLIC).hand_counts[seat]
        action = draw.choice(state.legal())
        facts = state.apply(action)
        if cards == 1 and action in game.pack:
            out.append(seat)
    (scored,) = facts
    assert isinstance(scored, DealScored)
    assert scored.scores == tuple({0: -30, 1: -10}[out.index(seat)] if seat in out else 0 for seat in range(4))


def naive_row(options: dict[str, object], turns: Sequence[Turn], suit: str) -> set[str]:
    """Returns the ranks that can be laid in a suit, by G7b."""
    ranks = rank_order("guillotine", options)
    row = [ranks.index(turn.card[0]) for turn in turns if turn.card[1:] == suit]
    start = next(turn.card[0] for turn in turns if turn.card)
    beside = {index + step for index in row for step in (-1, 1)} - set(row)
    return {ranks[index] for index in beside if 0 <= index < 8} | ({start} if not row else set())


@few
@given(guillotine, seeds)
def test_domino_offers_what_fits_the_layout(options: dict[str, object], seed: int) -> None:
    game = registry.find("guillotine")
    draw = random.Random(seed)
    state = game.start(game.configure(options), 0)
    state.deal(conformance.shuffled(game.pack, draw.randrange))
    state.apply(game.texts.index("contract:domino"))
    state.apply(draw.choice(state.legal()))
    while state.actor >= 0:
        view = state.view(state.actor)
        offered = {game.texts[action] for action in state.legal()} - {"stop", "pass"}
        assert offered == {card for card in view.hand if card[0] in naive_row(options, view.turns, card[1])}
        state.apply(draw.choice(state.legal()))


def naive_score(options: Any, tricks: Sequence[int], totals: Sequence[int], pot: int) -> tuple[tuple[int, ...], int]:
    """Returns the scores of a deal and the pot after it, by R11 and R12."""
    sides = [(0, 2), (1, 3)] if options["pairs"] else [(seat,) for seat in range(len(tricks))]
    by_player = options["pair_score"] == "player"
    claims = [max(tricks[seat] for seat in side) if by_player else sum(tricks[seat] for seat in side) for side in sides]
    ranking = [(claim, total) for claim, total in zip(claims, totals, strict=True)]
    first = [side for side, rank in enumerate(ranking) if rank == max(ranking)]
    points = max(claims)
    if len(first) == 1:
        return tuple(points + pot if side in first else 0 for side in range(len(sides))), 0
    if options["tie"] == "carry":
        return (0,) * len(sides), pot + points
    share = points if options["tie"] == "each" else points // len(first)
    return tuple(share if side in first else 0 for side in range(len(sides))), pot


@few
@given(regicide, seeds)
def test_regicide_scores_most_tricks_and_ends_at_its_target(options: dict[str, object], seed: int) -> None:
    game = registry.find("regicide")
    config = game.configure(options)
    draw = random.Random(seed)
    state = game.start(config, draw.randrange(game.seats(config)))
    totals: tuple[int, ...] = (0,) * len(game.sides(config))
    pot = deals = 0
    while state.actor != OVER:
        assert deals < int(config["max_deals"])
        assert max(totals) < int(config["target"])
        facts = [*state.deal(conformance.shuffled(game.pack, draw.randrange))]
        while state.actor >= 0:
            facts += state.apply(draw.choice(state.legal()))
        scored = facts[-1]
        assert isinstance(scored, DealScored)
        expected, pot = naive_score(config, scored.details["tricks"], totals, pot)
        assert (scored.scores, scored.details["pot"]) == (expected, pot)
        totals = scored.totals
        deals += 1
    assert deals == config["max_deals"] or max(totals) >= int(config["target"])


@few
@given(regicide, seeds)
def test_the_new_king_is_asked_unless_he_was_king_before(options: dict[str, object], seed: int) -> None:
    game = registry.find("regicide")
    led: set[tuple[int, int]] = set()
    for state, _ in random_match(game, options, seed, 2):
        view = state.view(PUBLIC)
        lead = (view.deal, len(view.tricks))
        if not view.tricks or view.trick.cards or lead in led:
            continue
        led.add(lead)  # the first question since the last trick
        before = view.tricks[-2].taker if len(view.tricks) > 1 else -1
        if len(view.tricks) == 1 and options["first_change"] == "not_leader":
            before = view.dealer
        assert (view.phase == "change") == (view.tricks[-1].taker != before)
        assert state.actor == view.tricks[-1].taker
