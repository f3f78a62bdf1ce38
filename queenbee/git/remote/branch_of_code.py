"""Whether a branch of the remote is one of code, on which records must not go.

The settings, which come with a clone, name it, and whoever can push writes its files and subjects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.text import mentioned
from queenbee.git.run import line
from queenbee.store.git_files.worktrees import default_of_origin, target_ref, worktrees

if TYPE_CHECKING:
    from queenbee.git.remote.branch import Branch, Tree
    from queenbee.store.layout import Layout


def refuse_code(layout: Layout, branch: Branch, tree: Tree) -> None:
    """Raises `InvalidInput` if a branch with which this clone has exchanged nothing yet has other
    files than records, or is one of code here.
    """
    if strange := tree.strange():
        raise branch.not_for_records(f"has other files, such as {mentioned(strange[0])}")
    if target_ref(layout) in (
        f"refs/heads/{branch.name}",
        f"refs/remotes/{branch.remote}/{branch.name}",
    ):
        raise branch.not_for_records("is where work lands")
    for each in worktrees(layout):
        if each.branch == branch.name and _is_pushed_to(layout, branch):
            raise branch.not_for_records(f"is that of the worktree {mentioned(each.path)}")
    is_default = branch.remote == "origin" and branch.name == default_of_origin(
        str(layout.common_dir)
    )
    if is_default and not tree.files:
        raise branch.not_for_records("is the default one there")


def _is_pushed_to(layout: Layout, branch: Branch) -> bool:
    """Returns whether the branch of this name here is pushed to that remote, as far as git says."""
    asked = ("config", "--get", f"branch.{branch.name}.remote")
    return line(*asked, cwd=layout.root, repository={}) in (None, branch.remote)
