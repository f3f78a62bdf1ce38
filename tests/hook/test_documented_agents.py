"""What the documentation tells agents' users to write: it is what the hook needs, and it works."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pages import ROOT, fences

from queenbee.agents import claude, codex, cursor, gemini
from queenbee.agents.launch import guarded
from queenbee.agents.setup import AGENTS
from queenbee.hook import events

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "enforcement.md"


def blocks(language: str) -> list[str]:
    return ["\n".join(lines) for kind, lines, _ in fences(PAGE) if kind == language]


def commands(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["command"]] if "command" in value else []
        return own + [each for inner in value.values() for each in commands(inner)]
    return [each for inner in value for each in commands(inner)] if isinstance(value, list) else []


def test_the_settings_of_every_agent_are_json_and_run_the_hook() -> None:
    documents = [json.loads(block) for block in blocks("json")]
    assert len(documents) == 4
    for document in documents:
        assert commands(document)
        assert all("queen-hook" in each for each in commands(document))


def test_what_is_shown_is_what_is_installed() -> None:
    """The other agents' commands are shown without the look whether the hook is there."""
    (first, *others) = (json.loads(block) for block in blocks("json"))
    assert first["PreToolUse"] == [claude.groups("queen-hook")["PreToolUse"]]
    for shown, agent in zip(others, (codex, gemini, cursor), strict=True):
        text = json.dumps({event: [group] for event, group in agent.groups("queen-hook").items()})
        written = json.loads(text.replace(json.dumps(guarded("queen-hook"))[1:-1], "queen-hook"))
        assert shown["hooks"] == written


def test_every_event_that_is_set_up_is_one_that_the_hook_knows() -> None:
    for document in map(json.loads, blocks("json")):
        for name in document.get("hooks", document):
            event = events.Event({"hook_event_name": name}, "/")
            assert event.kind != events.OTHER, name


def test_every_agent_has_a_section_that_names_its_setup() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for agent in AGENTS.values():
        _, found, rest = text.partition(f"\n### {agent.title}\n")
        section, _, _ = rest.partition("\n### ")
        assert found, agent.title
        assert f"queen setup {agent.name}" in section


def test_no_code_is_left_to_copy() -> None:
    """What `queen setup` writes is tested; a copy on a page would age."""
    assert {kind for kind, _, _ in fences(PAGE)} <= {"console", "json", "text", "toml", ""}
