"""The section in the agents' files: one text with what a session is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import QuickQueen

from queenbee.agents import section
from queenbee.services.telling import briefing


@pytest.mark.parametrize(("agent", "name"), [("codex", "AGENTS.md"), ("gemini", "GEMINI.md")])
def test_the_section_that_is_written_is_the_beginning_of_queen_prime(
    quick: QuickQueen, repo: Path, agent: str, name: str
) -> None:
    assert quick("setup", agent).code == 0
    written = (repo / name).read_text(encoding="utf-8")
    between = written.partition(section.BEGIN)[2].partition(section.END)[0].strip()
    assert between == briefing.section().strip()
    assert quick("prime", as_="ui-engineer").out.startswith(f"{between}\n")


def test_the_skill_has_the_same_text() -> None:
    assert briefing.section() in section.skill()
