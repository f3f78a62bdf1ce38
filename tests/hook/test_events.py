"""Events: what each agent sends is understood, and what it does not send is not guessed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agent_inputs import FIXTURES, recorded
from hypothesis import given
from hypothesis import strategies as st

from queenbee.hook import events

TREE = Path("/tree")


def read(name: str) -> events.Event:
    return events.read_event(recorded(name, TREE), "/elsewhere")


def files(name: str) -> list[str]:
    return [file.removeprefix("/tree/") for file in read(name).files]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude/pre-edit", ["src/app.py"]),
        ("claude/pre-write", ["src/new.py"]),
        ("claude/pre-multiedit", ["src/app.py"]),
        ("claude/pre-notebook", ["nb/plot.ipynb"]),
        ("claude/pre-edit-subagent", ["src/app.py"]),
        ("claude/post-edit", ["src/app.py"]),
        ("gemini/before-replace", ["src/app.py"]),
        ("gemini/before-write", ["src/new.py"]),
        ("gemini/after-replace", ["src/app.py"]),
        ("cursor/pre-write", ["src/app.py"]),
        ("cursor/after-file-edit", ["src/app.py"]),
        ("others/vscode-edit-files", ["src/app.py", "src/other.py"]),
        ("others/opencode-plugin", ["src/app.py"]),
        ("others/server-tool", ["src/app.py"]),
    ],
)
def test_the_file_of_an_edit_is_found_whatever_the_agent_calls_it(
    name: str, expected: list[str]
) -> None:
    assert files(name) == expected


@pytest.mark.parametrize("name", ["codex/pre-apply-patch", "codex/post-apply-patch"])
def test_a_patch_names_every_file_that_it_touches_and_both_names_of_a_move(name: str) -> None:
    assert files(name) == [
        "src/app.py",
        "src/old name.py",
        "src/moved.py",
        "src/fresh.py",
        "src/gone.py",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "claude/pre-read",
        "claude/pre-bash",
        "claude/stop",
        "codex/pre-bash",
        "cursor/pre-shell",
        "gemini/before-shell",
        "others/text-editor-view",
    ],
)
def test_a_tool_that_edits_no_file_names_none(name: str) -> None:
    assert files(name) == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("claude/pre-edit", events.BEFORE_EDIT),
        ("claude/post-edit", events.AFTER_EDIT),
        ("claude/session-start", events.SESSION_START),
        ("claude/session-end", events.SESSION_END),
        ("claude/stop", events.STOP),
        ("claude/prompt", events.PROMPT),
        ("claude/post-bash", events.AFTER_EDIT),
        ("gemini/before-write", events.BEFORE_EDIT),
        ("gemini/after-replace", events.AFTER_EDIT),
        ("cursor/pre-write", events.BEFORE_EDIT),
        ("cursor/after-file-edit", events.AFTER_EDIT),
        ("cursor/session-end", events.SESSION_END),
        ("others/vscode-edit-files", events.BEFORE_EDIT),
    ],
)
def test_an_event_is_recognised_under_each_agents_name_for_it(name: str, kind: str) -> None:
    assert read(name).kind == kind


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*/*.json")), ids=lambda path: path.stem)
def test_the_agent_is_recognised_by_the_shape_of_what_it_sends(path: Path) -> None:
    event = read(f"{path.parent.name}/{path.stem}")
    expected = {
        "vscode-edit-files": "copilot",
        "opencode-plugin": "opencode",
        "text-editor-view": "claude",
        "server-tool": "claude",
    }
    assert event.agent == expected.get(path.stem, path.parent.name)
    assert event.session


def test_a_relative_file_is_one_in_the_sessions_directory() -> None:
    data = json.dumps(
        {
            "hook_event_name": "PreToolUse",
            "cwd": "/tree/src",
            "tool_name": "Edit",
            "tool_input": {"file_path": "../docs/./a.md"},
        }
    )
    assert events.read_event(data.encode(), "/elsewhere").files == ["/tree/docs/a.md"]


@pytest.mark.parametrize("cwd", ["/\ud800", "/a\0b"])
def test_a_directory_that_no_file_system_can_hold_is_left_out(cwd: str) -> None:
    data = json.dumps({"hook_event_name": "SessionEnd", "cwd": cwd}).encode()
    assert events.read_event(data, "/here").cwd == "/here/"


def test_arguments_that_come_as_a_json_string_are_read() -> None:
    data = recorded("cursor/pre-write", TREE, tool_input='{"file_path": "/tree/b.py"}')
    assert events.read_event(data, "/").files == ["/tree/b.py"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"edits": [{"file_path": "a.py"}, {"file_path": "b.py"}]}, ["a.py", "b.py"]),
        ({"filePath": "a.py", "edits": [{"newText": "x"}, {"filePath": "b.py"}]}, ["a.py", "b.py"]),
        ({"replacements": [{"filePath": "a.py"}, {"filePath": "b.py"}]}, ["a.py", "b.py"]),
        ({"edits": [{"files": ["a.py", "b.py"]}]}, ["a.py", "b.py"]),
        ({"files": ["a.py", {"path": "b.py"}]}, ["a.py", "b.py"]),
        ({"paths": ["a.py", "b.py"]}, ["a.py", "b.py"]),
    ],
)
def test_every_file_of_several_edits_in_one_call_is_found(
    arguments: object, expected: list[str]
) -> None:
    data = recorded("claude/pre-multiedit", TREE, tool_input=arguments)
    assert events.read_event(data, "/").files == [f"/tree/{name}" for name in expected]


def test_the_text_of_an_edit_is_not_a_file() -> None:
    arguments = {"path": "a.py", "edits": ["total = 0", "b.py"]}
    data = recorded("claude/pre-multiedit", TREE, tool_input=arguments)
    assert events.read_event(data, "/").files == ["/tree/a.py"]


@pytest.mark.parametrize("data", [b"", b"[]", b'"text"', b"{", b"\xff\xfe", b"null"])
def test_input_that_is_not_a_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        events.read_event(data, "/")


@pytest.mark.parametrize(
    "arguments",
    [None, 7, [], {}, {"file_path": None}, {"file_path": ""}, {"files": [None, 3]}, {"edits": 1}],
)
def test_arguments_of_another_shape_name_no_file(arguments: object) -> None:
    data = recorded("claude/pre-edit", TREE, tool_input=arguments)
    assert events.read_event(data, "/").files == []


KEYS = [
    "hook_event_name",
    "tool_name",
    "tool_input",
    "cwd",
    "session_id",
    "workspace_roots",
    "agent",
]
WORDS = [
    "PreToolUse",
    "afterFileEdit",
    "Edit",
    "apply_patch",
    "file_path",
    "files",
    "edits",
    "command",
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.sampled_from(WORDS), inner, max_size=3)
    ),
    max_leaves=10,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(KEYS), ANYTHING))
def test_whatever_an_agent_sends_its_files_are_absolute_names(fields: dict[str, object]) -> None:
    try:
        event = events.read_event(json.dumps(fields).encode(), "/here")
    except ValueError:
        return
    assert all(file.startswith("/") for file in event.files)


def tool(name: str, **arguments: object) -> list[str]:
    fields = {"hook_event_name": "PreToolUse", "tool_name": name, "tool_input": arguments}
    return events.Event(fields, "/tree").files


def test_the_markers_of_a_patch_may_be_indented() -> None:
    patch = "  *** Begin Patch\n\t*** Update File: a.py \n  *** Move to: b.py\n+x\n *** End Patch"
    assert tool("apply_patch", command=patch) == ["/tree/a.py", "/tree/b.py"]


@pytest.mark.parametrize("name", ["a\u2028b.py", "a\x85b", "a\x0cb", "a\x1cb", "a\rb"])
def test_a_line_of_a_patch_ends_where_agents_end_it(name: str) -> None:
    """The file that is edited is judged, not one whose name is its beginning."""
    patch = f"*** Begin Patch\r\n*** Update File: {name}\r\n+x\u2028*** Add File: b\r\n"
    assert tool("apply_patch", command=patch) == [f"/tree/{name}"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("mcp__filesystem__move_file", {"source": "a.py", "destination": "b.py"}),
        ("mcp__fs__rename", {"old_path": "a.py", "new_path": "b.py"}),
        ("mcp__fs__copyFiles", {"paths": ["a.py", "b.py"]}),
        ("mcp__ide__put_buffer", {"path": "a.py", "content": "x", "files": ["b.py"]}),
        ("AppendToFiles", {"edits": [{"path": "a.py"}, {"path": "b.py"}]}),
        ("mcp__serena__replace_content", {"relative_path": "a.py", "file": "b.py"}),
        ("replace_text_in_file", {"pathInProject": "a.py", "TargetFile": "b.py"}),
        ("mcp__x__find_and_replace", {"paths": ["a.py", "b.py"], "find": "a", "replace": "b"}),
        ("mcp__x__open_and_write", {"paths": ["a.py", "b.py"], "content": "x"}),
    ],
)
def test_an_unknown_tool_is_read_by_its_shape(name: str, arguments: dict[str, object]) -> None:
    assert tool(name, **arguments) == ["/tree/a.py", "/tree/b.py"]


def test_a_file_may_be_named_by_an_address_or_from_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert "/tree/a b.py" in tool("write_file", uri="file:///tree/a%20b.py", content="x")
    assert "/tree/a.py" in tool("Write", file_path="file://localhost/tree/a.py")
    assert tool("Write", file_path="~/a.py") == ["/tree/~/a.py", "/home/me/a.py"]
    assert tool("Write", file_path="file://[/a") == ["/tree/file:/[/a"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("mcp__filesystem__read_text_file", {"path": "a.py"}),
        ("mcp__filesystem__list_directory", {"path": "a"}),
        ("mcp__fs__search_files", {"path": "a", "content": "x"}),
        ("Grep", {"path": "a.py", "pattern": "edit"}),
        ("mcp__git__blame", {"path": "a.py"}),
        ("getEditHistory", {"filePath": "a.py"}),
        ("find_replaced", {"path": "a.py", "replace": "x"}),
        ("Task", {"prompt": "write a.py"}),
    ],
)
def test_an_unknown_tool_that_only_reads_names_no_file(
    name: str, arguments: dict[str, object]
) -> None:
    assert tool(name, **arguments) == []
