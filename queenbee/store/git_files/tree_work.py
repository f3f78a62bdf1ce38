"""Of which assignment the work in a linked worktree is: a note in its own git directory.

Whoever works there may write it: it only says under which name the work is kept.
"""

from __future__ import annotations

import os

from queenbee.store.whole_files import keep, recall

_NOTE = "queenbee-works-on"
_MOST_BYTES = 256


def note_work(git_dir: str, assignment_id: str) -> None:
    """Notes the assignment that begins in a worktree, or that none does. Never fails."""
    if noted_work(git_dir) != assignment_id:
        keep(os.path.join(git_dir, _NOTE), assignment_id)


def noted_work(git_dir: str) -> str:
    """Returns the assignment that began there last; empty if that is not known."""
    said = recall(os.path.join(git_dir, _NOTE), _MOST_BYTES)
    return said if isinstance(said, str) else ""
