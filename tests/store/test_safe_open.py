"""The one module that opens files, and the few places that open something else."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import ROOT

from queenbee.errors import Unreadable
from queenbee.store import safe_open

CALLS = {
    "open", "os.open", "os.mkdir", "os.makedirs", "os.replace", "os.rename", "os.renames",
    "os.unlink", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.mkfifo",
    "os.chmod", "shutil.rmtree", "shutil.copy", "shutil.move", "io.open",
}  # fmt: skip
"""Calls that open, make or change a file by its path."""

ELSEWHERE = {
    ("agents/files/file_edits.py", "os.rmdir"): "removes folders that are empty",
    ("agents/opencode.py", "open"): "reads a file of this package",
    ("checks/content.py", "os.open"): "reads the file that a check names, in a process of its own",
    ("checks/processes.py", "open"): "reads /proc",
    ("cli/commands/verify.py", "open"): "reads evidence to show its end",
    ("cli/main.py", "open"): "/dev/null",
    ("cli/main.py", "os.open"): "/dev/null",
    ("documents/gates/gate.py", "open"): "reads a schema of this package",
    ("documents/ralph/ralph_bead.py", "open"): "reads a schema of this package",
    ("documents/sprints/sprint_bead.py", "open"): "reads a schema of this package",
    ("hook/permits.py", "open"): "reads in the git directory and the state directory",
    ("git/changes.py", "open"): "reads MERGE_HEAD, in the git directory",
    ("git/collisions/cache.py", "os.mkdir"): "in a temporary folder",
    ("git/collisions/cache.py", "shutil.rmtree"): "follows no links",
    ("git/collisions/pairs.py", "open"): "copies attributes into a temporary folder",
    ("git/collisions/pairs.py", "os.makedirs"): "in a temporary folder",
    ("git/landing/healing.py", "open"): "reads files of the tree, and an index",
    ("git/landing/healing.py", "os.rmdir"): "removes folders that are empty",
    ("git/landing/healing.py", "os.unlink"): "git's locks, in the git directory",
    ("git/landing/arrivals.py", "open"): "reads the state of a rebase, in the git directory",
    ("git/landing/joining.py", "open"): "a message in a temporary folder",
    ("git/landing/place.py", "open"): "reads the state of a rebase, in the git directory",
    ("git/landing/conflicts.py", "open"): "writes into a temporary folder",
    ("git/landing/judged/checked_out.py", "os.open"): "reads files of the tree, and no links",
    ("git/landing/together/checked.py", "open"): "in a temporary folder",
    ("git/landing/together/checked.py", "os.makedirs"): "in a temporary folder",
    ("git/remote/branch.py", "os.unlink"): "git's lock of a ref, in the git directory",
    ("git/remote/leftovers.py", "os.unlink"): "git's unfinished packs, in the git directory",
    ("git/worktrees/worktree_making.py", "os.rmdir"): "removes a folder that is empty",
    (
        "git/worktrees/worktree_making.py",
        "os.unlink",
    ): "what a killed `git worktree add` left beside the tree",
    ("git/index_lock.py", "os.open"): "git's lock of the index, in the git directory",
    ("git/index_lock.py", "os.unlink"): "the same, as git removes it",
    ("git/contents/record_blobs.py", "os.replace"): "the index, as git replaces it",
    ("git/worktrees/worktree_mending.py", "os.unlink"): "locks that nobody holds any more",
    ("git/worktrees/worktree_mending.py", "open"): "reads /proc",
    ("git/worktrees/worktree_mending.py", "os.rename"): "of a worktree, to a name beside it",
    ("git/run.py", "os.open"): "/dev/null",
    ("git/hooks.py", "os.chmod"): "of a hook that was just written",
    ("git/hooks.py", "os.link"): "by the handle of the folder",
    ("git/hooks.py", "os.replace"): "by the handle of the folder",
    ("mcp/server.py", "os.open"): "/dev/null",
    ("report/page.py", "open"): "reads a file of this package",
    ("tui/web.py", "open"): "reads files of this package",
    ("services/waiting/landing_steps.py", "os.rename"): "sets aside what is no file there",
    ("services/waiting/landing_steps.py", "os.rmdir"): "removes folders that are empty",
    ("services/writing/credentials.py", "open"): "reads a file of this package",
    ("store/droids/agent_callers.py", "open"): "reads /proc",
    ("store/droids/agent_callers.py", "os.makedirs"): "below the user's home folder",
    ("store/whole_files.py", "os.link"): "by the handle of the folder",
    (
        "store/whole_files.py",
        "os.open",
    ): "reads a document that a user names, behind links too",
    ("store/whole_files.py", "os.replace"): "by the handle of the folder",
    ("workflows/imports.py", "open"): "reads the branches in the git directory",
    ("store/memory/database.py", "os.rename"): "of a damaged file, to a name beside it",
    ("store/memory/old_journal.py", "os.rmdir"): "removes a folder that is empty",
    ("store/git_trees.py", "open"): "reads in the git directory, and pointers of git and Beads",
    ("starting/processes/child.py", "open"): "reads /proc",
    ("starting/processes/minder.py", "open"): "reads /proc",
    ("starting/processes/minder.py", "os.open"): "makes a file that must not be there yet",
    ("starting/processes/minder.py", "os.unlink"): "removes a link, and not what it leads to",
    ("starting/processes/minder.py", "os.replace"): "renames a link, and not what it leads to",
    ("store/trust.py", "os.makedirs"): "the user's folder for state, outside of repositories",
    ("store/trust.py", "os.mkdir"): "by the handle of the folder",
    ("store/droids/liveness.py", "open"): "reads /proc",
}
"""What is not opened by the one module, and why."""


def calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in CALLS:
            yield name


def test_no_other_module_opens_a_file() -> None:
    package = ROOT / "queenbee"
    found = {
        (path.relative_to(package).as_posix(), name)
        for path in package.rglob("*.py")
        if path.name != "safe_open.py"
        for name in calls(path)
    }
    assert found == set(ELSEWHERE)


def test_a_folder_that_was_walked_to_is_known_until_it_is_another(tmp_path: Path) -> None:
    folder = tmp_path / "one" / "two"
    folder.mkdir(parents=True)
    path = str(folder / "file")
    safe_open.write(path, b"first")
    (tmp_path / "one").rename(tmp_path / "moved")
    folder.mkdir(parents=True)
    safe_open.write(path, b"second")
    assert (tmp_path / "moved" / "two" / "file").read_bytes() == b"first"
    assert safe_open.read(path) == b"second"


def test_a_folder_that_becomes_a_link_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "one" / "two"
    folder.mkdir(parents=True)
    path = str(folder / "file")
    safe_open.write(path, b"first")
    (tmp_path / "one").rename(tmp_path / "moved")
    (tmp_path / "one").symlink_to(tmp_path / "moved" / ".." / "elsewhere")
    (tmp_path / "elsewhere" / "two").mkdir(parents=True)
    with pytest.raises(Unreadable, match="one is a symbolic link"):
        safe_open.write(path, b"second")
    assert os.listdir(tmp_path / "elsewhere" / "two") == []


def test_what_is_no_folder_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        safe_open.read(str(tmp_path / "file" / "below"))


class TestAPathThatAUserNames:
    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        tree = tmp_path / "tree"
        (tree / ".git" / "hooks").mkdir(parents=True)
        (tree / "docs").mkdir()
        (tmp_path / "outside").mkdir()
        return tree

    def test_is_followed_within_the_tree(self, tree: Path) -> None:
        (tree / "linked").symlink_to("docs")
        named = safe_open.resolved(str(tree / "linked" / "plan.md"))
        assert named == str(tree / "docs" / "plan.md")

    def test_is_followed_where_the_tree_itself_is_linked(self, tree: Path) -> None:
        (tree.parent / "home").symlink_to(tree)
        named = safe_open.resolved(str(tree.parent / "home" / "docs" / "plan.md"))
        assert named == str(tree / "docs" / "plan.md")

    @pytest.mark.parametrize("target", ["../outside", ".git/hooks", ".beads", ".BEADS"])
    def test_does_not_leave_the_tree_or_enter_the_folder_of_git_or_a_hive(
        self, tree: Path, target: str
    ) -> None:
        (tree / ".beads").mkdir()
        (tree / "linked").symlink_to(target)
        with pytest.raises(Unreadable, match="leads through a symbolic link"):
            safe_open.resolved(str(tree / "linked" / "pre-commit"))
