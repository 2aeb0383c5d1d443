"""Positions of `greedy`: the plays that anyone would find. Seat 0 is asked; what is not said is as usual."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from referee_games import bots, registry
from referee_games.contract import Decision
from referee_games.views import GuillotineView, RegicideView, Trick, Turn

GUILLOTINE = registry.find("guillotine")
REGICIDE = registry.find("regicide")


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
        pytest.param(regicide("2C 7C KC 4D 9D 5H KH 8S", "6H 3S", players=3), "5H", id="keeps a king"),
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
