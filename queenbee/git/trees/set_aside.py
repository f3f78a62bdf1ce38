"""What may be somebody's work and is in the way gets another name: only people can tell."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.text import mentioned
from queenbee.errors import Conflict
from queenbee.git.run import as_the_user
from queenbee.git.trees.submodules import carried, carry
from queenbee.store.git_files.worktrees import worktrees

if TYPE_CHECKING:
    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout

_TRIES = 1_000


def set_aside(layout: Layout, path: str, beside: str, why: str, git_dir: str = "") -> str:
    """Gives a folder a name beside another one, or itself; returns a sentence about it. Worktrees
    of this repository in it stay such, and submodules of the worktree with this git directory take
    their repositories along. Raises `Conflict` if that cannot be, `ExternalFailure`, and `OSError`.
    """
    aside = free_name(beside)
    inside = [os.path.relpath(each.path, path) for each in worktrees_in(layout, path)]
    own = carried(git_dir, path) if git_dir else {}
    os.rename(path, aside)
    carry(own, aside)
    if inside:  # Git would take those for gone, and forget them.
        moved = (os.path.normpath(os.path.join(aside, each)) for each in inside)
        as_the_user("worktree", "repair", "--", *moved, cwd=str(layout.common_dir))
    return f"{mentioned(path)} was set aside as {mentioned(aside)}: {why}"


def free_name(beside: str) -> str:
    """Returns a name that nothing has, beside a folder. Raises `Conflict`."""
    names = (f"{beside}.set-aside-{number}" for number in range(1, _TRIES))
    aside = next((each for each in names if not os.path.lexists(each)), None)
    if aside is None or os.path.islink(beside):
        raise Conflict(f"nothing can be set aside beside {mentioned(beside)}")
    return aside


def worktrees_in(layout: Layout, path: str) -> list[Worktree]:
    """Returns the linked worktrees of this repository that are a folder, or in it."""
    top = os.path.join(os.path.realpath(path), "")
    inside = (each for each in worktrees(layout) if f"{each.path}/".startswith(top))
    return [each for each in inside if each.linked]
