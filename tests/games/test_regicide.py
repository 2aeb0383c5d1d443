"""Regicide, clause by clause, on deals laid out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from referee_games.contract import OVER, PUBLIC, CardsDealt, CardShown, DealScored, OptionError, TrickTaken
from referee_games.regicide import RegicideState

from .play import Table

HEARTS_TRUMP = "AH"


def exchange(**options: object) -> Table:
    return Table("regicide", stock="exchange", **options)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"pairs": True}, "pairs"),
        ({"pairs": True, "players": 3}, "pairs"),
        ({"pair_score": "player"}, "pair_score"),
        ({"pair_score": "player", "players": 4}, "pair_score"),
        ({"players": 5}, "players"),
        ({"players": 1}, "players"),
        ({"target": 0}, "target"),
        ({"max_deals": 0}, "max_deals"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_senseless_option_is_refused_by_name(given: dict[str, object], name: str) -> None:
    with pytest.raises(OptionError) as refused:
        Table("regicide", **given)
    assert refused.value.name == name


def test_pairs_sit_crosswise() -> None:
    table = Table("regicide", players=4, pairs=True)
    assert table.game.sides(table.options) == ((0, 2), (1, 3))


# R4 to R6, the deal


@pytest.mark.parametrize(("players", "stock"), [(2, 24), (3, 15), (4, 6)])
def test_nine_cards_each_are_dealt_and_the_rest_is_the_stock(players: int, stock: int) -> None:
    table = Table("regicide", players=players).deal()
    view = table.state.view(PUBLIC)
    assert (view.hand_counts, view.stock_count) == ((9,) * players, stock)


@pytest.mark.parametrize(("players", "size", "left_over"), [(2, 21, 0), (3, 14, 0), (4, 10, 2)])
def test_the_stock_is_dealt_out_until_every_hand_is_full(players: int, size: int, left_over: int) -> None:
    table = Table("regicide", players=players).deal(stock="AC").play("open")
    view = table.state.view(PUBLIC)
    assert (view.hand_counts, view.stock_count) == ((size,) * players, left_over)


def test_the_stock_is_dealt_from_the_dealers_left_past_a_full_hand() -> None:
    table = Table("regicide", players=3).deal(stock="AC 2C 3C 4C 5C 6C 7C 8C 9C KC AD 2D 3D 4D 5D").play("decline open")
    shown, dealt = table.facts[-2:]
    assert shown == CardShown(0, 1)
    assert isinstance(dealt, CardsDealt)
    assert [" ".join(table.game.texts[card] for card in hand) for hand in dealt.hands] == [
        "4C 7C KC 3D 5D",
        "2C 5C 8C AD",
        "3C 6C 9C 2D 4D",
    ]


def test_with_four_players_the_two_cards_left_over_stay_face_down() -> None:
    table = Table("regicide", players=4).deal(stock="AC 2C 3C 4C 5C 6C").play("open")
    dealt = table.facts[-1]
    assert isinstance(dealt, CardsDealt)
    assert dealt.stock == (4, 5)


def test_the_right_to_open_passes_clockwise_and_returns_to_the_dealer_as_a_duty() -> None:
    table = Table("regicide", players=3).deal(stock="AC")
    asked = []
    while "decline" in table.legal:
        asked.append(table.state.actor)
        table.play("decline")
    assert asked == [0, 1, 2]
    assert (table.state.actor, table.legal, table.state.forced()) == (0, "open", True)


def test_the_opened_card_makes_its_suit_trumps() -> None:
    table = Table("regicide").deal(stock="5D").play("open")
    view = table.state.view(PUBLIC)
    assert (view.opener, view.opened, view.trump) == (0, "5D", "D")


@pytest.mark.parametrize(("rule", "taker"), [("opener", 1), ("dealer", 0)])
def test_the_opened_card_goes_to_whom_the_option_says(rule: str, taker: int) -> None:
    table = Table("regicide", opened_to=rule).deal(stock="5D").play("decline open")
    assert CardShown(table.game.texts.index("5D"), taker) in table.facts
    assert "5D" in table.state.view(taker).hand


@pytest.mark.parametrize("rule", ["opener", "dealer"])
def test_who_opens_a_joker_names_trumps_before_anything_else(rule: str) -> None:
    table = Table("regicide", opened_to=rule).deal(stock="X2").play("decline open")
    assert (table.state.actor, table.legal) == (1, "name:C name:D name:H name:S")
    assert table.state.view(PUBLIC).stock_count == 23
    assert table.play("name:S").state.view(PUBLIC).trump == "S"


@pytest.mark.parametrize(("rule", "taker"), [("opener", 1), ("dealer", 0)])
def test_in_an_exchange_the_taker_of_the_opened_card_discards_any_card(rule: str, taker: int) -> None:
    table = exchange(opened_to=rule).deal(stock="5D").play("decline open")
    assert table.state.actor == taker
    assert len(table.legal.split()) == 10
    assert "discard:5D" in table.legal.split()
    table.play("discard:5D")
    assert table.state.view(PUBLIC).hand_counts == (9, 9)
    assert (table.state.actor, table.state.view(0).phase) == (0, "play")


def test_a_discard_is_its_owners_secret() -> None:
    table = exchange().deal("2C", stock="5D").play("open discard:2C")
    assert [table.state.view(viewer).discard for viewer in (PUBLIC, 0, 1)] == ["", "2C", ""]
    assert table.game.public_text(table.game.texts.index("discard:2C")) == "discard"


def test_every_other_action_is_open_to_all() -> None:
    game = Table("regicide").game
    assert all(game.public_text(n) == text for n, text in enumerate(game.texts) if not text.startswith("discard:"))


# R8, R9, following and taking

FOLLOWER = "2C 3C 4D 5D 6H 7S 8S 9S X1"


@pytest.mark.parametrize(
    ("joker", "led", "legal"),
    [
        ("when_void", "KC", "2C 3C"),
        ("any_time", "KC", "2C 3C X1"),
        ("as_trump", "KC", "2C 3C"),
        ("when_void", "AH", "6H"),
        ("any_time", "AH", "6H X1"),
        ("as_trump", "AH", "6H X1"),
        ("when_void", "X2", FOLLOWER),
        ("any_time", "X2", FOLLOWER),
        ("as_trump", "X2", "6H X1"),
    ],
)
def test_jokers_follow_as_the_option_says(joker: str, led: str, legal: str) -> None:
    table = exchange(joker=joker).deal("KC 2D X2", FOLLOWER, stock=HEARTS_TRUMP).play(f"open discard:2D {led}")
    assert table.legal == legal


@pytest.mark.parametrize(
    ("joker", "legal"),
    [
        ("when_void", "2C 3C 4C 4D 5D 7S 8S 9S X1"),
        ("any_time", "2C 3C 4C 4D 5D 7S 8S 9S X1"),
        ("as_trump", "X1"),
    ],
)
def test_a_joker_alone_follows_trumps_only_if_it_is_one(joker: str, legal: str) -> None:
    hand = "2C 3C 4C 4D 5D 7S 8S 9S X1"
    table = exchange(joker=joker).deal("KC 2D", hand, stock=HEARTS_TRUMP).play("open discard:2D AH")
    assert table.legal == legal


def trick(cards: str, trump: str = "H", *, reverse: bool = False) -> int:
    """Plays one trick between four seats, seat 0 leading, whatever they hold; returns who takes it."""
    table = Table("regicide", players=4)
    state = table.state
    assert isinstance(state, RegicideState)
    state._phase, state._trump, state._reversed, state.actor = "play", "CDHS".index(trump), reverse, 0
    for card in cards.split():
        number = table.game.texts.index(card)
        state._hands[state.actor][number // 10] |= 1 << number % 10
        table.facts += state.apply(number)
    (taken,) = table.facts
    assert isinstance(taken, TrickTaken)
    return taken.seat


@pytest.mark.parametrize(
    ("cards", "taker"),
    [
        ("9C KC 2C 3C", 1),  # the highest of the suit led
        ("2C AC 3S 4S", 0),  # the ace is low
        ("9C KD KS 3C", 0),  # another suit never takes
        ("9C AH KC 3C", 1),  # a trump does
        ("9C 2H KH 3H", 2),  # the highest of several trumps
        ("9C KH X1 3C", 2),  # a joker beats any trump
        ("9C X2 KH X1", 1),  # the joker played first
        ("X1 KH X2 2H", 0),  # even where it leads
    ],
)
def test_a_trick_goes_to_the_first_joker_else_the_highest_trump_else_the_suit_led(cards: str, taker: int) -> None:
    assert trick(cards) == taker


@pytest.mark.parametrize(
    ("cards", "taker"),
    [("9C KC 2C AC", 3), ("2C 9H AH 3C", 2), ("2C X1 AH X2", 1)],
)
def test_in_the_reversed_order_the_ace_is_highest_below_the_jokers(cards: str, taker: int) -> None:
    assert trick(cards, reverse=True) == taker


# R10, the new king. Seat 0 holds both jokers, and so takes a trick whenever he likes.

KING = "X1 X2 AC AD AH AS 2C 2D 2H"


@pytest.mark.parametrize(
    ("change", "legal"),
    [
        ("one", "keep trump:C trump:D trump:S reverse"),
        ("both", "keep trump:C trump:D trump:S reverse trump:C+reverse trump:D+reverse trump:S+reverse"),
    ],
)
def test_the_taker_may_change_trumps_or_reverse_before_he_leads(change: str, legal: str) -> None:
    table = exchange(change=change).deal(KING, stock="KH").play("open discard:KH X1")
    table.play(table.legal.split()[0])
    assert (table.state.actor, table.state.view(0).phase, table.legal) == (0, "change", legal)


@pytest.mark.parametrize(
    ("action", "trump", "reverse"),
    [("keep", "H", False), ("trump:S", "S", False), ("reverse", "H", True), ("trump:S+reverse", "S", True)],
)
def test_a_change_is_in_force_from_the_next_trick(action: str, trump: str, reverse: bool) -> None:
    table = exchange(change="both").deal(KING, stock="KH").play("open discard:KH X1")
    table.play(table.legal.split()[0]).play(action)
    view = table.state.view(PUBLIC)
    assert (view.trick.trump, view.trick.reversed, view.trick.leader) == (trump, reverse, 0)
    assert (view.tricks[0].trump, view.tricks[0].reversed) == ("H", False)


def test_a_second_reversal_restores_the_normal_order() -> None:
    table = exchange().deal("9H 2C 3C 4C 5C 6C 7C 8C 9C", "KH 2D", stock="KC")
    table.play("open discard:KC 9H KH reverse 2D 2C reverse")
    assert table.state.view(PUBLIC).reversed is False


@pytest.mark.parametrize("first", ["keep", "reverse"])
def test_who_took_the_trick_before_too_may_not_change_whether_or_not_he_did(first: str) -> None:
    table = exchange().deal(KING, stock="KH").play("open discard:KH X1")
    table.play(table.legal.split()[0]).play(f"{first} X2")
    table.play(table.legal.split()[0])
    assert (table.state.actor, table.state.view(0).phase) == (0, "play")


@pytest.mark.parametrize(("rule", "phase"), [("any", "change"), ("not_leader", "play")])
def test_the_dealer_changes_after_a_first_trick_of_his_only_if_any_may(rule: str, phase: str) -> None:
    table = exchange(first_change=rule).deal(KING, stock="KH").play("open discard:KH X1")
    table.play(table.legal.split()[0])
    assert table.state.view(0).phase == phase


def test_another_taker_of_the_first_trick_may_change_in_any_case() -> None:
    table = exchange(first_change="not_leader").deal("2C", "KC", stock="KH").play("open discard:KH 2C KC")
    assert (table.state.actor, table.state.view(0).phase) == (1, "change")


def test_in_pairs_a_player_that_takes_over_from_his_partner_may_change() -> None:
    hands = ("2C 3C", "AC 4C", "KC X1", "5C 6C")
    table = exchange(players=4, pairs=True, first_change="not_leader").deal(*hands, stock="KH")
    table.play("open discard:KH 3C AC KC 5C")
    assert (table.state.actor, table.state.view(2).phase) == (2, "change")


def test_after_the_last_trick_there_is_nothing_to_change() -> None:
    table = Table("regicide", max_deals=1).deal(stock="5D").play("open").finish()
    assert table.state.actor == OVER


# R11 to R13, the score


@pytest.mark.parametrize(
    ("options", "tricks", "totals", "pot", "scores", "pot_after"),
    [
        ({}, (11, 10), (0, 0), 0, (11, 0), 0),
        ({}, (11, 10), (0, 40), 0, (11, 0), 0),
        ({}, (11, 10), (0, 0), 7, (18, 0), 0),  # the scorer takes the pot
        ({"players": 3}, (5, 5, 4), (3, 2, 9), 0, (5, 0, 0), 0),  # of the tied, who has more
        ({"players": 3}, (5, 5, 4), (2, 2, 9), 0, (0, 0, 0), 5),
        ({"players": 3}, (5, 5, 4), (2, 2, 9), 5, (0, 0, 0), 10),  # a pot grows
        ({"players": 3}, (5, 5, 4), (3, 2, 9), 5, (10, 0, 0), 0),
        ({"players": 3, "tie": "each"}, (5, 5, 4), (2, 2, 9), 0, (5, 5, 0), 0),
        ({"players": 3, "tie": "split"}, (5, 5, 4), (2, 2, 9), 0, (2, 2, 0), 0),  # rounded down
        ({"players": 4, "tie": "each"}, (3, 3, 3, 1), (1, 4, 4, 0), 0, (0, 3, 3, 0), 0),  # those still tied
        ({"players": 4, "tie": "split"}, (3, 3, 3, 1), (4, 4, 4, 0), 0, (1, 1, 1, 0), 0),
        ({"players": 4, "pairs": True}, (6, 2, 0, 2), (0, 0), 0, (6, 0), 0),
        ({"players": 4, "pairs": True}, (1, 4, 4, 1), (0, 9), 0, (0, 5), 0),  # five each: the pair that leads
        ({"players": 4, "pairs": True}, (4, 3, 0, 3), (0, 0), 0, (0, 6), 0),
        ({"players": 4, "pairs": True, "pair_score": "player"}, (4, 3, 0, 3), (0, 0), 0, (4, 0), 0),
        ({"players": 4, "pairs": True, "pair_score": "player"}, (4, 1, 4, 1), (0, 0), 0, (4, 0), 0),  # no tie in a pair
        ({"players": 4, "pairs": True, "pair_score": "player"}, (4, 4, 2, 0), (0, 0), 0, (0, 0), 4),
        ({"players": 4, "pairs": True, "pair_score": "player"}, (3, 3, 3, 1), (1, 2), 0, (0, 3), 0),
    ],
)
def test_most_tricks_score(
    options: dict[str, object],
    tricks: tuple[int, ...],
    totals: tuple[int, ...],
    pot: int,
    scores: tuple[int, ...],
    pot_after: int,
) -> None:
    state = Table("regicide", **options).state
    assert isinstance(state, RegicideState)
    state._taken, state._totals, state._pot = list(tricks), totals, pot
    assert (tuple(state._scores()), state._pot) == (scores, pot_after)


def test_a_deals_score_names_its_tricks_and_the_pot() -> None:
    table = Table("regicide").deal(stock="5D").play("open").finish()
    scored = table.facts[-1]
    assert isinstance(scored, DealScored)
    assert sum(scored.details["tricks"]) == 21
    assert scored.scores == tuple(count if count > 10 else 0 for count in scored.details["tricks"])
    assert scored.details["pot"] == 0


@pytest.mark.parametrize(("missing", "over"), [(0, True), (1, False)])
def test_a_total_that_reaches_the_target_ends_the_match(missing: int, over: bool) -> None:
    points = max(Table("regicide").deal(stock="5D").finish().state.totals())
    table = Table("regicide", target=points + missing).deal(stock="5D").finish()
    assert (table.state.actor == OVER) == over


def test_a_match_ends_after_the_last_deal_as_it_stands() -> None:
    table = Table("regicide", max_deals=2)
    for _ in range(2):
        table.deal()
        table.state.void_deal()
    assert (table.state.actor, table.state.totals(), table.state.places()) == (OVER, (0, 0), (1, 1))


def test_a_voided_deal_leaves_the_pot_as_it_is() -> None:
    table = Table("regicide").deal()
    assert isinstance(table.state, RegicideState)
    table.state._pot = 5
    (scored,) = table.state.void_deal()
    assert scored == DealScored(0, 0, (0, 0), (0, 0), {"tricks": [0, 0], "pot": 5}, voided=True)
    assert table.state.view(PUBLIC).pot == 5


# What is seen


def test_a_view_tells_the_deal_in_play_in_full() -> None:
    hands = ("2C 3C", "KC 4C")
    view: Any = exchange().deal(*hands, stock="KH").play("open discard:KH 2C KC keep 4C").state.view(0)
    assert (view.seat, view.phase, view.dealer, view.opener, view.opened, view.trump) == (0, "play", 0, 0, "KH", "H")
    assert (len(view.hand), view.hand_counts, view.stock_count, view.discard) == (8, (8, 7), 23, "KH")
    assert (view.trick.leader, view.trick.cards) == (1, ("4C",))
    assert [(old.leader, old.cards, old.taker) for old in view.tricks] == [(0, ("2C", "KC"), 1)]
    assert view.tricks_taken == (0, 1)


def test_there_is_no_trick_before_the_first_lead_is_due() -> None:
    table = exchange().deal("2C", stock="X1")
    assert [table.play(action).state.view(0).trick for action in ("", "open", "name:C")] == [None] * 3
    assert table.play("discard:2C").state.view(0).trick.cards == ()


def test_a_view_tells_of_twenty_earlier_deals_at_most() -> None:
    table = Table("regicide")
    for _ in range(23):
        table.deal()
        table.state.void_deal()
    view = table.state.view(PUBLIC)
    assert (view.deal, len(view.deals)) == (23, 20)
