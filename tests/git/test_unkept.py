"""Files that git refuses to add, or that a filter shortens, are kept beside a worktree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hives import commit_file, git
from made_worktrees import add, opened, remove

from queenbee.git.worktrees.worktree_mending import WorktreeMender

CONTENT = b"a\r\nb\r\n"


@pytest.fixture
def tree(repo: Path) -> Path:
    """A worktree `ui` of a repository that forbids other line ends."""
    commit_file(repo, "known.txt", "x\n")
    git(repo, "config", "core.autocrlf", "input")
    git(repo, "config", "core.safecrlf", "true")
    return Path(add(opened(repo), "ui").path)


@pytest.fixture
def aside(repo: Path) -> Path:
    """Where it is kept."""
    return repo.with_name("repo-ui.set-aside-1")


def cleared(repo: Path) -> list[str]:
    """Returns what is said when the worktree is cleared for the next issue."""
    path = str(repo.with_name("repo-ui"))
    mender = WorktreeMender(opened(repo), path, "ui", lambda: add(opened(repo), "ui"))
    return [*mender.mend("work", keeps_merge=False), *mender.clear("work")]


def end(repo: Path, how: str) -> None:
    """Clears the worktree, or removes it by force."""
    if how == "cleared":
        cleared(repo)
    else:
        assert remove(opened(repo), "ui", force=True).aside is not None


def make(tree: Path, what: str) -> str:
    """Makes a file that git refuses to add; returns its path."""
    if what == "gitmodules":
        (tree / ".gitmodules").symlink_to("x")
        return ".gitmodules"
    path = {"name": "git~1/w", "new": "sub/w.txt", "known": "known.txt"}[what]
    (tree / path).parent.mkdir(exist_ok=True)
    (tree / path).write_bytes(CONTENT)
    return path


@pytest.mark.parametrize("what", ["new", "known", "name", "gitmodules"])
def test_what_git_refuses_to_add_is_set_aside_when_a_worktree_is_cleared(
    repo: Path, tree: Path, aside: Path, what: str
) -> None:
    path = make(tree, what)
    (tree / "other.txt").write_text("work\n")
    (said,) = cleared(repo)
    assert f"what git does not keep as it is was set aside in {aside}" in said
    kept = aside / path
    assert kept.is_symlink() if what == "gitmodules" else kept.read_bytes() == CONTENT
    assert git(repo, "show", "unfinished/work:other.txt") == "work\n"
    assert git(tree, "status", "--porcelain") == ""
    assert cleared(repo) == []


@pytest.mark.parametrize("what", ["new", "known", "name", "gitmodules"])
def test_a_worktree_with_such_a_file_can_be_removed(
    repo: Path, tree: Path, aside: Path, what: str
) -> None:
    path = make(tree, what)
    (tree / "other.txt").write_text("work\n")
    removed = remove(opened(repo), "ui", force=True)
    assert (removed.kept, removed.aside) == ("unfinished/repo-ui", str(aside))
    assert os.path.lexists(aside / path)
    assert git(repo, "show", "unfinished/repo-ui:other.txt") == "work\n"
    assert not tree.exists()


@pytest.mark.parametrize("how", ["cleared", "removed"])
def test_such_a_file_in_a_folder_in_place_of_a_tracked_file_is_set_aside(
    repo: Path, tree: Path, aside: Path, how: str
) -> None:
    (tree / "known.txt").unlink()
    (tree / "known.txt").mkdir()
    (tree / "known.txt" / "new").write_bytes(CONTENT)
    end(repo, how)
    assert (aside / "known.txt" / "new").read_bytes() == CONTENT
    assert not tree.exists() or (tree / "known.txt").read_text() == "x\n"


@pytest.mark.parametrize("how", ["cleared", "removed"])
def test_a_file_behind_a_link_in_place_of_a_folder_is_left_alone(
    repo: Path, tree: Path, aside: Path, tmp_path: Path, how: str
) -> None:
    commit_file(repo, "d/a.txt", "a\n")
    commit_file(repo, ".gitattributes", "d/* filter=strip\n")
    git(repo, "config", "filter.strip.clean", "sed /output/d")
    git(tree, "merge", "-q", "main")
    (tree / "d" / "a.txt").unlink()
    (tree / "d").rmdir()
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "a.txt").write_text("theirs\n")
    (tree / "d").symlink_to(tmp_path / "theirs")
    (tree / "new").write_bytes(CONTENT)
    end(repo, how)
    assert (tmp_path / "theirs" / "a.txt").read_text() == "theirs\n"
    assert [each.name for each in aside.iterdir()] == ["new"]


@pytest.mark.parametrize("refused", [True, False])
def test_a_repository_without_commits_keeps_no_worktree_from_going(
    repo: Path, tree: Path, aside: Path, refused: bool
) -> None:
    git(tree, "init", "-q", "inner")
    (tree / "inner" / "draft").write_text("draft\n")
    (tree / "new").write_bytes(CONTENT if refused else b"work\n")
    (tree / "other.txt").write_text("work\n")
    removed = remove(opened(repo), "ui", force=True)
    assert not tree.exists()
    assert git(repo, "show", f"{removed.kept}:other.txt") == "work\n"
    assert removed.aside == (str(aside) if refused else None)
    assert [*repo.parent.glob("**/draft")] == []


def test_what_a_filter_leaves_out_is_kept_when_a_worktree_is_cleared(
    repo: Path, tree: Path, aside: Path
) -> None:
    commit_file(repo, ".gitattributes", "*.ipynb filter=strip\n*.bin filter=whole\n")
    git(tree, "merge", "-q", "main")
    git(repo, "config", "filter.strip.clean", "sed /output/d")
    git(repo, "config", "filter.whole.clean", "tr a-z b-za")
    git(repo, "config", "filter.whole.smudge", "tr b-za a-z")
    (tree / "a.ipynb").write_text("cell\noutput\n")
    (tree / "a.bin").write_text("abc\n")
    cleared(repo)
    assert git(repo, "show", "unfinished/work:a.ipynb") == "cell\n"
    assert (aside / "a.ipynb").read_text() == "cell\noutput\n"
    assert [each.name for each in aside.iterdir()] == ["a.ipynb"]
