"""Dealing: the worked example, evenness, and proof that the checks of evenness catch the classic mistakes."""

from __future__ import annotations

import hmac
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee_games import dealing
from referee_games.dealing import Draws

SECRET = bytes(range(32))
FOUR_NONCES = (b"\x01" * 32, b"", b"\x03" * 32, b"\x04" * 32)
GUILLOTINE = [rank + suit for suit in "CDHS" for rank in "789TJQKA"]
REGICIDE = [rank + suit for suit in "CDHS" for rank in "A23456789K"] + ["X1", "X2"]


def dealt(pack: Sequence[str], dealer: int, players: int, size: int) -> tuple[list[str], str]:
    """Deals one card at a time from the dealer's left; returns the hands and the stock as text."""
    hands = [pack[(seat - dealer - 1) % players : size * players : players] for seat in range(players)]
    return [" ".join(hand) for hand in hands], " ".join(pack[size * players :])


# The worked example


def test_commitment_is_that_of_the_worked_example() -> None:
    expected = "3161c7c886a888580abe9e96d00eaf5f73b688d01de1679234885811d07861c0"
    assert dealing.commitment("example-deal", SECRET) == expected


def test_four_seats_get_the_cards_of_the_worked_example() -> None:
    seed = dealing.match_seed("example-deal", SECRET, FOUR_NONCES)
    assert seed.hex() == "8b776fe84c47a709191ddfb4556b8e033d279dd2bf73fae9c1db6078491d1394"
    assert dealing.first_dealer(seed, 4) == 3
    assert dealt(dealing.deal_pack(seed, 0, GUILLOTINE), 3, 4, 8) == (
        [
            "QC 7D AC AS TC KC JC 8S",
            "JD QS KH QD 8C TD 7H AD",
            "7S 9H 8H 7C JH AH KS QH",
            "9S TH TS 8D 9D JS KD 9C",
        ],
        "",
    )
    assert dealt(dealing.deal_pack(seed, 1, GUILLOTINE), 0, 4, 8) == (
        [
            "7S 9C 8D JC AD 7C KH KC",
            "JS QC TS KD QH 7H AC 7D",
            "QD 8H 9S 8C 9D JH TD AH",
            "9H 8S TC JD TH AS KS QS",
        ],
        "",
    )


def test_two_seats_get_the_cards_of_the_worked_example() -> None:
    seed = dealing.match_seed("example-deal", SECRET, (b"", b""))
    assert seed.hex() == "4d1b1863057dec15dda35fb5d90bac809b816cc7ae59f91e03dc447af4653959"
    assert dealing.first_dealer(seed, 2) == 0
    assert dealt(dealing.deal_pack(seed, 0, REGICIDE), 0, 2, 9) == (
        ["AD 2H 8S 9C 8H 9S KC 5C 8D", "6S 5H 4C KD KS 5D 2S 3H AC"],
        "3D AH 9H 4S 6D X2 6C 9D 7H 2D 7C 4H X1 AS 7S 3C KH 2C 6H 7D 8C 5S 3S 4D",
    )


def test_draws_are_those_of_the_worked_example() -> None:
    draws = Draws(dealing.match_seed("example-deal", SECRET, (b"", b"")), "test")
    assert [draws.below(3) for _ in range(10)] == [2, 0, 2, 2, 2, 0, 2, 0, 2, 0]


def test_set_secret_is_the_mac_of_the_set_under_the_master() -> None:
    assert dealing.set_secret(SECRET, "set-7") == hmac.digest(SECRET, b"referee.set.v1\0set-7", "sha256")


def test_docs_show_the_cards_that_the_code_deals() -> None:
    page = (Path(__file__).parents[2] / "docs" / "dealing.md").read_text(encoding="utf-8")
    four = dealing.match_seed("example-deal", SECRET, FOUR_NONCES)
    two = dealing.match_seed("example-deal", SECRET, (b"", b""))
    shown = [dealing.commitment("example-deal", SECRET), four.hex(), two.hex()]
    shown += dealt(dealing.deal_pack(four, 0, GUILLOTINE), 3, 4, 8)[0]
    shown += dealt(dealing.deal_pack(four, 1, GUILLOTINE), 0, 4, 8)[0]
    hands, stock = dealt(dealing.deal_pack(two, 0, REGICIDE), 0, 2, 9)
    missing = [text for text in [*shown, *hands, stock] if text not in page]
    assert missing == []


# What is refused


@pytest.mark.parametrize("length", [1, 31, 33, 64])
def test_nonce_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="nonce"):
        dealing.match_seed("d", SECRET, (b"", bytes(length)))


@pytest.mark.parametrize("length", [0, 31, 33])
def test_secret_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="secret"):
        dealing.commitment("d", bytes(length))
    with pytest.raises(ValueError, match="secret"):
        dealing.match_seed("d", bytes(length), ())
    with pytest.raises(ValueError, match="master secret"):
        dealing.set_secret(bytes(length), "d")


def test_deal_id_with_a_zero_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="zero byte"):
        dealing.commitment("a\0b", SECRET)


def test_missing_nonce_counts_as_zeros() -> None:
    assert dealing.match_seed("d", SECRET, (b"",)) == dealing.match_seed("d", SECRET, (bytes(32),))


