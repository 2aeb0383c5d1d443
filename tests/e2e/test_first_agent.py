"""The first minutes of an author: the agent that README.md shows, as it stands there, with `serve --practice`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from .kit import Home, Process

README = Path(__file__).parents[2] / "README.md"


def started(home: Home, *options: str) -> Process:
    """Starts a service for practice, and the agent of the README against it."""
    service = home.serve("--practice", *options)
    [code] = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert code.count("localhost:7431") == 1
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    script = home.path / "lowest.py"
    script.write_text(code.replace("localhost:7431", service.address), encoding="utf-8")
    return home.spawn([sys.executable, str(script)])


def test_the_agent_of_the_readme_plays_both_games_at_once_and_tells_how_it_went(home: Home) -> None:
    agent = started(home)
    assert agent.wait() == 0, agent.output
    games = sorted(line.split(" place ")[0] for line in agent.lines)
    assert games == ["guillotine", "regicide"], agent.output


def test_its_matches_are_on_record_and_verify(home: Home) -> None:
    assert started(home).wait() == 0
    rows = [row for row in home.ok("matches", "--json").rows() if row["state"] == "finished"]
    assert len(rows) >= 2
    assert all("Lowest" in row["seats"] for row in rows)
    home.ok("verify", *(row["match"] for row in rows))


def test_its_credential_is_made_and_used_again(home: Home) -> None:
    assert started(home).wait() == 0
    token = home.path / "config" / "referee" / "Lowest.token"
    before = token.read_text(encoding="ascii")
    assert token.stat().st_mode & 0o077 == 0
    home.started[0].stop()
    again = started(home)
    assert again.wait() == 0, again.output
    assert token.read_text(encoding="ascii") == before
