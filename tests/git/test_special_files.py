"""A FIFO or a socket in place of a file that git tracks: git cannot add it; it holds nothing."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hives import QuickQueen, commit_file, git

from queenbee import Hive
from queenbee.git.unfinished import WorktreeKeeper
from queenbee.store.git_files.worktrees import worktrees


@pytest.fixture
def tree(repo: Path, quick: QuickQueen) -> Path:
    commit_file(repo, "d/a.txt", "a\n")
    quick("config", "set", "land.check", "true")
    return Path(quick("worktree", "add", "ui", "--json").json["path"])


def put(tree: Path, kind: str) -> Path:
    """Puts a special file in the place of one that git tracks; returns its path."""
    path = tree / "d" / "a.txt"
    path.unlink()
    if kind == "FIFO":
        os.mkfifo(path)
    else:
        here = os.getcwd()
        os.chdir(path.parent)  # The path of a socket is short.
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(path.name)
        finally:
            os.chdir(here)
    return path


@pytest.mark.parametrize("kind", ["FIFO", "socket"])
class TestASpecialFile:
    def test_goes_with_its_worktree_and_the_rest_is_kept(
        self, quick: QuickQueen, repo: Path, tree: Path, kind: str
    ) -> None:
        put(tree, kind)
        (tree / "draft.txt").write_text("draft\n")
        refused = quick("worktree", "remove", "ui")
        assert refused.code == 5 and "d/a.txt" in refused.err
        assert quick("worktree", "remove", "ui", "--force").code == 0
        assert not tree.exists()
        assert git(repo, "show", "unfinished/repo-ui:draft.txt") == "draft\n"
        assert git(repo, "show", "unfinished/repo-ui:d/a.txt") == "a\n"

    def test_alone_leaves_no_branch(
        self, quick: QuickQueen, repo: Path, tree: Path, kind: str
    ) -> None:
        put(tree, kind)
        assert quick("worktree", "remove", "ui", "--force").code == 0
        assert git(repo, "branch", "--list", "unfinished/*") == ""

    def test_makes_room_for_the_file_when_an_agent_begins_anew(
        self, repo: Path, tree: Path, kind: str
    ) -> None:
        path = put(tree, kind)
        (tree / "draft.txt").write_text("draft\n")
        hive = Hive.open(repo, droid="lead", env={})
        place = next(each for each in worktrees(hive.layout) if each.path == str(tree))
        found = WorktreeKeeper(hive).put_back(place, branch="ui", name="work")
        assert found.branch is not None
        assert path.is_file() and path.read_text() == "a\n"
        assert git(tree, "status", "--porcelain") == ""
        assert git(repo, "show", "unfinished/work:draft.txt") == "draft\n"

    def test_is_named_where_work_is_committed(
        self, quick: QuickQueen, repo: Path, tree: Path, kind: str
    ) -> None:
        path = put(tree, kind)
        (tree / "new.txt").write_text("new\n")
        before = git(tree, "rev-parse", "HEAD")
        refused = quick("land", "-m", "work", cwd=tree, as_="ui")
        assert refused.code == 5
        assert "git keeps no FIFO, socket or device: d/a.txt" in refused.err
        assert "git restore d/a.txt" in refused.err
        assert git(tree, "rev-parse", "HEAD") == before
        git(tree, "restore", "d/a.txt")
        assert path.is_file() and path.read_text() == "a\n"
        assert quick("land", "-m", "work", cwd=tree, as_="ui").code == 0


@pytest.mark.linux
@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", [".gitattributes", ".gitignore"])
def test_a_git_that_waits_for_a_fifo_holds_up_nobody(
    quick: QuickQueen, tree: Path, name: str
) -> None:
    """Whoever wants to see them all would wait ten minutes for a git that reads a disk."""
    quick("worktree", "add", "api")
    os.mkfifo(tree / name)
    (tree / "d" / "a.txt").write_text("work\n")
    rows = quick("worktree", "list", "--json").json
    changed = {each["branch"]: each["changed"] for each in rows}
    assert (changed["api"], changed["ui"]) == ([], None)
    assert "perhaps a FIFO" in quick("worktree", "collisions").out
