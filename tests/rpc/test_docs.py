"""The pages that say which test does what name tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["faults.md", "field-reports.md"])
def test_every_test_that_a_page_names_is_there(page: str) -> None:
    named = re.findall(r"`([a-z0-9_]+/test_[a-z0-9_]+\.py)(?:::(\w+))?`", (ROOT / "docs" / page).read_text())
    assert len(named) > 50
    missing = [
        f"{file}::{function}"
        for file, function in named
        if not (path := ROOT / "tests" / file).is_file() or f"def {function}" not in path.read_text()
    ]
    assert missing == []
