"""Worktrees that `queen worktree` makes and removes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from acting import answer
from hives import git

from queenbee import Assignment, Hive


def opened(tree: Path, droid: str | None = "lead") -> Hive:
    return Hive.open(tree, droid=droid, env={})


def add(
    hive: Hive, name: str, *, issue_id: str | None = None, branch: str | None = None
) -> SimpleNamespace:
    """Returns what `queen worktree add` made."""
    options = [f"--branch={branch}"] if branch else []
    words = [name, issue_id] if issue_id else [name]
    made = answer(hive, "worktree", "add", *options, "--", *words)
    assignment = Assignment(made["assignment"]) if made["assignment"] else None
    return SimpleNamespace(**{**made, "assignment": assignment})


def remove(hive: Hive, name: str, *, force: bool = False) -> SimpleNamespace:
    """Returns what `queen worktree remove` removed."""
    options = ["--force"] if force else []
    return SimpleNamespace(**answer(hive, "worktree", "remove", *options, "--", name))


def assert_whole(repo: Path, name: str) -> Path:
    path = repo.parent / f"repo-{name}"
    assert git(path, "status", "--porcelain") == ""
    assert git(path, "branch", "--show-current").strip() == name
    assert (path / "file29.txt").read_text() == (repo / "file29.txt").read_text()
    assert Hive.open(path, env={}).actor == name
    assert not list((repo / ".git" / "queenbee-private" / "making").glob("*.json"))
    assert "locked" not in git(repo, "worktree", "list", "--porcelain")
    return path


STOPPING = """
    import os, signal, sys

    wanted, step = int(sys.argv[1]), 0

    def stopping(function):
        def stepped(*arguments, **more):
            global step
            for _ in range(2):  # Before and after.
                step += 1
                if step == wanted:
                    os.kill(os.getpid(), signal.SIGKILL)
                if _ == 0:
                    result = function(*arguments, **more)
            return result
        return stepped
"""
"""The beginning of a program that is killed before or after one of the steps that it wraps."""
