"""The git directory of a worktree of ours whose folder is not where git looks for it.

Nobody can tell whether the folder was removed, was moved by `mv`, or is on a disk that is away. So
nothing of the git directory is removed. It has the index, and with that what was staged and is in
no file: that is kept on a branch first. Then the directory is let go:

1. `HEAD` leaves its branch for the commit, so that another worktree can have the branch.
2. What says that it is QueenBee's goes. Killed after this, the next call refuses what is not ours.
3. It says that its folder is within itself: where that was, another worktree can be made.

A folder that was moved goes on with its own git directory, and never with that of the worktree that
is made in its place, since the name is taken. `git worktree repair` has git know it there. Git
removes the directory of one that is gone, as it does any other's: `git worktree prune`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned, suggested
from queenbee.errors import Conflict, ExternalFailure
from queenbee.git.ownership import forget_worktree, worktree_note
from queenbee.git.run import git, line
from queenbee.git.trees.open_operations import KEPT, OPEN, open_operations, own_refs
from queenbee.git.unfinished import branch_part, keep_commits
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import Worktree, noted_trees, target_ref
from queenbee.store.whole_files import write_document

if TYPE_CHECKING:
    from typing import NoReturn

    from queenbee.store.layout import Layout

_ASK = ("rev-parse", "--verify", "--quiet", "--end-of-options")
_OURS = "queenbee-"
_FOLDER = "moved"
"""In the git directory: no folder has that name, so it is nobody's worktree."""


def git_dirs_of(common_dir: str, path: str) -> list[str]:
    """Returns the git directories that say that they belong to a folder, which may be gone."""
    return [git_dir for tree, git_dir in noted_trees(common_dir) if tree == path]


def let_go(layout: Layout, git_dir: str, path: str, *, branch: str, name: str = "") -> str | None:
    """Has a git directory of ours be that of no folder, and have no branch; returns the branch
    `unfinished/NAME` (default: the name of the folder) that keeps what is staged and commits that
    are on no branch, or None if there is nothing.

    Raises `Conflict`, and nothing has changed, if the folder around it is gone, too, or if it is
    locked, or not ours, or has another branch, a git command under way, or conflicts.
    """
    common_dir = str(layout.common_dir)
    place = Worktree(path, git_dir, common_dir)
    _refuse_needed(place, branch)
    repository = {"GIT_DIR": git_dir}
    head = line(*_ASK, "HEAD", cwd=common_dir, repository=repository)
    name = name or branch_part(os.path.basename(path))
    staged = _staged(place, head, name)
    ends = (staged or head, *own_refs(git_dir))
    kept = keep_commits(layout, name, [each for each in ends if each])
    to = head or staged or str(target_ref(layout))
    moved = ("update-ref", "--no-deref", "-m", "queen: let go", "HEAD", no_dash(to))
    git(*moved, cwd=common_dir, repository=repository)
    forget_worktree(git_dir)
    for each in safe_open.names_in(git_dir):
        if each.startswith(_OURS):
            with suppress(OSError):
                safe_open.unlink(os.path.join(git_dir, each))
    nowhere = os.path.join(git_dir, _FOLDER, ".git")
    write_document(os.path.join(git_dir, "gitdir"), os.fsencode(f"{nowhere}\n"))
    return kept


def kept_of_gone(path: str, kept: str | None) -> str:
    """Returns a sentence about a worktree that was made again, and what `let_go` returned."""
    said = f"{mentioned(path)} was gone, and was made again"
    return f"{said}; what only it had is kept: {suggested('git log', kept)}" if kept else said


def refuse_gone(common_dir: str, path: str, why: str) -> NoReturn:
    """Raises `Conflict` for a worktree that git knows and whose folder is not there."""
    inside = suggested("git -C", common_dir)
    raise Conflict(
        f"{mentioned(path)} is not there, and {why}",
        hint=f"if it was moved: {inside} worktree repair NEW_PATH; if nothing in it is needed: "
        f"{inside} {suggested('worktree remove -f -f', path)}; all: git worktree list",
    )


def _refuse_needed(place: Worktree, branch: str) -> None:
    common_dir = place.common_dir
    if worktree_note(place) is None:
        refuse_gone(common_dir, place.path, "QueenBee did not make it")
    above = os.path.dirname(place.path)
    if not os.path.isdir(above):  # That was moved, or is on a disk that is away.
        refuse_gone(common_dir, place.path, f"{mentioned(above)} is not, either")
    if os.path.lexists(os.path.join(place.git_dir, "locked")):
        refuse_gone(common_dir, place.path, "git has locked it")
    if opened := open_operations(place.git_dir):
        refuse_gone(common_dir, place.path, f"git {OPEN[opened[0]][0]} is under way in it")
    if place.branch not in (None, branch):
        refuse_gone(common_dir, place.path, f"it has the branch {mentioned(str(place.branch))}")


def _staged(place: Worktree, head: str | None, name: str) -> str | None:
    """Returns a commit, on no branch, of what is staged; None if that is what the last one has."""
    common_dir = place.common_dir
    with tempfile.TemporaryDirectory(prefix="queen-index-") as folder:
        index = os.path.join(folder, "index")
        try:  # A lock of a git that was killed is in nobody's way then.
            shutil.copy2(os.path.join(place.git_dir, "index"), index)
        except FileNotFoundError:
            return None
        who = place.droid or "queen"
        run = partial(
            git,
            cwd=common_dir,
            config={"user.name": who, "user.email": f"{who}@localhost"},
            repository={"GIT_DIR": place.git_dir, "GIT_INDEX_FILE": index},
        )
        try:
            tree = run("write-tree").decode().strip()
        except ExternalFailure:
            refuse_gone(common_dir, place.path, "what is staged in it has conflicts")
        if head is None:
            parents = []
        elif tree == run(*_ASK, f"{head}^{{tree}}").decode().strip():
            return None
        else:
            parents = [f"-p{head}"]
        about = (f"-m{name}: what was staged", f"-m{KEPT}")
        return run("commit-tree", no_dash(tree), *parents, *about).decode().strip()
