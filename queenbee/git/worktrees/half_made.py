"""A worktree that `queen worktree add` was interrupted in making.

Git locks it from its first moment on, and says why; so it is told from one that somebody else made
at that place meanwhile. Whoever finds it may have begun to work there: it is gone on with, or
removed, only if nothing was done in it.
"""

from __future__ import annotations

import os
from contextlib import suppress

from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned, some, suggested
from queenbee.errors import Conflict, ExternalFailure
from queenbee.git.ownership import worktree_note
from queenbee.git.run import as_the_user, line, names_in
from queenbee.git.trees.in_the_way import IGNORED, repositories
from queenbee.git.trees.index_copy import index_copy
from queenbee.git.trees.open_operations import OPEN, open_operations, own_refs
from queenbee.git.trees.submodules import in_modules
from queenbee.git.unmerged import DELETED, STATUS, Status
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import Worktree

_MAKING = "queen worktree add is at work"
"""Why git has locked it."""
LOCKED = ("--lock", f"--reason={_MAKING}")
"""The options with which `git worktree add` makes it."""
_LIMIT_S = 600.0
_NAMED = 5


def is_half_made(git_dir: str) -> bool:
    """Returns whether a worktree is one that nothing but its lock says to be ours."""
    return _is_locked(git_dir) and worktree_note(Worktree("", git_dir, "")) is None


def unlock(git_dir: str) -> None:
    """Ends the lock, once what proves that a worktree is ours is there."""
    if _is_locked(git_dir):
        safe_open.unlink(os.path.join(git_dir, "locked"))


def refuse_touched(found: Worktree, branch: str, begun_at: str | None, *, droid: str) -> None:
    """Raises `Conflict` if something was done in a worktree since it was made, on a branch that was
    at a commit then.
    """
    done = _done(found, branch, begun_at)
    if done is None:
        return
    adopts = suggested("queen worktree add", droid, adopt=found.branch or "NAME")
    if found.branch is None:
        adopts = f"{suggested('git -C', found.path)} switch -c NAME && {adopts}"
    removes = suggested("git worktree remove -f -f", found.path)
    raise Conflict(
        f"{mentioned(found.path)} {done}, since the call that made it was interrupted",
        hint=f"if all of that may be worked on and landed: {adopts}; if nothing in it is needed: "
        f"{removes}",
    )


def remove_half_made(path: str, git_dir: str, top: str) -> None:
    """Removes one worktree, and not all that git takes for gone, as `git worktree prune` does:
    those may be on a disk that is away. Raises `ExternalFailure`.
    """
    how = ("worktree", "remove", "-f", "-f", "--", path)
    try:
        as_the_user(*how, cwd=top)
    except ExternalFailure:
        # It was killed before the folder knew where it belongs. Git removes what has no folder.
        dot_git = os.path.join(path, ".git")
        is_empty = not os.path.lexists(dot_git) or os.lstat(dot_git).st_size == 0
        if os.path.islink(path) or not is_empty or not {*safe_open.names_in(path)} <= {".git"}:
            raise
        with suppress(FileNotFoundError):
            os.unlink(dot_git)
        with suppress(FileNotFoundError):
            os.rmdir(path)
        as_the_user(*how, cwd=top)


def _is_locked(git_dir: str) -> bool:
    try:
        return safe_open.read(os.path.join(git_dir, "locked"), 1 << 16).strip() == _MAKING.encode()
    except FileNotFoundError:
        return False


def _done(found: Worktree, branch: str, begun_at: str | None) -> str | None:
    """Returns what was done in a worktree, as a part of a sentence, or None."""
    common_dir = found.common_dir
    # `rev-parse` would take a tag of that name, `refs/tags/refs/heads/…`.
    tip = line(
        "show-ref", "--verify", "--hash", f"refs/heads/{branch}", cwd=common_dir, repository={}
    )
    if found.branch not in (None, branch):
        return f"has the branch {mentioned(found.branch)}"
    if tip not in (None, begun_at):
        return f"has commits on {mentioned(branch)}"
    if opened := open_operations(found.git_dir):
        return f"has a git {OPEN[opened[0]][0]} under way"
    is_elsewhere = found.branch is None and found.head not in (None, begun_at)
    if (is_elsewhere and set(str(found.head)) != {"0"}) or own_refs(found.git_dir):
        return "has commits on no branch"  # Git begins with zeros.
    has_index = os.path.exists(os.path.join(found.git_dir, "index"))
    if not os.path.isdir(found.path):  # It may have been moved.
        return "is not there any more" if has_index else None
    # `git worktree add` gets no submodule.
    inner = sorted({*repositories(found.path), *in_modules(found.git_dir)})
    if changed := inner or _changed(found, begun_at, has_index=has_index):
        return f"has what git did not put there: {some(changed, _NAMED)}"
    return None


def _changed(found: Worktree, begun_at: str | None, *, has_index: bool) -> list[str]:
    """Returns what is in a worktree besides the files of a commit, whether git ignores it or not.
    Raises `ExternalFailure`.
    """
    if not has_index and {*os.listdir(found.path)} <= {".git"}:
        return []
    with index_copy(found, exactly=True, limit_s=_LIMIT_S) as run:
        if not has_index:  # Git was killed while it wrote the files.
            run("read-tree", no_dash(begun_at) if begun_at is not None else "--empty")
        changed = Status(run(*STATUS)).changed
        ignored = names_in(run(*IGNORED))
    return sorted(
        {*ignored, *(each for each, how in changed.items() if has_index or how != DELETED)}
    )
