"""A `queen worktree add` that was interrupted: it is gone on with, and nobody's worktree that came
meanwhile is taken for QueenBee's.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hives import QuickQueen, commit_file, git, write_lines
from made_worktrees import add, opened

from queenbee.errors import Conflict, ExternalFailure
from queenbee.git.ownership import branch_note, worktree_note
from queenbee.git.worktrees import worktree_making
from queenbee.store.git_files.worktrees import worktrees

KILLED = """
    import os, signal
    from queenbee import Hive
    from queenbee.git.worktrees import worktree_making as making

    def killed(*arguments, **more):
        {first}
        os.kill(os.getpid(), signal.SIGKILL)

    whole = making.as_the_user
    making.as_the_user = killed
    making.add(Hive.open(droid="lead"), "ui")
"""


@pytest.fixture
def tree(repo: Path) -> Path:
    """The main worktree of a repository with a file and an issue."""
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "qb-1", "title": "one", "status": "open"})
    commit_file(repo, "file.txt", "1\n")
    return repo


def kill(tree: Path, first: str) -> Path:
    """Kills a `queen worktree add ui` before `git worktree add`, or after it."""
    program = textwrap.dedent(KILLED).format(first=first)
    done = subprocess.run([sys.executable, "-c", program], cwd=tree, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return tree.parent / "repo-ui"


def kill_before(tree: Path) -> Path:
    return kill(tree, "pass")


def kill_after(tree: Path) -> Path:
    return kill(tree, "whole(*arguments, **more)")


def is_ours(tree: Path, path: Path) -> bool:
    places = [each for each in worktrees(opened(tree).layout) if each.path == str(path)]
    return any(worktree_note(each) is not None for each in places)


@pytest.mark.parametrize("work", ["commit", "file", "nothing"])
def test_a_worktree_that_a_person_makes_meanwhile_stays_theirs(tree: Path, work: str) -> None:
    path = kill_before(tree)
    git(tree, "worktree", "add", "-q", "-b", "ui", str(path))
    if work == "commit":
        commit_file(path, "private.txt", "x\n")
    elif work == "file":
        (path / "private.txt").write_text("x\n")
    for _ in range(2):
        with pytest.raises(Conflict, match="which QueenBee did not make"):
            add(opened(tree), "ui")
        assert not is_ours(tree, path)
        assert branch_note(opened(tree).layout, "ui") is None
        assert (path / "private.txt").exists() == (work != "nothing")


@pytest.mark.parametrize("interrupted", [True, False])
def test_a_branch_that_a_person_makes_meanwhile_stays_theirs(
    tree: Path, monkeypatch: pytest.MonkeyPatch, interrupted: bool
) -> None:
    """At the very commit with which that of QueenBee would begin."""

    def branch(*_: object, **__: object) -> None:
        git(tree, "branch", "--track", "ui", "main")
        git(tree, "config", "branch.ui.description", "mine")

    if interrupted:
        kill_after(tree)
        git(tree, "worktree", "remove", "-f", "-f", "../repo-ui")
        git(tree, "branch", "-D", "ui")
        branch()
    else:
        before(monkeypatch, branch)
    for _ in range(2):
        with pytest.raises((Conflict, ExternalFailure), match=r"did not make|already exists"):
            add(opened(tree), "ui")
        assert git(tree, "config", "branch.ui.description") == "mine\n"
        assert not (tree.parent / "repo-ui").exists()
    git(tree, "branch", "-D", "ui")
    monkeypatch.undo()
    add(opened(tree), "ui")


def before(monkeypatch: pytest.MonkeyPatch, does: Callable[..., object]) -> None:
    """Does something before `git worktree add`, the first time."""
    whole, todo = worktree_making.as_the_user, [does]

    def doing(*words: str, **how: Any) -> bytes:
        if words[:2] == ("worktree", "add") and todo:
            todo.pop()()
        return whole(*words, **how)

    monkeypatch.setattr(worktree_making, "as_the_user", doing)


def test_one_that_a_person_made_with_a_branch_that_is_named_stays_theirs(
    quick: QuickQueen, tree: Path
) -> None:
    path = tree.parent / "repo-ui"
    git(tree, "worktree", "add", "-q", "-b", "mine", str(path))
    refused = quick("worktree", "add", "ui", "--branch", "mine", cwd=tree)
    assert (refused.code, "which QueenBee did not make" in refused.err) == (5, True)
    assert not is_ours(tree, path)


def test_it_is_gone_on_with_where_nothing_was_done(tree: Path) -> None:
    path = kill_after(tree)
    assert add(opened(tree), "ui").path == str(path)
    assert is_ours(tree, path)
    assert "locked" not in git(tree, "worktree", "list", "--porcelain")


@pytest.mark.parametrize("work", ["commit", "file", "edit", "staged", "branch", "bisect"])
def test_it_is_not_gone_on_with_where_somebody_began_to_work(tree: Path, work: str) -> None:
    path = kill_after(tree)
    if work == "commit":
        commit_file(path, "new.txt", "x\n")
    elif work == "branch":
        git(path, "switch", "-q", "-c", "mine")
    elif work == "bisect":
        git(path, "bisect", "start")
    else:
        (path / ("file.txt" if work == "edit" else "new.txt")).write_text("2\n")
    if work == "staged":
        git(path, "add", "new.txt")
        (path / "new.txt").unlink()
    before = git(path, "status", "--porcelain=v2", "--branch")
    with pytest.raises(Conflict, match="since the call that made it was interrupted") as refused:
        add(opened(tree), "ui")
    assert not is_ours(tree, path)
    assert git(path, "status", "--porcelain=v2", "--branch") == before
    assert "--adopt" in str(refused.value.hint)


UNSEEN = ["detached", "own ref", "ignored", "repository", "submodule", "hidden", "moved"]


@pytest.mark.parametrize("work", UNSEEN)
def test_what_git_does_not_tell_of_stays_too(
    tree: Path, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file")
    commit_file(tree, ".gitignore", "*.ign\nign/\n")
    if work == "submodule":
        git(tree, "init", "-q", str(tree.parent / "lib"))
        commit_file(tree.parent / "lib", "lib.txt", "1\n")
        git(tree, "submodule", "--quiet", "add", str(tree.parent / "lib"), "lib")
        git(tree, "commit", "-qm", "lib")
    path = kill_after(tree)
    work_unseen(path, work)
    before = sorted(each for each in tree.parent.rglob("*") if "lock" not in each.name)
    with pytest.raises(Conflict, match="since the call that made it was interrupted") as refused:
        add(opened(tree), "ui")
    assert ("switch -c NAME" in str(refused.value.hint)) == (work == "detached")
    after = sorted(each for each in tree.parent.rglob("*") if "lock" not in each.name)
    assert [each for each in before if each not in after] == []
    assert not is_ours(tree, path)


def work_unseen(path: Path, work: str) -> None:
    """Does something that only a closer look finds."""
    if work == "detached":
        git(path, "switch", "-q", "--detach")
        commit_file(path, "new.txt", "x\n")
    elif work == "own ref":
        commit_file(path, "new.txt", "x\n")
        git(path, "update-ref", "refs/worktree/mine", "HEAD")
        git(path, "reset", "-q", "--hard", "HEAD~1")
    elif work == "ignored":
        (path / "secret.ign").write_text("x\n")
    elif work == "repository":
        git(path, "init", "-q", "inner")
    elif work == "submodule":
        git(path, "submodule", "--quiet", "update", "--init")
        (path / "lib" / "lib.txt").write_text("2\n")
    elif work == "hidden":
        git(path, "update-index", "--assume-unchanged", "file.txt")
        (path / "file.txt").write_text("2\n")
    else:
        (path / "new.txt").write_text("x\n")
        git(path, "add", "new.txt")
        path.rename(path.parent / "moved")


def test_what_a_person_hands_over_ends_the_interruption(quick: QuickQueen, tree: Path) -> None:
    path = kill_after(tree)
    commit_file(path, "new.txt", "x\n")
    assert quick("worktree", "add", "ui", "--adopt", "ui", cwd=tree).code == 0
    assert "locked" not in git(tree, "worktree", "list", "--porcelain")
    assert (path / "new.txt").exists()


def test_files_in_one_that_git_did_not_finish_are_not_removed(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worktree_making, "_PATIENCE_S", 0)
    path = kill_after(tree)
    (tree / ".git" / "worktrees" / "repo-ui" / "index").unlink()
    (path / "new.txt").write_text("x\n")
    with pytest.raises(Conflict, match=r"has what git did not put there: new\.txt"):
        add(opened(tree), "ui")
    (path / "new.txt").unlink()
    assert add(opened(tree), "ui").path == str(path)


@pytest.mark.parametrize("when", ["make", "sign"])
def test_an_interruption_leaves_nothing(
    tree: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(making: worktree_making._Making, *git_dir: str) -> str:
        if when == "make":
            make(making)
        raise KeyboardInterrupt

    make = worktree_making._Making.make
    monkeypatch.setattr(worktree_making._Making, when, interrupted)
    with pytest.raises(KeyboardInterrupt):
        worktree_making.add(opened(tree), "ui", issue_id="qb-1")
    assert not (tree.parent / "repo-ui").exists()
    assert git(tree, "branch", "--list", "ui") == ""
    assert not list((tree / ".git" / "queenbee-private" / "making").glob("*.json"))
    assert opened(tree).assignments.active("qb-1") is None


def test_no_other_worktree_is_forgotten_when_one_is_cleared_away(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worktree_making, "_PATIENCE_S", 0)
    person, path = tree.parent / "person", kill_after(tree)
    git(tree, "worktree", "add", "-q", "-b", "person", str(person))
    (person / "staged.txt").write_text("a day of work\n")
    git(person, "add", "staged.txt")
    away = person.rename(tree.parent / "away")
    # As a git that is killed before it has checked anything out leaves it.
    (tree / ".git" / "worktrees" / "repo-ui" / "index").unlink()
    (path / "file.txt").unlink()
    (path / ".git").unlink()
    for each in path.iterdir():
        each.unlink()
    add(opened(tree), "ui")
    assert git(away, "diff", "--cached", "--name-only") == "staged.txt\n"


def test_a_hook_that_leaves_files_and_fails_has_a_way_on(tree: Path) -> None:
    hook = tree / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\ntouch of-the-hook; exit 1\n")
    hook.chmod(0o755)
    with pytest.raises(ExternalFailure):
        add(opened(tree), "ui")
    assert add(opened(tree), "ui").path == str(tree.parent / "repo-ui")
