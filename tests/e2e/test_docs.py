"""What the documents say is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from referee_server.cli.main import cli
from referee_server.cli.output import ExitCode

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(ROOT.glob("docs/**/*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_links_to_what_exists(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    for link in links:
        assert link.startswith("https://") or (page.parent / link).exists(), link


def test_the_readme_names_every_command_and_no_other() -> None:
    table = re.findall(r"^\| `referee (\w+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(table) == sorted(cli.commands)


def test_the_exit_codes_are_documented_and_no_others() -> None:
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    codes = re.findall(r"^\| (\d+) \|", page, re.MULTILINE)
    assert sorted(map(int, codes)) == sorted(ExitCode)


def test_every_target_that_the_documents_name_is_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set()
    for page in PAGES:
        named |= set(re.findall(r"(?:^    |`)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert named
    assert named <= targets
