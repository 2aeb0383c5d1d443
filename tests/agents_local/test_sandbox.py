"""What an agent in a sandbox can reach, and what a plain process can: the difference between the tiers."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from agents_local.kit import Yard
from referee_server.agents.fleet import Program, StartFailure
from referee_server.agents.isolation import this_python


@pytest.fixture
def port() -> Iterator[int]:
    """A server on this machine, at which an agent with a network can call."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def looked(yard: Yard, port: int) -> dict[str, Any]:
    """Returns what an agent finds that runs in a folder beside which, and below which, there are secrets."""
    (yard.data / "host.token").write_text("secret", encoding="ascii")
    (yard.path / "other").mkdir()
    paths = [str(yard.path), str(yard.data), str(yard.data / "host.token"), "/etc/passwd"]
    program = yard.program("looks", cwd=yard.path)
    await yard.started(program, PATHS=json.dumps(paths), PORT=str(port))
    found: dict[str, Any] = await yard.heard()
    return found


async def test_in_a_sandbox_the_referees_data_are_not_to_be_seen_though_they_lie_in_the_agents_folder(
    sandbox: Yard, port: int
) -> None:
    found = await looked(sandbox, port)
    assert found["read"] == [str(sandbox.path), str(sandbox.data)]
    assert found["listed"][str(sandbox.data)] == []
    assert {"data", "other"} <= set(found["listed"][str(sandbox.path)])


async def test_in_a_sandbox_nothing_can_be_written_but_tmp_and_shared_memory(sandbox: Yard, port: int) -> None:
    assert (await looked(sandbox, port))["written"] == ["/tmp", "/dev/shm"]


async def test_in_a_sandbox_there_is_no_network_and_the_socket_is_the_way_out(sandbox: Yard, port: int) -> None:
    # That anything was heard came through the socket.
    assert (await looked(sandbox, port))["network"] is False


async def test_in_a_sandbox_there_are_no_other_processes_and_no_further_sandboxes(sandbox: Yard, port: int) -> None:
    found = await looked(sandbox, port)
    assert (found["processes"], found["namespaces"]) == (2, False)


async def test_in_a_sandbox_there_are_no_capabilities(sandbox: Yard) -> None:
    await sandbox.started("tells")
    assert (await sandbox.heard())["no_capabilities"]


async def test_what_is_given_to_a_sandboxed_agent_is_not_on_its_command_line(sandbox: Yard) -> None:
    await sandbox.started("plays", SECRET="not-for-everybody")
    lines = await asyncio.to_thread(
        lambda: [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in sandbox.alive()],
    )
    assert any(b"misbehave.py" in line for line in lines)
    assert not any(b"not-for-everybody" in line for line in lines)


async def test_a_command_that_is_not_in_the_sandbox_is_told_as_not_started(sandbox: Yard, tmp_path: Path) -> None:
    bot = tmp_path / "bot"
    bot.write_text("#!/bin/sh\n", encoding="ascii")
    bot.chmod(0o755)
    failure = await sandbox.failed(Program("anna", (str(bot),), tier="bubblewrap"))
    assert failure.kind == "not_started"
    assert failure.text.endswith(f"bwrap: execvp {bot}: No such file or directory")


def python(code: str) -> Program:
    """Returns a program of this interpreter with its packages, as house bots are run."""
    path = os.pathsep.join(entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry)
    env = {"PYTHONPATH": path} if path else {}
    return Program("anna", (sys.executable, "-B", "-c", code), env=env, tier="bubblewrap", reads=this_python())


async def test_a_house_bot_finds_all_its_packages_in_a_sandbox(sandbox: Yard) -> None:
    failure = await sandbox.failed(python("import grpc, referee_client, referee_server.entry; print('all there')"))
    assert failure.text.endswith("\nall there")


async def test_an_agent_in_a_sandbox_calls_the_referee_through_its_socket(sandbox: Yard, tmp_path: Path) -> None:
    async def greet(request: bytes, context: object) -> bytes:
        return b"welcome, " + request

    server = grpc.aio.server()
    greeting: Any = grpc.unary_unary_rpc_method_handler(greet)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("Referee", {"Greet": greeting})])
    server.add_insecure_port(f"unix:{tmp_path / 'referee.sock'}")
    await server.start()
    code = """if True:
        import grpc, os
        with grpc.insecure_channel(os.environ["REFEREE_ADDRESS"]) as channel:
            print(channel.unary_unary("/Referee/Greet")(b"anna", timeout=30).decode())
    """
    given = {"REFEREE_ADDRESS": f"unix:{tmp_path / 'referee.sock'}"}
    try:
        ended = await sandbox.fleet.start(python(code), "anna", given, socket=tmp_path / "referee.sock")
    finally:
        await server.stop(None)
    assert isinstance(ended, StartFailure)
    assert ended.text.endswith("\nwelcome, anna")


async def test_without_a_sandbox_data_and_network_are_open_and_only_the_environment_is_clean(
    yard: Yard, port: int
) -> None:
    found = await looked(yard, port)
    assert str(yard.data / "host.token") in found["read"]
    assert found["network"] is True
