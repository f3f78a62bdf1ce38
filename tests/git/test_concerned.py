"""Whom a landing concerns: everybody who has a file that it changed in a form of their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from acting import remember_name
from hives import QuickQueen, commit_file, git

from queenbee.git.trees import concerned

Worktree = Callable[[str], Path]
OLD = "".join(f"line {number}\n" for number in range(1, 11))
NEW = f"new\n{OLD}"


@pytest.fixture
def worktree(repo: Path, tmp_path: Path) -> Worktree:
    """Makes a linked worktree for a droid, on a branch, both of the same name."""

    def made(name: str) -> Path:
        git(repo, "worktree", "add", "-q", str(tmp_path / name), "-b", name)
        remember_name(tmp_path / name, name)
        return tmp_path / name

    return made


@pytest.fixture
def mine(repo: Path, worktree: Worktree) -> Path:
    """The worktree that lands; the repository has files of ten lines."""
    for name in ("a.txt", "gone.txt"):
        commit_file(repo, name, OLD)
    return worktree("mine")


def told(quick: QuickQueen, tree: Path) -> list[str]:
    done = quick("land", "--unchecked", "--json", cwd=tree, as_="mine")
    assert done.code == 0, done
    listed: list[str] = done.json["told"]
    return listed


def change(tree: Path) -> None:
    """Commits an edit, a new file and a removal."""
    commit_file(tree, "a.txt", NEW)
    commit_file(tree, "fresh.txt", "x\n")
    git(tree, "rm", "-q", "gone.txt")
    git(tree, "commit", "-qm", "away")


def edited(tree: Path) -> None:
    (tree / "a.txt").write_text(f"{OLD}theirs\n")


def committed(tree: Path) -> None:
    commit_file(tree, "a.txt", f"{OLD}theirs\n")


def both(tree: Path) -> None:
    committed(tree)
    (tree / "a.txt").write_text(f"{OLD}theirs, and more\n")


def staged_and_deleted(tree: Path) -> None:
    git(tree, "rm", "-q", "a.txt")


def renamed(tree: Path) -> None:
    git(tree, "mv", "gone.txt", "other.txt")
    git(tree, "commit", "-qm", "renamed")
    (tree / "fresh.txt").write_text("x\n")


def untracked_of_that_name(tree: Path) -> None:
    (tree / "fresh.txt").write_text("theirs\n")


def edited_where_it_was_removed(tree: Path) -> None:
    (tree / "gone.txt").write_text("theirs\n")


def a_folder_of_that_name(tree: Path) -> None:
    (tree / "fresh.txt").mkdir()
    (tree / "fresh.txt" / "x").write_text("x\n")


def a_link_of_that_name(tree: Path) -> None:
    (tree / "fresh.txt").symlink_to("a.txt")


def large(tree: Path) -> None:
    (tree / "a.txt").write_text(OLD * 50_000)


def detached(tree: Path) -> None:
    git(tree, "checkout", "-q", "--detach")
    committed(tree)


def merging_other_work(tree: Path) -> None:
    git(tree, "checkout", "-qb", "side")
    committed(tree)
    git(tree, "checkout", "-q", tree.name)
    git(tree, "merge", "-q", "--no-ff", "--no-commit", "side")
    (tree / "a.txt").write_text(f"{OLD}theirs, merged\n")


CONCERNED = [
    *(edited, committed, both, staged_and_deleted, untracked_of_that_name),
    *(edited_where_it_was_removed, a_link_of_that_name, large, detached, merging_other_work),
]


def nothing(tree: Path) -> None:
    pass


def another_file(tree: Path) -> None:
    commit_file(tree, "other.txt", "x\n")
    (tree / "more.txt").write_text("x\n")


def taken_back(tree: Path) -> None:
    committed(tree)
    (tree / "a.txt").write_text(OLD)


def just_brought(tree: Path) -> None:
    """Git writes the files of a worktree before it moves its branch."""
    (tree / "a.txt").write_text(NEW)
    (tree / "fresh.txt").write_text("x\n")
    (tree / "gone.txt").unlink()


def the_same_change(tree: Path) -> None:
    change(tree)
    commit_file(tree, "other.txt", "x\n")


def ignored_of_that_name(tree: Path) -> None:
    (tree / ".gitignore").write_text("ignored.txt\n")
    (tree / "ignored.txt").write_text("theirs\n")


def left_out_of_the_tree(tree: Path) -> None:
    git(tree, "update-index", "--skip-worktree", "a.txt")
    (tree / "a.txt").unlink()


def other_line_ends(tree: Path) -> None:
    (tree / ".gitattributes").write_text("crlf.txt text eol=crlf\n")
    (tree / "crlf.txt").unlink()
    git(tree, "checkout", "-q", "crlf.txt")
    assert b"\r\n" in (tree / "crlf.txt").read_bytes()


def without_common_history(tree: Path) -> None:
    git(tree, "checkout", "-q", "--orphan", "pages")
    commit_file(tree, "a.txt", "pages\n")


def without_a_commit(tree: Path) -> None:
    git(tree, "checkout", "-q", "--orphan", "empty")


def on_a_commit_that_is_gone(tree: Path) -> None:
    ref = git(tree, "rev-parse", "--git-path", f"refs/heads/{tree.name}").strip()
    (tree / ref).write_text(f"{'1' * 40}\n")


LEFT_OUT = [
    *(nothing, another_file, taken_back, just_brought, the_same_change, ignored_of_that_name),
    *(left_out_of_the_tree, other_line_ends, without_common_history, without_a_commit),
    on_a_commit_that_is_gone,
]


@pytest.mark.slow
@pytest.mark.parametrize("is_many", [False, True])
def test_everybody_is_told_who_has_a_file_in_a_form_of_their_own(
    quick: QuickQueen, repo: Path, mine: Path, worktree: Worktree, is_many: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if is_many:
        monkeypatch.setattr(concerned, "_MANY", 1)
    commit_file(repo, "crlf.txt", OLD)
    git(mine, "merge", "-q", "--ff-only", "main")
    for make in (*CONCERNED, *LEFT_OUT):
        make(worktree(make.__name__))
    change(mine)
    commit_file(mine, "crlf.txt", NEW)
    commit_file(mine, "ignored.txt", "x\n")
    assert told(quick, mine) == sorted(each.__name__ for each in CONCERNED)


def test_a_file_that_was_renamed_is_no_longer_there(
    quick: QuickQueen, mine: Path, worktree: Worktree
) -> None:
    renamed(worktree("api"))
    commit_file(mine, "gone.txt", NEW)
    assert told(quick, mine) == ["api"]


def test_who_has_the_landing_already_is_not_told_of_it(
    quick: QuickQueen, repo: Path, mine: Path, worktree: Worktree
) -> None:
    other = worktree("api")
    change(mine)
    git(other, "merge", "-q", "--ff-only", "mine")
    edited(other)
    assert told(quick, mine) == []


def test_who_is_slow_to_look_at_is_told_too(
    quick: QuickQueen, mine: Path, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git waits for ever for a FIFO in place of an ignore file, in the tree of another agent."""
    monkeypatch.setattr(concerned, "_LIMIT_S", 0.2)
    for name in ("api", "db", "ops"):
        os.mkfifo(worktree(name) / ".gitignore")
    for name in ("api", "db"):
        untracked_of_that_name(mine.parent / name)
    change(mine)
    assert told(quick, mine) == ["api", "db"]


