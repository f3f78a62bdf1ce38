"""The worktrees of a hive's repository: one for each agent."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from queenbee._typed import typed
from queenbee.core.names import checked_agent
from queenbee.core.text import mentioned, named, suggested
from queenbee.errors import ExternalFailure, InvalidInput, NotFound, QueenError
from queenbee.git.beforehand.hindrances import hindrances
from queenbee.git.ownership import adopt, refuse_other_hive
from queenbee.git.trees.elsewhere import tell_led_away
from queenbee.git.upstream import look_for_news
from queenbee.git.worktrees import preparing, pruning, worktree_care, worktree_making
from queenbee.git.worktrees.bead_place import sprint_worktree
from queenbee.git.worktrees.left_git_dirs import kept_of_gone
from queenbee.store.callers.agent_above import is_agent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from queenbee.git.worktrees.preparing import Plan
    from queenbee.git.worktrees.worktree_care import Place, Removed
    from queenbee.git.worktrees.worktree_making import Made
    from queenbee.workflows.complete_hive import Hive


class Worktrees:
    """The worktrees of a repository, each with the droid that works there."""

    def __init__(self, hive: Hive, *, env: Mapping[str, str], tell: Callable[[str], None]) -> None:
        self._hive = hive
        self._layout = hive.layout
        self._env = env
        self._tell = tell

    @typed
    def add(  # noqa: PLR0913 - by name
        self,
        name: str | None = None,
        issue_id: str | None = None,
        *,
        bead: str | None = None,
        path: str | None = None,
        branch: str | None = None,
        adopt: Sequence[str] = (),
        new: bool = False,
    ) -> Made:
        """Makes a worktree for the droid `name`, with a branch of that name, and sets it up.

        It claims `issue_id` for the droid first; if that is refused, nothing is made. With `new`,
        also an issue that nobody has described. `path` is where, by default beside the main
        worktree; `branch` may exist. `bead` is a sprint bead that names both; `name` is then by
        default the actor. `adopt` are branches that a person hands over, with their worktrees.

        Repeating it changes nothing, and goes on after an interruption. Raises what a claim raises;
        `Conflict` for a worktree, branch or folder that was not made for this; and `SetupFailed`,
        after which the worktree is there.
        """
        if news := look_for_news(self._layout):
            self._tell(news)
        preparing.seen_setup(self._layout, self._hive.asks_person)
        self._adopt(adopt)
        try:
            made = self._made(name, issue_id, bead, path=path, branch=branch, new=new)
        except NotFound as error:
            if issue_id is not None and issue_id.isalpha():  # The name of another agent.
                way = suggested("queen worktree add", issue_id)
                error.hint = f"one name each: {way}; or {error.hint}"
            raise
        if made.kept is not None:
            self._tell(kept_of_gone(made.path, made.kept))
        for each in adopt:
            if each != made.branch:
                said = f"{made.droid} works on {named([made.branch])}"
                self._tell(f"{named([each])} is handed over, and {said}")
        with _told_made(made):
            preparing.prepare(self._layout, made.path, env=self._env, tell=self._tell)
        self._tell_hindrances()
        # A set-up may have brought the hooks.
        return replace(made, guarded=worktree_making.is_guarded(made.path))

    def _adopt(self, branches: Sequence[str]) -> None:
        for each in branches:
            adopt(self._layout, each)

    def _made(
        self,
        name: str | None,
        issue_id: str | None,
        bead: str | None,
        *,
        path: str | None,
        branch: str | None,
        new: bool,
    ) -> Made:
        hive = self._hive
        if name is not None and is_agent():
            worktree_care.refuse_live(self._layout, lambda each: each.name == name)
        if bead is not None and issue_id is None and branch is None:
            return sprint_worktree(hive, hive.issue_id(bead), name or hive.actor, path=path)
        if bead is not None or name is None:
            raise InvalidInput(
                "the name of the droid is missing"
                if bead is None
                else "a sprint bead says the issue and the branch itself",
                hint="queen worktree add --help",
            )
        checked_agent(name)
        issue = hive.issue_id(issue_id) if issue_id is not None else None
        if issue is not None and not new:
            hive.issues.check_described(issue)
        return worktree_making.add(hive, name, issue_id=issue, path=path, branch=branch)

    def _tell_hindrances(self) -> None:
        with suppress(ExternalFailure):
            for each in hindrances(self._layout):
                if each.stops:
                    self._tell(each.sentence)

    def setup(self, *, dry_run: bool = False) -> Plan | None:
        """Sets up the worktree of this hive once more: copies what git ignores, and runs
        `worktree.setup`. With `dry_run`, does nothing, and returns what it would do.

        Raises `SetupFailed`, and `Untrusted`.
        """
        refuse_other_hive(self._layout)
        if dry_run:
            return preparing.planned(self._layout, self._layout.tree, again=True)
        preparing.prepare(
            self._layout,
            self._layout.tree,
            env=self._env,
            tell=self._tell,
            ask=self._hive.asks_person,
            again=True,
        )
        return None

    def list(self) -> list[Place]:
        """Returns the worktrees, the main one first, and what in each has not landed."""
        tell_led_away(self._layout.common_dir, self._tell)
        return worktree_care.places(self._hive)

    @typed
    def remove(self, name: str, *, force: bool = False) -> Removed:
        """Removes a worktree, by the name of its folder, branch or droid, or by its path; ends the
        leases of its droid there, and removes its branch if that has landed.

        Raises `NotFound`, and `Conflict` if its droid has an issue there or anything in it would be
        lost; with `force`, what is not committed is kept on a branch `unfinished/NAME`.
        """
        return worktree_care.remove(self._hive, name, force=force)

    @typed
    def prune(self) -> pruning.Pruned:
        """Removes the worktrees that QueenBee made and whose work has landed, each as `remove`
        does, and says why it kept the others.
        """
        look_for_news(self._layout)
        return pruning.prune(self._hive)


@contextmanager
def _told_made(made: Made) -> Iterator[None]:
    """Has a refusal say that the worktree is there all the same."""
    try:
        yield
    except QueenError as error:
        error.message = f"{mentioned(made.path)} was made, but is not ready: {error.message}"
        raise
