"""The match as people read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from match.driver import Driver, at, house, says, silent, spec_of
from referee.v1 import event_pb2, match_pb2
from referee_games.contract import PUBLIC
from referee_server.match import inputs
from referee_server.match.transcript import Transcript, transcript
from referee_server.match.views import Projector

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
def test_what_was_told_stands_whatever_happens_afterwards(game: str) -> None:
    events = PLAYED[game]().events
    whole = list(transcript(events))
    told = Transcript()
    lines: list[str] = []
    for length, event in enumerate(events, 1):
        lines += told.take(event)
        assert whole[: len(lines)] == lines
        rest = list(transcript(events[:length]))
        assert rest[: len(lines)] == lines
    assert lines + told.finish() == whole


def test_a_trick_is_told_as_it_is_taken_and_a_score_as_it_is_counted() -> None:
    told = Transcript()
    lines = [(event.WhichOneof("payload"), told.take(event)) for event in guillotine().events]
    assert all(some[-1].startswith("  trick ") for kind, some in lines if kind == "trick_taken")
    assert all(some[-1].startswith(("  total", "  pot")) for kind, some in lines if kind == "deal_scored")
    assert not any(some for kind, some in lines if kind in ("decision_offered", "seat_ready"))


def test_a_trick_of_regicide_is_told_once_it_is_known_what_its_taker_changes() -> None:
    told = Transcript()
    lines = [(event, told.take(event)) for event in regicide().events]
    taken = [place for place, (event, _) in enumerate(lines) if event.HasField("trick_taken")]
    # The first trick makes a king, who is asked; with the third bert stays king, and is not.
    assert lines[taken[0]][1] == []
    following = next(some for event, some in lines[taken[0] + 1 :] if event.HasField("action_applied"))
    assert [line.startswith("  trick  1 ") for line in following] == [True]
    assert [line.startswith("  trick  3 ") for line in lines[taken[2]][1]] == [True]


def test_an_open_seat_is_named_when_it_is_taken() -> None:
    driver = Driver(spec_of("regicide", "open", "bert", options={"max_deals": 1}))
    told = Transcript()
    header = [line for event in driver.events for line in told.take(event)]
    assert "  seats       0 (open)" in header
    agent = match_pb2.Seat(seat=0, kind=match_pb2.SEAT_KIND_AGENT, agent_id="id-zoe", name="zoe")
    filled = driver.step(inputs.Fill(0, agent.agent_id, agent.name))
    assert [line for event in filled for line in told.take(event)] == ["  seat        0 zoe takes the open seat"]
    driver.start().play()
    assert any(line.startswith("  score       0 zoe ") for line in lines_of(driver))


# What others are told.


def seen(driver: Driver, audience: int) -> list[str]:
    told = Transcript(audience)
    events = Projector(audience, driver.match.game).see(driver.events)
    return [line for event in events for line in told.take(event)] + told.finish()


def differing(driver: Driver, audience: int) -> list[tuple[str, str]]:
    """Returns the lines that an audience is told otherwise, each beside the whole of it."""
    whole, view = lines_of(driver), seen(driver, audience)
    # The stock is wrapped where it is seen.
    whole = [line for number, line in enumerate(whole) if not (number and whole[number - 1].startswith("  stock"))]
    assert len(whole) == len(view)
    return [(ours, theirs) for ours, theirs in zip(whole, view, strict=True) if ours != theirs]


def test_everybody_is_told_all_but_the_cards_in_hands_and_what_was_wrong_with_an_answer() -> None:
    found = differing(guillotine(), PUBLIC)
    hands = [theirs for _, theirs in found if theirs.endswith("   8 hidden")]
    assert len(hands) == 8 * 4
    others = [theirs for _, theirs in found if theirs not in hands]
    assert len(others) == 1
    assert "3 dora answered something, which is no action of the game (malformed), strike 1 of 3" in others[0]


@pytest.mark.parametrize("seat", range(4))
def test_a_seat_is_told_its_own_hand_and_answer_too(seat: int) -> None:
    found = differing(guillotine(), seat)
    assert sum(theirs.endswith("   8 hidden") for _, theirs in found) == 8 * 3
    assert any("answered something" in theirs for _, theirs in found) == (seat != 3)


def test_of_hands_and_stock_that_are_hidden_the_number_is_told() -> None:
    lines = seen(Driver(spec_of("regicide", options={"max_deals": 1})).start().play(), 1)
    start = next(number for number, line in enumerate(lines) if line.startswith("  hands"))
    assert lines[start].endswith("  0 anna   9 hidden")
    assert "hidden" not in lines[start + 1]
    assert lines[start + 2].startswith("  stock       ")
    assert lines[start + 2].endswith(" hidden")


def test_a_hidden_discard_leaves_no_card_of_the_hand_known() -> None:
    driver = Driver(spec_of("regicide", options={"stock": "exchange", "max_deals": 1})).start().play()
    lines = seen(driver, PUBLIC)
    place = next(number for number, line in enumerate(lines) if line.startswith("  discard"))
    assert lines[place].endswith(" a card")
    assert [line.split()[-2:] for line in lines[place + 1 : place + 3]] == [["9", "hidden"]] * 2


# What cannot be told.


def test_an_event_of_a_newer_referee_is_named_unless_it_may_be_passed_over() -> None:
    events = guillotine().events
    told = Transcript()
    told.take(events[0])
    assert told.take(event_pb2.MatchEvent(sequence=2, ignorable=True)) == []
    with pytest.raises(ValueError, match="event 2 is none that this version can tell"):
        told.take(event_pb2.MatchEvent(sequence=2))


def test_a_log_that_does_not_begin_with_its_creation_cannot_be_told() -> None:
    with pytest.raises(ValueError, match="event 2 is none that this version can tell"):
        Transcript().take(guillotine().events[1])


def test_without_events_there_is_nothing_to_tell() -> None:
    assert Transcript().finish() == []


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
    assert lines[-2:] == ["Not over yet", "  secret      SEALED: not out yet"]


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
