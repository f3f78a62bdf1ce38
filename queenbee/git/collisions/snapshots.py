"""A commit of what a worktree has now: its last commit, with the changed files as they are.

`git stash create` will not do: it writes to the index, adds objects to the repository, leaves
untracked files out, and fails while another git holds the lock. Here `git status` says what
differs, an index of our own gets these files, and all objects go into a folder of our own. No
filter is run (`git.run.without_programs`).
"""

from __future__ import annotations

import os
import stat
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.text import some
from queenbee.errors import ExternalFailure
from queenbee.git.changes import merge_heads
from queenbee.git.collisions.cache import LIMIT_S
from queenbee.git.collisions.found import Changes
from queenbee.git.collisions.reach import Touched
from queenbee.git.run import TooSlow
from queenbee.git.unmerged import ADDED, STATUS, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from queenbee.git.collisions.cache import Cache
    from queenbee.git.collisions.found import Side
    from queenbee.store.git_files.worktrees import Worktree

MOST_FILES = 5_000
MOST_BYTES = 32 * 1024 * 1024
"""Of one file that is not committed. A merge of larger ones is no merge of text."""
_TIMES = 3


def touched(changes: Changes) -> Touched:
    """Returns the changed files as those of a commit."""
    found = Touched()
    for path, mode in changes.modes.items():
        found.add(os.fsencode(path), is_removed=not _is_file(mode))
    return found


def look(side: Side, place: Worktree, cache: Cache) -> None:
    """Sets what of a worktree is to be compared: its commit, what is not committed, notes."""

    def step() -> None:
        side.changes = _changes(side, place, cache)
        if side.changes is not None and len(side.changes.parents) > 1:  # No log shows it as it is.
            side.commit, side.changes = _commit(cache, side.changes), None

    _tried(side, place, step)


def take(side: Side, cache: Cache) -> None:
    """Makes a commit of what is not committed in a worktree, and sets that to be compared."""
    known, side.changes = side.changes, None
    if known is None:
        return
    left = [known]

    def step() -> None:
        changes = left.pop() if left else _changes(side, known.place, cache)
        if changes is not None:
            side.commit = _commit(cache, changes)

    _tried(side, known.place, step)


def _tried(side: Side, place: Worktree, step: Callable[[], None]) -> None:
    for turn in range(_TIMES):
        try:
            return step()
        except TooSlow as error:
            side.commit = side.head = side.head or place.head
            side.notes.append(f"uncommitted changes are left out: {error.message}")
            return None
        except (ExternalFailure, OSError) as error:
            # A file changed, shrank or vanished while git read it, which may even kill git.
            reason = error.message if isinstance(error, ExternalFailure) else str(error)
            if turn == _TIMES - 1:
                side.commit = side.head
                side.notes.append(f"uncommitted changes are left out: {reason}")
    return None


def _changes(side: Side, place: Worktree, cache: Cache) -> Changes | None:
    side.notes.clear()
    status = Status(cache.git(*STATUS, place=place, limit_s=LIMIT_S))
    side.commit = side.head = status.head
    if status.head is None:
        side.notes.append("it has no commit")
        return None
    if status.is_conflicted:
        side.notes.append("a merge is under way: its uncommitted changes are left out")
        return None
    # The hive's records merge by themselves.
    changed = {path: how for path, how in status.changed.items() if ".beads" not in path.split("/")}
    modes = _modes(side, place.path, changed)
    parents = [status.head, *merge_heads(place.git_dir)]
    side.uncommitted = len(modes)
    committed = [path for path in modes if changed[path] != ADDED]
    is_any = modes or len(parents) > 1
    return Changes(place, parents, modes, committed) if is_any else None


def _modes(side: Side, top: str, paths: Iterable[str]) -> dict[str, int]:
    """Returns the modes of changed files as they are now, 0 for one that is not there; notes what
    is left out.
    """
    modes: dict[str, int] = {}
    large = []
    for path in paths:
        try:
            status = os.lstat(os.path.join(top, path))
        except (OSError, ValueError):
            modes[path] = 0
            continue
        if status.st_size > MOST_BYTES:
            large.append(path)
        else:
            modes[path] = status.st_mode
    if large:
        side.notes.append(f"left out, because it is large: {some(large, 3)}")
    if len(modes) > MOST_FILES:
        side.notes.append(
            f"uncommitted changes are left out: {len(modes):,} files, more than {MOST_FILES:,}"
        )
        return {}
    return modes


def _commit(cache: Cache, changes: Changes) -> str:
    """Returns a commit of the first parent with these files as they are now."""
    place, parents, modes = changes.place, changes.parents, changes.modes
    index = os.path.join(cache.run, f"index-{os.urandom(6).hex()}")
    run = partial(cache.git, place=place, index=index, limit_s=LIMIT_S)
    run("read-tree", parents[0])
    # First what is gone: a folder may have taken the name of a file, or a link of a folder.
    gone = [path for path in changes.committed if not _is_file(modes[path])]
    there = [
        path
        for path, mode in modes.items()
        # A folder that git names is a submodule, as long as it is a repository.
        if _is_file(mode) or os.path.lexists(os.path.join(place.path, path, ".git"))
    ]
    for paths, how in ((gone, ("--force-remove",)), (there, ("--add", "--replace", "--remove"))):
        if paths:
            listed = b"".join(os.fsencode(each) + b"\0" for each in paths)
            run("update-index", *how, "-z", "--stdin", stdin=listed)
    tree = run("write-tree").decode().strip()
    named = [word for each in parents for word in ("-p", each)]
    return run("commit-tree", *named, tree).decode().strip()


def _is_file(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)
