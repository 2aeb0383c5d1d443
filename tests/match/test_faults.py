"""Faults during play: what the policy of the match makes of them, and that nobody else suffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from match.driver import MATCH_ID, SECRET, Agent, Driver, at, house, of_kind, says, silent, spec_of
from referee.v1 import event_pb2, match_pb2
from referee_games import dealing
from referee_server.match import inputs
from referee_server.match.outcome import official_places
from referee_server.match.verify import verify

TIMEOUT = match_pb2.FAULT_KIND_TIMEOUT
ILLEGAL = match_pb2.FAULT_KIND_ILLEGAL
MALFORMED = match_pb2.FAULT_KIND_MALFORMED
SUBSTITUTE = match_pb2.FAULT_ACTION_SUBSTITUTE
REPLACE = match_pb2.FAULT_ACTION_REPLACE
VOID = match_pb2.FAULT_ACTION_VOID_DEAL
FORFEIT = match_pb2.FAULT_ACTION_FORFEIT

# What is wrong with the answer to the opening of Regicide (`open` or `decline`), and what that is called.
WRONG: dict[str, tuple[Agent, match_pb2.FaultKind.ValueType]] = {
    "silence": (silent, TIMEOUT),
    "a card not held or not due": (says("X1"), ILLEGAL),
    "an action of another phase": (says("trump:H"), ILLEGAL),
    "nothing": (says(""), MALFORMED),
    "a space too many": (says("open "), MALFORMED),
    "other letters": (says("OPEN"), MALFORMED),
    "an action of another game": (says("contract:royalty"), MALFORMED),
    "no text": (says(b"\xff\xfe\x00"), MALFORMED),
    "the public form of a discard": (says("discard"), MALFORMED),
    "very much": (says(b"open" * 15_000), MALFORMED),
}


def policy(*rules: match_pb2.FaultRule, **fields: Any) -> match_pb2.FaultPolicy:
    return match_pb2.FaultPolicy(rules=rules, **fields)


def on(kind: match_pb2.FaultKind.ValueType, action: match_pb2.FaultAction.ValueType = SUBSTITUTE, **fields: Any) -> Any:
    return match_pb2.FaultRule(kind=kind, action=action, **fields)


def regicide(given: match_pb2.FaultPolicy | None = None, **options: object) -> Driver:
    spec = spec_of("regicide", options={"max_deals": 2, "target": 1_000, **options}, policy=given)
    return Driver(spec).start(*[bytes([seat]) * 32 for seat in range(int(str(options.get("players", 2))))])


def guillotine(given: match_pb2.FaultPolicy | None = None, *seats: str) -> Driver:
    return Driver(spec_of("guillotine", *seats, options={"deals_per_dealer": 1}, policy=given)).start()


def faults(driver: Driver) -> list[event_pb2.FaultRuled]:
    return of_kind(driver.events, "fault_ruled")


def after_each(driver: Driver, kind: str) -> list[event_pb2.MatchEvent]:
    """Returns the events right after each event of a kind."""
    return [
        following
        for event, following in zip(driver.events, driver.events[1:], strict=False)
        if event.WhichOneof("payload") == kind
    ]


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_answer_is_a_strike_and_a_substitute_is_drawn(wrong: str) -> None:
    agent, kind = WRONG[wrong]
    driver = regicide().play({0: at([0], agent)})
    (ruled,) = faults(driver)
    assert (ruled.seat, ruled.kind, ruled.decision_id) == (0, kind, 0)
    assert (ruled.action, ruled.strike_count, ruled.asked_again) == (SUBSTITUTE, 1, False)
    assert list(ruled.legal) == ["open", "decline"]
    (following,) = after_each(driver, "fault_ruled")
    assert following.action_applied.source == event_pb2.ACTION_SOURCE_SUBSTITUTE
    verify(driver.events)


@pytest.mark.parametrize("wrong", [wrong for wrong in WRONG if wrong != "silence"])
def test_a_ruling_keeps_the_answer_as_it_arrived(wrong: str) -> None:
    agent, _ = WRONG[wrong]
    driver = regicide()
    raw, _ = agent(driver.ask()) or (b"", 0)
    driver.answer(raw)
    (ruled,) = faults(driver)
    assert (ruled.raw_answer, ruled.raw_answer_size) == (raw[:256], len(raw))


@pytest.mark.parametrize(
    ("agent", "rule"),
    [(silent, "timeout: substitute"), (says("KC"), "illegal: substitute"), (says("?"), "malformed: substitute")],
)
def test_a_ruling_names_the_rule_that_fired(agent: Agent, rule: str) -> None:
    assert faults(regicide().play({0: at([0], agent)}))[0].rule == rule


def test_a_substitute_is_drawn_for_the_documented_label() -> None:
    driver = guillotine(policy(strikes=0)).play({1: at(range(100), silent)})
    seed = dealing.match_seed(MATCH_ID, SECRET, [b""] * 4)
    following = after_each(driver, "fault_ruled")
    assert len(following) > 20
    for ruled, event in zip(faults(driver), following, strict=True):
        label = f"substitute/1/{ruled.decision_id}"
        drawn = dealing.Draws(seed, label).below(len(ruled.legal))
        assert event.action_applied.action == ruled.legal[drawn]


def test_substitutes_do_not_depend_on_what_was_ruled_before() -> None:
    once, often = (guillotine().play({1: at(numbers, silent)}) for numbers in ([5], [4, 5]))
    drawn = [after_each(driver, "fault_ruled")[-1].action_applied for driver in (once, often)]
    assert drawn[0].decision_id == drawn[1].decision_id == 5


@pytest.mark.parametrize("strikes", [1, 2, 3, 5])
def test_so_many_strikes_replace_the_seat(strikes: int) -> None:
    driver = guillotine(policy(strikes=strikes, replacement_bot="stride")).play({2: at(range(100), silent)})
    assert [ruled.strike_count for ruled in faults(driver)] == list(range(1, strikes + 1))
    (replaced,) = of_kind(driver.events, "seat_replaced")
    assert (replaced.seat, replaced.bot) == (2, "stride")
    assert driver.match.result is not None
    assert driver.match.result.reason == match_pb2.END_REASON_COMPLETED
    verify(driver.events)


def test_the_last_strike_has_its_substitute_before_the_seat_is_replaced() -> None:
    driver = guillotine(policy(strikes=1)).play({2: at([0], silent)})
    kinds = [event.WhichOneof("payload") for event in driver.events]
    place = kinds.index("fault_ruled")
    assert kinds[place : place + 3] == ["fault_ruled", "action_applied", "seat_replaced"]


def test_a_replaced_seat_is_asked_nothing_any_more() -> None:
    driver = guillotine().play({2: at(range(100), silent)})
    kinds = [event.WhichOneof("payload") for event in driver.events]
    later = driver.events[kinds.index("seat_replaced") :]
    assert not [offered for offered in of_kind(later, "decision_offered") if offered.seat == 2]
    applied = [applied for applied in of_kind(later, "action_applied") if applied.seat == 2]
    assert {applied.source for applied in applied} <= {event_pb2.ACTION_SOURCE_BOT, event_pb2.ACTION_SOURCE_AUTO}


def test_no_strikes_ever_replace_a_seat_where_the_policy_says_so() -> None:
    driver = guillotine(policy(strikes=0)).play({2: silent})
    assert not of_kind(driver.events, "seat_replaced")
    assert driver.match.result is not None
    assert list(driver.match.result.official_places) == list(driver.match.result.places)


def test_a_rule_can_be_without_a_strike() -> None:
    driver = guillotine(policy(on(TIMEOUT, strike=False))).play({2: silent})
    assert {ruled.strike_count for ruled in faults(driver)} == {0}
    assert not of_kind(driver.events, "seat_replaced")


def test_strikes_of_all_kinds_add_up() -> None:
    wrongs = {1: silent, 2: says("QQ"), 3: says("contract:domino")}
    agent: Agent = lambda decision: wrongs.get(decision.number, house("first"))(decision)  # noqa: E731
    driver = guillotine().play({0: agent})
    assert [ruled.kind for ruled in faults(driver)] == [TIMEOUT, MALFORMED, ILLEGAL]
    assert of_kind(driver.events, "seat_replaced")


@pytest.mark.parametrize("bot", ["first", "stride", "greedy"])
def test_a_substitute_can_be_left_to_a_house_bot(bot: str) -> None:
    driver = guillotine(policy(on(TIMEOUT, bot=bot), strikes=0)).play({3: at([2, 4], silent)})
    applied = [
        a for a in of_kind(driver.events, "action_applied") if a.source == event_pb2.ACTION_SOURCE_SUBSTITUTE_BOT
    ]
    assert [a.decision_id for a in applied] == [2, 4]
    verify(driver.events)


def test_a_house_bot_that_substitutes_makes_its_own_choice() -> None:
    driver = guillotine(policy(on(TIMEOUT, bot="first"), strikes=0)).play({3: at([2], silent)})
    (ruled,) = faults(driver)
    (applied,) = [
        a for a in of_kind(driver.events, "action_applied") if a.source == event_pb2.ACTION_SOURCE_SUBSTITUTE_BOT
    ]
    assert applied.action == ruled.legal[0]


def test_replacing_at_once_lets_the_bot_take_the_decision() -> None:
    driver = guillotine(policy(on(TIMEOUT, REPLACE), replacement_bot="first")).play({3: at([2], silent)})
    (ruled,) = faults(driver)
    assert of_kind(driver.events, "seat_replaced")
    mine = [a for a in of_kind(driver.events, "action_applied") if a.seat == 3]
    assert (mine[2].decision_id, mine[2].source) == (2, event_pb2.ACTION_SOURCE_BOT)
    assert mine[2].action == ruled.legal[0]
    verify(driver.events)


def test_a_voided_deal_scores_nothing_and_counts_as_dealt() -> None:
    driver = guillotine(policy(on(ILLEGAL, VOID))).play({1: at([2], says("contract:domino"))})
    scored = of_kind(driver.events, "deal_scored")
    assert [deal.voided for deal in scored] == [True, False, False, False]
    assert list(scored[0].scores) == list(scored[0].totals) == [0, 0, 0, 0]
    assert driver.match.result is not None
    assert driver.match.result.deal_count == 3
    verify(driver.events)


def test_a_match_of_voided_deals_ends() -> None:
    driver = regicide(policy(on(TIMEOUT, VOID), strikes=0), max_deals=4).play({0: silent, 1: silent})
    assert [deal.voided for deal in of_kind(driver.events, "deal_scored")] == [True] * 4
    assert driver.match.result is not None
    assert list(driver.match.result.places) == [1, 1]


def test_voiding_on_the_last_strike_still_replaces_the_seat() -> None:
    driver = guillotine(policy(on(TIMEOUT, VOID), strikes=1)).play({1: at([2], silent)})
    kinds = [event.WhichOneof("payload") for event in driver.events]
    place = kinds.index("fault_ruled")
    assert kinds[place : place + 4] == ["fault_ruled", "deal_scored", "seat_replaced", "cards_dealt"]


def test_a_forfeit_ends_the_match_with_the_offender_last() -> None:
    driver = guillotine(policy(on(TIMEOUT, FORFEIT))).play({1: at([4], silent)})
    result = driver.match.result
    assert result is not None
    assert result.reason == match_pb2.END_REASON_FORFEITED
    assert result.official_places[1] == 4
    assert driver.match.state == match_pb2.MATCH_STATE_FINISHED
    verify(driver.events)


@pytest.mark.parametrize("count", [0, 1, 3, 10])
def test_a_wrong_answer_is_asked_again_so_many_times(count: int) -> None:
    driver = regicide(policy(on(MALFORMED, ask_again_count=count)))
    driver.ask()
    for number in range(count + 1):
        assert driver.match.actor == 0
        driver.answer("?", think_us=1_000 + number)
    assert [ruled.asked_again for ruled in faults(driver)] == [True] * count + [False]
    assert [ruled.strike_count for ruled in faults(driver)] == [0] * count + [1]
    assert len(driver.match.seats[0].outcomes) == 1


def test_a_right_answer_after_being_asked_again_is_no_strike() -> None:
    driver = regicide(policy(on(ILLEGAL, ask_again_count=1)))
    driver.ask()
    driver.answer("KC")
    driver.answer("open", think_us=2_000)
    assert driver.match.seats[0].strike_count == 0
    assert driver.match.seats[0].fault_count == 1
    verify(driver.events)


@pytest.mark.parametrize("action", [SUBSTITUTE, VOID, REPLACE])
def test_each_question_has_its_second_tries(action: match_pb2.FaultAction.ValueType) -> None:
    driver = regicide(policy(on(MALFORMED, action, ask_again_count=2)), max_deals=5)
    driver.ask()
    for number in range(3):
        driver.answer("?", think_us=1_000 + number)
    driver.ask()
    asked_again = [of_kind(driver.answer("?", think_us=1_000 + n), "fault_ruled")[0].asked_again for n in range(3)]
    assert asked_again == [True, True, False]


def test_what_befalls_another_seat_gives_no_more_second_tries() -> None:
    driver = regicide(policy(on(MALFORMED, ask_again_count=1)), players=3)
    driver.ask()
    driver.answer("?")
    driver.step(inputs.Accuse(1, match_pb2.FAULT_KIND_CRASH))
    driver.answer("?", think_us=2_000)
    assert [ruled.asked_again for ruled in faults(driver) if ruled.seat == 0] == [True, False]


@pytest.mark.parametrize("kind", inputs.ACCUSATIONS)
@pytest.mark.parametrize("seat", [0, 1])
def test_who_crashes_or_floods_is_replaced_whether_it_is_asked_or_not(
    kind: match_pb2.FaultKind.ValueType, seat: int
) -> None:
    driver = regicide()
    driver.ask()
    driver.step(inputs.Accuse(seat, kind))
    assert [(ruled.seat, ruled.kind) for ruled in faults(driver)] == [(seat, kind)]
    assert (driver.match.offered_us is None) == (seat == 0)
    driver.play()
    assert driver.match.result is not None
    assert driver.match.result.official_places[seat] == 2
    verify(driver.events)


def test_a_crash_while_a_bot_owes_a_substitute_waits_for_it() -> None:
    driver = regicide(policy(on(TIMEOUT, bot="first")))
    driver.ask()
    driver.tick()
    driver.step(inputs.Accuse(0, match_pb2.FAULT_KIND_CRASH))
    assert not of_kind(driver.events, "seat_replaced")
    driver.serve_bots()
    assert of_kind(driver.events, "seat_replaced")
    driver.play()
    verify(driver.events)


@pytest.mark.parametrize("wrong", WRONG)
def test_nobody_else_suffers(wrong: str) -> None:
    driver = Driver(spec_of("guillotine", options={"deals_per_dealer": 1})).start()
    driver.play({2: at(range(100), WRONG[wrong][0])})
    for seat in (0, 1, 3):
        state = driver.match.seats[seat]
        assert (state.bank_us, state.strike_count, state.fault_count, state.substitute_count) == (60_000_000, 0, 0, 0)
        assert state.played_by_agent
    assert {ruled.seat for ruled in faults(driver)} == {2}


def test_deals_that_a_substitute_or_bot_played_are_named() -> None:
    driver = guillotine(policy(strikes=2)).play({1: at([2, 18], silent)})
    numbers = [event_deal(driver, ruled) for ruled in faults(driver)]
    assert numbers[0] == 0
    assert driver.match.result is not None
    assert list(driver.match.result.substituted_deals) == [0, *range(numbers[1], 4)]


def event_deal(driver: Driver, ruled: event_pb2.FaultRuled) -> int:
    dealt = 0
    for event in driver.events:
        if event.cards_dealt.pack:
            dealt = event.cards_dealt.deal
        if event.HasField("fault_ruled") and event.fault_ruled == ruled:
            return dealt
    raise AssertionError


def test_what_was_counted_stands_in_the_result() -> None:
    driver = guillotine().play({1: at([2, 5], silent), 3: at([4], says("?"))})
    assert driver.match.result is not None
    assert list(driver.match.result.fault_counts) == [0, 2, 0, 1]
    assert list(driver.match.result.substitute_counts) == [0, 2, 0, 1]


def test_a_house_bot_in_its_own_seat_is_no_substitute() -> None:
    driver = guillotine(None, "anna", "bot:first", "bot:stride", "bot:greedy").play()
    assert driver.match.result is not None
    assert list(driver.match.result.substitute_counts) == [0, 0, 0, 0]
    assert list(driver.match.result.official_places) == list(driver.match.result.places)


@pytest.mark.parametrize(
    ("places", "offending", "official"),
    [
        ((1, 2, 3, 4), set(), [1, 2, 3, 4]),
        ((1, 2, 3, 4), {0}, [4, 1, 2, 3]),
        ((1, 2, 3, 4), {3}, [1, 2, 3, 4]),
        ((1, 2, 3, 4), {0, 2}, [3, 1, 3, 2]),
        ((1, 1, 3, 4), {2}, [1, 1, 4, 3]),
        ((1, 1, 1, 1), {1}, [1, 4, 1, 1]),
        ((1, 2, 2, 4), {0}, [4, 1, 1, 3]),
        ((1, 2, 3, 4), {0, 1, 2, 3}, [1, 1, 1, 1]),
        ((1, 2), {0}, [2, 1]),
        ((1, 1), {1}, [1, 2]),
    ],
)
def test_offenders_are_last_and_the_others_keep_their_order(
    places: tuple[int, ...], offending: set[int], official: Sequence[int]
) -> None:
    assert official_places(places, offending) == official


def test_several_offenders_share_the_last_place() -> None:
    driver = guillotine().play({0: at(range(100), silent), 2: at(range(100), says("?"))})
    assert driver.match.result is not None
    assert [driver.match.result.official_places[seat] for seat in (0, 2)] == [3, 3]


def test_in_pairs_the_offenders_side_is_last() -> None:
    driver = regicide(None, players=4, pairs=True).play({3: at(range(100), silent)})
    assert driver.match.result is not None
    assert list(driver.match.result.official_places) == [1, 2]
    assert list(driver.match.result.sides) == [0, 1, 0, 1]
