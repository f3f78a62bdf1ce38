"""What `queen setup` installs is what the hook knows; the page has a section on each agent."""

from __future__ import annotations

import pytest
from pages import ROOT, fences

from queenbee.agents import claude, codex, copilot, cursor, gemini, qwen
from queenbee.agents.setup import AGENTS
from queenbee.hook import events

PAGE = ROOT / "docs" / "enforcement.md"


@pytest.mark.parametrize("agent", [claude, codex, copilot, cursor, gemini, qwen])
def test_every_event_that_is_set_up_is_one_that_the_hook_knows(agent) -> None:
    for name, group in agent.groups("queen-hook").items():
        assert events.Event({"hook_event_name": name}, "/").kind != events.OTHER, name
        assert "queen-hook" in repr(group)


def test_every_agent_has_a_row() -> None:
    _, _, table = PAGE.read_text(encoding="utf-8").partition("\n## Agents\n")
    names = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")]
    listed = {name for cell in names for name in cell.split(", ")}
    assert {agent.title for agent in AGENTS.values()} <= listed


def test_no_code_is_left_to_copy() -> None:
    """What `queen setup` writes is tested; a copy on a page would age."""
    assert {kind for kind, _, _ in fences(PAGE)} <= {"console", "text", "toml", ""}
