"""The worked examples of the pages on plans, sprint beads and sessions print what they say."""

from __future__ import annotations

from pathlib import Path

import pages
import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["plans.md", "sprint-beads.md", "sessions.md"])
def test_the_worked_example_prints_what_the_page_says(page: str, tmp_path: Path) -> None:
    assert pages.steps(DOCS / page)
    assert pages.differences(DOCS / page, tmp_path) == []
