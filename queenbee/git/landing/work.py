"""What is asked of a landing and what comes of it: rules, the work on an issue, and the result."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from queenbee.git.contents.judging_bead import bead_folders
from queenbee.git.contents.landing_messages import Messages
from queenbee.git.contents.running_hooks import within
from queenbee.git.landed import carries_records
from queenbee.git.landing.commands import is_commit
from queenbee.git.landing.conflicts import Joined
from queenbee.git.landing.judged.check_files import check_files
from queenbee.git.landing.judged.judging import Judging, whole_check
from queenbee.git.ownership import is_of_droid
from queenbee.git.run import OWNERS, settings
from queenbee.git.worktrees.preparing import MACHINE
from queenbee.store.git_files.worktrees import worktrees
from queenbee.store.whole_files import recall

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from queenbee.core.fold import Fields
    from queenbee.git.landing.arrivals import Arrival
    from queenbee.git.landing.commands import Changed
    from queenbee.git.landing.place import Place
    from queenbee.git.landing.refusals import TargetFails
    from queenbee.git.objects import Objects
    from queenbee.services.open_store import Store
    from queenbee.store.layout import Layout

CHECK = "queenbee.check"
"""The setting of git that holds the check of a repository on this machine."""
_ASKED = rf"^({CHECK}|{MACHINE}|commit\.gpgsign|core\.hookspath)$"
MERGE, REBASE, SQUASH = "merge", "rebase", "squash"
PROPOSED = "proposed"
"""The target is merged into the branch, and the host makes the history."""


@dataclass(frozen=True, slots=True)
class Landing:
    """What a landing did: the commit that is now on the target, or why there is none.

    `output` is the end of what a failed check printed.
    """

    target: str
    commit: str | None
    checked: bool = True
    output: str = ""
    untracked: Sequence[str] = ()
    """Files of the worktree that git does not track, and so are not part of it."""
    changed: Sequence[str] = ()
    """The files that the target got."""
    check_s: float | None = None
    """How long the check took that passed, in seconds; None if there was none."""
    check_said: str = ""
    """The last line that it printed."""
    joined: Sequence[Joined] = ()
    """The conflicts that needed nobody."""
    came_in: Sequence[Arrival] = ()
    """What others landed since the branch began, which came in now; the newest first. After a
    conflict, what came in later."""
    check_files: Sequence[str] = ()
    """Those of the changed files that change the check, or a workflow."""
    landed_with: Sequence[str] = ()
    """The droids whose branches landed in the same step."""
    is_proposed: bool = False
    """Whether the commit is on a branch of its own at the remote, to be merged there."""

    @classmethod
    def promised(cls, target: str, kept: Fields) -> Landing:
        """Returns what a promise that was kept says."""

        def words(name: str) -> list[str]:
            said = kept.get(name)
            return [str(each) for each in said] if isinstance(said, list) else []

        check_s = kept.get("check_s")
        return cls(
            target,
            str(kept.get("commit")),
            checked=bool(kept.get("checked")),
            changed=words("changed"),
            check_files=words("check_files"),
            check_s=check_s if isinstance(check_s, float) else None,
            check_said=str(kept.get("check_said") or ""),
            landed_with=words("landed_with"),
            joined=Joined.promised(kept),
        )

    @property
    def landed(self) -> bool:
        """Whether the target has the work of this worktree."""
        return self.commit is not None and not self.is_proposed

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        fields = asdict(self)
        fields["check_seconds"] = fields.pop("check_s")
        came_in = [each.to_dict() for each in self.came_in]
        return {"landed": self.landed, **fields, "came_in": came_in}


@dataclass(frozen=True, slots=True)
class Rules:
    """How work lands in a repository."""

    check: str | None = None
    """A shell command that has to pass: all those that are set or asked for."""
    strategy: str = MERGE
    union: Sequence[str] = ()
    """Patterns, as in `.gitignore`, of files in which what both sides added is kept."""
    join: str = "on"
    """Which conflicts are joined without anybody: `on`, `all` or `off`."""
    check_timeout_s: float = 3600.0
    batch: int = 16
    """How many branches may land in one step."""
    jobs: int = 1
    """How many of them may be checked side by side after a failure."""
    rechecks: bool = True
    """Whether the check runs again on files that it has just passed on."""
    records: bool = False
    """Whether the commit that lands carries the records of the hive."""
    signs: bool = False
    """Whether the user signs commits."""
    messages: Messages = field(default_factory=Messages)
    """What the commits say that landing makes."""
    machine_check: str = ""
    """What this machine's git says in place of the settings."""
    machine_setup: str = ""
    """What it says in place of the set-up that the settings have."""
    hooks: str = ""
    """The folder of git's hooks, if it is in the tree; empty if not."""
    asked: str | None = None
    """A check that is asked for once."""
    judging: Judging | None = field(default=None, compare=False)

    @classmethod
    def of(cls, store: Store, asked: str | None = None) -> Rules:
        """Returns what this machine and the files of settings say; the former first. `asked` is a
        check that must pass too.
        """
        said = store.layout.settings
        tree = store.layout.tree
        own = {
            name: value
            for scope, name, value in settings(_ASKED, cwd=tree)
            if name != CHECK or scope in OWNERS
        }
        rules = cls(
            strategy=PROPOSED if said.land_by == "pr" else said.land_strategy,
            batch=said.land_batch,
            jobs=said.land_jobs,
            records=carries_records(store.layout),
            signs=own.get("commit.gpgsign", "no").lower() in ("", "true", "yes", "on", "1"),
            messages=Messages.of(said, tree),
            machine_check=own.get(CHECK, ""),
            machine_setup=own.get(MACHINE, ""),
            hooks=within(tree, own.get("core.hookspath", "")),
            asked=asked,
        )
        return rules._judged_by(Judging.of(store.layout))

    @property
    def proposed(self) -> list[str]:
        """The commands of the check that settings say, and not this machine or whoever lands."""
        return self.judging.checks if self.judging is not None and not self.machine_check else []

    def judged(self, objects: Objects, target: str, head: str) -> Rules:
        """Returns those that count for a commit that is to land on a commit of the target."""
        if self.judging is None:
            return self
        return self._judged_by(self.judging.at(objects, target, head))

    @property
    def commands(self) -> list[str]:
        """The commands of the check, but for one that is asked for once."""
        checks = self.judging.checks if self.judging is not None else []
        return [*filter(None, (self.machine_check, *checks))]

    @property
    def guards_check(self) -> bool:
        """Whether a landing that changes the check waits for a person."""
        return self.judging is not None and self.judging.settings.land_guard_check

    def check_files(self, changed: Collection[str]) -> list[str]:
        """Returns those of the changed files that change the check, or a workflow."""
        judging = self.judging
        tree = judging.layout.tree if judging is not None else ""
        setups = [self.machine_setup, *(judging.setups if judging is not None else ())]
        beads = bead_folders(judging.layout) if judging is not None else ()
        folders = [*filter(None, (self.hooks, *beads))]
        found = check_files([*self.commands, *setups], changed, tree, folders)
        if judging is not None and judging.path in changed and judging.is_changed:
            found.append(judging.path)
        return found

    def _judged_by(self, judging: Judging) -> Rules:
        said = judging.settings
        checks = [self.machine_check] if self.machine_check else judging.checks
        return replace(
            self,
            check=whole_check([*checks, *filter(None, (self.asked,))]),
            check_timeout_s=said.land_check_timeout_s,
            rechecks=said.land_recheck,
            union=said.land_union,
            join=said.land_join,
            judging=judging,
        )


