"""The branches of a repository, as git's own files name them.

Starts no git process. A repository that keeps its references elsewhere (reftable) has none here,
and the defaults are used.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from queenbee.documents.plans.branches import PREFIXES
from queenbee.store.git_files.worktrees import branch_head, current_branch

if TYPE_CHECKING:
    from queenbee.store.git_trees import GitTree

DEFAULT = "main"
_REF = re.compile(r"ref: refs/remotes/origin/(\S+)\s*\Z")


def default_branch(tree: GitTree | None) -> str:
    """Returns the repository's default branch: what `origin/HEAD` names, `main` or `master`.

    Without any of them, it is the branch of the main worktree; without that, `main`.
    """
    if tree is None:
        return DEFAULT
    remote = _named_by(os.path.join(tree.common_dir, "refs", "remotes", "origin", "HEAD"))
    if remote is not None:
        return remote
    for name in (DEFAULT, "master"):
        if _has_branch(tree, name):
            return name
    return current_branch(tree.common_dir) or DEFAULT


def usual_branch_prefix(tree: GitTree | None) -> str | None:
    """Returns what new branches begin with if `sprint` is a branch; None means the default."""
    if tree is None or not _has_branch(tree, PREFIXES[0]):
        return None
    return next((name for name in PREFIXES if not _has_branch(tree, name)), None)


def _has_branch(tree: GitTree, name: str) -> bool:
    return branch_head(tree.common_dir, name) is not None


def _named_by(path: str) -> str | None:
    match = _REF.match(_read(path))
    return match[1] if match else None


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
