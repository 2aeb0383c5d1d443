"""The credential file: made once, for its owner alone."""

from __future__ import annotations

import re
import stat
import threading
from pathlib import Path

import pytest

from referee_client import CredentialError
from referee_client.credential import default_path, load


def test_it_is_made_at_first_use_and_kept(tmp_path: Path) -> None:
    token = load("my bot")
    assert re.fullmatch(r"[0-9a-f]{64}", token)
    assert load("my bot") == token
    path = default_path("my bot")
    assert path.is_relative_to(tmp_path / "config" / "referee")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_without_xdg_it_is_under_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path("bot") == tmp_path / ".config" / "referee" / "bot.token"
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert default_path("bot") == tmp_path / ".config" / "referee" / "bot.token"


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", ".hidden", "Größe", "x" * 3 + "\n"])
def test_no_name_leads_out_of_the_folder(name: str) -> None:
    path = default_path(name)
    assert path.parent.name == "referee"
    assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*\.token", path.name)


def test_names_that_look_alike_as_files_have_files_of_their_own() -> None:
    assert len({default_path(name) for name in ("a/b", "a_b", "a:b", "a b")}) == 4


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601])
def test_a_file_that_is_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    path.write_text("ab" * 32)
    path.chmod(mode)
    with pytest.raises(CredentialError, match="chmod 600"):
        load("bot", path)


@pytest.mark.parametrize("text", ["", "abc", "g" * 64, "ab" * 33, "ab" * 32 + "\nmore"])
def test_a_file_that_holds_something_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(CredentialError, match="64 hex digits"):
        load("bot", path)


def test_a_given_path_is_made_too(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "bot.token"
    assert load("bot", str(path)) == load("other", path)


def test_a_credential_can_be_given_itself() -> None:
    assert load("bot", "AB" * 32) == "ab" * 32


def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match="cannot be used"):
        load("bot", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(CredentialError, match="cannot be used"):
        load("bot", tmp_path / "file" / "token")


def test_all_who_make_it_at_once_have_the_same(tmp_path: Path) -> None:
    path = tmp_path / "token"
    tokens: list[str] = []
    barrier = threading.Barrier(8)

    def make() -> None:
        barrier.wait()
        tokens.append(load("bot", path))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(tokens)) == 1
    assert list(tmp_path.glob("*")) == [path]
