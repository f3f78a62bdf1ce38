"""What git has under way in a worktree, as the files in its git directory say."""

from __future__ import annotations

import os

OPEN: dict[str, tuple[str, ...]] = {
    "rebase-merge": ("rebase", "--quit"),
    "rebase-apply/applying": ("am", "--quit"),
    "rebase-apply": ("rebase", "--quit"),
    "MERGE_HEAD": ("merge", "--quit"),
    "CHERRY_PICK_HEAD": ("cherry-pick", "--quit"),
    "REVERT_HEAD": ("revert", "--quit"),
    "sequencer": ("cherry-pick", "--quit"),
    "BISECT_LOG": ("bisect", "reset", "HEAD"),
}
"""What git has under way in a worktree whose git directory has these files, and what quits it: the
files of the worktree stay as they are.
"""


def open_operations(git_dir: str) -> list[str]:
    """Returns what git has under way in a worktree, as the names of the files in `OPEN`."""
    return [name for name in OPEN if os.path.lexists(os.path.join(git_dir, name))]
