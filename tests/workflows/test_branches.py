"""The default branch of a repository, found without running git."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import git

from queenbee.store.git_trees import git_tree
from queenbee.workflows.imports import default_branch, usual_branch_prefix


def made(path: Path, branch: str) -> Path:
    path.mkdir()
    git(path, "init", "-q", "-b", branch)
    git(path, "commit", "-q", "--allow-empty", "-m", "first")
    return path


@pytest.mark.parametrize("branch", ["main", "master", "develop"])
def test_the_default_branch_is_the_repositorys_own(tmp_path: Path, branch: str) -> None:
    repo = made(tmp_path / "repo", branch)
    assert default_branch(git_tree(str(repo))) == branch


@pytest.mark.parametrize("branch", ["main", "master"])
def test_it_is_found_from_other_branches_and_worktrees(tmp_path: Path, branch: str) -> None:
    repo = made(tmp_path / "repo", branch)
    git(repo, "checkout", "-q", "-b", "feature")
    git(repo, "pack-refs", "--all")
    git(repo, "worktree", "add", "-q", str(tmp_path / "other"), "-b", "work")
    assert default_branch(git_tree(str(tmp_path / "other"))) == branch


def test_a_clone_has_that_of_its_origin(tmp_path: Path) -> None:
    origin = made(tmp_path / "origin", "trunk")
    git(tmp_path, "clone", "-q", str(origin), "clone")
    git(tmp_path / "clone", "checkout", "-q", "-b", "main")
    assert default_branch(git_tree(str(tmp_path / "clone"))) == "trunk"


def test_outside_git_it_is_main() -> None:
    assert default_branch(None) == "main"
    assert usual_branch_prefix(None) is None


def test_a_branch_named_sprint_leaves_another_prefix(tmp_path: Path) -> None:
    repo = made(tmp_path / "repo", "main")
    assert usual_branch_prefix(git_tree(str(repo))) is None
    git(repo, "branch", "sprint")
    assert usual_branch_prefix(git_tree(str(repo))) == "sprints"
