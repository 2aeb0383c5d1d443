"""What an audience sees, and above all what it does not see."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from google.protobuf.message import Message

from match.driver import Driver, Event, at, house, of_kind, says, silent, spec_of
from match.logs import LOGS, log
from match.worlds import Pair, cards_seen
from referee.v1 import event_pb2, match_pb2
from referee_games import registry
from referee_games.contract import PUBLIC
from referee_server.match import inputs
from referee_server.match.views import ALL, ROUND_US, Projector, project

CONFIGS: dict[str, tuple[str, dict[str, object]]] = {
    "guillotine": ("guillotine", {"deals_per_dealer": 1}),
    "guillotine, free passes": ("guillotine", {"deals_per_dealer": 1, "domino_pass": "free"}),
    "regicide for 2": ("regicide", {"max_deals": 1}),
    "regicide for 3": ("regicide", {"players": 3, "max_deals": 1}),
    "regicide for 4": ("regicide", {"players": 4, "max_deals": 1, "joker": "any_time"}),
    "regicide for 2, exchange": ("regicide", {"stock": "exchange", "max_deals": 2}),
    "regicide for 4, exchange": ("regicide", {"players": 4, "pairs": True, "stock": "exchange", "max_deals": 2}),
}
POLICY = match_pb2.FaultPolicy(
    rules=[
        match_pb2.FaultRule(kind=match_pb2.FAULT_KIND_MALFORMED, ask_again_count=2),
        match_pb2.FaultRule(kind=match_pb2.FAULT_KIND_ILLEGAL, ask_again_count=1),
    ],
    strikes=4,
)
SEEDS = 8


def seats_of(config: str) -> int:
    name, options = CONFIGS[config]
    game = registry.find(name)
    return game.seats(game.configure(options))


def viewers(config: str) -> range:
    return range(PUBLIC, seats_of(config))


@pytest.mark.parametrize(("config", "viewer"), [(config, viewer) for config in CONFIGS for viewer in viewers(config)])
def test_nothing_a_viewer_gets_depends_on_what_it_cannot_know(config: str, viewer: int) -> None:
    name, options = CONFIGS[config]
    compared = 0
    for seed in range(SEEDS):
        chance = random.Random(f"{config}/{viewer}/{seed}")
        specs = [spec_of(name, options=options, policy=POLICY) for _ in range(2)]
        if seed % 2:
            # One seat is a house bot, of a seed that nobody knows.
            bot = (viewer + 1) % seats_of(config)
            for number, spec in enumerate(specs):
                spec.seats[bot].CopyFrom(match_pb2.SeatSpec(bot="random", bot_seed=number + 1))
        if seed % 4 >= 2:
            for spec in specs:
                spec.seats[max(viewer, 0)].open.SetInParent()
        pair = Pair(specs, viewer, chance)
        pair.play(200)
        compared += pair.compared
    # Of two players' cards everything is known to both as soon as the stock is dealt out.
    assert compared > (8 if config == "regicide for 2" else 15) * SEEDS


def strings(message: Message) -> Iterator[str]:
    """Yields every text in a message."""
    for field, value in message.ListFields():
        for one in value if field.is_repeated else [value]:
            if isinstance(one, Message):
                yield from strings(one)
            elif isinstance(one, str):
                yield one


@pytest.mark.parametrize("config", CONFIGS)
def test_no_card_is_told_before_the_viewer_may_know_it(config: str) -> None:
    name, options = CONFIGS[config]
    spec = spec_of(name, options=options, policy=POLICY)
    agents = {0: at([3, 7], silent, house("random")), 1: at([2, 5], says("KS"), house("random", seed=2))}
    events = Driver(spec).start().play(agents).events
    game = registry.find(name)
    cards = {game.texts[card] for card in game.pack}
    for viewer in viewers(config):
        known: set[str] = set()
        for event in events:
            if event.cards_dealt.pack:
                known = set()
            known.update(cards_seen(event, viewer))
            view = project(event, viewer, game)
            if view is None or (view.HasField("fault_ruled") and view.fault_ruled.seat == viewer):
                continue
            told = {card for text in strings(view) for card in cards if card in text.split(":")}
            assert told <= known, view


SECRETS = {
    "bot_seed": 0x5EED_CAFE_5EED,
    "wait_us": 0x0123_4567,
    "think_us": 0x07E5_7E57,
    "transit_us": 0x0B_C0DE,
    "lateness_us": 0x0123_4321,
}


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def marked() -> Driver:
    """Plays a match in which everything that is one seat's secret can be recognised in any bytes."""
    options = {"players": 3, "max_deals": 1}
    spec = spec_of("regicide", "anna", "bert", "bot:random", options=options, policy=POLICY)
    spec.seats[2].bot_seed = SECRETS["bot_seed"]
    spec.clock.bank_ms = 86_400_000
    driver = Driver(spec).start(b"nonce-of-anna-nonce-of-anna-1234", b"nonce-of-bert-nonce-of-bert-1234", b"")
    driver.now += SECRETS["wait_us"]
    driver.ask(wait_us=SECRETS["wait_us"], transit_us=SECRETS["transit_us"])
    driver.step(inputs.Stray(0, 9, b"stray-of-anna", event_pb2.ANSWER_STATUS_NOT_OPEN))
    elapsed_us = SECRETS["think_us"] + SECRETS["transit_us"] + SECRETS["lateness_us"]
    for raw in ("wrong-of-anna", "decline"):
        driver.answer(raw, think_us=elapsed_us, lateness_us=SECRETS["lateness_us"])
    return driver.play()


