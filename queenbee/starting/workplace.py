"""The worktree of one agent: put right, cleared, or brought to work that was put off."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from queenbee.errors import NotFound
from queenbee.git.run import line
from queenbee.git.unfinished import WorktreeKeeper
from queenbee.git.worktrees.worktree_making import add
from queenbee.git.worktrees.worktree_mending import WorktreeMender
from queenbee.store.git_files.worktrees import target_branch, worktrees

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queenbee.git.worktrees.worktree_making import Made
    from queenbee.workflows.hive import Hive


class Workplace:
    """The worktree that was made for an agent."""

    def __init__(self, home: Hive, made: Made, droid: str) -> None:
        self._home = home
        self._droid = droid
        self.path = made.path
        self.branch = made.branch

    def mender(self) -> WorktreeMender:
        """Returns what puts it right, whatever a process did to it."""
        add_again = partial(add, self._home, self._droid, path=self.path)
        return WorktreeMender(self._home, self.path, self.branch, add_again)

    def clear(self, issue_id: str) -> Iterator[str]:
        """Yields what it has kept of the work on an issue, or of a person, a sentence each; the
        worktree is on the main branch then.
        """
        return self.mender().clear(f"{issue_id or 'work'}-{self._droid}")

    def take_up(self, branch: str) -> None:
        """Brings the worktree, which is cleared, to the work that was put on a branch."""
        here = next((each for each in worktrees(self._home.layout) if each.path == self.path), None)
        if here is None:
            raise NotFound(f"{self.path} is no worktree any more", hint="queen worktree list")
        to = f"refs/heads/{branch}"
        name = f"work-{self._droid}"
        WorktreeKeeper(self._home).put_back(here, branch=self.branch, name=name, to=to)

    def unlanded(self, path: str) -> int:
        """Returns how many commits of a worktree, this or that of a bead, are not on the main
        branch.
        """
        commits = f"refs/heads/{target_branch(self._home.layout)}..HEAD"
        return int(line("rev-list", "--count", commits, "--", cwd=path, repository={}) or 0)
