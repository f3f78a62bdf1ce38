"""Two commits merged without a worktree, also by a git that has no `merge-tree --write-tree`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hives import commit_file, git

from queenbee import Hive
from queenbee.git.landing import NotLanded, Rules, land
from queenbee.git.trees.in_memory import merged_in_memory

OLD, FAILING = 129, 128
"""What `git merge-tree` ends with before git 2.38, and where it cannot tell."""
Answer = Callable[[int], None]


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Puts a git into `PATH` whose merges in memory end with a status."""

    def put(status: int) -> None:
        shim = tmp_path / "bin" / "git"
        shim.parent.mkdir()
        refuse = f'[ "$each" != --write-tree ] || exit {status}'
        shim.write_text(
            f'#!/bin/sh\nfor each; do {refuse}; done\nexec {shutil.which("git")} "$@"\n'
        )
        shim.chmod(0o755)
        monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")

    return put


@pytest.fixture
def tree(repo: Path, tmp_path: Path) -> Path:
    """A worktree that has its own, ignored, where a merge puts a file of the main branch: into the
    folder that it renamed.
    """
    (repo / "old").mkdir()
    for name in ("a", "b", "c"):
        (repo / "old" / name).write_text(f"{name}\n" * 20)
    (repo / ".gitignore").write_text("new/local.cfg\n")
    (repo / ".gitattributes").write_text("list merge=union\n")
    git(repo, "add", "-A", "old", ".gitignore", ".gitattributes")
    git(repo, "commit", "-qm", "old")
    tree = tmp_path / "one"
    git(repo, "worktree", "add", "-q", str(tree), "-b", "one")
    git(tree, "mv", "old", "new")
    git(tree, "commit", "-qm", "rename")
    (tree / "new" / "local.cfg").write_text("my own\n")
    (repo / "old" / "local.cfg").write_text("theirs\n")
    git(repo, "add", "-f", "old/local.cfg")
    git(repo, "commit", "-qm", "more")
    return tree


def refusal(tree: Path, strategy: str = "merge") -> NotLanded:
    hive = Hive.open(tree, droid="one", env={})
    with pytest.raises(NotLanded) as refused:
        land(hive, check=None, wait_s=10, rules=Rules(strategy=strategy))
    assert (tree / "new" / "local.cfg").read_text() == "my own\n"
    assert git(tree, "status", "--porcelain") == ""
    return refused.value


@pytest.mark.parametrize("conflicts", [False, True])
def test_an_older_git_says_the_same(
    repo: Path, tree: Path, answer: Answer, *, conflicts: bool
) -> None:
    git(repo, "config", "merge.directoryRenames", "true")  # Else that is a conflict.
    for each in (repo, tree):
        commit_file(each, "list", f"{each.name}\n")
        if conflicts:
            commit_file(each, "README.md", f"{each.name}\n")
    before = git(tree, "for-each-ref"), git(tree, "worktree", "list")
    main = git(repo, "rev-parse", "main").strip()
    said = merged_in_memory(str(tree), "HEAD", main)
    answer(OLD)
    assert merged_in_memory(str(tree), "HEAD", main) == said
    assert (said[1] is not None) == conflicts
    assert "new/local.cfg" in git(tree, "ls-tree", "-r", "--name-only", said[0])
    assert (git(tree, "for-each-ref"), git(tree, "worktree", "list")) == before
    assert git(tree, "status", "--porcelain") == ""


def test_with_an_older_git_no_ignored_file_is_replaced(tree: Path, answer: Answer) -> None:
    answer(OLD)
    assert refusal(tree).details["files"] == ["new/local.cfg"]


@pytest.mark.parametrize("strategy", ["merge", "rebase"])
def test_nothing_is_overwritten_where_git_does_not_say_what_a_merge_would_write(
    tree: Path, answer: Answer, strategy: str
) -> None:
    answer(FAILING)
    assert "git does not say which files main would bring here" in refusal(tree, strategy).message
