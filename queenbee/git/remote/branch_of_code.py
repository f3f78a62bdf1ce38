"""Whether a branch of the remote is one of code, on which records must not go.

The settings, which come with a clone, name it, and whoever can push writes its files and subjects.
Reading it is harmless. What other files somebody adds to a branch of records does not make it one
of code: all of its history begins with records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.text import mentioned
from queenbee.git.run import line
from queenbee.store.git_files.worktrees import default_of_origin, target_ref, worktrees

if TYPE_CHECKING:
    from queenbee.git.remote.branch import Branch
    from queenbee.git.remote.branch_carrier import BranchCarrier
    from queenbee.store.layout import Layout


def why_code(layout: Layout, carrier: BranchCarrier) -> str:
    """Returns why the newest commit of a branch, with which this clone has exchanged nothing yet,
    is one of code; empty if it is not.
    """
    branch, target = carrier.branch, target_ref(layout)
    is_ours = _is_pushed_to(layout, branch)
    if target == f"refs/remotes/{branch.remote}/{branch.name}" or (
        is_ours and target == f"refs/heads/{branch.name}"
    ):
        return "is where work lands"
    why = ""
    if strange := carrier.files().strange():
        why = f"has other files, such as {mentioned(strange[0])}"
    elif is_ours and _is_here(layout, branch.name):
        why = "is also a branch of this clone"
    elif branch.remote == "origin" and branch.name == default_of_origin(str(layout.common_dir)):
        why = "is the default one there"
    return "" if why and branch.is_of_records(carrier.head) else why


def _is_here(layout: Layout, name: str) -> bool:
    """Returns whether this repository has a branch of this name, or a worktree on a new one."""
    asked = ("rev-parse", "--verify", "--quiet", f"refs/heads/{name}")
    return line(*asked, cwd=layout.root, repository={}) is not None or any(
        each.branch == name for each in worktrees(layout)
    )


def _is_pushed_to(layout: Layout, branch: Branch) -> bool:
    """Returns whether git pushes the branch of this name here to that remote."""
    asked = ("config", "--get", f"branch.{branch.name}.remote")
    said = line(*asked, cwd=layout.root, repository={})
    # Else to the only remote, or to `origin`.
    return branch.remote in (
        said or line("remote", cwd=layout.root, repository={}),
        said or "origin",
    )