def test_one_whose_commit_git_cannot_read_keeps_nobody_from_being_told(
    quick: QuickQueen, repo: Path, mine: Path, worktree: Worktree
) -> None:
    for name in ("api", "db", "ops"):
        committed(worktree(name))
    (mine.parent / "db" / "d").mkdir()
    commit_file(mine.parent / "db", "d/x", "only here\n")
    files = git(mine.parent / "db", "rev-parse", "HEAD^{tree}").strip()
    (repo / ".git" / "objects" / files[:2] / files[2:]).unlink()
    change(mine)
    assert told(quick, mine) == ["api", "db", "ops"]


def test_however_many_worktrees_have_moved_as_many_gits_are_started(
    quick: QuickQueen, mine: Path, worktree: Worktree, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    counts = []
    for number, names in enumerate((["a"], ["b"], ["c", "d", "e", "f"])):
        for name in names:
            commit_file(worktree(name), f"{name}.md", "x\n")
        for name in ("a.txt", f"mine-{number}.txt"):
            commit_file(mine, name, f"{number}\n")
        trace = tmp_path / f"trace-{number}"
        monkeypatch.setenv("GIT_TRACE2_PERF", str(trace))
        assert told(quick, mine) == []
        monkeypatch.delenv("GIT_TRACE2_PERF")
        counts.append(trace.read_text().count("| start "))
    assert counts[1] == counts[2]
