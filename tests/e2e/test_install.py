"""The base install: what an author of agents gets, and how it says what it is without."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from .kit import Home

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"

HIDE = """
import sys
HIDDEN = {hidden!r}
class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, *more):
        return None if name.split(".")[0] in HIDDEN else self.finder.find_spec(name, *more)
    def __getattr__(self, name):
        return getattr(self.finder, name)
sys.meta_path[:] = map(Without, sys.meta_path)
"""
EXTRA = ["click", "rich", "structlog", "grpc_status", "grpc_health", "grpc_reflection"]


def python(home: Home, code: str, hidden: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs code where some packages are not installed."""
    command = [sys.executable, "-c", HIDE.format(hidden=hidden) + code]
    return subprocess.run(command, env=home.env, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("hidden", [EXTRA, *([name] for name in EXTRA)], ids=lambda hidden: "+".join(hidden))
def test_the_command_names_the_extra_it_needs(home: Home, hidden: list[str]) -> None:
    code = "import sys; sys.argv = ['referee', 'demo']\nfrom referee_server.entry import main; sys.exit(main())"
    done = python(home, code, hidden)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "pip install 'referee[server]'" in done.stderr


def test_importing_the_client_imports_neither_grpc_nor_protobuf_nor_the_server(home: Home) -> None:
    code = "import referee_client, json\nprint(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    loaded = json.loads(python(home, code, []).stdout)
    assert "referee_client" in loaded
    assert not {"grpc", "google", "referee", "referee_server", *EXTRA} & set(loaded)


def test_a_local_match_needs_nothing_but_the_standard_library(home: Home) -> None:
    code = "from referee_client import play_local\nprint(play_local('regicide', ['first', 'greedy'], seed=1).totals)"
    done = python(home, code, [*EXTRA, "grpc", "google", "referee", "referee_server"])
    assert done.returncode == 0, done.stderr


def test_an_agent_connects_with_the_base_install_alone(home: Home) -> None:
    service = home.serve("--practice")
    code = (
        "from referee_client.house import main\n"
        f"sys.exit(main(['first', '--connect', {service.address!r}, '--name', 'base', '--matches', '1']))"
    )
    done = python(home, code, [*EXTRA, "referee_server"])
    assert done.returncode == 0, done.stderr


def test_the_base_install_requires_grpcio_and_protobuf_and_nothing_else() -> None:
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    assert sorted(requirement.split(">")[0] for requirement in project["dependencies"]) == ["grpcio", "protobuf"]


def test_the_command_knows_all_that_the_extra_brings() -> None:
    from referee_server.entry import NEEDED

    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    imports = {
        "click": "click",
        "googleapis-common-protos": "",  # comes with grpcio-status; `google` is shared, and says nothing
        "grpcio-health-checking": "grpc_health",
        "grpcio-reflection": "grpc_reflection",
        "grpcio-status": "grpc_status",
        "openskill": "openskill",
        "pydantic": "pydantic",
        "rich": "rich",
        "structlog": "structlog",
    }
    brought = {imports[requirement.split(">")[0]] for requirement in project["optional-dependencies"]["server"]}
    assert set(NEEDED) == brought - {""}
