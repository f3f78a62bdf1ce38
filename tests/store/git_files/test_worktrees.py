"""The worktrees of a repository, found without running git, against git's own answers."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from hives import git

from queenbee.store.git_files.worktrees import branch_head, current_branch, target_branch, worktrees
from queenbee.store.layout import discover

if TYPE_CHECKING:
    from pathlib import Path

    from queenbee.store.layout import Layout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    path = tmp_path / "repo"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    (path / ".beads").mkdir()
    git(path, "commit", "-q", "--allow-empty", "-m", "first")
    return path


def layout(folder: Path) -> Layout:
    return discover(str(folder), {})


def added(repo: Path, name: str, *options: str) -> Path:
    path = repo.parent / name
    git(repo, "worktree", "add", "-q", str(path), *options)
    return path


def test_all_of_them_are_found_from_any_of_them(repo: Path) -> None:
    work = added(repo, "wörk tree", "-b", "topic/one")
    loose = added(repo, "loose", "--detach")
    git(work, "commit", "-q", "--allow-empty", "-m", "second")
    for start in (repo, work, loose):
        found = worktrees(layout(start))
        assert [(each.path, each.branch, each.linked) for each in found] == [
            (str(repo), "main", False),
            (str(loose), None, True),
            (str(work), "topic/one", True),
        ]
        for each, folder in zip(found, (repo, loose, work), strict=True):
            assert each.head == git(folder, "rev-parse", "HEAD").strip()
        assert target_branch(layout(start)) == "main"


@pytest.mark.parametrize("name", ["two\nlines", "a\x85b", "a\u2028b", "ends\u00a0", "tab\t.x"])
def test_a_folder_of_any_name_is_found_with_its_hive(repo: Path, name: str) -> None:
    work = added(repo, name, "-b", "topic")
    for start in (repo, work):
        assert [each.path for each in worktrees(layout(start))] == [str(repo), str(work)]
    inside = repo.parent / f"top-{name}"
    repo.rename(inside)
    git(inside, "worktree", "repair", str(work))
    assert layout(work).beads_dir == str(inside / ".beads")


@pytest.mark.parametrize("more", ["\u00a0", "\u2028x", "\x85", "\u3000"])
def test_a_branch_is_not_taken_for_one_with_a_shorter_name(repo: Path, more: str) -> None:
    work = added(repo, "work", "-b", f"main{more}")
    git(work, "commit", "-q", "--allow-empty", "-m", "second")
    for _ in range(2):
        found = {each.path: (each.branch, each.head) for each in worktrees(layout(repo))}
        assert found[str(work)] == (f"main{more}", git(work, "rev-parse", "HEAD").strip())
        assert found[str(repo)] == ("main", git(repo, "rev-parse", "HEAD").strip())
        git(repo, "pack-refs", "--all")


def test_packed_references_count_too(repo: Path) -> None:
    work = added(repo, "work", "-b", "topic")
    git(repo, "pack-refs", "--all")
    heads = {each.branch: each.head for each in worktrees(layout(work))}
    assert heads["topic"] == heads["main"] == git(repo, "rev-parse", "HEAD").strip()
    git(work, "commit", "-q", "--allow-empty", "-m", "second")
    assert branch_head(str(repo / ".git"), "topic") == git(work, "rev-parse", "HEAD").strip()


def test_one_whose_folder_is_gone_is_left_out(repo: Path) -> None:
    shutil.rmtree(added(repo, "work", "-b", "topic"))
    assert [each.path for each in worktrees(layout(repo))] == [str(repo)]


def test_a_branch_without_commits_has_no_head(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / ".beads").mkdir()
    (found,) = worktrees(layout(tmp_path))
    assert (found.branch, found.head) == ("main", None)


def test_the_name_that_a_worktree_remembers(repo: Path) -> None:
    work = added(repo, "work", "-b", "topic")
    (repo / ".git/worktrees/work/queenbee-droid").write_text("sparky\n")
    (repo / ".git/queenbee-droid").write_text("../../no name\n")
    assert [each.droid for each in worktrees(layout(work))] == [None, "sparky"]


def test_outside_git_there_are_none(tmp_path: Path) -> None:
    (tmp_path / ".beads").mkdir()
    assert worktrees(layout(tmp_path)) == []
    assert target_branch(layout(tmp_path)) is None


@pytest.mark.parametrize("head", ["", "ref: refs/tags/x", "0" * 40, "ref: refs/heads/.invalid"])
def test_a_head_that_names_no_branch(tmp_path: Path, head: str) -> None:
    (tmp_path / "HEAD").write_text(head)
    assert current_branch(str(tmp_path)) is None


def test_a_head_that_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "HEAD")
    assert current_branch(str(tmp_path)) is None
