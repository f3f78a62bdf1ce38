"""Under which name a client acts: two clients never share one by accident."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hives import git
from mcp_clients import called, error_of, result_of

from queenbee.hook.events import read_event
from queenbee.hook.session_events import find_actor
from queenbee.mcp.workspace import Workspace
from queenbee.store.droids.identity import remember
from queenbee.store.layout import discover

SESSION = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"


def name_of(workspace: Workspace, tree: Path, client: str | None = "Tester") -> str | None:
    """Returns who acts in a folder."""
    session = workspace.session(client, None)
    return workspace.name(session, discover(str(tree), workspace.env))


def test_a_client_without_a_name_gets_one_of_its_own(repo: Path) -> None:
    answers = called(repo, ("status", {}), ("status", {}), name="Claude Code 2.1 (beta)")
    first, second = (result_of(each)["actor"] for each in answers)
    assert first == second
    assert first.startswith("claude-code-2-1-beta-")
    (other,) = called(repo, ("status", {}), name="Claude Code 2.1 (beta)")
    assert result_of(other)["actor"] != first


@pytest.mark.parametrize("client", [None, "", "…", "'; rm -rf /", "x" * 500, "\x1b[31m"])
def test_a_client_with_an_odd_name_gets_a_plain_one(repo: Path, client: str | None) -> None:
    name = name_of(Workspace({}, str(repo)), repo, client)
    assert name is not None
    assert name.replace("-", "").isalnum()
    assert len(name) <= 64


def test_the_command_line_and_the_environment_have_the_first_word(repo: Path) -> None:
    remember(discover(str(repo), {}), "kept")
    assert name_of(Workspace({"QUEEN_DROID": "ui"}, str(repo)), repo) == "ui"
    given = Workspace({"QUEEN_DROID": "ui"}, str(repo), droid="given")
    assert name_of(given, repo) == "given"


def test_the_name_of_a_session_is_that_of_its_hooks(repo: Path) -> None:
    event = {"hook_event_name": "SessionStart", "session_id": SESSION, "cwd": str(repo)}
    import json

    hooks = find_actor(discover(str(repo), {}), {}, read_event(json.dumps(event).encode(), "/"))
    env = {"CLAUDE_CODE_SESSION_ID": SESSION}
    assert name_of(Workspace(env, str(repo)), repo) == hooks.name == "claude-1b4e28ba"


def test_a_thread_of_codex_has_a_name_of_its_own_in_one_process(repo: Path) -> None:
    workspace = Workspace({}, str(repo))
    layout = discover(str(repo), {})
    metas: list[dict[str, Any]] = [
        {"threadId": "0196aaaa-0000-7000-8000-00000000aaaa"},
        {"x-codex-turn-metadata": {"session_id": "0196aaaa-0000-7000-8000-00000000bbbb"}},
        {"threadId": 7, "x-codex-turn-metadata": "odd"},
    ]
    names = [workspace.name(workspace.session("codex", each), layout) for each in metas]
    assert names[:2] == ["codex-0000aaaa", "codex-0000bbbb"]
    assert len(set(names)) == 3


def test_the_first_client_has_the_name_that_the_worktree_remembers(repo: Path) -> None:
    layout = discover(str(repo), {})
    remember(layout, "ui")
    first, second = Workspace({}, str(repo)), Workspace({}, str(repo))
    assert name_of(first, repo) == "ui"
    assert name_of(second, repo) not in (None, "ui")
    assert name_of(first, repo) == "ui"
    first.close()
    assert name_of(Workspace({}, str(repo)), repo) == "ui"


def test_two_sessions_in_one_process_are_two_droids(repo: Path) -> None:
    layout = discover(str(repo), {})
    remember(layout, "ui")
    workspace = Workspace({}, str(repo))
    left, right = (workspace.session("codex", {"threadId": each}) for each in ("a" * 9, "b" * 9))
    assert workspace.name(left, layout) == "ui"
    assert workspace.name(right, layout) == "ui-bbbbbbbb"
    assert workspace.name(left, layout) == "ui"


def test_each_worktree_keeps_its_name(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "wt"))
    remember(discover(str(repo), {}), "ui")
    remember(discover(str(tmp_path / "wt"), {}), "tester")
    workspace = Workspace({}, str(repo))
    assert name_of(workspace, repo) == "ui"
    assert name_of(workspace, tmp_path / "wt") == "tester"


def test_where_names_are_listed_a_made_one_is_not_used(repo: Path) -> None:
    (repo / ".factory" / "droids").mkdir(parents=True)
    (repo / ".factory" / "droids" / "ui.md").touch()
    status, refused = called(repo, ("status", {}), ("reserve", {"patterns": ["x"]}))
    assert result_of(status)["actor"] is None
    assert error_of(refused)["code"] == "no_actor"
