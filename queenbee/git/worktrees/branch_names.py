"""Which branch an agent works on: the one that was made for it, else as `[team] branch` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.git.ownership import worktree_note
from queenbee.store.git_files.worktrees import Worktree, noted_trees

if TYPE_CHECKING:
    from queenbee.git.ownership import MadeNote
    from queenbee.store.layout import Layout

_DROID = "{droid}"


def agent_branch(layout: Layout, droid: str) -> str:
    """Returns the branch on which a droid works: that of the worktree that was made for it, also
    if its folder is gone; else the one that it will get.
    """
    place = agent_place(layout, droid)
    return place[1].branch if place is not None else new_branch(layout, droid)


def new_branch(layout: Layout, droid: str) -> str:
    """Returns the branch that is made for a droid that has no worktree yet."""
    return (layout.settings.team_branch or _DROID).replace(_DROID, droid)


def agent_place(layout: Layout, droid: str) -> tuple[str, MadeNote] | None:
    """Returns where git says that the worktree is which was made for a droid, and its note: also if
    `git worktree move` has put it there, or its folder is gone.
    """
    for path, git_dir in noted_trees(str(layout.common_dir)):
        note = worktree_note(Worktree(path, git_dir, str(layout.common_dir)))
        if note is not None and note.is_for(droid, None):
            return path, note
    return None