class Offer(NamedTuple):
    """A branch that waits for its turn, and may land in that of another."""

    entry: str
    droid: str
    tree: str
    branch: str
    head: str
    check: str | None
    strategy: str
    subject: str | None
    issue_id: str | None

    def to_dict(self) -> dict[str, object]:
        """Returns the parts that its place in the line does not say."""
        return {name: getattr(self, name) for name in self._fields[1:]}


ASKED = "queenbee-asked"
"""The file that says what is to land of a worktree, in its own git directory: it ends with that."""


def offers(layout: Layout, line: Sequence[tuple[str, Fields]]) -> list[Offer]:
    """Returns the offers of those in a line; who wants to land alone makes none.

    An agent may write its own: so one counts for the tip of the branch that is checked out there,
    and by the droid to whom QueenBee gave the worktree.
    """
    places = {each.path: each for each in worktrees(layout) if each.linked} if line else {}
    found = []
    for entry, fields in line:
        tree = str(fields.get("tree"))
        place = places.get(tree)
        said = recall(os.path.join(place.git_dir, ASKED)) if place is not None else None
        parts = [said.get(each) for each in Offer._fields[1:]] if isinstance(said, dict) else [0]
        is_whole = all(isinstance(each, str | None) for each in parts) and parts[2]
        if place is None or not (is_whole and is_commit(parts[3]) and parts[1] == tree):
            continue
        if parts[2:4] == [place.branch, place.head] and is_of_droid(place, str(parts[0])):
            found.append(Offer(entry, *parts))
    return found


