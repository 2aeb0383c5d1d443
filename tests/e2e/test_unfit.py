"""Versions that the referee does not run on: each is named in a line, and nothing is begun."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from referee_server import installation
from referee_server.installation import misfits, misfits_here

from .kit import Home

WITHOUT_PARSER = "protobuf runs without its compiled parser"
ADVICE = "unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION, or install a protobuf that was built for this Python"
FITS = {"python": "3.11.0", "protobuf": "6.31.1", "backend": "upb", "grpcio": "1.76.0", "sqlite": "3.31.0"}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"python": "3.14.0rc1"},
        {"protobuf": "7.36.2"},
        {"protobuf": "6.31.1.post1"},
        {"protobuf": None, "backend": None},
        {"grpcio": "1.76.0rc1"},
        {"grpcio": "2.0"},
        {"grpcio": None},
        {"sqlite": "3.54.1"},
        {"sqlite": "4.0"},
    ],
    ids=str,
)
def test_what_fits_is_passed_over_in_silence(changed: dict[str, str]) -> None:
    assert misfits(**{**FITS, **changed}) == []


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"python": "3.10.13"}, "Python 3.10.13 is too old; the referee needs 3.11 or newer"),
        ({"python": "2.7.18"}, "Python 2.7.18 is too old; the referee needs 3.11 or newer"),
        ({"protobuf": "6.31.0"}, "protobuf 6.31.0 does not fit; pip install 'protobuf>=6.31.1,<8'"),
        ({"protobuf": "5.29.6"}, "protobuf 5.29.6 does not fit; pip install 'protobuf>=6.31.1,<8'"),
        ({"protobuf": "8.0.0rc1"}, "protobuf 8.0.0rc1 does not fit; pip install 'protobuf>=6.31.1,<8'"),
        ({"protobuf": "10.1"}, "protobuf 10.1 does not fit; pip install 'protobuf>=6.31.1,<8'"),
        ({"grpcio": "1.75.1"}, "grpcio 1.75.1 is too old; pip install 'grpcio>=1.76'"),
        ({"sqlite": "3.30.1"}, "SQLite 3.30.1 is too old; use a Python that was built with 3.31 or newer"),
        ({"sqlite": "3.8.11.1"}, "SQLite 3.8.11.1 is too old; use a Python that was built with 3.31 or newer"),
        (
            {"backend": "python"},
            f"{WITHOUT_PARSER} (python instead of upb); {ADVICE}",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_what_would(changed: dict[str, str], line: str) -> None:
    assert misfits(**{**FITS, **changed}) == [line]


def test_everything_that_does_not_fit_is_named_at_once() -> None:
    found = misfits(python="3.9.1", protobuf="4.25.0", backend="python", grpcio="1.60.0", sqlite="3.7.17")
    assert [line.split()[0] for line in found] == ["Python", "protobuf", "protobuf", "grpcio", "SQLite"]


def test_what_is_asked_for_here_is_what_the_package_asks_for() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    def dotted(version: tuple[int, ...]) -> str:
        return ".".join(map(str, version))

    oldest, too_new = installation.PROTOBUF
    assert project["requires-python"] == f">={dotted(installation.PYTHON)}"
    assert f"protobuf>={dotted(oldest)},<{dotted(too_new)}" in project["dependencies"]
    assert f"grpcio>={dotted(installation.GRPCIO)}" in project["dependencies"]


def test_what_these_tests_run_on_fits() -> None:
    assert misfits_here() == []


@pytest.mark.parametrize("backend", ["python", "nonsense"])
@pytest.mark.parametrize("command", ["serve", "matches", "demo", "agent first --name anna"])
def test_a_command_does_not_begin_on_what_does_not_fit(home: Home, command: str, backend: str) -> None:
    done = home.run(*command.split(), env={**home.env, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": backend})
    assert (done.code, done.out, done.err.count("\n")) == (70, "", 1)
    assert done.err.startswith(f"referee: {WITHOUT_PARSER} (")
    assert not home.data.exists()


@pytest.mark.parametrize("asked", ["--help", "--version", "serve --help"])
def test_help_is_to_be_had_all_the_same(home: Home, asked: str) -> None:
    done = home.run(*asked.split(), env={**home.env, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"})
    assert (done.code, done.err) == (0, "")


def test_an_old_python_is_told_before_anything_is_read_that_it_cannot_read(home: Home) -> None:
    code = (
        "import sys; sys.version_info = (3, 10, 13)\n"
        "from referee_server.entry import main; code = main()\n"
        "assert 'referee_server.cli.main' not in sys.modules\n"
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=home.env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (
        70,
        "referee: Python 3.10.13 is too old; the referee needs 3.11 or newer\n",
    )