@pytest.mark.parametrize("n", [-1, 0, 2**32 + 1])
def test_draw_below_a_senseless_number_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match="cannot draw"):
        Draws(SECRET, "x").below(n)


@pytest.mark.parametrize("n", [3, 5, 31, 2**31 + 1])
def test_words_from_the_last_multiple_on_are_thrown_away(n: int) -> None:
    limit = 2**32 // n * n
    assert Draws.over([limit - 1]).below(n) == n - 1
    assert Draws.over([limit, 2**32 - 1, 1]).below(n) == 1


@given(st.lists(st.integers(), max_size=60), st.binary(min_size=32, max_size=32))
def test_shuffled_pack_holds_the_same_cards_and_spares_its_argument(pack: list[int], seed: bytes) -> None:
    before = list(pack)
    assert sorted(dealing.deal_pack(seed, 0, pack)) == sorted(before)
    assert pack == before


def test_labels_have_streams_of_their_own() -> None:
    labels = ["first-dealer", *(dealing.deal_label(k) for k in range(20)), dealing.substitute_label(1, 11)]
    assert labels[-1] == "substitute/1/11"
    assert len({tuple(islice(dealing.words(SECRET, label), 8)) for label in labels}) == len(labels)


# Evenness. The checks take an implementation, so that the mutants below go through the very same ones.


@dataclass(frozen=True)
class Implementation:
    draws: Callable[[bytes, str], Any]
    over: Callable[[Iterable[int], int], Any]
    shuffled: Callable[[Sequence[int], Any], list[int]]


REAL = Implementation(Draws, Draws.over, dealing.shuffled)


def check_every_order_is_equally_frequent(made: Implementation) -> None:
    """Feeds every sequence of words of a small alphabet to the shuffle of a pack of 3 and of 4 cards."""
    for size, span in ((3, 8), (4, 16)):
        orders: Counter[tuple[int, ...]] = Counter()
        for given_words in product(range(span), repeat=size - 1):
            try:
                orders[tuple(made.shuffled(range(size), made.over(given_words, span)))] += 1
            except StopIteration:
                continue  # a word was thrown away and the sequence ran out: another sequence stands for it
        assert set(orders) == set(permutations(range(size)))
        assert len(set(orders.values())) == 1, orders


def check_every_card_gets_everywhere(made: Implementation) -> None:
    """Chi-square of card against position over 4,000 shuffles of 32 cards."""
    size, rounds = 32, 4000
    seen = [[0] * size for _ in range(size)]
    for k in range(rounds):
        for position, card in enumerate(made.shuffled(range(size), made.draws(SECRET, f"deal/{k}"))):
            seen[position][card] += 1
    expected = rounds / size
    chi_square = sum((n - expected) ** 2 / expected for row in seen for n in row)
    # 31 * 31 degrees of freedom: mean 961, deviation about 44; five deviations either side.
    assert 741 < chi_square < 1181, chi_square


def check_successive_draws_are_independent(made: Implementation) -> None:
    """Within a stream no eight draws in a row come back; a wide draw shows the words themselves."""
    for k in range(20):
        draws = made.draws(SECRET, f"deal/{k}")
        drawn = [draws.below(2**32) for _ in range(64)]
        assert len(set(drawn)) == 64


CHECKS = (
    check_every_order_is_equally_frequent,
    check_every_card_gets_everywhere,
    check_successive_draws_are_independent,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_dealing_passes(check: Callable[[Implementation], None]) -> None:
    check(REAL)


class ModuloBias(Draws):
    def below(self, n: int) -> int:
        return self._word() % n


class ReusedCounter(Draws):
    def __init__(self, seed: bytes, label: str) -> None:
        def stuck() -> Iterator[int]:
            while True:
                yield from struct.unpack(">8I", hmac.digest(seed, label.encode() + b"\0" + bytes(8), "sha256"))

        super().__init__(seed, label)
        self._word = stuck().__next__


def swap_with_any(pack: Sequence[int], draws: Draws) -> list[int]:
    cards = list(pack)
    for i in range(len(cards) - 1, 0, -1):
        j = draws.below(len(cards))
        cards[i], cards[j] = cards[j], cards[i]
    return cards


def off_by_one(pack: Sequence[int], draws: Draws) -> list[int]:
    cards = list(pack)
    for i in range(len(cards) - 1, 0, -1):
        j = draws.below(i)
        cards[i], cards[j] = cards[j], cards[i]
    return cards


@pytest.mark.parametrize(
    ("mutant", "catchers"),
    [
        (replace(REAL, draws=ModuloBias, over=ModuloBias.over), {"check_every_order_is_equally_frequent"}),
        (
            replace(REAL, shuffled=swap_with_any),
            {"check_every_order_is_equally_frequent", "check_every_card_gets_everywhere"},
        ),
        (
            replace(REAL, shuffled=off_by_one),
            {"check_every_order_is_equally_frequent", "check_every_card_gets_everywhere"},
        ),
        (replace(REAL, draws=ReusedCounter), {"check_successive_draws_are_independent"}),
    ],
    ids=["modulo-bias", "swap-with-any", "off-by-one", "reused-counter"],
)
def test_mutant_is_caught(mutant: Implementation, catchers: set[str]) -> None:
    caught = set()
    for check in CHECKS:
        try:
            check(mutant)
        except AssertionError:
            caught.add(check.__name__)
    assert caught >= catchers