class Work:
    """What lands besides commits, and who else has a say in it: here nothing, and nobody."""

    issue_id: str | None = None
    """The issue that the work is for."""
    is_alone = False
    """Whether it has to land in a step of its own."""
    accepts_check: str | None = None
    """The key of the change of the check that a person accepts."""

    waits: Callable[[], bool] = staticmethod(lambda: True)
    """Returns whether whoever lands still waits for it, and does nothing else meanwhile."""

    def ready(self) -> None:
        """Called before the turn is waited for; refuses what must not land."""

    def subject(self) -> str | None:
        """Returns what the commits are for that landing makes, `qb-1: Title`; None if for nothing
        known.
        """
        return None

    def held(self, paths: Sequence[str]) -> list[str]:
        """Returns those of the changed files that may not land, because others hold them."""
        return []

    def look_again(self) -> None:
        """Called when the turn has come, before the check; refuses what must not land now."""

    def judged_by(self, check: str | None) -> None:
        """Called with the check that judges the commit; refuses one that nothing would check."""

    def check_waits(self, files: Sequence[str], way: str) -> None:
        """Called once for each change of the check that waits for a person."""

    def target_fails(self, error: TargetFails) -> None:
        """Called once it is found that the target itself fails its check."""

    def target_passes(self, target: str) -> None:
        """Called when its check has passed on the target."""

    def refuse_unjudged(self, contents: Changed, head: str) -> None:
        """Refuses a commit with work that others have still to judge; `contents` has the blobs of
        each file before and after.
        """

    def keeps_out(self, offer: Offer, contents: Changed) -> bool:
        """Returns whether the branch of another droid must wait for its own turn."""
        return False

    record: Any = None
    """What the checks of the issue said."""

    def record_of(self, offer: Offer) -> object:
        """Returns what `verify_for` found."""
        return None

    def verify_for(self, offer: Offer, tree: str, ready: Callable[[], None]) -> str | None:
        """Runs the checks of an issue of another droid as `verify` does its own."""
        return None

    def verify(self, tree: str, ready: Callable[[], None]) -> str | None:
        """Runs checks after that of the rules in a tree, which `ready` first makes ready for them;
        returns what failed, or None.
        """
        return None

    def push(self, place: Place, tree: str, commit: str) -> None:
        """Pushes what passed to a branch of its own, from a tree that has it; refuses where others
        have pushed there.
        """

    def landed(self, landing: Landing, issue_id: str | None) -> None:
        """Called once the target has the work on an issue, or it is proposed, after the turn; if it
        is interrupted, the next call calls it again.
        """

    def whose(self, commits: Sequence[str]) -> Mapping[str, Sequence[tuple[str, str]]]:
        """Returns for which issue, and by whom, commits landed, as far as that is known."""
        return {}
