"""Moves the target to a commit that was checked, and brings the main worktree along.

Git or the remote compares and swaps: the target moves only from the commit that was found there.
Whatever is said of it, the work has landed if the target has it.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, shell_word, suggested
from queenbee.errors import QueenError, Untrusted, Unwritable
from queenbee.git.index_lock import IndexLock
from queenbee.git.landing.commands import ACTION
from queenbee.git.landing.moving import healing
from queenbee.git.landing.place import refuse_no_target
from queenbee.git.landing.refusals import (
    SHOWN,
    MainBlocked,
    NotLanded,
    PushRefused,
    aside,
    locked,
)
from queenbee.git.trees.silent_losses import loss_by
from queenbee.git.worktrees.left_locks import lock_paths
from queenbee.services.waiting.landing_steps import Step
from queenbee.store.git_files.worktrees import branch_head, current_branch, worktrees
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from queenbee.git.landing.commands import Commands
    from queenbee.git.landing.place import Place
    from queenbee.git.upstream import Upstream

_LEAST_BYTES = 2**16
"""With less room, git cannot write a file or an index."""


class Advance:
    """The last step of a landing: from the commit `before` of the target to a later one.

    `tree` has the later one checked out, for the hooks of a push; `carried` are the records in it
    that the main worktree has already.
    """

    def __init__(self, own: Place, tree: str, before: str, carried: Sequence[str]) -> None:
        self._own = own
        self._tree = tree
        self._before = before
        self._carried = carried

    def to(self, commit: str) -> str | None:
        """Moves it; returns the commit by which the target has it, which a hook may
        have amended, or None if somebody else has moved it meanwhile. Raises `NotLanded`, and
        `Unreachable` if nobody can say whether a remote took it: the next landing looks.
        """
        if self._own.upstream is not None:
            return self._push(self._own.upstream, commit)
        if not self._own.main_has_target:
            return self._move(commit)
        return self._move_main(commit)

    def _move_main(self, commit: str) -> str | None:
        own = self._own
        with Step.of(own.folder, own.main_tree) as step:
            if own.tip() != self._before:
                return None
            refusal = self._bring_main(step, self._before, commit)
            if refusal is None:
                step.end()
                return own.landed_as(commit, self._before)
            healing.heal(own.commands, step, own.main, lambda _: None)  # Git said what stays.
            if own.tip() != self._before:
                return None
        if own.main_has_target:
            raise refusal()
        return self._move(commit)  # Somebody has just checked out another branch there.

    def _bring_main(self, step: Step, before: str, after: str) -> Callable[[], QueenError] | None:
        """Moves the main worktree between two commits; returns what says why it was not moved, for
        when it is put right.
        """
        own, carried = self._own, self._carried
        move = {"before": before, "after": after}
        if loss := loss_by(own.main_tree, before, after):
            return partial(own.cannot_move, after, loss.what, loss.way)
        step.write("advance", **move, carried=carried, is_begun=False)
        own.commands.wait_for_index(own.common_dir)
        ref = f"refs/heads/{own.target_name}"
        if why := why_not_movable(own.commands, step, own.main_tree, ref, **move):
            return partial(not_movable, own, after, why)
        # What a person does to the files before that is no work of git's.
        step.write("advance", is_begun=True)
        with suppress(QueenError):  # Git then says what is in the way.
            healing.put_in_index(own.main_tree, before, after, carried)
        how = ("--ff-only", "--no-squash", "--no-stat", "--no-overwrite-ignore")
        moved = ("merge", *how, no_dash(after))
        # Git moves the branch that is checked out there, whichever that is: `git switch` may have
        # had the lock until now.
        done = own.commands(
            *moved,
            cwd=own.main_tree,
            step=step,
            to_the_end=True,
            still=partial(own.main_is_on, ref),
        )
        if own.landed_as(after, before, ref):
            return None
        if full := _no_room_for(own, after, done.said):
            return lambda: full
        return partial(own.cannot_move, after, done.said)

    def _push(self, upstream: Upstream, commit: str) -> str | None:
        own, before = self._own, self._before
        try:
            pushed = upstream.push(own.commands, self._tree, commit, before)
        except Untrusted as error:
            refused = PushRefused(upstream.name, error.message)
            refused.hint = "a person looks at it: queen config trust; then queen land"
            raise refused from error
        if pushed.status == 0:
            seen = (no_dash(upstream.ref), no_dash(commit), no_dash(before))
            own.commands("update-ref", "-m", ACTION, *seen, cwd=own.tree, to_the_end=True)
            self._follow(upstream, commit)
            return commit
        own.refresh()
        if own.tip() != before:
            return own.landed_as(commit, before)
        own.commands.stop_if_asked()
        raise PushRefused(upstream.name, pushed.said)

    def _follow(self, upstream: Upstream, commit: str) -> None:
        """Brings the main worktree to what has landed on a remote, if it has the branch of that
        name, without commits of its own, and nothing of the user's is in the way.
        """
        own, branch = self._own, self._own.target_name
        if not own.main_tree or current_branch(own.common_dir) != branch:
            return
        head = branch_head(own.common_dir, branch) or ""
        if not head or not own.is_ancestor(head, commit):
            why = f"{own.main_tree} has commits that {own.target} has not, and stays there"
            own.tell(f"{why}; try: {upstream.way_to_push(own.main_tree)}")
            return
        with suppress(QueenError), Step.of(own.folder, own.main_tree) as step:
            refusal = self._bring_main(step, head, commit)
            if refusal is None:
                step.end()
                return
            healing.heal(own.commands, step, own.main, lambda _: None)
            own.tell(self._stays(refusal()))

    def _stays(self, refusal: QueenError) -> str:
        """Returns why the main worktree does not follow, and what brings it along."""
        own = self._own
        if not (isinstance(refusal, MainBlocked) and refusal.files):
            return f"{own.main_tree} stays where it was: {refusal.message}"
        go = f"{suggested('git -C', own.main_tree)} merge --ff-only {shell_word(own.target)}"
        return (
            f"{own.main_tree} stays behind {own.target}, for what has changed there: "
            f"{named(refusal.files, SHOWN)}; try: {aside(own.main_tree, refusal.files)} && {go}"
        )

    def _move(self, commit: str) -> str | None:
        """Moves a branch that no worktree has checked out. Raises `InvalidInput` if one has."""
        own = self._own
        own.commands.wait_for_index(own.common_dir)
        with _files_stay(own):
            if not own.main_has_target:
                return self._move_alone(commit)
        return self._move_main(commit)

    def _move_alone(self, commit: str) -> str | None:
        own = self._own
        here = git_tree(own.layout.tree)
        assert here is not None
        refuse_no_target(own.layout, here, own.target, worktrees(own.layout))
        between = (no_dash(commit), no_dash(self._before))
        how = ("update-ref", "-m", ACTION, no_dash(own.target_ref), *between)
        done = own.commands(*how, cwd=own.tree, to_the_end=True)
        if own.tip() != self._before:
            return own.landed_as(commit, self._before)
        raise NotLanded(
            f"{named([own.target])} cannot be moved to {commit[:10]}: "
            f"{' '.join(done.said.split())}",
            hint="queen land",
        )


@contextmanager
def _files_stay(place: Place) -> Iterator[None]:
    """A block in which no git changes the branch of the main worktree. Raises `NotLanded` where one
    is changing files: a `git switch` would end with those of the commit that the target had.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(IndexLock(place.common_dir))
        except FileExistsError as error:
            # It has an index when all files are there, as while a message of a commit is written.
            if not _size(error.filename):
                raise locked(place.main_tree or place.common_dir, error.filename) from None
        yield


def _size(path: str) -> int:
    with suppress(OSError):
        return os.lstat(path).st_size
    return 0


def why_not_movable(
    commands: Commands, step: Step, tree: str, ref: str, *, after: str, before: str
) -> str:
    """Returns what keeps git from moving a reference between two commits, in its own words; empty
    if nothing does. It prepares the move, with the user's hooks, and drops it.

    Git changes files first, and the branch last: a lock that a killed git left, or a hook that
    refuses the reference, would be met when all files are there.
    """
    move = f"update {no_dash(ref)} {after} {before}"
    asked = "\n".join(("start", move, "prepare", "abort"))
    how = ("update-ref", "--stdin")
    done = commands(*how, cwd=tree, step=step, to_the_end=True, stdin=asked)
    said = done.said.removeprefix("start: ok").lstrip()
    return "" if done.status == 0 else said or f"status {done.status}"


def _no_room_for(place: Place, after: str, said: str) -> Unwritable | None:
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
