"""What entrants add to the cards of a tournament: asked once, before it starts, after the commitment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from director.kit import Club, cup, settle
from referee.v1 import agent_service_pb2 as pb
from referee_games import dealing
from referee_server.director.director import Director
from referee_server.match.errors import RefusedError
from referee_server.match.verify import parse, verify
from tables.kit import S

NONCE = b"\7" * 32
REMOTE = '[[entrant]]\nname = "far"\nremote = "anna"'


@pytest.fixture
async def club() -> AsyncIterator[Club]:
    made = Club()
    yield made
    await made.close()


async def begun(club: Club, mode: str = "once") -> Director:
    tournament_id = await club.tournaments.create(cup("first", duplicate=f'mode = "{mode}"', extra=REMOTE))
    director = club.tournaments.start(tournament_id)
    await settle()
    return director


def enter(club: Club, director: Director, nonce: bytes = NONCE) -> None:
    club.hall.entering.take("id-anna", pb.Enter(tournament_id=director.book.tournament_id, nonce=nonce))


async def test_an_entrant_is_told_the_commitment_and_asked_for_its_share(club: Club) -> None:
    director = await begun(club)
    anna = await club.room.connect("anna")
    await settle()
    (offered,) = anna.of("tournament_offered")
    assert offered.commitment == director.book.created.commitment
    assert (offered.name, offered.game) == ("cup", "high_card")
    assert director.book.state == "WAITING"


async def test_its_share_is_in_the_cards_of_every_set(club: Club) -> None:
    director = await begun(club)
    anna = await club.room.connect("anna")
    await settle()
    enter(club, director)
    await settle()
    match_id = next(iter(club.hall.matches.running))
    anna.ready(match_id)
    await club.room.quiet()
    await club.room.play_out(match_id)
    await asyncio.wait_for(club.tournaments.wait(director.book.tournament_id), 10)
    log = parse(club.journal.read(match_id))
    assert list(log[0].match_created.tournament.nonces) == [b"", NONCE]
    assert not verify(log).sealed
    seed = dealing.match_seed(log[0].match_created.deal_id, log[-1].secret_revealed.secret, [b"", NONCE])
    packs = [event.cards_dealt.pack for event in log if event.WhichOneof("payload") == "cards_dealt"]
    assert packs[0] == bytes(dealing.deal_pack(seed, 0, verify(log).match.game.pack))


async def test_who_says_nothing_is_not_waited_for_longer_than_ten_seconds(club: Club) -> None:
    director = await begun(club)
    await club.room.connect("anna")
    await settle()
    club.room.clock.advance(10 * S - 1)
    await settle()
    assert director.book.started is None
    club.room.clock.advance(1)
    await settle()
    assert director.book.started is not None
    assert list(director.book.started.nonces) == [b"", b""]
    with pytest.raises(RefusedError, match="no more"):
        enter(club, director)


async def test_who_comes_back_meanwhile_is_asked_again(club: Club) -> None:
    await begun(club)
    anna = await club.room.connect("anna")
    await settle()
    anna.gone()
    back = await club.room.connect("anna")
    assert len(back.of("tournament_offered")) == 1


@pytest.mark.parametrize("length", [1, 31, 33])
async def test_a_share_of_another_length_is_refused(club: Club, length: int) -> None:
    director = await begun(club)
    await club.room.connect("anna")
    await settle()
    with pytest.raises(RefusedError, match="32 bytes"):
        enter(club, director, bytes(length))
    assert director.book.started is None


async def test_a_second_share_is_refused_and_the_first_stands(club: Club) -> None:
    director = await begun(club)
    await club.room.connect("anna")
    await settle()
    enter(club, director)
    with pytest.raises(RefusedError, match="no more"):
        enter(club, director, b"\1" * 32)
    await settle()
    assert director.book.started is not None
    assert list(director.book.started.nonces) == [b"", NONCE]


async def test_nobody_is_asked_where_every_match_takes_nonces_of_its_own(club: Club) -> None:
    director = await begun(club, "none")
    anna = await club.room.connect("anna")
    await settle()
    assert anna.of("tournament_offered") == []
    assert director.book.state == "RUNNING"
    assert anna.of("match_offered")[0].nonces_taken


async def test_after_a_restart_nobody_is_asked_again(club: Club) -> None:
    director = await begun(club)
    await club.room.connect("anna")
    await settle()
    enter(club, director)
    await settle()
    again = Club(club.journal)
    again.hall.matches.resume_all()
    again.tournaments.resume_all()
    back = await again.room.connect("anna")
    await settle()
    assert back.of("tournament_offered") == []
    await again.close()
