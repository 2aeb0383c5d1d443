"""The match as people read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from match.driver import Driver, at, house, says, silent, spec_of
from referee.v1 import match_pb2
from referee_server.match import inputs
from referee_server.match.transcript import transcript

GOLDEN = Path(__file__).parent.parent / "golden"


def guillotine() -> Driver:
    """One match with a timeout, an answer that is no action, and a seat that is replaced."""
    # A bot that cleverness will never change, so that the golden file stays.
    policy = match_pb2.FaultPolicy(replacement_bot="stride")
    options = {"deals_per_dealer": 2, "domino_pass": "free"}
    spec = spec_of("guillotine", options=options, first_dealer=None, policy=policy)
    agents = {
        0: house("random", seed=3),
        1: at([3, 9, 22], silent, house("random", seed=5)),
        2: house("random", seed=4),
        3: at([17], says("QQ"), house("random", seed=8)),
    }
    return Driver(spec).start(b"\1" * 32, b"", b"", b"\2" * 32).play(agents)


def regicide() -> Driver:
    """One match with an illegal answer to the opening and a new king who never answers."""
    options = {"target": 20, "change": "both"}
    agents = {
        0: at([1], says("X2"), house("random", seed=1)),
        1: at([5], silent, house("random", seed=2)),
    }
    return Driver(spec_of("regicide", "anna", "bert", options=options), unsealed=True).start().play(agents)


PLAYED = {"guillotine": guillotine, "regicide": regicide}


@pytest.mark.parametrize("game", PLAYED)
def test_a_match_reads_as_it_always_did(game: str, update_golden: bool) -> None:
    text = "\n".join(transcript(PLAYED[game]().events)) + "\n"
    path = GOLDEN / f"transcript-{game}.txt"
    if update_golden:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def lines_of(driver: Driver, deal: int | None = None) -> list[str]:
    return list(transcript(driver.events, deal))


@pytest.mark.parametrize("game", PLAYED)
def test_every_prefix_of_a_log_can_be_told(game: str) -> None:
    events = PLAYED[game]().events
    for length in range(1, len(events), 7):
        assert list(transcript(events[:length]))


def test_one_deal_is_told_alone_with_the_header() -> None:
    whole, one = lines_of(guillotine()), lines_of(guillotine(), 1)
    start = whole.index("Deal 1, dealt by 0 anna")
    end = next(number for number, line in enumerate(whole) if line.startswith("Deal 2"))
    assert one[-(end - start - 1) :] == whole[start : end - 1]
    assert one[0] == whole[0]
    assert sum(line.startswith(("Deal", "Result")) for line in one) == 1


@pytest.mark.parametrize("deal", [-1, 8])
def test_a_deal_that_was_not_dealt_is_refused(deal: int) -> None:
    with pytest.raises(ValueError, match=r"there is no deal .*; deals are 0 to 7"):
        transcript(guillotine().events, deal)


def test_a_voided_deal_says_so() -> None:
    rule = match_pb2.FaultRule(kind=match_pb2.FAULT_KIND_TIMEOUT, action=match_pb2.FAULT_ACTION_VOID_DEAL)
    policy = match_pb2.FaultPolicy(rules=[rule])
    driver = Driver(spec_of("regicide", options={"max_deals": 1}, policy=policy)).start().play({1: at([0, 2], silent)})
    text = "\n".join(lines_of(driver))
    assert "ran out of time (timeout), strike 1 of 3; the deal is voided" in text
    assert "(voided)" in text


def test_a_cancelled_match_says_why() -> None:
    driver = Driver(spec_of("regicide")).start().play(turns=4)
    driver.step(inputs.Stop(match_pb2.END_REASON_CANCELLED, "rain"))
    assert "Result: cancelled by the host, no result, 0 deals (rain)" in lines_of(driver)


def test_an_unfinished_match_says_so() -> None:
    lines = lines_of(Driver(spec_of("regicide")).start().play(turns=4))
    assert lines[-1] == "Not over yet"
    assert any("SEALED" in line for line in lines)


def test_pairs_are_named_as_sides() -> None:
    driver = Driver(spec_of("regicide", options={"players": 4, "pairs": True, "max_deals": 1})).start().play()
    assert any(line.startswith("  score       0 anna + 2 cleo ") for line in lines_of(driver))


def test_a_discard_leaves_the_hand() -> None:
    driver = Driver(spec_of("regicide", options={"stock": "exchange", "max_deals": 1})).start().play()
    lines = lines_of(driver)
    place = next(number for number, line in enumerate(lines) if line.startswith("  discard"))
    card = lines[place].split()[-1]
    assert card not in " ".join(lines[place + 1 : place + 3])


def test_control_characters_of_names_and_answers_do_not_come_through() -> None:
    spec = spec_of("regicide", "an\x1b[2Jna", options={"max_deals": 1}, first_dealer=0)
    spec.seats.add(agent="bert")
    driver = Driver(spec).start().play({0: at([0], says(b"\x1b[31m\n\xff"))})
    assert all(line.isprintable() for line in lines_of(driver))


def test_a_game_from_outside_is_told_one_action_a_line() -> None:
    spec = spec_of("high_card", "anna", "bert")
    lines = lines_of(Driver(spec).start().play())
    assert lines[0].startswith("High card, match ")
    assert "Deal 2, dealt by 0 anna" in lines
    assert sum(line.startswith("              0 anna  ") for line in lines) == 3
