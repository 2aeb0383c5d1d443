"""Every reason has its status and can be had; what goes wrong inside never reaches a caller."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.rpc import code_pb2
from grpc import StatusCode

from referee.v1 import agent_service_pb2 as agent_pb
from referee.v1 import error_reason_pb2 as reason_pb
from referee.v1 import log_service_pb2 as log_pb
from referee.v1 import match_pb2
from referee.v1 import match_service_pb2 as pb
from referee_games import registry
from referee_server.journal import ClosedError, DamagedLogError, StorageFullError, StorageIOError
from referee_server.match.errors import RefusedError
from referee_server.rpc.errors import CODE_OF, DOMAIN, to_status
from rpc.agent import Agent, item, refused
from rpc.kit import ALL, HOST, Client, duel, started, until
from rpc.server import Referee

Make = Callable[..., Agent]
CANARY = "seat 1 holds 7S and seat 2 holds QH"
REASONS: list[Any] = [value for value in reason_pb.ErrorReason.values() if value]
LATER = {
    "TOO_MANY_MATCHES": "nothing asks for more: a match beyond the agent's number waits",
    "BUSY": "a journal that several processes share",
    "SCHEMA": "logs that are handed in",
}
"""Reasons that nothing brings about yet, and what they wait for."""


@pytest.mark.parametrize("reason", REASONS, ids=reason_pb.ErrorReason.Name)
def test_every_reason_has_the_status_that_its_comment_names(reason: Any) -> None:
    text = (Path(__file__).parents[2] / "protos/referee/v1/error_reason.proto").read_text()
    name = reason_pb.ErrorReason.Name(reason)
    documented = re.search(rf"// ([A-Z_]+): [^=]*?{name} = {reason};", text)
    assert documented is not None
    assert code_pb2.Code.Name(CODE_OF[reason]) == documented.group(1)


def test_no_status_is_given_for_a_reason_that_is_none() -> None:
    assert set(CODE_OF) == set(REASONS)


@pytest.mark.parametrize("reason", REASONS, ids=reason_pb.ErrorReason.Name)
def test_a_refusal_carries_its_reason_and_what_varies_in_it(reason: Any) -> None:
    from google.rpc import error_details_pb2

    status = to_status(RefusedError(reason, "no", field="spec.x", one=1))
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert info.domain == DOMAIN
    assert f"ERROR_REASON_{info.reason}" == reason_pb.ErrorReason.Name(reason)
    assert dict(info.metadata) == {"one": "1", "field": "spec.x"}


def test_every_reason_is_asserted_by_a_test_or_waits_for_a_later_part() -> None:
    tests = "".join(
        path.read_text() for folder in ("rpc", "tables") for path in Path(__file__).parents[1].glob(f"{folder}/*.py")
    )
    names = {reason_pb.ErrorReason.Name(reason).removeprefix("ERROR_REASON_") for reason in REASONS}
    missing = {name for name in names - set(LATER) if f'"{name}"' not in tests and f"ERROR_REASON_{name}" not in tests}
    assert missing == set()
    assert {name for name in LATER if f"ERROR_REASON_{name}" in tests} == set()


# What goes wrong inside.


def broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError(CANARY)


CALLS: dict[str, Callable[[Client, str], Any]] = {
    "GetMatch": lambda client, match_id: client.get(match_id),
    "ListMatches": lambda client, match_id: client.matches.ListMatches(
        pb.ListMatchesRequest(), metadata=HOST, timeout=9
    ),
    "WatchMatch": lambda client, match_id: client.watch(match_id),
    "VerifyLog": lambda client, match_id: client.logs.VerifyLog(log_pb.VerifyLogRequest(match_id=match_id), timeout=9),
    "DownloadLog": lambda client, match_id: client.logs.DownloadLog(
        log_pb.DownloadLogRequest(match_id=match_id), timeout=9
    ),
}


@pytest.mark.parametrize(
    ("where", "name"),
    [
        ("matches", "ListMatches"),
        ("match", "GetMatch"),
        *(("match", name) for name in ("WatchMatch", "VerifyLog", "DownloadLog")),
        *(("read", name) for name in ("WatchMatch", "VerifyLog", "DownloadLog")),
    ],
)
def test_the_text_of_an_exception_never_reaches_a_caller(
    client: Client, referee: Referee, monkeypatch: pytest.MonkeyPatch, where: str, name: str
) -> None:
    match_id = client.finished(referee)
    monkeypatch.setattr(referee.journal, where, broken)
    if where == "read":
        monkeypatch.setattr(referee.journal, "advance", broken)
    found = refused(lambda: CALLS[name](client, match_id))
    assert found[:2] == (StatusCode.INTERNAL, "INTERNAL")
    assert re.fullmatch(r"the referee failed; incident [0-9a-f]{12}", found.message)
    assert found.metadata["incident_id"] in found.message


@pytest.mark.parametrize("error", [RuntimeError(CANARY), ValueError(CANARY), KeyError(CANARY), AssertionError(CANARY)])
def test_a_failure_in_an_agents_stream_ends_it_with_a_number_only(
    client: Client, agent: Make, referee: Referee, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    match_id, (anna, bert) = started(client, agent)
    asked = bert.wait("decision")

    def fails(*_: Any) -> Any:
        raise error

    monkeypatch.setattr("referee_server.tables.table.Table.answer", fails)
    bert.answer(asked)
    found = bert.end()
    assert found[:2] == (StatusCode.INTERNAL, "INTERNAL")
    assert CANARY not in str(found)
    assert anna.ended is None
    referee.check(match_id)


def test_rules_that_raise_end_their_match_and_nobodys_stream(
    client: Client, agent: Make, referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    match_id, (anna, bert) = started(client, agent)
    other_id, (cleo, dora) = started(client, agent, ("cleo", "dora"))
    asked, others = bert.wait("decision"), dora.wait("decision")
    state: Any = type(registry.find("high_card").start({"deals": 1}, 0))
    with monkeypatch.context() as patched:
        patched.setattr(state, "apply", broken)
        bert.answer(asked)
        over = bert.wait("match_over")
    assert over.result.reason == match_pb2.END_REASON_REFEREE_FAULT
    dora.answer(others)
    assert dora.wait("verdict").status == 1
    assert [one.ended for one in (anna, bert, cleo, dora)] == [None] * 4
    for one in (anna, bert):
        assert CANARY.encode() not in b"".join(one.messages)
    assert referee.check(match_id).ended
    referee.check(other_id)


# Trouble with the storage.


def test_when_the_storage_fails_callers_are_told_and_agents_are_let_go(
    client: Client, agent: Make, referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    match_id, (anna, bert) = started(client, agent)
    asked = bert.wait("decision")
    before = len(anna.got)

    def fails(batch: Any) -> None:
        raise StorageIOError("cannot write /dev/sda1")

    monkeypatch.setattr(referee.journal, "commit", fails)
    bert.answer(asked)
    for one in (anna, bert):
        assert one.end()[:2] == (StatusCode.UNAVAILABLE, "STORAGE")
    assert len(anna.got) == before
    found = refused(lambda: client.create())
    assert found[:2] == (StatusCode.UNAVAILABLE, "STORAGE")
    assert "/dev" not in found.message
    assert client.get(match_id).match_id == match_id
    again = agent("anna")
    again.send(item(hello=agent_pb.Hello(protocol_version=1)))
    assert again.end().reason == "STORAGE"


def test_while_the_storage_is_full_nothing_is_told_and_afterwards_all_goes_on(
    client: Client, agent: Make, referee: Referee, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("referee_server.tables.committer.RETRY_S", 0.02)
    match_id, (anna, bert) = started(client, agent)
    asked = bert.wait("decision")

    def full(batch: Any) -> None:
        raise StorageFullError("no space left on /dev/sda1")

    with monkeypatch.context() as patched:
        patched.setattr(referee.journal, "commit", full)
        bert.answer(asked)
        until(lambda: referee.hall.committer.stalled, referee)
        found = refused(lambda: client.create())
        assert found[:2] == (StatusCode.UNAVAILABLE, "STORAGE")
        assert bert.all("verdict") == []
    assert bert.wait("verdict").status == 1
    assert (anna.ended, bert.ended) == (None, None)
    assert len(referee.of_log(match_id, "action_applied")) == 1
    referee.check(match_id)


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (StorageFullError("x"), StatusCode.UNAVAILABLE, "STORAGE"),
        (DamagedLogError(3, CANARY), StatusCode.DATA_LOSS, "LOG_DAMAGED"),
        (ClosedError("x"), StatusCode.UNAVAILABLE, "DRAINING"),
    ],
)
def test_what_the_journal_raises_has_its_status(
    client: Client, referee: Referee, monkeypatch: pytest.MonkeyPatch, error: Exception, code: StatusCode, reason: str
) -> None:
    match_id = client.finished(referee)

    def fails(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(referee.journal, "read", fails)
    monkeypatch.setattr(referee.journal, "advance", fails)
    for call in ("WatchMatch", "VerifyLog", "DownloadLog"):
        found = refused(lambda call=call: CALLS[call](client, match_id))  # type: ignore[misc]
        assert found[:2] == (code, reason)
        assert CANARY not in found.message


def test_a_referee_that_shuts_down_says_so_to_agents(client: Client, agent: Make, referee: Referee) -> None:
    match_id, (anna, bert) = started(client, agent)
    bert.wait("decision")
    referee.run(referee.hall.close)
    for one in (anna, bert):
        assert one.end()[:2] == (StatusCode.UNAVAILABLE, "DRAINING")
    until(lambda: len(referee.of_log(match_id, "seat_disconnected")) == 2, referee)
    assert not referee.check(match_id).ended


# Logs.


def test_the_log_of_a_running_match_is_for_the_host_only(client: Client, agent: Make) -> None:
    from referee_server.journal import unpack
    from rpc.agent import bearer
    from rpc.server import token_of

    match_id, _ = started(client, agent)
    download, verify = log_pb.DownloadLogRequest(match_id=match_id), log_pb.VerifyLogRequest(match_id=match_id)
    for who in ((), bearer(token_of("anna"))):
        for call, request in ((client.logs.DownloadLog, download), (client.logs.VerifyLog, verify)):
            found = refused(lambda call=call, request=request, who=who: call(request, metadata=who, timeout=9))  # type: ignore[misc]
            assert found[:2] == (StatusCode.FAILED_PRECONDITION, "MATCH_RUNNING")
    data = b"".join(piece.data for piece in client.logs.DownloadLog(download, metadata=HOST, timeout=9))
    assert unpack(data).match_id == match_id
    assert client.logs.VerifyLog(verify, metadata=HOST, timeout=9).outcome == log_pb.VERIFY_OUTCOME_SEALED


def test_the_log_of_a_finished_match_is_what_a_watcher_of_all_saw(client: Client, referee: Referee) -> None:
    from referee_server.journal import unpack

    match_id = client.finished(referee)
    request = log_pb.DownloadLogRequest(match_id=match_id)
    log = unpack(b"".join(piece.data for piece in client.logs.DownloadLog(request, timeout=9)))
    watched = [event for response in client.watch(match_id, ALL) for event in response.events]
    assert [event.SerializeToString() for event in watched] == list(log.events)
    assert log.digest == client.get(match_id).result.digest


@pytest.mark.parametrize("match_id", ["", "abcdefghijklmnopqrstuvwx23", "x" * 50_000, "../../etc/passwd", "%2e%2e"])
def test_a_log_that_is_not_there_is_not_found(client: Client, match_id: str) -> None:
    for call, request in (
        (client.logs.DownloadLog, log_pb.DownloadLogRequest(match_id=match_id)),
        (client.logs.VerifyLog, log_pb.VerifyLogRequest(match_id=match_id)),
    ):
        found = refused(lambda call=call, request=request: call(request, timeout=9))  # type: ignore[misc]
        assert found[:2] == (StatusCode.NOT_FOUND, "MATCH_UNKNOWN")
        assert len(found.message) < 100


def test_a_log_with_another_digest_is_refuted(client: Client, referee: Referee) -> None:
    match_id = client.finished(referee)
    request = log_pb.VerifyLogRequest(match_id=match_id, digest=bytes(32))
    assert client.logs.VerifyLog(request, timeout=9).outcome == log_pb.VERIFY_OUTCOME_REFUTED
    request = log_pb.VerifyLogRequest(match_id=match_id, digest=client.get(match_id).result.digest)
    assert client.logs.VerifyLog(request, timeout=9).outcome == log_pb.VERIFY_OUTCOME_VERIFIED


def test_a_port_that_is_taken_is_named(referee: Referee, grpc_addr: str) -> None:
    import grpc

    from referee_server.rpc.server import AddressError, Patience, listen, options

    async def second() -> None:
        server = grpc.aio.server(options=options(Patience()))
        try:
            with pytest.raises(AddressError, match=re.escape(grpc_addr)):
                listen(server, grpc_addr)
        finally:
            await server.stop(None)

    referee.run(second)


def test_a_refused_call_changes_nothing(client: Client, referee: Referee) -> None:
    match_id = client.create(duel("open", "open"))
    before = referee.log(match_id)
    refused(lambda: client.cancel(match_id, "x" * 201))
    refused(lambda: client.watch(match_id, after_sequence=-1))
    assert referee.log(match_id) == before
