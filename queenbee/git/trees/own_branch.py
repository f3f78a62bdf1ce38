"""The branch that a worktree has checked out: QueenBee commits to it, resets and moves it only if
it is that worktree's alone.

A name is no proof here, either: a branch can be a symbolic reference, as `git symbolic-ref` makes
one, and git then changes the branch that it leads to. One branch can be checked out twice, and a
worktree can have the very branch on which work lands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.text import mentioned, suggested
from queenbee.errors import Conflict, Unreadable
from queenbee.git.ownership import branch_note, worktree_note
from queenbee.store.droids.agent_callers import calling_agent
from queenbee.store.git_files.worktrees import Worktree, real_ref, target_ref, worktrees
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.store.layout import Layout


def leads_elsewhere(common_dir: str, branch: str) -> str | None:
    """Returns what git would change in place of a branch; None if that is the branch itself."""
    own = f"refs/heads/{branch}"
    real = real_ref(common_dir, own)
    return (real.removeprefix("refs/heads/") or branch) if real != own else None


def is_own(layout: Layout, tree: str) -> bool:
    """Returns whether the branch that is checked out in a worktree is its own, or there is none:
    then only this worktree moves.
    """
    try:
        here = git_tree(tree)
        if here is None:
            return False
        place = Worktree(here.tree, here.git_dir, here.common_dir)
        if place.branch is not None:
            refuse_not_own(layout, place, place.branch)
    except (Conflict, Unreadable):
        return False
    return True


def refuse_not_own(
    layout: Layout, place: Worktree, branch: str, places: Sequence[Worktree] | None = None
) -> None:
    """Raises `Conflict` unless a branch is a worktree's own: a real one, on which no work lands,
    that no other worktree has; and for an agent of a team, that was made for this worktree.
    """
    refuse_symbolic(layout, branch)
    target, common_dir = target_ref(layout), str(layout.common_dir)
    if target is not None and real_ref(common_dir, target) == f"refs/heads/{branch}":
        raise Conflict(
            f"{mentioned(place.path)} has {mentioned(branch)} checked out, on which work lands",
            hint=f"{suggested('git -C', place.path)} switch -c NAME",
        )
    every = worktrees(layout) if places is None else places
    other = next((w for w in every if w.branch == branch and w.git_dir != place.git_dir), None)
    if other is not None:
        raise Conflict(
            f"{mentioned(branch)} is checked out in {mentioned(other.path)}",
            hint=f"{suggested('git -C', other.path)} switch --detach",
        )
    _refuse_not_made_for(layout, place, branch)


def refuse_symbolic(layout: Layout, branch: str) -> None:
    """Raises `Conflict` for a branch that leads to another one."""
    aim = leads_elsewhere(str(layout.common_dir), branch)
    if aim is not None:
        ref = f"refs/heads/{branch}"
        raise Conflict(
            f"the branch {mentioned(branch)} is a symbolic reference to {mentioned(aim)}: what is "
            "done to it would be done to that",
            hint="to make it a branch of its own: "
            + suggested("git update-ref --no-deref", ref, ref),
        )


def _refuse_not_made_for(layout: Layout, place: Worktree, branch: str) -> None:
    own = worktree_note(place)
    if own is None:
        return
    note = branch_note(layout, branch)
    if note is not None and (note.keeps_work or note.is_for(own.droid, own.bead)):
        return
    if note is None and branch == own.branch:  # A person had it be on that.
        return
    if calling_agent(layout) is None:  # Asked last: it looks at each agent of each team.
        return
    whose = "QueenBee did not make" if note is None else f"was made for {note.bead or note.droid}"
    raise Conflict(
        f"{mentioned(place.path)} has the branch {mentioned(branch)} checked out, which {whose}",
        hint=suggested("git -C", place.path, "switch", own.branch),
    )
