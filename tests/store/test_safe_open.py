"""The one module that opens files, and the few places that open something else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from pages import ROOT

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
    ("cli/outliving.py", "open"): "reads what a landing prints, in the git directory",
    ("cli/outliving.py", "os.open"): "/dev/null",
    ("cli/main.py", "os.open"): "/dev/null",
    ("documents/gates/gate.py", "open"): "reads a schema of this package",
    ("documents/ralph/ralph_bead.py", "open"): "reads a schema of this package",
    ("documents/sprints/sprint_bead.py", "open"): "reads a schema of this package",
    ("hook/permits.py", "open"): "reads in the git directory and the state directory",
    ("store/droids/asleep.py", "open"): "reads /proc",
    ("git/collisions/cache.py", "os.mkdir"): "in a temporary folder",
    ("git/collisions/cache.py", "shutil.rmtree"): "follows no links",
    ("git/collisions/pairs.py", "open"): "copies attributes into a temporary folder",
    ("git/collisions/pairs.py", "os.makedirs"): "in a temporary folder",
    ("git/landing/moving/healing.py", "open"): "reads files of the tree, and an index",
    ("git/landing/moving/healing.py", "os.rmdir"): "removes folders that are empty",
    ("git/landing/arrivals.py", "open"): "reads the state of a rebase, in the git directory",
    ("git/landing/joining.py", "open"): "a message in a temporary folder",
    ("git/landing/place.py", "open"): "reads the state of a rebase, in the git directory",
    ("git/landing/conflicts.py", "open"): "writes into a temporary folder",
    ("git/landing/checkout.py", "os.unlink"): "git's locks and index, in the git directory",
    ("git/landing/checkout.py", "shutil.rmtree"): "follows no links",
    ("store/callers/agent_above.py", "open"): "of the kernel",
    ("git/collisions/copies.py", "open"): "in a temporary folder",
    ("git/collisions/copies.py", "os.makedirs"): "in a temporary folder",
    ("git/worktrees/left_locks.py", "open"): "reads an index",
    ("git/worktrees/left_locks.py", "os.unlink"): "git's locks, in the git directory",
    ("git/remote/branch.py", "os.unlink"): "git's lock of a ref, in the git directory",
    ("git/remote/leftovers.py", "os.unlink"): "git's unfinished packs, in the git directory",
    ("git/worktrees/worktree_making.py", "os.rmdir"): "removes a folder that is empty",
    ("git/worktrees/half_made.py", "os.unlink"): "an empty `.git` of a killed `git worktree add`",
    ("git/worktrees/half_made.py", "os.rmdir"): "removes a folder that is empty",
    ("git/index_lock.py", "os.open"): "git's lock of the index, in the git directory",
    ("git/index_lock.py", "os.unlink"): "the same, as git removes it",
    ("git/index_lock.py", "os.replace"): "the index, as git replaces it",
    ("git/index_lock.py", "shutil.rmtree"): "follows no links",
    ("git/contents/record_blobs.py", "os.chmod"): "of a folder that was just made",
    ("git/contents/record_blobs.py", "open"): "in a folder of its own",
    ("git/contents/record_blobs.py", "os.replace"): "the index, as git replaces it",
    ("git/worktrees/worktree_mending.py", "os.unlink"): "locks that nobody holds any more",
    ("git/worktrees/worktree_mending.py", "open"): "reads /proc",
    ("git/worktrees/worktree_mending.py", "os.link"): "of an object, into a copy of its repository",
    ("git/worktrees/worktree_removal.py", "open"): "reads /proc",
    ("git/worktrees/worktree_removal.py", "os.rename"): "of a worktree, to a name beside it",
    ("git/worktrees/worktree_removal.py", "os.rmdir"): "removes folders that are empty",
    ("git/trees/set_aside.py", "os.rename"): "of a worktree or a repository, to a name beside it",
    ("git/trees/submodules.py", "shutil.move"): "of a repository, into the folder it belongs to",
    ("git/trees/in_memory.py", "open"): "writes into a temporary folder",
    ("git/trees/in_memory.py", "os.mkdir"): "in a temporary folder",
    ("git/run.py", "os.open"): "/dev/null",
    ("git/hooks.py", "os.chmod"): "of a hook that was just written",
    ("git/hooks.py", "os.link"): "by the handle of the folder",
    ("git/hooks.py", "os.replace"): "by the handle of the folder",
    ("git/trees/unkept.py", "os.link"): "by the handle of the folder",
    ("git/worktrees/copying.py", "os.link"): "by the handle of the folder",
    ("git/worktrees/copying.py", "os.unlink"): "by the handle of the folder",
    ("git/worktrees/copying.py", "os.replace"): "by the handle of the folder",
    ("git/worktrees/copying.py", "os.symlink"): "by the handle of the folder",
    ("git/worktrees/copying.py", "os.rmdir"): "removes folders that are empty",
    ("mcp/server.py", "os.open"): "/dev/null",
    ("report/page.py", "open"): "reads a file of this package",
    ("web/server.py", "open"): "reads files of this package",
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
    ("library/schemas.py", "open"): "reads a file of the package",
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
