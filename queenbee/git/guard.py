"""The git guard: which changes another droid holds, and whether they may pass anyway.

Exclusive leases count, and edits that others announced in this working tree: they would be in the
commit too. What others announced in their own trees is merged later. The hive's own files are never
held.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.core.leases import Asker, stand_against
from queenbee.core.names import PERSON
from queenbee.core.reviews.review import proposed_branch
from queenbee.core.timestamps import format_duration
from queenbee.errors import InvalidInput, NoHive, QueenError, StoreError, Unreachable, Unreadable
from queenbee.git.changes import overwritten, pushed, staged, updates_of
from queenbee.git.contents.hive_files import refuse_unreadable
from queenbee.git.left_out import left_out_of
from queenbee.services.governing import governed, opened
from queenbee.services.leases.edits import is_exempt
from queenbee.store.droids.agent_processes import process_of
from queenbee.store.droids.liveness import callers
from queenbee.store.droids.presence import last_ms
from queenbee.store.git_files.tree_id import is_of_tree, read_tree_id
from queenbee.store.git_files.worktrees import target_branch, worktrees
from queenbee.store.git_trees import git_tree
from queenbee.store.logbook import note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import BinaryIO

    from queenbee.core.records import Reservation
    from queenbee.services.diagnosis import Diagnosis
    from queenbee.services.hive import Services
    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout
    from queenbee.workflows.complete_hive import Hive

VARIABLE = "QUEEN_GUARD"
ON, WARN, OFF = "on", "warn", "off"
COMMIT, PUSH = "commit", "push"
BYPASS = f"{VARIABLE}=warn (it is logged)"
_LOGGED = 20
"""At most so many paths in one log entry."""


@dataclass(slots=True, eq=False)
class Refusal:
    """A changed path and the lease of another droid that covers it."""

    path: str
    lease: Reservation
    now_ms: int

    @property
    def left(self) -> str:
        """How much longer the lease lasts, for people."""
        return format_duration((self.lease.expires_ms - self.now_ms) / 1000)

    def to_dict(self) -> dict[str, object]:
        """Returns what is held, by whom, why, and for how long."""
        lease = self.lease
        return {
            # A name that is not UTF-8 cannot be in JSON: its bytes are escaped.
            "path": os.fsencode(self.path).decode(errors="backslashreplace"),
            "droid": lease.droid,
            "pattern": lease.pattern,
            "id": lease.id,
            "issue_id": lease.issue_id,
            "reason": lease.reason,
            "expires_at": lease.expires_at,
            "seconds_left": max(0, (lease.expires_ms - self.now_ms) // 1000),
        }


class Verdict:
    """What the guard found in a commit or a push, and whether it may pass."""

    def __init__(
        self, what: str, mode: str, *, paths: int = 0, held: Sequence[Refusal] = ()
    ) -> None:
        self.what = what
        self.mode = mode
        self.paths = paths
        self.held: list[Refusal] = list(held)
        self.is_history = False
        """Whether the commits are there already, so that git asks nothing."""
        self.own_worktree: Worktree | None = None
        """That of the committer, if this commit is in the main one, on what work lands on, or if
        this push overwrites branches.
        """
        self.overwritten: list[str] = []
        """Branches of others that this push deletes, or from which it removes commits."""
        self.nameless = False
        """Whether the committer gave no name."""
        self.hive: Services | None = None
        """The first hive that was asked, which keeps the log."""
        self.left_out: Sequence[Diagnosis] = ()
        self.notes: list[str] = []
        """Extra remarks: the guard could not check, or could not log."""

    @property
    def passes(self) -> bool:
        """Whether git may go on."""
        return (not self.held and self.own_worktree is None) or self.mode == WARN

    def to_dict(self) -> dict[str, object]:
        """Returns what was checked and what another droid holds of it."""
        held = [each.to_dict() for each in self.held]
        more: dict[str, object] = {"overwritten": self.overwritten} if self.overwritten else {}
        if self.own_worktree is not None:
            more["own_worktree"] = self.own_worktree.path
        return {"checked": self.what, "mode": self.mode, "paths": self.paths, "held": held, **more}


class Change:
    """A commit or a push that the guard is asked about."""

    def __init__(
        self,
        what: str,
        find: Callable[[str], Sequence[str]],
        *,
        is_next_commit: bool = False,
        is_history: bool = False,
        branch: str = "",
        overwritten: Callable[[], Sequence[str]] = list,
    ) -> None:
        self.what = what
        self.find = find
        """Takes the top of the tree, and returns the changed paths from there."""
        self.is_next_commit = is_next_commit
        self.is_history = is_history
        self.branch = branch
        """The branch that it is on, whose droids do not hold it against themselves."""
        self.overwritten = overwritten
        """Returns the branches of the remote from which it removes commits."""


def next_commit(cwd: str) -> Change:
    """Returns what the next commit in this folder changes."""
    return Change(COMMIT, lambda _: staged(cwd), is_next_commit=True)


def push(cwd: str, remote: str, env: Mapping[str, str], stdin: BinaryIO) -> Change:
    """Returns what a push from this folder changes, as git tells its hook."""
    named = remote or env.get("PRE_COMMIT_REMOTE_NAME", "")
    updates = updates_of(env, stdin)
    return Change(
        PUSH,
        lambda _: pushed(cwd, named, updates),
        overwritten=lambda: overwritten(cwd, updates),
    )


def check(
    change: Change,
    open_hive: Callable[[], Hive],
    env: Mapping[str, str],
    *,
    droid: str | None = None,
) -> Verdict:
    """Returns whether a change may pass. Without a hive, everything may.

    A lease in any hive above a changed file holds, also if the tree has no hive at its top. Logs
    a change that passes only because of `QUEEN_GUARD`. Raises `QueenError` if it cannot find out
    what is held and `QUEEN_GUARD` does not allow that.
    """
    verdict = Verdict(change.what, _mode(env))
    verdict.is_history = change.is_history
    try:
        _look(verdict, change, open_hive, env, droid)
    except QueenError as error:
        return _unchecked(verdict, error)
    if verdict.held and verdict.mode == WARN:
        names = ", ".join(f"{each.path} ({each.lease.droid})" for each in verdict.held[:_LOGGED])
        _log(verdict, f"{change.what} by {_name(verdict.hive)}: allowed, {VARIABLE}=warn: {names}")
    elif verdict.own_worktree is not None and verdict.mode == WARN:
        who = verdict.own_worktree.droid
        over = ", ".join(verdict.overwritten)
        where = f"over {over}" if over else "in the main worktree"
        _log(verdict, f"{change.what} by {who} {where}: allowed, {VARIABLE}=warn")
    return verdict


def _look(
    verdict: Verdict,
    change: Change,
    open_hive: Callable[[], Hive],
    env: Mapping[str, str],
    droid: str | None,
) -> None:
    """Adds to a verdict what others hold of a change, in the hive of the tree and in all others
    that govern its files.
    """
    hive: Hive | None = None
    with suppress(NoHive):
        verdict.hive = hive = _sure(open_hive())
    tree = hive.layout.tree if hive is not None else _tree()
    if tree is None or _is_off(verdict):
        return
    try:
        changed = change.find(tree)
    except QueenError:
        if hive is None:
            return
        raise
    own, named = None, droid
    if hive is not None:
        own, named = hive.layout.beads_dir, hive.actor_or_none or droid
        verdict.held = refusals(hive, changed, env, change.branch)
    seen = {each.path for each in verdict.held}
    for layout, paths in governed(tree, changed, env, besides=own):
        other = opened(layout, env, named, layout.tree)
        verdict.hive = verdict.hive or other
        if _is_off(verdict):
            return
        left = [there for there, path in paths.items() if path not in seen]
        verdict.held += refusals(other, left, env, change.branch)
    if verdict.hive is not None:
        verdict.paths, verdict.nameless = len(changed), verdict.hive.actor_or_none is None
    if hive is not None:
        _look_at_branches(verdict, change, hive, named, changed, env)


def _look_at_branches(
    verdict: Verdict,
    change: Change,
    hive: Hive,
    named: str | None,
    changed: Sequence[str],
    env: Mapping[str, str],
) -> None:
    """Adds to a verdict what the committer is not to do to the branches of others, and what the
    next commit leaves out. Raises `QueenError` for content that nobody could read, and for ledgers
    that git is not to carry with the code.
    """
    if not change.is_next_commit:
        _look_at_overwritten(verdict, hive, named, change.overwritten())
        return
    tree = hive.layout.tree
    verdict.own_worktree = _own_worktree(hive, named, changed, env)
    refuse_unreadable(tree, "", changed)
    if hive.layout.settings.sync_ledgers == "branch":
        from queenbee.git.remote.relocating import refuse_tracked  # noqa: PLC0415 - start-up

        refuse_tracked(hive, tree, changed)
    verdict.left_out = left_out_of(hive, changed)


def _sure(hive: Hive) -> Hive:
    hive.layout.settings.refuse_guesses()
    return hive


def _is_off(verdict: Verdict) -> bool:
    """Returns whether nothing is checked although there is a hive, and logs that."""
    if verdict.hive is None or verdict.mode != OFF:
        return False
    _log(verdict, f"{verdict.what} by {_name(verdict.hive)}: not checked, {VARIABLE}=off")
    return True


def _tree() -> str | None:
    """Returns the top of the working tree, where no hive says it, or None outside git."""
    with suppress(Unreadable):
        found = git_tree(os.path.realpath(os.getcwd()))
        return found.tree if found is not None else None
    return None


def _unchecked(verdict: Verdict, error: QueenError) -> Verdict:
    """Returns the verdict that lets the change pass. Raises the error if the guard is on."""
    if verdict.mode == ON:
        if isinstance(error, (StoreError, Unreachable)):
            way = f"to proceed anyway: {BYPASS}"
            error.hint = f"{error.hint}; {way}" if error.hint else way
        error.message = f"{verdict.what} refused: {error.message}"
        raise error
    verdict.notes.append(f"{error.message}; {verdict.what} not checked")
    _log(verdict, f"{verdict.what}: not checked, {VARIABLE}={verdict.mode}: {error.message}")
    return verdict


def refusals(
    hive: Services, paths: Iterable[str], env: Mapping[str, str], branch: str = ""
) -> list[Refusal]:
    """Returns the paths from the root that another droid holds, each with its lease.

    What lands through `queen land` is committed already: under its turn, announcements in this
    worktree do not count.

    Without a name, the actor counts as `human` and may commit what an agent's session edited in
    this worktree: a session reserves each file that it edits, and the person who works with it
    commits the result. So may anybody what those hold whose work the `branch` has.
    """
    ours = _droids_on(hive, branch) if branch else ()
    nameless = hive.actor_or_none is None
    here = read_tree_id(hive.layout)
    tree_id = None if _lands(hive, env) else here
    asker = Asker(_name(hive), exclusive=False, tree_id=tree_id)
    found = []
    for path, leases in hive.reservations.covering(list(paths)).items():
        against = [
            lease
            for lease in leases
            if stand_against(lease, asker)
            and lease.droid not in ours
            and not (nameless and lease.session and is_of_tree(lease, here))
        ]
        if against and not is_exempt(hive.layout, path):
            found.append(Refusal(path, against[0], hive.now_ms()))
    return found


def _droids_on(hive: Services, branch: str) -> set[str]:
    """Returns the droids whose leases or pull requests say that they work on a branch."""
    leases = hive.reservations.find()
    on = {
        each.droid
        for each in leases
        if each.branch and branch in (each.branch, proposed_branch(each.branch, each.issue_id))
    }
    found = hive.assignments.find()
    return on.union(each.droid for each in found if each.review and each.review.branch == branch)


def _own_worktree(
    hive: Services, named: str | None, changed: Sequence[str], env: Mapping[str, str]
) -> Worktree | None:
    """Returns the worktree of its own that the agent has that commits in the main one, straight
    onto the branch that work lands on; None for a person, another branch, or only the hive's files.
    """
    layout = hive.layout
    every = worktrees(layout) if layout.worktree is None else []
    target = target_branch(layout) if len(every) > 1 else None
    branch = every[0].branch if target else None
    if branch is None or not f"/{target}".endswith(f"/{branch}"):
        return None
    if _lands(hive, env) or all(is_exempt(layout, path) for path in changed):
        return None
    return _worktree_of(layout, every, named)


def _look_at_overwritten(
    verdict: Verdict, hive: Services, named: str | None, branches: Sequence[str]
) -> None:
    """Adds to a verdict which of these branches are not for an agent with a worktree of its own to
    overwrite: what work lands on, and those of others' worktrees.
    """
    every = worktrees(hive.layout) if branches else []
    own = _worktree_of(hive.layout, every, named)
    if own is None:
        return
    others = {each.branch for each in every if each.droid not in (None, own.droid)}
    target = f"/{target_branch(hive.layout)}"
    verdict.overwritten = [
        each for each in branches if each in others or target.endswith(f"/{each}")
    ]
    verdict.own_worktree = own if verdict.overwritten else None


def _worktree_of(layout: Layout, every: Sequence[Worktree], named: str | None) -> Worktree | None:
    """Returns the worktree of its own that the agent has that runs git; None for a person."""
    own = [each for each in every if each.linked and each.droid is not None]
    if named is not None:
        return next((each for each in own if each.droid == named), None)
    above = {*callers()} if own else set()
    return next((each for each in own if process_of(layout, str(each.droid)) in above), None)


def is_sign_of_life(hive: Services) -> bool:
    """Returns whether a commit shows that its droid is at work: only one that is known. A landing
    commits records in the main worktree, where its client has another name.
    """
    return last_ms(hive.layout, hive.actor_or_none or "") is not None


def _lands(hive: Services, env: Mapping[str, str]) -> bool:
    """Returns whether git was called by the `queen land` of this worktree, whose turn it is."""
    token = env.get("QUEEN_LANDING")
    if not token:
        return False
    from queenbee.services.waiting.landing_turn import is_landing  # noqa: PLC0415 - start-up

    return is_landing(hive, token)


def _mode(env: Mapping[str, str]) -> str:
    """Returns the value of `QUEEN_GUARD`: `on`, `warn` or `off`. Raises `InvalidInput`."""
    said = env.get(VARIABLE) or ON
    if said not in (ON, WARN, OFF):
        raise InvalidInput(f"{VARIABLE} is {said!r}", hint="set it to warn or off, or unset it")
    return said


def _log(verdict: Verdict, text: str) -> None:
    """Logs in the hive's state directory what passes the guard unchecked or against its verdict."""
    if verdict.hive is not None:
        logged = note(verdict.hive.layout.state_dir, "guard", text)
    else:
        home = git_tree(os.path.realpath(os.getcwd()))
        folder = os.path.join(home.common_dir, "queenbee") if home is not None else None
        logged = folder is not None and note(folder, "guard", text)
    if not logged:
        verdict.notes.append("this could not be logged")


def _name(hive: Services | None) -> str:
    return (hive.actor_or_none if hive is not None else None) or PERSON
