"""Hooks that are files of a branch: whoever made the branch made them, so not even those of a push
get tokens.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.git.hook_scripts import CHAINED
from queenbee.git.run import line
from queenbee.store.git_files.worktrees import worktrees

if TYPE_CHECKING:
    from queenbee.store.layout import Layout


def is_tracked(layout: Layout, hook: str, tree: str) -> bool:
    """Returns whether the hook that git runs in a worktree is a file of it, such as husky's, or of
    another worktree, also where a link leads there.
    """
    path = line("rev-parse", "--git-path", f"hooks/{hook}", cwd=tree, repository={})
    if path is None:
        return False
    # The guard runs the hook that was there before it.
    names = (path, f"{path}{CHAINED}")
    reals = [os.path.realpath(os.path.join(tree, each)) for each in names]
    places = {tree, *(each.path for each in worktrees(layout))}
    inside = (within(os.path.realpath(each), real) for each in places for real in reals)
    return any(path.split(os.sep)[0] not in ("", ".git") for path in inside)


def within(tree: str, folder: str) -> str:
    """Returns the path of a folder from the top of a tree; empty if it is not in it."""
    path = os.path.relpath(os.path.join(tree, folder), tree) if folder else os.curdir
    return "" if path.split(os.sep)[0] in (os.curdir, os.pardir) else path
