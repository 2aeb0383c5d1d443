"""Guillotine, clause by clause, on deals laid out by hand."""

from __future__ import annotations

import pytest

from referee_games.contract import CHANCE, OVER, PUBLIC, CardsDealt, DealScored, TrickTaken

from .play import Table

SPADES = "7S 8S 9S TS JS QS KS AS"
# Seat 0 can start domino with the king of clubs; seat 1 then has an ace to lay and more to lay after it.
KING_START = ("7C 8C 9C TC JC QC KC 7D", "AC QD KD 7H 8H 9H TH KH", "8D 9D TD JD AD JH QH AH")


def test_cards_are_dealt_one_at_a_time_from_the_dealers_left() -> None:
    table = Table("guillotine")
    (dealt,) = table.state.deal(range(32))
    assert isinstance(dealt, CardsDealt)
    assert dealt.hands == tuple(tuple(range((seat - 1) % 4, 32, 4)) for seat in range(4))
    assert dealt.stock == ()


def test_the_dealer_announces_before_anything_is_played() -> None:
    table = Table("guillotine").deal(SPADES)
    contracts = ("royalty", "queens", "spades", "parliament", "guillotine", "domino")
    assert table.legal == " ".join(f"contract:{name}" for name in contracts)
    assert (table.state.actor, table.state.view(0).phase) == (0, "contract")


def test_no_dealer_announces_a_contract_twice() -> None:
    table = Table("guillotine")
    for _ in range(4):
        table.deal(SPADES).play("contract:queens").finish()
    assert "contract:queens" not in table.deal(SPADES).legal


def test_a_dealers_sixth_contract_is_forced_and_his_fifth_is_not() -> None:
    table = Table("guillotine")
    forced = []
    while table.state.actor != OVER:
        table.deal(SPADES)
        forced.append(table.state.forced())
        table.finish()
    assert forced == [False] * 20 + [True] * 4


def test_a_suit_that_can_be_followed_must_be() -> None:
    table = Table("guillotine").deal("7C", "8C 9C AS", "7H 8H 9H TH JH QH KH AH").play("contract:royalty 7C")
    assert table.legal == "8C 9C"


def test_who_cannot_follow_may_play_anything() -> None:
    table = Table("guillotine").deal("7C 8C 9C TC JC QC KC AC", SPADES).play("contract:royalty 7C")
    assert table.legal == SPADES


def test_the_highest_card_of_the_suit_led_takes_the_trick_and_leads() -> None:
    table = Table("guillotine").deal("9C", "TC 7D 8D 9D TD JD QD KD", "AD AH AS", "7C 8C JC QC KC AC 7H 8H")
    table.play("contract:royalty 9C TC")
    assert "AD" in table.legal
    table.play("AD 8C")
    assert table.facts[-1] == TrickTaken(1, tuple(map(table.game.texts.index, ("9C", "TC", "AD", "8C"))))
    assert table.state.actor == 1


@pytest.mark.parametrize(("order", "taker"), [("standard", 2), ("french", 1)])
def test_the_ten_beats_the_king_in_the_french_order_only(order: str, taker: int) -> None:
    table = Table("guillotine", rank_order=order).deal("7C", "TC", "KC", "8C").play("contract:royalty 7C TC KC 8C")
    assert table.state.actor == taker


@pytest.mark.parametrize(
    ("contract", "options", "score"),
    [
        ("royalty", {}, 120),
        ("queens", {}, 0),
        ("spades", {}, 0),
        ("parliament", {}, -80),
        ("guillotine", {}, 250),
        ("guillotine", {"guillotine_unit": "spade"}, 130),
        ("guillotine", {"guillotine_unit": "trick"}, 130),
    ],
)
def test_all_eight_tricks_are_played_and_a_taker_of_all_scores_them_all(
    contract: str, options: dict[str, object], score: int
) -> None:
    table = Table("guillotine", **options).deal(SPADES).play(f"contract:{contract}").finish()
    assert sum(isinstance(fact, TrickTaken) for fact in table.facts) == 8
    assert table.scores == [(score, 0, 0, 0)]


def test_a_deals_score_names_its_contract() -> None:
    table = Table("guillotine").deal(SPADES).play("contract:spades").finish()
    assert table.facts[-1] == DealScored(0, 0, (0, 0, 0, 0), (0, 0, 0, 0), {"contract": "spades"})


@pytest.mark.parametrize("per_dealer", [1, 2, 6])
def test_every_player_deals_as_often_as_the_host_says(per_dealer: int) -> None:
    table = Table("guillotine", deals_per_dealer=per_dealer)
    dealers = []
    while table.state.actor == CHANCE:
        dealers.append(table.state.dealer)
        table.deal(SPADES).finish()
    assert dealers == [0, 1, 2, 3] * per_dealer


# G7, domino


def test_domino_starts_with_any_card_of_the_dealer() -> None:
    table = Table("guillotine").deal(*KING_START).play("contract:domino")
    assert table.legal == "7C 8C 9C TC JC QC KC 7D"


def test_the_start_rank_opens_a_row_and_neighbours_extend_it() -> None:
    table = Table("guillotine").deal(*KING_START).play("contract:domino KC")
    assert table.legal == "AC KD KH"


def test_a_card_two_ranks_away_cannot_be_laid() -> None:
    table = Table("guillotine").deal("9C", "7C 8C TC JC 7D 8D TD JD").play("contract:domino 9C")
    assert table.legal == "8C TC"


