"""Names of files: the parts inside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from entry_points import run_hook
from hives import git

from queenbee import Hive
from queenbee.store.git_trees import folds_case, git_tree


def hold(tree: Path, pattern: str) -> None:
    env = {"QUEEN_DURABILITY": "buffered"}
    Hive.open(tree, droid="reviewer", env=env).reservations.reserve([pattern])


def event_of(cwd: Path, name: str) -> bytes:
    event = {"hook_event_name": "PreToolUse", "session_id": "s-1234567", "tool_name": "Write"}
    return json.dumps({**event, "cwd": str(cwd), "tool_input": {"file_path": name}}).encode()


def refused(cwd: Path, name: str) -> bool:
    env = {"QUEEN_DROID": "mo", "QUEEN_DURABILITY": "buffered"}
    answer: dict[str, Any] | None = run_hook(event_of(cwd, name), env, str(cwd))
    return answer is not None and "reserved by reviewer" in json.dumps(answer)


def test_an_empty_git_folder_does_not_hide_the_repository(tree: Path) -> None:
    hold(tree, "src/**")
    (tree / "src" / ".git").mkdir()
    assert refused(tree, "src/app.py")
    found = git_tree(str(tree / "src"))
    assert found is not None
    assert found.tree == str(tree)


def test_whether_case_counts_may_be_said_in_an_included_file(tree: Path, tmp_path: Path) -> None:
    common = str(tree / ".git")
    git(tree, "config", "--unset-all", "core.ignorecase") if folds_case(common) else None
    (tmp_path / "inc").write_text("[core]\n\tignorecase = true\n")
    git(tree, "config", "include.path", "../../outer")
    (tmp_path / "outer").write_text('[include]\n\tpath = "inc"\n')
    assert folds_case(common)
    hold(tree, "src/**")
    assert refused(tree, "SRC/App.py")
    (tmp_path / "inc").write_text("[include]\n\tpath = inc\n")
    assert not folds_case(common)
