"""The worktree of an agent: put right, cleared for an issue, or brought to work put off."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.command_lines import command_line, no_dash
from queenbee.core.text import suggested
from queenbee.errors import NotFound, QueenError
from queenbee.git.landing.committing import RECORDS
from queenbee.git.ownership import takes_over
from queenbee.git.run import git, line
from queenbee.git.trees.own_branch import is_own
from queenbee.git.unfinished import WorktreeKeeper, name_of
from queenbee.git.worktrees.preparing import is_prepared
from queenbee.git.worktrees.slots import variables
from queenbee.git.worktrees.worktree_making import add
from queenbee.git.worktrees.worktree_mending import WorktreeMender
from queenbee.services.work.members import not_to_begin
from queenbee.starting.agent_process import AgentProcess
from queenbee.starting.handover import Handover
from queenbee.starting.landing_result import abort_landing
from queenbee.store.droids import roster
from queenbee.store.git_files.tree_work import note_work
from queenbee.store.git_files.worktrees import Worktree, target_ref, worktrees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.core.records import Assignment
    from queenbee.git.unfinished import Unfinished
    from queenbee.workflows.complete_hive import Hive

SETTING_UP = "setting up"
"""The state of an agent whose worktree is made usable."""


@dataclass
class PlacedAgent(AgentProcess):
    """An agent in its worktree, and what its next process is told."""

    hive: Hive
    _is_unclear: bool = False
    """Whether its worktree has still to be cleared for the issue that it has taken."""
    _ends: int = 0
    """How many processes have ended too early on this issue, since the last commit."""
    _why: str = ""
    """Why the last one was not enough."""
    _failures: str = ""
    """The end of what that printed, or what its landing said."""
    _left: set[str] = field(default_factory=set)
    """The issues that it has and leaves alone, of which it was said."""

    def __post_init__(self) -> None:
        self._handover = Handover(self.home.layout, self.name, self.env, loops=self.client.loops)
        super().__post_init__()

    def held(self) -> Assignment | None:
        """Returns its unfinished issue, or None. One in review is none until it is to be mended."""
        left = not_to_begin(self.hive, self.name, self.entry)
        every = self.hive.assignments.find(droid=self.name)
        mine = (each for each in every if each.issue_id not in left)
        found = [each for each in mine if each.review is None or each.review.asks_droid]
        issues = self.hive.issues.some(each.issue_id for each in found)
        open_ = (
            one for one in found if one.issue_id not in issues or not issues[one.issue_id].done
        )
        return next(open_, None)

    def _tell_left(self) -> None:
        """Tells which issues it has and leaves alone, each once."""
        for each in sorted(not_to_begin(self.hive, self.name, self.entry) - self._left):
            self._left.add(each)
            why = "is not ready" if self.entry.wants(each) else "is not one of --issues"
            back = suggested("queen release", each, as_=self.name)
            self.tell(f"{self.name} leaves {each} alone, which it has: it {why}; {back}")

    def _make_fit(self) -> None:
        """Puts its worktree right, whatever its last process did to it: the work is kept."""
        if self._mended(self._mender()):
            # The folder may be another one by now.
            self.hive = type(self.hive).open(self.made.path, droid=self.name, env=self.env)

    def _mender(self) -> WorktreeMender:
        path = self.made.path
        add_again = partial(add, self.home, self.name, path=path)
        return WorktreeMender(self.home, path, self.made.branch, add_again)

    def _mended(self, mender: WorktreeMender) -> bool:
        """Has a worktree be put right, tells what was wrong, and returns whether anything was."""
        held = self.held()
        other = self._others_work(held)
        named = other or held
        name = name_of(named) if named is not None else f"{self.entry.issue_id}-{self.name}"
        abort = partial(self._abort_landing, self.entry.issue_id)
        said = []
        for each in mender.mend(name, keeps_merge=held is not None, abort=abort):
            said.append(each)
            self.tell(f"{self.name}: {each}")
        self._record(other, said)
        if self._why and said:  # What its next process reads.
            self._why = "; ".join([self._why, *said])
        return bool(said)

    def _others_work(self, than: Assignment | None = None) -> Assignment | None:
        """Returns whose work its worktree has, if that is of another issue and has not landed."""
        found = self.hive.assignments.work_in(str(self.hive.layout.git_dir))
        return None if found and than and found.issue_id == than.issue_id else found

    def _clear(self) -> None:
        """Keeps what is in its worktree, of another issue or a person, before an issue begins; the
        record of that issue names where.
        """
        other, said = self._others_work(), list[str]()
        name = name_of(other) if other else f"{self.entry.issue_id or 'work'}-{self.name}"
        for each in self._mender().clear(name, other.issue_id if other else "ISSUE"):
            said.append(each)
            self.tell(f"{self.name}: {each}")
        self._record(other, said)
        self._begins_here(None)
        self._is_unclear = False

    def _record(self, whose: Assignment | None, kept: Sequence[str]) -> None:
        """Has the next who begins with an issue know where work on it is kept."""
        with suppress(QueenError):  # It is told here.
            if whose is not None and kept:
                self.hive.assignments.note_kept(whose, "; ".join(kept))

    def _begins_here(self, given: Assignment | None) -> None:
        """Notes whose work its worktree has from now on."""
        layout = self.hive.layout
        note_work(str(layout.git_dir), given.id if given is not None else "")
        takes_over(Worktree(self.made.path, str(layout.git_dir), str(layout.common_dir)))

    def _take_up(self, branch: str) -> None:
        """Brings its worktree, which is cleared, to the work that was put on a branch."""
        every = worktrees(self.home.layout)
        here = next((each for each in every if each.path == self.made.path), None)
        if here is None:
            raise NotFound(f"{self.made.path} is no worktree any more", hint="queen worktree list")
        to, name = f"refs/heads/{branch}", f"work-{self.name}"
        WorktreeKeeper(self.home).put_back(here, branch=self.made.branch, name=name, to=to)

    def _put_away(self, held: Assignment) -> Unfinished | None:
        return WorktreeKeeper(self.home).set_aside(held)

    def _abort_landing(self, issue_id: str) -> None:
        with suppress(OSError, QueenError):
            env, log = self._environment(issue_id), roster.log_path(self.hive.layout, self.name)
            abort_landing(self.entry.path, env, log)

    def _sets_up(self) -> bool:
        """Starts the set-up of the worktree that it is to work in, and returns whether it did: what
        came in since the last time may have changed the lock files. Its end is a step of its own.
        """
        if is_prepared(self.home.layout, self.entry.path):
            return False
        env = self._environment(self.entry.issue_id)
        self._start(command_line("queen", "worktree", "setup"), SETTING_UP, env)
        return True

    def _environment(self, issue_id: str) -> dict[str, str]:
        failures = self._failures if self._ends else ""
        own = self._handover.environment(issue_id, self._ends, failures)
        return {**own, **variables(self.home.layout, self.entry.path)}

    def _is_as_left(self, head: str) -> bool:
        """Returns whether its worktree has the commit that its agent left there, on its own branch
        and not landed, and nothing else.
        """
        path = self.made.path
        tip = f"refs/heads/{self.made.branch}"
        return (
            line("rev-parse", "HEAD", cwd=path, repository={}) == head
            and line("symbolic-ref", "--quiet", "HEAD", cwd=path, repository={}) == tip
            and self._has_no_change()
            and bool(self._unlanded())
        )

    def _has_no_change(self) -> bool:
        """Returns whether its worktree has nothing that is not committed, but records."""
        others = (".", *(f":(exclude,glob){each}" for each in RECORDS))
        asked = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--", *others)
        return not git(*asked, cwd=self.made.path, repository={})

    def _unlanded(self) -> int:
        """Returns how many commits of its own branch are not on the main branch."""
        if not is_own(self.home.layout, self.entry.path):
            return 0
        commits = f"{target_ref(self.home.layout)}..HEAD"
        asked = ("rev-list", "--count", no_dash(commits), "--")
        count = line(*asked, cwd=self.entry.path, repository={})
        return int(count or 0)
