"""The record of a match: enough for another program to referee it again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from games import test_vectors
from games.play import pack_of
from match.driver import MATCH_ID, SECRET, Driver, at, house, says, silent, spec_of
from referee.v1 import match_pb2
from referee_games import dealing, registry
from referee_server.match import inputs
from referee_server.match.record import record

KEYS = [
    *("game", "options", "first_dealer", "packs", "steps", "deals", "totals", "places"),
    *("match_id", "deal_id", "secret", "nonces", "commitment", "first_dealer_drawn", "agents", "official_places"),
    "rulings",
]
NONCES = (b"\1" * 32, b"", b"\3" * 32, b"\4" * 32)


def guillotine(**options: object) -> Driver:
    given = {"deals_per_dealer": 1, **options}
    return Driver(spec_of("guillotine", options=given, first_dealer=None)).start(*NONCES)


def regicide(players: int = 2, **options: object) -> Driver:
    given = {"target": 20, "players": players, **options}
    return Driver(spec_of("regicide", options=given, first_dealer=None)).start(*NONCES)


MATCHES = {
    "guillotine": lambda: guillotine().play(),
    "guillotine, whole": lambda: guillotine(deals_per_dealer=6).play(dict.fromkeys(range(4), house("stride"))),
    "guillotine, faults": lambda: guillotine().play({1: at([2, 5, 9], silent), 3: at([4], says("QS QS"))}),
    "regicide": lambda: regicide().play(),
    "regicide, exchange": lambda: regicide(stock="exchange").play({0: house("stride")}),
    "regicide, three": lambda: regicide(3, joker="any_time").play({1: at([7], says("2C"))}),
    "regicide, pairs": lambda: regicide(4, pairs=True, change="both").play(dict.fromkeys(range(4), house("stride"))),
}


@pytest.mark.parametrize("name", MATCHES)
def test_another_program_referees_a_record_and_agrees(name: str) -> None:
    line = json.dumps(record(MATCHES[name]().events))
    test_vectors.test_a_vector_is_offered_the_same_choices_and_ends_with_the_same_scores(line)


@pytest.mark.parametrize("name", MATCHES)
def test_the_packs_of_a_record_follow_from_what_is_beside_them(name: str) -> None:
    told = json.loads(json.dumps(record(MATCHES[name]().events)))
    game = registry.find(told["game"])
    secret = bytes.fromhex(told["secret"])
    nonces = [bytes.fromhex(nonce) for nonce in told["nonces"]]
    seed = dealing.match_seed(told["deal_id"], secret, nonces)
    assert dealing.commitment(told["deal_id"], secret) == told["commitment"]
    assert told["first_dealer_drawn"]
    assert dealing.first_dealer(seed, len(told["agents"])) == told["first_dealer"]
    for number, (pack, deal) in enumerate(zip(told["packs"], told["deals"], strict=True)):
        dealt = pack_of(game, deal["dealer"], pack["hands"], pack["stock"])
        assert dealt == dealing.deal_pack(seed, number, game.pack)


def told_of(driver: Driver) -> dict[str, Any]:
    return record(driver.events)


def test_the_keys_are_those_of_the_vectors_and_the_documented_ones() -> None:
    assert list(told_of(guillotine().play())) == KEYS


def test_only_options_that_differ_are_named() -> None:
    assert told_of(regicide(3).play())["options"] == {"players": 3, "target": 20}


def test_who_and_what_it_was() -> None:
    told = told_of(guillotine().play())
    assert told["match_id"] == told["deal_id"] == MATCH_ID
    assert told["secret"] == SECRET.hex()
    assert told["nonces"] == ["01" * 32, "", "03" * 32, "04" * 32]
    assert told["agents"] == ["anna", "bert", "cleo", "dora"]


def test_a_fixed_first_dealer_is_not_drawn() -> None:
    told = told_of(Driver(spec_of("regicide", options={"target": 1}, first_dealer=1)).start().play())
    assert (told["first_dealer"], told["first_dealer_drawn"]) == (1, False)


def test_a_ruling_names_the_step_that_stands_in_for_the_answer() -> None:
    told = told_of(guillotine().play({1: at([2], silent), 3: at([0], says("nonsense"))}))
    assert {(ruling["seat"], ruling["kind"]) for ruling in told["rulings"]} == {(1, "timeout"), (3, "malformed")}
    for ruling in told["rulings"]:
        assert told["steps"][ruling["step"]]["seat"] == ruling["seat"]


def test_a_voided_deal_scores_nothing_and_the_next_one_follows() -> None:
    rule = match_pb2.FaultRule(kind=match_pb2.FAULT_KIND_TIMEOUT, action=match_pb2.FAULT_ACTION_VOID_DEAL)
    policy = match_pb2.FaultPolicy(rules=[rule])
    spec = spec_of("guillotine", options={"deals_per_dealer": 1}, policy=policy)
    told = told_of(Driver(spec).start().play({2: at([3], silent)}))
    (ruling,) = told["rulings"]
    assert told["deals"][0]["score"] == [0, 0, 0, 0]
    assert len(told["deals"]) == len(told["packs"]) == 4
    assert (told["steps"][ruling["step"] - 1]["deal"], told["steps"][ruling["step"]]["deal"]) == (0, 1)


def test_a_cancelled_match_has_no_result() -> None:
    driver = guillotine().play(turns=9)
    driver.step(inputs.Stop(match_pb2.END_REASON_CANCELLED, "rain"))
    told = told_of(driver)
    assert told["totals"] == told["places"] == told["official_places"] == []
    assert len(told["packs"]) == 1
    assert told["secret"] == SECRET.hex()


def test_a_match_that_never_started_has_no_first_dealer() -> None:
    driver = Driver(spec_of("regicide"))
    driver.tick()
    told = told_of(driver)
    assert told["first_dealer"] is None
    assert told["rulings"] == [{"step": 0, "seat": 0, "kind": "no_show"}]


def test_a_running_match_keeps_its_secret() -> None:
    assert told_of(guillotine().play(turns=9))["secret"] == ""


def test_the_offender_is_last_officially() -> None:
    told = told_of(guillotine().play({0: at([1, 2, 3], silent)}))
    assert told["official_places"][0] == 4
