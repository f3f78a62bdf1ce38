"""Shapes: each documented event of each agent is understood and answered as its page says.

`shapes/README.md` says where each was read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_inputs import SHAPES, shaped

from queenbee import Hive
from queenbee.hook import answers, events

Ask = Callable[..., dict[str, Any] | None]

FILES = sorted(SHAPES.glob("*/*.json"))


def shape(path: Path) -> tuple[events.Event, dict[str, Any], dict[str, Any]]:
    document = json.loads(path.read_text(encoding="utf-8").replace("@TREE@", "/tree"))
    data = json.dumps(document["input"]).encode()
    return events.read_event(data, "/elsewhere"), document["reads"], document["answers"]


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


each_shape = pytest.mark.parametrize("path", FILES, ids=name_of)


@each_shape
def test_an_event_is_understood(path: Path) -> None:
    event, reads, _ = shape(path)
    assert event.agent == path.parent.name
    assert event.session
    assert event.cwd == "/tree" or event.cwd == "/tree/"
    assert event.files == [f"/tree/{name}" for name in reads["files"]]
    assert event.subagent == reads["subagent"]
    assert event.was_kept is reads["was_kept"]
    assert event.kind == reads["kind"]


@each_shape
def test_an_edit_is_denied_in_the_agents_own_words(path: Path) -> None:
    event, _, expected = shape(path)
    assert ("denial" in expected) == (event.kind == events.BEFORE_EDIT)
    if "denial" in expected:
        assert answers.denial(event, "TEXT") == expected["denial"]


@each_shape
def test_context_is_given_where_the_agent_reads_it(path: Path) -> None:
    event, _, expected = shape(path)
    assert answers.reads_context(event) is (expected["context"] is not None)
    if expected["context"] is not None:
        assert answers.context(event, "TEXT") == expected["context"]


@each_shape
def test_an_agent_is_kept_at_its_stop_where_it_can_be(path: Path) -> None:
    event, _, expected = shape(path)
    assert answers.can_hold(event) is (expected["hold"] is not None)
    if expected["hold"] is not None:
        assert answers.hold(event, "TEXT") == expected["hold"]


EDITS = [name_of(path) for path in FILES if '"kind": "before edit"' in path.read_text("utf-8")]
EDITED = [name_of(path) for path in FILES if '"kind": "after edit"' in path.read_text("utf-8")]
CODEX = [path for path in FILES if path.parent.name == events.CODEX]


def hive_of(tree: Path, droid: str) -> Hive:
    return Hive.open(tree, droid=droid, env={"QUEEN_DURABILITY": "buffered"})


@pytest.mark.parametrize("name", EDITS)
def test_every_agent_is_kept_from_a_held_file_and_leases_a_free_one(
    ask: Ask, tree: Path, name: str
) -> None:
    assert ask(shaped(name, tree)) is None
    (lease,) = hive_of(tree, "reviewer").reservations.find()
    assert lease.pattern == "src/app.py"
    assert lease.droid.startswith(f"{name.partition('/')[0]}-")
    hive_of(tree, lease.droid).reservations.release(everything=True)
    hive_of(tree, "reviewer").reservations.reserve(["src/**"])
    assert "src/app.py is reserved by reviewer" in json.dumps(ask(shaped(name, tree)))


@pytest.mark.parametrize("name", EDITED)
def test_every_agent_is_told_of_a_held_file_that_it_changed(
    ask: Ask, tree: Path, name: str
) -> None:
    hive_of(tree, "reviewer").reservations.reserve(["src/**"])
    assert "You changed a file that another agent holds" in json.dumps(ask(shaped(name, tree)))


@pytest.mark.parametrize("path", CODEX, ids=name_of)
def test_codex_gets_no_field_that_its_schema_does_not_have(path: Path) -> None:
    event, _, _ = shape(path)
    universal = {"continue", "stopReason", "suppressOutput", "systemMessage"}
    known = universal | {"decision", "reason", "hookSpecificOutput"}
    given = [answers.warning(event, "TEXT")]
    if event.kind == events.BEFORE_EDIT:
        given.append(answers.denial(event, "TEXT"))
    if answers.reads_context(event):
        given.append(answers.context(event, "TEXT"))
    if answers.can_hold(event):
        given.append(answers.hold(event, "TEXT"))
    assert set().union(*given) <= known


def test_every_agent_has_its_shapes_and_its_row_in_the_sources() -> None:
    page = (SHAPES / "README.md").read_text(encoding="utf-8")
    agents = {path.parent.name for path in FILES}
    known = {
        events.CLAUDE, events.CODEX, events.GEMINI, events.CURSOR, events.COPILOT, events.OPENCODE,
        events.QWEN, events.KILO,
    }  # fmt: skip
    assert agents == known
    assert all(f"| {agent} |" in page for agent in agents)


def test_an_edit_whose_text_mentions_a_patch_names_one_file() -> None:
    event = events.Event(
        {
            "hook_event_name": "PreToolUse",
            "tool_name": "Write",
            "tool_input": {"path": "a.py", "input": "text\n*** Update File: b.py\n"},
        },
        "/tree",
    )
    assert event.files == ["/tree/a.py"]
