"""Canaries: no card that a seat or a spectator may not see is anywhere in what they are sent."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from google.protobuf.message import Message
from grpc import StatusCode

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import match_service_pb2 as pb
from referee.v1 import registry_service_pb2 as registry_pb
from referee_games import registry
from rpc.agent import Agent, bearer, item, refused
from rpc.kit import HOST, NOBODY, PUBLIC, Client, duel, play_out, seat_view, spec_of, started
from rpc.server import Referee, token_of

Make = Callable[..., Agent]
NAMES = ("anna", "bert", "cleo", "dora")
GAMES: dict[str, dict[str, object]] = {"guillotine": {}, "regicide": {"players": 4}}


def cards_in(messages: Iterable[Message], game: str) -> set[str]:
    """Returns the cards that are named anywhere in what was sent."""
    known = {card for card in registry.find(game).texts if re.fullmatch(r"[0-9TJQKAX][CDHS12]", card)}
    text = "\n".join(str(message) for message in messages)
    return {card for card in re.findall(r"[0-9TJQKAX][CDHS12]", re.sub(r"\w{12,}", "", text)) if card in known}


@pytest.fixture(params=GAMES)
def dealt(request: pytest.FixtureRequest, client: Client, agent: Make, referee: Referee) -> Any:
    """A match of four whose cards have just been dealt: its game, its id, the agents, the hands."""
    game = request.param
    spec = spec_of(game, *NAMES, options=GAMES[game])
    match_id, agents = started(client, agent, NAMES, spec=spec, hello={"wants_events": True})
    agents[0].wait("decision")
    hands: list[set[str]] = [set() for _ in agents]
    for event in referee.of_log(match_id, "cards_dealt"):
        for hand in event.hands:
            hands[hand.seat].update(hand.cards)
    assert all(len(hand) >= 8 for hand in hands)
    return game, match_id, agents, hands


def test_a_seat_is_sent_its_own_cards_and_no_others(dealt: Any) -> None:
    game, _, agents, hands = dealt
    for one, hand in zip(agents, hands, strict=True):
        while not {"cards_dealt"} & {
            event.WhichOneof("payload") for part in one.all("events") for event in part.events
        }:
            one.wait("events")
        assert cards_in(one.got, game) == hand


def test_who_watches_a_seat_sees_its_cards_and_no_others(dealt: Any, client: Client) -> None:
    game, match_id, _, hands = dealt
    for seat, hand in enumerate(hands):
        watching = client.watch(match_id, seat_view(seat), who=bearer(token_of(NAMES[seat])))
        assert cards_in([next(watching), next(watching)], game) == hand
        watching.cancel()


@pytest.mark.parametrize("who", [NOBODY, HOST, bearer(token_of("anna"))], ids=["nobody", "host", "agent"])
def test_the_public_view_holds_no_card_for_anybody(dealt: Any, client: Client, who: Any) -> None:
    game, match_id, _, _ = dealt
    watching = client.watch(match_id, PUBLIC, who=who)
    assert cards_in([next(watching), next(watching)], game) == set()
    watching.cancel()


def test_what_hosts_list_of_a_running_match_holds_no_card(dealt: Any, client: Client) -> None:
    game, match_id, _, _ = dealt
    listed = client.matches.ListMatches(pb.ListMatchesRequest(), metadata=HOST, timeout=9)
    assert cards_in([client.get(match_id), listed], game) == set()


def test_refusals_hold_no_card(dealt: Any, client: Client) -> None:
    game, match_id, agents, _ = dealt
    asked = agents[0].all("decision")[0]
    agents[0].answer(asked, "nonsense")
    verdict = agents[0].wait("verdict")
    assert cards_in([verdict], game) == set()
    for who in (NOBODY, bearer(token_of("anna")), HOST):
        for view in (seat_view(1), seat_view(9)):
            if who == HOST and view == seat_view(1):
                continue
            found = refused(lambda view=view, who=who: client.watch(match_id, view, who=who))  # type: ignore[misc]
            assert not re.search(r"\b[0-9TJQKAX][CDHS12]\b", str(found).replace(match_id, ""))


def test_others_do_not_see_what_a_seat_answered_wrongly(client: Client, agent: Make, referee: Referee) -> None:
    match_id, (anna, bert) = started(client, agent, hello={"wants_events": True})
    asked = bert.wait("decision")
    bert.answer(asked, "canary 4711")
    bert.wait("verdict")
    anna.wait("decision")
    public = client.watch(match_id, PUBLIC)
    told = str(anna.got) + str([next(public), next(public)])
    assert "canary" not in told
    assert "fault_ruled" in told
    assert "canary" in str(bert.got)
    assert "canary" in str(referee.log(match_id)).replace("\\", "")
    public.cancel()


def test_others_do_not_see_a_nonce_before_the_end(client: Client, agent: Make, referee: Referee) -> None:
    anna, bert = agent("anna"), agent("bert")
    anna.hello(wants_events=True)
    bert.hello(wants_events=True)
    match_id = client.create(duel())
    anna.ready(anna.wait("match_offered").match_id, b"canary-of-anna!!" * 2)
    bert.ready(bert.wait("match_offered").match_id)
    bert.wait("decision")
    assert b"canary" not in b"".join(bert.messages)
    watching = client.watch(match_id)
    assert b"canary" not in b"".join(next(watching).SerializeToString() for _ in range(2))
    watching.cancel()
    assert [one.seat for one in referee.of_log(match_id, "seat_ready") if one.nonce.startswith(b"canary")] == [0]


def test_others_do_not_see_the_seed_of_a_house_bot_before_the_end(client: Client, agent: Make) -> None:
    anna = agent("anna")
    anna.hello(wants_events=True)
    spec = duel("anna", "bot:random")
    spec.seats[1].bot_seed = 4_711_000_815
    match_id = client.create(spec)
    anna.ready(anna.wait("match_offered").match_id)
    anna.wait("decision")
    watching = client.watch(match_id)
    assert "4711000815" not in str(anna.got) + str([next(watching), next(watching)])
    watching.cancel()


def test_the_secret_is_told_to_nobody_before_the_end(client: Client, agent: Make, referee: Referee) -> None:
    match_id, agents = started(client, agent, given_secret=b"canary of the match, 32 bytes ok"[:32])
    agents[1].wait("decision")
    sent = b"".join(message for one in agents for message in one.messages)
    for view in (PUBLIC, seat_view(0), pb.View(all=pb.AllView())):
        watching = client.watch(match_id, view)
        sent += b"".join(next(watching).SerializeToString() for _ in range(2))
        watching.cancel()
    sent += client.get(match_id).SerializeToString()
    assert b"canary" not in sent
    play_out(agents, match_id, referee)
    assert b"canary" in b"".join(response.SerializeToString() for response in client.watch(match_id))


def test_a_host_call_by_an_agent_tells_it_nothing(client: Client, agent: Make) -> None:
    match_id, _ = started(client, agent)
    for number in (match_id, "abcdefghijklmnopqrstuvwx23"):
        found = refused(lambda number=number: client.get(number, who=bearer(token_of("anna"))))  # type: ignore[misc]
        assert found == (
            StatusCode.PERMISSION_DENIED,
            "HOST_ONLY",
            {},
            "this needs the host's credential",
            [],
        )


def test_ids_tell_nothing_of_what_else_goes_on(client: Client, agent: Make) -> None:
    matches = [client.create(duel("open", "open")) for _ in range(8)]
    agents = [agent(f"agent {number}").hello().agent_id for number in range(8)]
    for ids in (matches, agents):
        assert len({one[:3] for one in ids}) >= 6
        assert sorted(ids) != ids


def test_decisions_are_counted_by_match_and_seat(client: Client, agent: Make) -> None:
    for names in (NAMES[:2], NAMES[2:]):
        _, (_, second) = started(client, agent, names)
        assert second.wait("decision").decision_id == 0


def test_credentials_are_told_to_nobody(client: Client, agent: Make, referee: Referee) -> None:
    from referee_server.tables.credentials import hash_credential

    anna = agent("anna")
    anna.hello()
    anna.send(item(answer=agent_pb.Answer(match_id="x")))
    anna.wait("verdict")
    rows = client.registry.ListAgents(registry_pb.ListAgentsRequest(), metadata=HOST, timeout=9)
    told = b"".join(anna.messages) + rows.SerializeToString() + repr(referee.do(referee.journal.agents)).encode()
    assert token_of("anna").encode() not in told
    assert hash_credential(token_of("anna")) not in told
    assert hash_credential(token_of("anna")).hex().encode() not in told
