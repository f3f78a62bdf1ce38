"""Claude Code's settings: the hook comes and goes, and everything else stays byte for byte."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from agent_inputs import recorded
from hives import QuickQueen, git
from hook_settings import install, installed_events, uninstall
from hypothesis import given
from hypothesis import strategies as st

from queenbee.agents import claude, launch
from queenbee.agents.files.hook_entries import HookEntries
from queenbee.errors import Unreadable

EVENTS = [
    "PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop",
    "SessionStart", "SessionEnd", "SubagentStart", "SubagentStop",
]  # fmt: skip
WANTED = claude.groups("queen-hook")


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / ".claude" / "settings.json"
    path.parent.mkdir()
    return path


def commands(settings: Path) -> list[str]:
    hooks = json.loads(settings.read_text()).get("hooks", {})
    return [
        handler["command"]
        for groups in hooks.values()
        for group in groups
        for handler in group["hooks"]
    ]


def test_the_hook_runs_around_edits_after_long_tools_and_at_each_turn_of_a_session() -> None:
    assert list(WANTED) == EVENTS
    assert WANTED["PreToolUse"]["matcher"] == "Edit|Write|MultiEdit|NotebookEdit|Bash"
    assert WANTED["PostToolUse"]["matcher"] == "Edit|Write|MultiEdit|NotebookEdit|Bash|Task|Agent"
    for event in ("UserPromptSubmit", "Stop", "SessionStart", "SessionEnd"):
        assert "matcher" not in WANTED[event]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
GROUPS = st.lists(
    st.fixed_dictionaries(
        {"matcher": st.sampled_from(["Bash", "Edit", "*"]), "hooks": st.lists(JSON, max_size=2)}
    ),
    max_size=2,
)


@pytest.mark.slow
@given(
    st.dictionaries(st.text(max_size=4), JSON, max_size=3),
    st.none() | st.dictionaries(st.sampled_from([*EVENTS, "SubagentStop"]), GROUPS, max_size=3),
    st.sampled_from([None, 1, 2, 3, 4, "\t"]),
)
def test_whatever_the_settings_say_the_hook_can_be_added_and_taken_out_again(
    others: dict[str, Any], hooks: dict[str, Any] | None, indent: Any
) -> None:
    others.pop("hooks", None)
    document = others if hooks is None else {**others, "hooks": hooks}
    text = json.dumps(document, indent=indent)
    added = HookEntries("settings.json", WANTED).added(text)
    for event, group in WANTED.items():
        assert json.loads(added)["hooks"][event][-1] == group
    assert HookEntries("settings.json", WANTED).removed(added) == text


@pytest.mark.parametrize(
    "run",
    ["queen-hook; my-formatter", "tee log | queen-hook", "queen-hook && x", "echo queen-hook"],
)
def test_a_hook_of_the_user_that_also_runs_ours_is_kept(settings: Path, run: str) -> None:
    mine = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": run}]}]}}
    text = json.dumps(mine, indent=2)
    settings.write_text(text)
    install(str(settings), claude.groups("queen-hook"))
    assert json.dumps(run) in settings.read_text()
    uninstall(str(settings))
    assert settings.read_text() == text


@pytest.mark.parametrize(
    "run",
    [
        "queen-hook",
        "/opt/x/queen-hook",
        shlex.quote("/it's here/queen-hook"),
        f"{shlex.quote('/my py')} -E -P -X utf8 -m queenbee.hook.main",
    ],
)
def test_every_command_of_ours_is_recognised(settings: Path, run: str) -> None:
    for _ in range(2):
        install(str(settings), claude.groups(run))
    assert len(installed_events(str(settings))) == len(claude.groups(run))


def test_settings_that_others_added_since_are_kept(settings: Path) -> None:
    install(str(settings), WANTED)
    document = json.loads(settings.read_text())
    document["hooks"]["PreToolUse"][0]["hooks"].append({"type": "command", "command": "mine.sh"})
    document["hooks"]["PreToolUse"].insert(0, {"matcher": "Bash", "hooks": []})
    document["model"] = "opus"
    settings.write_text(json.dumps(document, indent=2))

    assert uninstall(str(settings))

    left = json.loads(settings.read_text())
    assert left["model"] == "opus"
    assert left["hooks"]["PreToolUse"] == [
        {"matcher": "Bash", "hooks": []},
        {
            "matcher": "Edit|Write|MultiEdit|NotebookEdit|Bash",
            "hooks": [{"type": "command", "command": "mine.sh"}],
        },
    ]
    assert commands(settings) == ["mine.sh"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"  \n",
        b"{,}",
        b'{"a": 1',
        b'// a comment\n{"a": 1}',
        b'{"a": 1,}',
        b"[]",
        b'"text"',
        b'{"hooks": []}',
        b'{"hooks": {"PreToolUse": {}}}',
        b'{"hooks": null}',
        b'{"a": "\xff"}',
        b'{"a": 1} {"b": 2}',
    ],
)
def test_a_file_that_is_not_settings_is_refused_and_kept(settings: Path, text: bytes) -> None:
    settings.write_bytes(text)
    for change in (lambda path: install(path, WANTED), uninstall):
        if change is uninstall and b"hooks" not in text and text[:1] == b"{":
            continue
        with pytest.raises(Unreadable, match=r"nothing was changed"):
            change(str(settings))
        assert settings.read_bytes() == text


def test_a_byte_order_mark_stays_where_it_is(settings: Path) -> None:
    text = b'\xef\xbb\xbf{\r\n  "a": 1\r\n}'
    settings.write_bytes(text)
    install(str(settings), WANTED)
    assert settings.read_bytes().startswith(b'\xef\xbb\xbf{\r\n  "a": 1,\r\n  "hooks": {\r\n')
    uninstall(str(settings))
    assert settings.read_bytes() == text


# The command in the settings


def shell(command: str, tree: Path, data: bytes, path: str) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "PATH": path}
    return subprocess.run(["sh", "-c", command], input=data, cwd=tree, env=env, capture_output=True)


def command_of(group: dict[str, Any]) -> str:
    return str(group["hooks"][0]["command"])


def test_the_installed_command_answers_from_any_directory(tree: Path) -> None:
    groups = claude.groups(launch.hook_command())
    done = shell(
        command_of(groups["SessionStart"]),
        tree,
        recorded("claude/session-start", tree),
        os.environ["PATH"],
    )
    assert done.returncode == 0
    assert "additionalContext" in json.loads(done.stdout)["hookSpecificOutput"]


def test_a_machine_without_the_hook_can_edit_and_is_warned_when_a_session_begins(
    tree: Path,
) -> None:
    groups = claude.groups("'/no such place/queen-hook'")
    edit = shell(command_of(groups["PreToolUse"]), tree, b"{}", "/usr/bin:/bin")
    assert (edit.returncode, edit.stdout, edit.stderr) == (0, b"", b"")
    begin = shell(command_of(groups["SessionStart"]), tree, b"{}", "/usr/bin:/bin")
    assert "does not guard edits" in json.loads(begin.stdout)["systemMessage"]


def test_the_hook_is_called_by_name_if_the_path_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "queen-hook"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert launch.hook_command() == "queen-hook"


def test_the_hook_is_called_by_its_file_name_if_the_path_does_not_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert launch.hook_command().startswith("'/")


# The command line


def test_without_a_hive_the_guard_is_installed_with_a_warning(
    quick: QuickQueen, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q", "bare")
    assert "there is no hive here" in quick("guard", "install", cwd=tmp_path / "bare").err