MARKS = [b"nonce-of-anna", b"stray-of-anna", b"wrong-of-anna", *(varint(number) for number in SECRETS.values())]


def told(driver: Driver, audience: int) -> bytes:
    """Returns all bytes that an audience gets before the secret is revealed."""
    events = Projector(audience, driver.match.game).see(driver.events[:-1])
    return b"".join(event.SerializeToString() for event in events)


@pytest.mark.parametrize("mark", MARKS)
def test_what_is_a_seats_own_is_in_no_byte_that_others_get(mark: bytes) -> None:
    driver = marked()
    assert mark in told(driver, ALL)
    assert mark not in told(driver, 1)
    assert mark not in told(driver, PUBLIC)


@pytest.mark.parametrize(
    "mark", [mark for mark in MARKS if mark not in (b"nonce-of-anna", varint(SECRETS["bot_seed"]))]
)
def test_what_is_a_seats_own_is_told_to_the_seat(mark: bytes) -> None:
    assert mark in told(marked(), 0)


@pytest.mark.parametrize("name", LOGS)
def test_nobody_but_all_gets_the_hidden_fields(name: str) -> None:
    game = log(name).match.game
    for audience in range(PUBLIC, len(log(name).match.seats)):
        for view in Projector(audience, game).see(log(name).events):
            created, dealt = view.match_created, view.cards_dealt
            assert not dealt.pack
            assert not dealt.stock
            assert not any(seat.bot_seed for seat in created.seats)
            assert not any(seat.bot_seed for seat in created.spec.seats)
            assert not created.spec.given_secret
            assert not view.match_ended.ignored_counts
            assert all(hand.seat == audience or not hand.cards for hand in dealt.hands)


@pytest.mark.parametrize("name", LOGS)
def test_every_view_is_numbered_by_itself_without_gaps(name: str) -> None:
    game = log(name).match.game
    for audience in (ALL, PUBLIC, 0, 1):
        views = Projector(audience, game).see(log(name).events)
        assert [view.sequence for view in views] == list(range(1, len(views) + 1))


@pytest.mark.parametrize("name", LOGS)
def test_a_view_is_the_same_however_its_events_come(name: str) -> None:
    game, events = log(name).match.game, log(name).events
    one, piecewise = Projector(0, game), Projector(0, game)
    assert one.see(events) == [view for event in events for view in piecewise.see([event])]
    assert one.through == piecewise.through


@pytest.mark.parametrize("name", LOGS)
def test_a_view_leaves_the_log_as_it_is(name: str) -> None:
    before = [event.SerializeToString() for event in log(name).events]
    for audience in (ALL, PUBLIC, 0, 1):
        Projector(audience, log(name).match.game).see(log(name).events)
    assert [event.SerializeToString() for event in log(name).events] == before


def test_all_sees_the_events_themselves() -> None:
    events = log("guillotine").events
    assert Projector(ALL, log("guillotine").match.game).see(events) == events


@pytest.mark.parametrize("name", LOGS)
def test_times_of_others_are_rounded_down(name: str) -> None:
    game = log(name).match.game
    for view in Projector(PUBLIC, game).see(log(name).events):
        assert view.match_time_us % ROUND_US == 0
        for payload in (view.decision_offered, view.action_applied, view.fault_ruled):
            assert payload.bank_us % ROUND_US == 0


def test_a_seat_sees_its_own_times_exactly() -> None:
    events = log("guillotine").events
    mine = [event for event in events if event.action_applied.source and event.action_applied.seat == 3]
    seen = [project(event, 3, log("guillotine").match.game) for event in mine]
    assert seen == mine
    assert any(event.action_applied.bank_us % ROUND_US for event in mine)


def test_a_discard_is_its_owners_secret() -> None:
    driver = log("regicide")
    (discard,) = [a for a in of_kind(driver.events, "action_applied") if a.action.startswith("discard:")]
    for audience in (PUBLIC, 0, 1):
        views: list[Event] = Projector(audience, driver.match.game).see(driver.events)
        seen = [a.action for a in of_kind(views, "action_applied") if a.action.startswith("discard")]
        assert seen == [discard.action if audience == discard.seat else "discard"]


def test_a_ruling_is_told_to_everybody_without_the_answer() -> None:
    driver = log("guillotine")
    ruled = of_kind(driver.events, "fault_ruled")
    seen = of_kind(Projector(PUBLIC, driver.match.game).see(driver.events), "fault_ruled")
    assert [(one.seat, one.kind, one.action, one.strike_count) for one in seen] == [
        (one.seat, one.kind, one.action, one.strike_count) for one in ruled if not one.asked_again
    ]
    assert not any(one.raw_answer or one.raw_answer_size or one.legal or one.think_us for one in seen)


def test_an_attempt_that_was_asked_again_is_for_its_seat_only() -> None:
    driver = log("guillotine")
    attempts = [one for one in of_kind(driver.events, "fault_ruled") if one.asked_again]
    assert attempts
    for audience in (PUBLIC, 0, 1, 2, 3):
        views: list[Event] = Projector(audience, driver.match.game).see(driver.events)
        seen = [one.seat for one in of_kind(views, "fault_ruled") if one.asked_again]
        assert seen == [one.seat for one in attempts if one.seat == audience]


def test_an_event_of_a_kind_unknown_is_for_all_only() -> None:
    event = Event(sequence=5, ignorable=True)
    assert project(event, ALL, registry.find("regicide")) is event
    assert project(event, PUBLIC, registry.find("regicide")) is None
