"""Which branch an agent works on: the one that was made for it, else as `[team] branch` says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.git.ownership import worktree_note
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import Worktree

if TYPE_CHECKING:
    from queenbee.git.ownership import MadeNote
    from queenbee.store.layout import Layout

_DROID = "{droid}"


def agent_branch(layout: Layout, droid: str) -> str:
    """Returns the branch on which a droid works: that of the worktree that was made for it, also
    if its folder is gone; else the one that it will get.
    """
    note = agent_note(layout, droid)
    return note.branch if note is not None else new_branch(layout, droid)


def new_branch(layout: Layout, droid: str) -> str:
    """Returns the branch that is made for a droid that has no worktree yet."""
    return (layout.settings.team_branch or _DROID).replace(_DROID, droid)


def agent_note(layout: Layout, droid: str) -> MadeNote | None:
    """Returns the note of the worktree that was made for a droid, also if its folder is gone."""
    top = os.path.join(layout.common_dir or layout.tree, "worktrees")
    for name in safe_open.names_in(top):
        note = worktree_note(Worktree("", os.path.join(top, name), layout.common_dir or ""))
        if note is not None and note.is_for(droid, None):
            return note
    return None
