"""What keeps work from landing without being its fault: something in the main worktree, or what
waits for a person. Such work is put off, and lands once that is out of the way.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned
from queenbee.errors import QueenError
from queenbee.git.landing.refusals import way_past
from queenbee.git.run import git, line
from queenbee.starting.landing_result import TARGET_FAILS, LandingResult
from queenbee.store.droids import roster
from queenbee.store.git_files.worktrees import target_ref
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from queenbee.store.layout import Layout

UNTRUSTED = "untrusted"
_AWAY = {"host_away", "unreachable"}
_IN_THE_WAY = {
    "main_blocked",
    TARGET_FAILS,
    UNTRUSTED,
    "check_guarded",
    "busy",
    "unwritable",
    "not_logged_in",
    "no_host_client",
    *_AWAY,
}
_TRY_AGAIN_S = 30.0
_HIVE = ".beads/"


@dataclass
class Obstacle:
    """Why the work on an issue has not landed, and where it is meanwhile."""

    issue_id: str
    result: LandingResult
    path: str
    """The worktree in which it was met."""
    after: int
    """How many issues its agent had taken when it was met last."""
    branch: str = ""
    """Where the work was put; empty while it is in its worktree."""
    met_s: float = field(default_factory=time.monotonic)
    head: str = ""
    """The commit with the work, where the next run can land it without an agent; else empty."""
    updated_at: str = ""
    """When its issue had last changed then, as its row says."""

    @property
    def sentence(self) -> str:
        """What waits for what, with the next command."""
        return f"{self.issue_id} waits to land: {self.why}"

    @property
    def why(self) -> str:
        """The same without the issue."""
        hint = self.result.hint
        if self.is_kept:  # Its own words are for whoever is there.
            way = "queen config trust"
            if self.result.code != UNTRUSTED:
                way = way_past(self.result.path, self.result.files)
            hint = f"{way}; then queen start lands it, and no agent begins with it again"
        kept = f"its work is on {mentioned(self.branch)}"
        parts = (f"try: {hint}" if hint else "", kept if self.branch else "")
        return "; ".join(filter(None, (self.result.message, *parts)))

    @property
    def is_kept(self) -> bool:
        """Whether the next run lands it before an agent begins with it again."""
        return bool(self.head)

    @property
    def can_be_kept(self) -> bool:
        """Whether only a person has to see to it, before it lands as it is."""
        return self.result.code == UNTRUSTED or self._has_files

    def try_now(self) -> None:
        """Has it be landed at once: a person has let its commands run."""
        self.after = -1

    @property
    def is_of_issue(self) -> bool:
        """Whether other issues can land meanwhile, and this one needs no worktree to wait in.

        A person accepts a change of the check in the very worktree that has it.
        """
        if self.result.code == UNTRUSTED:
            return not self.result.of_settings
        return self._has_files

    def is_outage(self, layout: Layout) -> bool:
        """Returns whether the host of pull requests is away, for which a team waits, as it does for
        their merges.
        """
        return self.result.code in _AWAY and layout.settings.land_by == "pr"

    @property
    def _has_files(self) -> bool:
        return self.result.code == "main_blocked" and bool(self._files)

    def is_due(self, taken: int, layout: Layout) -> bool:
        """Returns whether to try again: its agent has taken another issue since, or some time has
        passed, and nothing shows that it would be in vain.
        """
        if self.result.code == "check_guarded":  # The person lands it.
            return False
        if self.result.code == TARGET_FAILS:
            return not self.is_of_target(layout)
        waited = taken > self.after or time.monotonic() >= self.met_s + _TRY_AGAIN_S
        return waited and not self._is_there(layout)

    def is_of_target(self, layout: Layout) -> bool:
        """Returns whether the target fails without this work, and has not moved since."""
        if self.result.code != TARGET_FAILS:
            return False
        asked = ("rev-parse", no_dash(str(target_ref(layout))))
        return line(*asked, cwd=layout.tree, repository={}) == self.result.commit

    def is_lost(self, layout: Layout) -> bool:
        """Returns whether the branch with the work is gone: somebody has dealt with it."""
        ref = ("rev-parse", "--verify", "--quiet", f"refs/heads/{self.branch}")
        return bool(self.branch) and line(*ref, cwd=layout.tree, repository={}) is None

    @property
    def _files(self) -> list[str]:
        """What is in the way; the records change all the time."""
        return [each for each in self.result.files if not each.startswith(_HIVE)]

    def _is_there(self, layout: Layout) -> bool:
        here = git_tree(layout.tree)
        main = here.main_tree if here is not None else None
        if not self._has_files or main is None:
            return False
        asked = ("status", "--porcelain=v1", "--untracked-files=all", "--", *self._files)
        with suppress(QueenError):
            return bool(git("--literal-pathspecs", *asked, cwd=main, repository={}))
        return False


def is_in_the_way(result: LandingResult) -> bool:
    """Returns whether a landing failed for something else than its work."""
    return result.code in _IN_THE_WAY


def keep_obstacles(layout: Layout, name: str, met: Iterable[Obstacle]) -> None:
    """Keeps what an agent could not land, for the next run. Never fails."""
    said: list[dict[str, object]] = [
        {
            "issue_id": each.issue_id,
            "path": each.path,
            "branch": each.branch,
            "head": each.head,
            "updated_at": each.updated_at,
            "why": each.why,
            "result": asdict(each.result)
            | {"commands": [one.to_dict() for one in each.result.commands]},
        }
        for each in met
        if each.is_kept
    ]
    roster.note_waiting(layout, name, said)


def kept_obstacles(layout: Layout, name: str) -> list[Obstacle]:
    """Returns what an agent of an earlier run could not land, to be tried at once."""
    found = list[Obstacle]()
    for each in roster.waiting_of(layout, name):
        with suppress(KeyError, TypeError, AttributeError):
            result = LandingResult.refused(each["result"])
            issue_id, path, branch, head, updated_at = (
                str(each[key]) for key in ("issue_id", "path", "branch", "head", "updated_at")
            )
            found.append(
                Obstacle(issue_id, result, path, -1, branch, head=head, updated_at=updated_at)
            )
    return found