def test_neighbours_follow_the_rank_order_in_force() -> None:
    table = Table("guillotine", rank_order="french").deal("KC", "TC QC AC JC").play("contract:domino KC")
    assert table.legal.split()[:2] == ["TC", "QC"]


def test_who_can_lay_nothing_passes_and_the_table_can_tell() -> None:
    table = Table("guillotine").deal("KC 7C", SPADES).play("contract:domino 7C 7S")
    assert table.state.actor == 2
    table = Table("guillotine").deal(SPADES, "8C 9C TC JC QC KC AC 8D").play("contract:domino 7S")
    assert (table.legal, table.state.forced()) == ("pass", True)


def test_who_can_lay_may_not_pass_unless_passing_is_free() -> None:
    forced, free = (Table("guillotine", domino_pass=rule).deal(*KING_START) for rule in ("forced", "free"))
    assert forced.play("contract:domino KC").legal == "AC KD KH"
    assert free.play("contract:domino KC").legal == "AC KD KH pass"


def test_the_first_card_of_domino_is_laid_even_where_passing_is_free() -> None:
    table = Table("guillotine", domino_pass="free").deal(*KING_START).play("contract:domino")
    assert "pass" not in table.legal


def test_when_all_others_have_passed_since_the_last_card_one_must_lay_if_one_can() -> None:
    table = Table("guillotine", domino_pass="free").deal(*KING_START).play("contract:domino KC pass pass pass")
    assert (table.state.actor, table.legal) == (0, "QC")


def test_when_all_others_have_passed_and_one_cannot_lay_the_duty_moves_on() -> None:
    table = Table("guillotine", domino_pass="free").deal("KC 7C 8C 9C TC 7D 8D 9D", *KING_START[1:2])
    table.play("contract:domino KC pass pass pass")
    assert table.legal == "pass"
    assert table.play("pass").legal == "AC KD KH"


def test_a_card_laid_makes_passing_free_for_all_again() -> None:
    table = Table("guillotine", domino_pass="free").deal(*KING_START).play("contract:domino KC pass pass KS pass")
    assert (table.state.actor, table.legal) == (1, "AC KD KH pass")


def test_no_pass_is_forced_where_passing_is_free() -> None:
    table = Table("guillotine", domino_pass="free").deal(SPADES, "8C 9C TC JC QC KC AC 8D").play("contract:domino 7S")
    assert (table.legal, table.state.forced()) == ("pass", False)


def test_after_an_ace_one_goes_on_with_what_becomes_layable_on_the_way() -> None:
    table = Table("guillotine").deal(*KING_START).play("contract:domino KC AC")
    assert (table.state.actor, table.legal) == (1, "KD KH stop")
    assert table.play("KD").legal == "QD KH stop"


def test_stop_is_put_to_a_player_who_can_lay_nothing_more() -> None:
    table = Table("guillotine").deal(*KING_START).play("contract:domino KC AC KD QD KH")
    assert (table.state.actor, table.legal, table.state.forced()) == (1, "stop", False)


def test_a_stop_moves_the_turn_on_and_is_not_listed() -> None:
    table = Table("guillotine").deal(*KING_START).play("contract:domino KC AC stop")
    assert table.state.actor == 2
    assert [(turn.seat, turn.card) for turn in table.state.view(PUBLIC).turns] == [(0, "KC"), (1, "AC")]


def test_the_bonus_ends_with_the_turn() -> None:
    table = Table("guillotine").deal(*KING_START).play("contract:domino KC AC KD stop AD stop KS")
    assert table.state.actor == 0


def test_an_ace_that_starts_domino_gives_no_bonus() -> None:
    table = Table("guillotine").deal("AC KC").play("contract:domino AC")
    assert table.state.actor == 1


def test_a_voided_deal_uses_up_the_contract_that_was_announced() -> None:
    table = Table("guillotine").deal(SPADES).play("contract:domino")
    (scored,) = table.state.void_deal()
    assert scored == DealScored(0, 0, (0, 0, 0, 0), (0, 0, 0, 0), {"contract": "domino"}, voided=True)
    for _ in range(3):
        table.deal(SPADES).finish()
    assert "contract:domino" not in table.deal(SPADES).legal


def test_a_deal_voided_before_the_announcement_uses_up_none() -> None:
    table = Table("guillotine").deal(SPADES)
    (scored,) = table.state.void_deal()
    assert isinstance(scored, DealScored)
    assert scored.details == {"contract": ""}
    for _ in range(3):
        table.deal(SPADES).finish()
    assert len(table.deal(SPADES).legal.split()) == 6


def test_a_view_tells_the_deal_in_play_in_full() -> None:
    table = Table("guillotine").deal(SPADES, KING_START[1]).play("contract:queens 7S KH").finish()
    table.deal(SPADES, KING_START[1]).play("contract:royalty AC")
    view = table.state.view(1)
    assert (view.seat, view.phase, view.deal, view.dealer, view.contract) == (1, "tricks", 1, 1, "royalty")
    assert view.hand == ("QD", "KD", "7H", "8H", "9H", "TH", "KH")
    assert view.hand_counts == (8, 7, 8, 8)
    assert (view.trick.leader, view.trick.cards, view.trick.taker) == (1, ("AC",), -1)
    assert [(deal.dealer, deal.contract, deal.scores) for deal in view.deals] == [(0, "queens", (0, 0, 0, 0))]


def test_a_spectator_sees_no_hand() -> None:
    table = Table("guillotine").deal(SPADES)
    assert table.state.view(PUBLIC).hand == ()
