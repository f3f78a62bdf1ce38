"""Whether git would move the target: asked before a file of the main worktree changes.

Git changes files first, and the branch last. A lock that a killed git left, or a hook that refuses
the reference, would be met when all files are there.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import shell_word, suggested
from queenbee.errors import Unwritable
from queenbee.git.landing.refusals import MainBlocked
from queenbee.git.worktrees.left_locks import lock_paths

if TYPE_CHECKING:
    from queenbee.git.landing.commands import Commands
    from queenbee.git.landing.place import Place
    from queenbee.services.waiting.landing_steps import Step

_LEAST_BYTES = 2**16
"""With less room, git cannot write a file or an index."""


def why_not_movable(
    commands: Commands, step: Step, tree: str, ref: str, *, after: str, before: str
) -> str:
    """Returns what keeps git from moving a reference between two commits, in its own words; empty
    if nothing does. It prepares the move, with the user's hooks, and drops it.
    """
    move = f"update {no_dash(ref)} {after} {before}"
    asked = "\n".join(("start", move, "prepare", "abort"))
    how = ("update-ref", "--stdin")
    done = commands(*how, cwd=tree, step=step, to_the_end=True, stdin=asked)
    said = done.said.removeprefix("start: ok").lstrip()
    return "" if done.status == 0 else said or f"status {done.status}"


def no_room_for(place: Place, after: str, said: str) -> Unwritable | None:
    """Returns the refusal for a disk that is full where git has just failed; None if it is not."""
    disk = os.statvfs(place.main_tree)
    if disk.f_bavail * disk.f_frsize >= _LEAST_BYTES:
        return None
    return Unwritable(
        f"the disk of {place.main_tree} is full, and {place.target} cannot be moved to "
        f"{after[:10]}: {' '.join(said.split())}",
        hint="make room there, then queen land",
        path=place.main_tree,
    )


def not_movable(place: Place, after: str, why: str) -> MainBlocked:
    """Returns the refusal for a target that git would not move."""
    locks = [each for each in lock_paths(place.main) if os.path.lexists(each)]
    status = f"git -C {shell_word(place.main_tree)} status"
    return MainBlocked(
        f"{place.target} cannot be moved to {after[:10]}: {' '.join(why.split())}",
        hint=f"if no git command runs there: {suggested('rm', *locks)}" if locks else status,
    )
