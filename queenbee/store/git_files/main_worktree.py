"""Where the main worktree is, if its git directory is elsewhere: noted, and never guessed.

With `git init --separate-git-dir`, or a link in place of `.git`, git's own files do not say it, and
`git worktree list` names another folder.
"""

from __future__ import annotations

import os

from queenbee.core.text import mentioned
from queenbee.errors import Conflict
from queenbee.store import safe_open
from queenbee.store.git_trees import NOTE, git_tree, is_bare

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from queenbee.store.layout import Layout


def note_main(layout: Layout) -> None:
    """Notes where the main worktree is, if that is where we are, and git does not say it. Raises
    `Conflict` in a linked one whose main worktree nobody knows.
    """
    refuse_lost(layout)
    here = git_tree(layout.tree)
    if here is None or here.linked:
        return
    note = os.path.join(here.common_dir, NOTE)
    if here.common_dir == os.path.join(here.tree, ".git") or is_bare(here.common_dir):
        if safe_open.is_there(note):
            safe_open.unlink(note)
    else:
        safe_open.write(note, os.fsencode(f"{here.tree}\n"))


def refuse_lost(layout: Layout) -> None:
    """Raises `Conflict` in a linked worktree whose main worktree nobody knows: it would not follow
    its branch.
    """
    here = git_tree(layout.tree)
    if here is not None and here.main_tree is None and not is_bare(here.common_dir):
        raise Conflict(
            f"git does not say where the main worktree of {mentioned(here.common_dir)} is: nothing "
            "moves its branches from here",
            hint="in the main worktree, once: queen init",
        )
