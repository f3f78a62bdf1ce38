"""Brings a worktree along to what landed of it, while somebody may be working in it.

1. The index is locked: no git adds, commits all or checks out meanwhile.
2. Files go first. Git refuses to write one that somebody has changed; a kill here leaves the branch
   where it was, and the next landing restores the files.
3. The index follows, so that a commit of it has what landed.
4. The branch moves last, by compare and swap. Whoever committed or switched branches since step 1
   has won: the files go back, and it begins again with what is there now.

ADR 0025.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import named
from queenbee.git.contents.running_hooks import (
    HOOK_BY_ALIAS,
    HOOK_BY_GIT,
    hooks_there,
    runs_hooks,
)
from queenbee.git.index_lock import IndexLock
from queenbee.git.landing.commands import ACTION, PATIENCE_S
from queenbee.git.landing.moving.healing import differ_alike
from queenbee.git.landing.refusals import SHOWN, NotLanded, locked
from queenbee.git.run import user_git
from queenbee.git.trees.in_the_way import between
from queenbee.git.trees.silent_losses import loss_by
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import branch_head, current_branch

if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.git.landing.commands import Done
    from queenbee.git.landing.place import Place

_INDEX = "queenbee-index"
_REFUSED = 128
"""With this, git says what is in its way."""


class Following:
    """A worktree that follows what landed of it.

    `replayed` returns the commits between two, put upon a third, and changes no worktree; without
    it, a worktree that has more commits since stays: the next merge brings it what landed.
    """

    def __init__(self, place: Place, replayed: Callable[[str, str, str], str] | None) -> None:
        self._place = place
        self._replayed = replayed
        self._index = os.path.join(place.git_dir, _INDEX)

    def to(self, commit: str, head: str) -> bool:
        """Brings the worktree to a commit, as which `head` has landed; returns whether it has, or
        need not have, that. Raises `NotLanded`, and what `replayed` does; the worktree is then as
        it was, or what is left half done can be healed.
        """
        until_s = time.monotonic() + PATIENCE_S
        known, after = head, commit
        while not self._place.is_merging and not self._place.is_rebasing:
            self._place.commands.wait_for_index(self._place.git_dir)
            now = self._now(commit, head)
            if not now:
                return True
            if not self._place.is_ancestor(known, now):
                known, after = head, commit
            if now != known and self._replayed is not None:
                # Only what came since the last try: who commits all the time is caught up with.
                known, after = now, self._replayed(after, known, now)
            if self._moved(now, after):
                return True
            self._place.commands.stop_if_asked()
            if time.monotonic() >= until_s:
                raise locked(self._place.tree, os.path.join(self._place.git_dir, "index.lock"))
        return False

    def _now(self, commit: str, head: str) -> str:
        """Returns the commit from which the worktree is to follow; empty if it need not. Raises
        `NotLanded` if it has another branch than the one that landed.
        """
        place, branch = self._place, current_branch(self._place.git_dir)
        if branch != place.branch:
            has = f"{named([branch])} checked out" if branch else "no branch checked out"
            raise NotLanded(f"it has {has} by now, and not {named([place.branch])}")
        now = branch_head(place.common_dir, branch) or place.head()
        if now == commit or self._comes_before(commit, now):
            return ""
        if now == head:
            return now
        # A rebase would drop what a merge changed.
        can = self._replayed and self._comes_before(head, now) and place.is_linear(head, now)
        return now if can else ""

    def _comes_before(self, before: str, after: str) -> bool:
        """Returns whether a commit comes before another. Raises `NotLanded` if git does not say:
        taken for a no, that would have what has landed land again.
        """
        asked = ("merge-base", "--is-ancestor", no_dash(before), no_dash(after))
        status, _, said = user_git(*asked, cwd=self._place.tree)
        if status not in (0, 1):
            why = " ".join(said.decode(errors="replace").split())
            raise NotLanded(f"git does not say what has landed: {why}", hint="queen land")
        return status == 0

    def _moved(self, before: str, after: str) -> bool:
        """Moves the branch and its files; returns False if another git was quicker."""
        place = self._place
        try:
            with IndexLock(place.git_dir):
                if not self._is_at(before):
                    return False
                self._refuse_losses(before, after)
                place.commands.step.write("advance", before=before, after=after)
                self._write_files(before, after)
                ref = no_dash(f"refs/heads/{place.branch}")
                move = ("update-ref", "-m", ACTION, ref, no_dash(after), no_dash(before))
                done = place.commands(*move, cwd=place.tree, to_the_end=True)
                if done.status != 0 or not self._is_at(after):
                    self._take_files_back(before, after)
                    self._refuse_refused(done, before, after)
                    return False
        except FileExistsError:
            return False
        except OSError as error:  # A full disk, say.
            why = f"its index cannot be written: {error.strerror}"
            raise NotLanded(why, hint="git status") from error
        self._run_hook(before, after)
        return True

    def _is_at(self, commit: str) -> bool:
        place = self._place
        branch = current_branch(place.git_dir)
        return branch == place.branch and branch_head(place.common_dir, branch) == commit

    def _refuse_losses(self, before: str, after: str) -> None:
        place = self._place
        if loss := loss_by(place.tree, before, after):
            hint = f"{loss.way}; then queen land" if loss.way else "git status"
            raise NotLanded(f"{loss.what}: {after[:10]} is not checked out", hint=hint)
        if lost := between(place.tree, before, after):
            raise NotLanded(
                f"{_as(after)}, has files that are here without git: {named(lost, SHOWN)}",
                hint="move them away, then queen land again",
                files=lost,
            )

    def _write_files(self, before: str, after: str) -> None:
        """Writes what differs between two commits, and the index. Raises `NotLanded`."""
        done = self._read_tree(before, after)
        if done.status != 0:
            said = " ".join(done.said.split())
            raise NotLanded(f"{_as(after)}, cannot be checked out: {said}", hint="git status")

    def _read_tree(self, before: str, after: str) -> Done:
        """Writes the files with an index of its own, which then takes the place of the other."""
        place = self._place
        for left in (self._index, f"{self._index}.lock"):  # By a git that was killed.
            with suppress(FileNotFoundError):
                safe_open.unlink(left)
        index = os.path.join(place.git_dir, "index")
        shutil.copy2(index, self._index)
        own = {"GIT_INDEX_FILE": self._index}
        run = partial(place.commands, cwd=place.tree, to_the_end=True, env=own)
        how = ("read-tree", "-m", "-u", no_dash(before), no_dash(after))
        done = run(*how)
        if done.status == _REFUSED:  # Perhaps a file was only touched.
            run("update-index", "-q", "--refresh")
            done = run(*how)
        if done.status == 0:
            safe_open.replace(self._index, index)
        return done

    def _take_files_back(self, before: str, after: str) -> None:
        """Takes the files back where another commit won, unless that has them, too."""
        place = self._place
        if not differ_alike(place.tree, before, after, place.head()):
            self._read_tree(after, before)
        place.commands.step.end()

    def _refuse_refused(self, done: Done, before: str, after: str) -> None:
        """Raises `NotLanded` where nobody was quicker: a hook, say, refuses the branch."""
        if done.status != 0 and not done.is_locked and self._is_at(before):
            said = " ".join(done.said.split())
            what = f"{named([self._place.branch])} cannot be moved to {after[:10]}"
            raise NotLanded(f"{what}: {said}", hint="git status")

    def _run_hook(self, before: str, after: str) -> None:
        """Runs what git runs after it has moved a worktree, such as what installs packages."""
        place = self._place
        place.commands.step.end()
        if not hooks_there(place.tree, ("post-merge", "post-checkout")):
            return
        run = partial(place.commands, *(HOOK_BY_GIT if runs_hooks() else HOOK_BY_ALIAS))
        if self._replayed is None and place.is_ancestor(before, after):
            run("post-merge", "--", "0", cwd=place.tree)
        else:
            run("post-checkout", "--", before, after, "1", cwd=place.tree)


def _as(commit: str) -> str:
    return f"{commit[:10]}, as which this worktree's work landed"
