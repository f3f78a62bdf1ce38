"""Hooks that are files of a branch: whoever made the branch made them, so not even those of a push
get tokens.
"""

from __future__ import annotations

import os

from queenbee.git.run import line


def has_tracked_hooks(tree: str) -> bool:
    """Returns whether git runs hooks from a folder in a worktree, such as husky's."""
    asked = ("config", "--type=path", "core.hooksPath")
    return bool(within(tree, line(*asked, cwd=tree, repository={}) or ""))


def within(tree: str, folder: str) -> str:
    """Returns the path of a folder from the top of a tree; empty if it is not in it."""
    path = os.path.relpath(os.path.join(tree, folder), tree) if folder else os.curdir
    return "" if path.split(os.sep)[0] in (os.curdir, os.pardir) else path
