"""Whether the work of a linked worktree is on the branch of the main worktree."""

from __future__ import annotations

import os

from queenbee.errors import ExternalFailure, Unreadable
from queenbee.git.run import git, without_programs
from queenbee.store.git_files.worktrees import target_branch
from queenbee.store.git_trees import git_tree
from queenbee.store.layout import Layout


def uncommitted_records(layout: Layout) -> str | None:
    """Returns the folder of the hive's records if git tracks it, or would, and something in it is
    not committed; else None.
    """
    if layout.common_dir is None:
        return None
    try:
        config = without_programs(layout.root, {})[0]
        said = git(
            *("status", "--porcelain=v1", "-z", "--untracked-files=normal", "--", layout.beads_dir),
            cwd=layout.root,
            config=config,
            repository={},
        )
    except (OSError, ExternalFailure):
        return None
    return layout.beads_dir if said else None


def unlanded(layout: Layout) -> str | None:
    """Returns what is not yet on the main worktree's branch, in words; None if nothing is, or if
    this is not a linked worktree of a repository whose main worktree has a branch.
    """
    here = git_tree(layout.tree)
    if here is None or layout.worktree is None:
        return None
    if os.path.exists(os.path.join(here.git_dir, "MERGE_HEAD")):
        return "a merge is not finished in this worktree"
    target = target_branch(layout)
    if target is None:
        return None
    try:
        commits = f"refs/heads/{target}..HEAD"
        count = int(git("rev-list", "--count", "--end-of-options", commits, cwd=layout.tree))
    except (ValueError, ExternalFailure, Unreadable):
        return None
    verb = "commit of this worktree is" if count == 1 else "commits of this worktree are"
    return f"{count} {verb} not on {target} yet" if count else None
