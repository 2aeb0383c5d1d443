"""Who sees a match from outside while other tables play the same cards."""

from __future__ import annotations

from typing import Any

import pytest

from referee.v1 import log_service_pb2 as log_pb
from referee.v1 import match_pb2
from rpc.agent import refused
from rpc.kit import ALL, HOST, NOBODY, PUBLIC, TIMEOUT, Client, duel, until
from rpc.server import Referee
from tables.test_held_back import FOUR, origin


def ended(referee: Referee, match_id: str) -> None:
    spec = duel("bot:first", "bot:first", options=FOUR)
    referee.do(lambda: referee.hall.matches.create_table(spec, origin(match_id)))
    until(lambda: match_id not in referee.do(lambda: dict(referee.hall.matches.running)), referee)


def download(client: Client, match_id: str, who: Any) -> bytes:
    call = client.logs.DownloadLog(log_pb.DownloadLogRequest(match_id=match_id), metadata=who, timeout=TIMEOUT)
    return b"".join(piece.data for piece in call)


@pytest.mark.parametrize("view", [PUBLIC, ALL])
def test_strangers_see_no_view_before_the_set_is_done_and_each_afterwards(
    client: Client, referee: Referee, view: Any
) -> None:
    ended(referee, "one")
    assert refused(lambda: client.watch("one", view, who=NOBODY)).reason == "VIEW_FORBIDDEN"
    referee.do(lambda: referee.hall.matches.reveal("one"))
    referee.quiet()
    assert list(client.watch("one", view, who=NOBODY))[-1].HasField("result")


def test_strangers_take_no_log_away_before_the_set_is_done(client: Client, referee: Referee) -> None:
    ended(referee, "one")
    assert refused(lambda: download(client, "one", NOBODY)).reason == "MATCH_RUNNING"
    assert download(client, "one", HOST)
    referee.do(lambda: referee.hall.matches.reveal("one"))
    referee.quiet()
    assert download(client, "one", NOBODY)


def test_the_host_is_told_the_result_and_that_it_is_held_back(client: Client, referee: Referee) -> None:
    ended(referee, "one")
    match = client.get("one")
    assert match.held_back
    assert match.state == match_pb2.MATCH_STATE_FINISHED
    assert match.result.places


def test_the_digest_of_the_end_is_taken_for_the_log_that_was_completed_later(client: Client, referee: Referee) -> None:
    ended(referee, "one")
    digest = referee.do(lambda: referee.hall.digest("one"))
    referee.do(lambda: referee.hall.matches.reveal("one"))
    referee.quiet()
    request = log_pb.VerifyLogRequest(match_id="one", digest=digest)
    answer = client.logs.VerifyLog(request, metadata=HOST, timeout=TIMEOUT)
    assert answer.outcome == log_pb.VERIFY_OUTCOME_VERIFIED
