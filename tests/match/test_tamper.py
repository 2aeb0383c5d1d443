"""Verification refuses a log that was changed, and names the event."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from match.driver import SECRET, Driver, Event, of_kind, spec_of
from match.logs import LOGS, log
from match.mutations import Change, changes
from referee_games import dealing
from referee_server.match import inputs
from referee_server.match.verify import LogError, verify

# Fields that can be changed into another honest log, so that only the digest of the log speaks against it. What a
# verifier decides again is what follows from the inputs; the inputs themselves it can only hold within bounds.
FREE = {
    r"match_created: .*create_time.*|match_resumed: .*resume_time.*": "wall time, for people",
    r"match_created: match_created.server_version": "for people",
    r"match_created: match_created.spec.label|match_ended: match_ended.note": "the host's words",
    r"match_created: match_created.match_id": "the id of the log itself; the cards hang on deal_id",
    r"match_created: match_created.unsealed": "how the host came by his secret",
    r"match_created: match_created.seats\[.\].(name|agent_id)": "who sits there",
    r"match_created: match_created.spec.seats\[.\].agent": "who was asked for",
    r"match_created: match_created.spec.seats\[.\].bot_seed": "of a seat of another kind, where it means nothing",
    r"match_created: match_created.nonces_taken": "that nonces were taken, where no seat sent one",
    r"match_created: match_created.spec.(clock|policy|options|auto_play|first_dealer).*": (
        "what the host asked for, where nothing in the match turned on it"
    ),
    r"seat_filled: seat_filled.seat.(name|agent_id)": "who took the seat",
    r"decision_offered: decision_offered.wait_us": "how long a question waited",
    r"decision_offered: decision_offered.transit_us": "credit for the way, where nothing was answered",
    r"(action_applied|fault_ruled): .*(think|lateness)_us": "when an answer came, and how late the referee was",
    r"fault_ruled: fault_ruled.raw_answer(_size)?": "another wrong answer of the same kind",
    r"answer_ignored: answer_ignored.(decision_id|raw_answer|status)": "what an answer that changed nothing said",
    r"match_ended: match_ended.ignored_counts\[.\]": "how many such answers there were beyond those on record",
    r"(seat_.*|match_resumed|answer_ignored|decision_offered|action_applied): match_time_us": (
        "when an input came, between what was before and what follows"
    ),
    r"seat_(disconnected|reconnected): .*(seat|left)": "whose stream it was, where nothing hung on it",
    r"seat_offered: seat_offered.seat": "to whom it was offered first, where nobody got ready",
}
# Fields that are an input or a rule, so that a change shows where something follows from them.
LATER = [
    r"match_created: match_created.(commitment|deal_id|nonces_taken)",
    r"match_created: match_created.spec.(auto_play|clock|first_dealer|options|policy).*",
    r"[a-z_]+: match_time_us",
    r"decision_offered: decision_offered.transit_us",
    r"(action_applied|fault_ruled): .*(think|lateness)_us",
    r"answer_ignored: answer_ignored.seat",
    r"seat_ready: seat_ready.nonce",
    r"seat_offered: seat_offered.seat",
    r"seat_(disconnected|reconnected): .*(seat|left)",
]


def copied(events: Sequence[Event]) -> list[Event]:
    copies = []
    for event in events:
        copy = Event()
        copy.CopyFrom(event)
        copies.append(copy)
    return copies


def renumbered(events: Sequence[Event]) -> list[Event]:
    """Numbers a log anew, as who tampers with it would."""
    copies = copied(events)
    for number, event in enumerate(copies, 1):
        event.sequence = number
    return copies


def mutations(events: Sequence[Event], *, each: int) -> Iterator[tuple[int, str, Change]]:
    """Yields the changes to the first events of each kind: which event, what of it, and how."""
    seen = Counter[str]()
    for place, event in enumerate(events):
        kind = str(event.WhichOneof("payload"))
        seen[kind] += 1
        if seen[kind] <= each:
            for path, change in changes(event):
                yield place, f"{kind}: {path}", change


@pytest.mark.parametrize("name", LOGS)
def test_any_change_of_any_field_is_refused_at_its_event(name: str) -> None:
    events = log(name).events
    for place, what, change in mutations(events, each=1_000 if name == "regicide" else 2):
        mutant = Event()
        mutant.CopyFrom(events[place])
        change(mutant)
        if mutant == events[place]:
            continue
        try:
            verify([*events[:place], mutant, *events[place + 1 :]])
        except LogError as error:
            at = error.sequence
        else:
            assert any(re.fullmatch(pattern, what) for pattern in FREE), f"{what} of event {place + 1} can be changed"
            continue
        later = any(re.fullmatch(pattern, what) for pattern in LATER)
        assert at == place + 1 or (later and at > place + 1), f"{what} of event {place + 1}: event {at} was blamed"


def test_no_exemption_is_idle() -> None:
    used: set[str] = set()
    for name in LOGS:
        for _, what, _ in mutations(log(name).events, each=2):
            used.update(pattern for pattern in [*FREE, *LATER] if re.fullmatch(pattern, what))
    assert used == {*FREE, *LATER}


# Inputs of which nothing follows at once can also be missing, come twice, or come in another order.
LOOSE = {"answer_ignored", "seat_disconnected", "seat_reconnected", "match_resumed", "seat_offered", "seat_ready"}


def kinds(events: Sequence[Event]) -> list[str]:
    return [str(event.WhichOneof("payload")) for event in events]


@pytest.mark.parametrize("name", LOGS)
def test_an_event_that_is_missing_leaves_a_gap(name: str) -> None:
    events = log(name).events
    for place in range(len(events) - 1):
        with pytest.raises(LogError) as caught:
            verify([*events[:place], *events[place + 1 :]])
        assert caught.value.sequence == place + 1


@pytest.mark.parametrize("name", LOGS)
def test_an_event_that_is_missing_is_missed_although_the_rest_is_numbered_anew(name: str) -> None:
    events = log(name).events
    for place in range(0, len(events) - 2, 1 + len(events) // 150):
        kind, following = kinds(events)[place : place + 2]
        # What may come at any time fits there too, and a question that was lost in a restart was never answered.
        if kind in LOOSE or (kind == "decision_offered" and following == "match_resumed"):
            continue
        with pytest.raises(LogError) as caught:
            verify(renumbered([*events[:place], *events[place + 1 :]]))
        any_time = following in LOOSE or events[place + 1].fault_ruled.kind in inputs.ACCUSATIONS
        assert caught.value.sequence == place + 1 or (any_time and caught.value.sequence > place + 1)


@pytest.mark.parametrize("name", LOGS)
def test_an_event_that_comes_twice_is_one_too_many(name: str) -> None:
    events = log(name).events
    for place in range(0, len(events), 1 + len(events) // 150):
        twice = [*events[: place + 1], *events[place:]]
        with pytest.raises(LogError) as caught:
            verify(twice)
        assert caught.value.sequence == place + 2
        if kinds(events)[place] in LOOSE - {"seat_offered", "seat_ready"}:
            continue
        with pytest.raises(LogError) as caught:
            verify(renumbered(twice))
        assert caught.value.sequence == place + 2


@pytest.mark.parametrize("name", LOGS)
def test_two_events_that_change_places_are_found(name: str) -> None:
    events = log(name).events
    for place in range(0, len(events) - 1, 1 + len(events) // 150):
        if kinds(events)[place] in LOOSE or kinds(events)[place + 1] in LOOSE:
            continue
        swapped = [*events[:place], events[place + 1], events[place], *events[place + 2 :]]
        with pytest.raises(LogError) as caught:
            verify(swapped)
        assert caught.value.sequence == place + 1
        with pytest.raises(LogError) as caught:
            verify(renumbered(swapped))
        assert caught.value.sequence in (place + 1, place + 2)


def other_log() -> list[Event]:
    """Returns the same match with other cards."""
    spec = spec_of("regicide", options={"max_deals": 1})
    return Driver(spec, secret=b"\7" * 32).start().play().events


def test_events_of_another_match_do_not_fit() -> None:
    mine = Driver(spec_of("regicide", options={"max_deals": 1})).start().play().events
    theirs = other_log()
    for place in range(1, min(len(mine), len(theirs))):
        if mine[place] == theirs[place]:
            continue
        with pytest.raises(LogError) as caught:
            verify([*mine[:place], theirs[place], *mine[place + 1 :]])
        assert caught.value.sequence >= place + 1
        with pytest.raises(LogError):
            verify([*mine[:place], *theirs[place:]])


def test_a_log_goes_on_no_longer_than_its_match() -> None:
    events = log("regicide").events
    for extra in of_events(log("resumed").events, "match_resumed", "seat_reconnected", "match_ended"):
        with pytest.raises(LogError) as caught:
            verify(renumbered([*events, extra]))
        assert caught.value.sequence == len(events) + 1


def of_events(events: Sequence[Event], *wanted: str) -> list[Event]:
    return [event for event in events if event.WhichOneof("payload") in wanted]


@pytest.mark.parametrize("secret", [b"\1" * 32, SECRET[:31], b""])
def test_another_secret_is_refused(secret: bytes) -> None:
    events = copied(log("regicide").events)
    events[-1].secret_revealed.secret = secret
    with pytest.raises(LogError) as caught:
        verify(events)
    assert caught.value.sequence == len(events)


def test_a_host_who_commits_anew_is_found_out_by_the_cards() -> None:
    events = copied(log("regicide").events)
    events[-1].secret_revealed.secret = b"\1" * 32
    events[0].match_created.commitment = dealing.commitment(events[0].match_created.deal_id, b"\1" * 32)
    with pytest.raises(LogError) as caught:
        verify(events)
    assert events[caught.value.sequence - 1].HasField("cards_dealt")


def test_a_card_dealt_otherwise_is_found() -> None:
    events = copied(log("guillotine").events)
    place = kinds(events).index("cards_dealt")
    dealt = events[place].cards_dealt
    dealt.hands[0].cards[0], dealt.hands[1].cards[0] = dealt.hands[1].cards[0], dealt.hands[0].cards[0]
    with pytest.raises(LogError, match="hands of cards_dealt") as caught:
        verify(events)
    assert caught.value.sequence == place + 1


def test_a_stacked_pack_passes_only_while_the_log_is_sealed() -> None:
    """Whoever deals falsely is found out as soon as he has to reveal the secret, or never reveals it."""
    honest = Driver(spec_of("regicide", options={"max_deals": 1})).start().events
    stacked = copied(other_log()[: len(honest)])
    stacked[0] = honest[0]
    assert verify(stacked).sealed
    pack = next(event.cards_dealt for event in stacked if event.HasField("cards_dealt"))
    pack.pack = bytes([pack.pack[1], *pack.pack[1:]])
    with pytest.raises(LogError, match="every card once"):
        verify(stacked)


@pytest.mark.parametrize("name", ["guillotine", "voided", "pairs"])
def test_a_sealed_log_is_checked_in_everything_but_its_draws(name: str) -> None:
    events = log(name).events[:-1]
    for place, what, change in mutations(events, each=1):
        if any(re.fullmatch(pattern, what) for pattern in [*FREE, *LATER]):
            continue
        mutant = Event()
        mutant.CopyFrom(events[place])
        change(mutant)
        with pytest.raises(LogError) as caught:
            verify([*events[:place], mutant, *events[place + 1 :]])
        # The first dealer is a draw too, and shows in the first deal.
        late = what == "match_started: match_started.first_dealer"
        assert caught.value.sequence in range(place + 1, place + 2 + late), what


def test_numbers_of_events_are_checked_before_anything_else() -> None:
    events = copied(log("regicide").events)
    events[20].sequence = 20
    with pytest.raises(LogError, match="says that it is event 20") as caught:
        verify(events)
    assert caught.value.sequence == 21


def test_a_claim_of_a_huge_answer_costs_no_memory() -> None:
    events = copied(log("regicide").events)
    (ruled, *_) = [event for event in events if event.fault_ruled.raw_answer]
    ruled.fault_ruled.raw_answer_size = 2**31 - 1
    with pytest.raises(LogError, match="no answer has as many bytes"):
        verify(events)


def test_the_secret_of_a_log_is_out_of_its_own_events() -> None:
    assert of_kind(log("regicide").events, "secret_revealed")[0].secret == SECRET
