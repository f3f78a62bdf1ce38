"""Moves the target to a commit that was checked, and brings the main worktree along.

Git or the remote compares and swaps: the target moves only from the commit that was found there.
Whatever is said of it, the work has landed if the target has it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, shell_word, suggested
from queenbee.errors import QueenError, Untrusted, Unwritable
from queenbee.git.landing.commands import ACTION, differing, git
from queenbee.git.landing.moving import healing
from queenbee.git.landing.place import refuse_rebased
from queenbee.git.landing.refusals import SHOWN, MainBlocked, NotLanded, PushRefused, aside
from queenbee.git.run import names_in
from queenbee.git.worktrees.left_locks import lock_paths
from queenbee.services.waiting.landing_steps import Step
from queenbee.store.git_files.worktrees import branch_head, current_branch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

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

    def to(self, commit: str, changed: Collection[str]) -> str | None:
        """Moves it, by these files; returns the commit by which the target has it, which a hook may
        have amended, or None if somebody else has moved it meanwhile. Raises `NotLanded`, and
        `Unreachable` if nobody can say whether a remote took it: the next landing looks.
        """
        if self._own.upstream is not None:
            return self._push(self._own.upstream, commit)
        if not self._own.main_has_target:
            return self._move(commit)
        return self._move_main(commit, changed)

    def _move_main(self, commit: str, changed: Collection[str]) -> str | None:
        own = self._own
        with Step.of(own.folder, own.main_tree) as step:
            if own.tip() != self._before:
                return None
            refusal = self._bring_main(step, self._before, commit, changed)
            if refusal is None:
                step.end()
                return own.landed_as(commit, self._before)
            healing.heal(own.commands, step, own.main, lambda _: None)  # Git said what stays.
            if own.tip() != self._before:
                return None
        raise refusal()

    def _bring_main(
        self, step: Step, before: str, after: str, changed: Collection[str]
    ) -> Callable[[], QueenError] | None:
        """Moves the main worktree between two commits; returns what says why it was not moved, for
        when it is put right.
        """
        own, carried = self._own, self._carried
        move = {"before": before, "after": after}
        if links := _links_above(own.main_tree, changed):
            said = f"links are where git has folders: {named(links, SHOWN)}"
            return partial(own.cannot_move, after, said)
        step.write("advance", **move, carried=carried)
        own.commands.wait_for_index(own.common_dir)
        ref = f"refs/heads/{own.target_name}"
        if why := why_not_movable(own.commands, step, own.main_tree, ref, **move):
            return partial(not_movable, own, after, why)
        with suppress(QueenError):  # Git then says what is in the way.
            healing.put_in_index(own.main_tree, before, after, carried)
        how = ("--ff-only", "--no-squash", "--no-stat", "--no-overwrite-ignore")
        moved = ("merge", *how, no_dash(after))
        done = own.commands(*moved, cwd=own.main_tree, step=step, to_the_end=True)
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
            self._follow(commit)
            return commit
        own.refresh()
        if own.tip() != before:
            return own.landed_as(commit, before)
        own.commands.stop_if_asked()
        raise PushRefused(upstream.name, pushed.said)

    def _follow(self, commit: str) -> None:
        """Brings the main worktree to what has landed on a remote, if it has the branch of that
        name, without commits of its own, and nothing of the user's is in the way.
        """
        own, branch = self._own, self._own.target_name
        if not own.main_tree or current_branch(own.common_dir) != branch:
            return
        head = branch_head(own.common_dir, branch) or ""
        if not head or not own.is_ancestor(head, commit):
            own.tell(f"{own.main_tree} has commits that {own.target} has not, and stays there")
            return
        with suppress(QueenError), Step.of(own.folder, own.main_tree) as step:
            refusal = self._bring_main(step, head, commit, differing(own.main_tree, head, commit))
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
        """Moves a branch that no worktree has checked out."""
        own = self._own
        refuse_rebased(own.layout)
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


def _links_above(tree: str, paths: Collection[str]) -> list[str]:
    """Returns the links that a worktree has in place of the folders of files that are to change,
    and that git does not track: it removes one without a word, where it writes below it.
    """
    folders = set[str]()
    for path in paths:
        folder = os.path.dirname(path)
        while folder and folder not in folders:
            folders.add(folder)
            folder = os.path.dirname(folder)
    untracked = sorted(folders.difference(paths))
    links = [each for each in untracked if os.path.islink(os.path.join(tree, each))]
    if not links:
        return []
    # Below what a sparse checkout leaves out, it writes nothing.
    listed = names_in(git("ls-files", "-v", "-z", cwd=tree))
    written = set(paths).difference(each[2:] for each in listed if each[:1] == "S")
    return [link for link in links if any(each.startswith(f"{link}/") for each in written)]
