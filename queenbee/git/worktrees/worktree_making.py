"""Making a worktree for an agent: a git worktree with a branch, a name, and an issue.

All or nothing, as far as git allows it. What is being made is noted in git's own folder first; a
call that was killed leaves this note, and the same call made again goes on from there:

1. The note, so that the rest is known to be ours.
2. The claim. A refusal ends here, before git has made anything.
3. The worktree and its branch, by `git worktree add`, which locks it (`half_made`). If it fails,
   the claim is given back.
4. What proves that it is ours: the notes of the branch and of the worktree (`ownership`), and the
   name, in the worktree's own git directory. Without the first note, nobody works there.
5. The lock goes. Killed before 4 without it, nothing would tell it from a person's.
6. The first note goes.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from queenbee.checks.consent import Consent
from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned, suggested
from queenbee.errors import Conflict, ExternalFailure, InvalidInput, NotFound, QueenError
from queenbee.git.hooks import INSTALLED, HookFolder, states
from queenbee.git.outside import outside_git
from queenbee.git.ownership import (
    MadeNote,
    branch_note,
    note_branch,
    note_worktree,
    refuse_foreign,
    refuse_other_hive,
    worktree_note,
)
from queenbee.git.run import as_the_user, git, line
from queenbee.git.trees.own_branch import refuse_symbolic
from queenbee.git.upstream import no_target
from queenbee.git.worktrees.branch_names import agent_branch, agent_place
from queenbee.git.worktrees.half_made import (
    LOCKED,
    is_half_made,
    refuse_touched,
    remove_half_made,
    unlock,
)
from queenbee.git.worktrees.left_git_dirs import git_dirs_of, let_go, refuse_gone
from queenbee.store import safe_open
from queenbee.store.creating import make_state_dir
from queenbee.store.droids.agent_callers import calling_agent
from queenbee.store.droids.identity import checked_droid
from queenbee.store.git_files.main_worktree import note_main
from queenbee.store.git_files.worktrees import (
    Worktree,
    is_checkout,
    noted_trees,
    target_ref,
    worktrees,
)
from queenbee.store.git_trees import git_tree
from queenbee.store.lock import LongLock
from queenbee.store.whole_files import write_document

if TYPE_CHECKING:
    from queenbee.core.records import Assignment
    from queenbee.services.hive import Services
    from queenbee.store.layout import Layout

_PATIENCE_S = 2.0
"""For a git that outlived a killed call and is about to finish."""


@dataclass(frozen=True, slots=True)
class Made:
    """A worktree that was made for a droid."""

    path: str
    branch: str
    droid: str
    assignment: Assignment | None
    guarded: bool
    """Whether git's hooks run the guard there, as they do in all worktrees or in none."""
    kept: str | None = None
    """The branch with what only the git directory of a folder had that is gone; None if nothing."""


def add(
    hive: Services,
    name: str,
    *,
    issue_id: str | None = None,
    path: str | None = None,
    branch: str | None = None,
    base: str | None = None,
) -> Made:
    """Makes a worktree for the droid `name`, beside the main one, with the branch that
    `agent_branch` says, from the commit of the main branch; and claims an issue for it. Repeating
    it changes nothing.

    With `branch`, on that one, which may exist unless another worktree has it. With `base`, the
    issue is a sprint bead that names the branch: it may exist if it was made for this bead, else it
    begins with that other branch. Raises what a claim raises, `Conflict` if there is such a
    worktree, branch or folder already that was not made for this, and `ExternalFailure` if git
    fails; then nothing is left of it.
    """
    checked_droid(hive.layout, name)
    refuse_other_hive(hive.layout)
    note_main(hive.layout)
    making = _Making.of(hive, name, path)
    if branch is not None:
        making.go_to(branch, base, issue_id if base is not None else None)
    holder = hive.actor_or_none or name
    make_state_dir(hive.layout)  # Who works there is noted from now on.
    safe_open.make_folder(making.folder)
    with LongLock(os.path.join(making.folder, "lock"), holder=holder):
        making.begin()
        droid = type(hive)(hive.layout, actor=name)
        claimed, is_new = None, False
        try:
            if issue_id is not None:
                before = droid.assignments.active(issue_id)
                claimed = droid.assignments.claim(issue_id, worktree=os.path.basename(making.path))
                is_new = before is None
            git_dir = making.make()
            making.sign(git_dir)
        except BaseException:  # Nor does Ctrl-C leave anything.
            making.undo()
            if claimed is not None and is_new:
                droid.assignments.release(claimed.issue_id, reason="its worktree was not made")
            raise
        making.end()
        if claimed is not None:
            droid.assignments.begin_in(git_dir, claimed)
    guarded = is_guarded(making.path)
    return Made(making.path, making.branch, name, claimed, guarded, making.kept)


class _Making:
    """What is being made, and what git has made of it so far."""

    def __init__(self, hive: Services, name: str, branch: str, top: str, path: str) -> None:
        self.name = name
        self.branch = branch
        self.path = path
        self.folder = os.path.join(hive.layout.private_dir, "making")
        self._layout = hive.layout
        self._consent = Consent.of(hive)
        self._top = top
        """Where git runs: the main worktree, or the repository if it has none."""
        self._base: str | None = None
        """The commit to begin with; empty if the branch is not ours to make."""
        self._begun_at: str | None = None
        """The commit that the branch had, or is to begin with."""
        self._from: str | None = None
        self._adopts = False
        self._bead: str | None = None
        self.kept: str | None = None
        self._note = os.path.join(self.folder, f"{name}.json")

    @classmethod
    def of(cls, hive: Services, name: str, path: str | None) -> _Making:
        here = git_tree(hive.layout.tree)
        if here is None:
            raise outside_git(hive.layout.tree)
        top = here.main_tree or here.common_dir
        own = _adopted_path(hive.layout, name) if path is None else None
        branch = name if own is not None else _branch_of(hive.layout, name, top)
        made = agent_place(hive.layout, name) if path is None else None
        if own is not None:
            path = own
        elif made is not None and not made[1].adopted:
            path = made[0]
        elif path is None:
            parent, repository = os.path.split(top)
            # Around a bare `.git` or `.bare`, worktrees stand beside each other.
            is_hidden = here.main_tree is None and repository.startswith(".")
            begin = "" if is_hidden else f"{repository.removesuffix('.git')}-"
            path = os.path.join(parent, begin + name)
        else:
            path = os.path.join(hive.cwd, path)
        parent, folder = os.path.split(os.path.normpath(path))
        around = git_tree(parent) if os.path.isdir(parent) else None
        if around is not None and is_checkout(around.git_dir):
            raise InvalidInput(
                f"{mentioned(around.tree)} is emptied at each landing",
                hint="choose another: " + suggested("queen worktree add", name, path="DIR"),
            )
        return cls(hive, name, branch, top, os.path.join(os.path.realpath(parent), folder))

    def go_to(self, branch: str, base: str | None, bead: str | None) -> None:
        """Has it be on a branch of another name, which may exist: a person or a row says so."""
        self.branch, self._from, self._adopts = branch, base, True
        self._bead = bead
        self._note = os.path.join(self.folder, f"{quote(branch, safe='')}.json")

    def begin(self) -> None:
        """Notes what is to be made, unless a killed call has. Raises `Conflict`."""
        found = self._found()
        if self._goes_on(found):
            return
        if found is not None and self._is_there(found):
            if found.droid in (None, self.name):
                self._refuse_foreign(found)
                return  # It was made before.
            raise Conflict(f"{self.path} is {found.droid}'s", hint=suggested("cd", self.path))
        other = next((w for w in worktrees(self._layout) if w.branch == self.branch), None)
        has_branch = self._tip() is not None
        refuse_symbolic(self._layout, self.branch)
        if has_branch:
            self._refuse_foreign(other)
        if other is not None:
            note = worktree_note(other)
            is_moved = note is not None and note.is_for(self.name, self._bead)
            raise Conflict(
                f"the worktree of {self.name} is now {other.path}: what begins again works there"
                if is_moved
                else f"there is a branch {self.branch} already, in {other.path}",
                hint=suggested("cd", other.path),
            )
        self._refuse_lost()
        # A row gets no folder that was there before, not even an empty one.
        if os.path.lexists(self.path) and (self._bead is not None or not _is_empty(self.path)):
            raise Conflict(
                f"{self.path} exists already",
                hint="choose another: " + suggested("queen worktree add", self.name, path="DIR"),
            )
        self._base = "" if has_branch else self._commit()
        self._begun_at = self._base or self._tip()
        _write_note(self._note, self.path, self._base, self._begun_at)

    def _goes_on(self, found: Worktree | None) -> bool:
        """Returns whether a killed call has begun it. Raises `Conflict` at another place."""
        noted = self._noted()
        if noted is None:
            return False
        path, base, begun_at = noted
        if path != self.path:
            raise Conflict(
                f"the worktree {self.name} was begun at {path}, and is not finished",
                hint=f"to finish it: {suggested('queen worktree add', self.name, path=path)}",
            )
        if found is None or is_half_made(found.git_dir):
            self._base, self._begun_at = base, begun_at
            if found is not None or not base or self._tip() is None or self._has_made_branch():
                return True
        self.end()  # It is made, or somebody else has made one there.
        return False

    def _refuse_foreign(self, place: Worktree | None) -> None:
        """Raises `Conflict` for what nobody typed, and QueenBee has not made for this."""
        if self._bead is not None or not self._adopts:
            refuse_foreign(self._layout, self.branch, place, droid=self.name, bead=self._bead)

    def _commit(self) -> str:
        if not self._from:
            self._consent.require_target()
        base = self._from or target_ref(self._layout) or "HEAD"
        found = line(
            "rev-parse", "--verify", no_dash(f"{base}^{{commit}}"), cwd=self._top, repository={}
        )
        if found is None and self._from:
            raise NotFound(
                f"there is no branch {base} to begin with", hint=suggested("git fetch origin", base)
            )
        target, head = self._layout.settings.land_target, ("rev-parse", "--verify", "HEAD")
        if found is None and target and line(*head, cwd=self._top, repository={}) is not None:
            what, way = no_target(str(self._layout.common_dir), target)
            raise NotFound(what, hint=way)
        if found is None:
            # Of a format that this git does not know, say: `line` hears no reasons.
            git("rev-parse", "--git-dir", cwd=self._top, repository={})
            raise Conflict(
                "there is no commit to begin with",
                hint="git add -A && git commit --allow-empty -m 'first commit'",
            )
        return found

    def make(self) -> str:
        """Makes the worktree, or what is missing of it, and returns its git directory. Raises
        `Conflict` for one that is there and was not made for this, or in which something was done.
        """
        found = self._found()
        if found is not None and not is_half_made(found.git_dir):
            self._refuse_not_made(found)
            return found.git_dir
        if found is not None and self._is_complete(found):
            refuse_touched(found, self.branch, self._begun_at, droid=self.name)
            return found.git_dir
        self._clear()
        self._let_go()
        new = [f"-b{self.branch}"] if self._base else []
        values = (self.path, self._start if self._base else self.branch)
        how = ("worktree", "add", "--quiet", *LOCKED, *new, "--", *values)
        try:
            as_the_user(*how, cwd=self._top, config={"core.logAllRefUpdates": "true"})
        except ExternalFailure as error:
            again = suggested("queen worktree add", self.name)
            error.hint = "see to what git names, or choose another name or branch"
            made = self._found()
            if made is not None and self._is_complete(made):  # A hook `post-checkout` failed.
                self.sign(made.git_dir)
                error.hint = f"it is there; see to the hook, or go on without it: {again}"
            raise
        found = self._found()
        if found is None:
            raise ExternalFailure(f"git made no worktree at {self.path}", program="git")
        return found.git_dir

    def sign(self, git_dir: str) -> None:
        """Notes what was made, and for whom. Raises `ExternalFailure`."""
        before, maker = branch_note(self._layout, self.branch), calling_agent(self._layout)
        made = MadeNote(
            branch=self.branch,
            path=self.path,
            base=self._base or (before.base if before is not None else ""),
            droid=self.name,
            bead=self._bead,
            adopted=before is not None and before.adopted,
            by=before.by if before is not None else maker.name if maker and maker.is_here else "",
        )
        if (self._base or before is not None) and before != made:
            note_branch(self._layout, made)
        note = worktree_note(Worktree(self.path, git_dir, ""))
        keeps_work = any(each.keeps_work for each in (note, before) if each is not None)
        adopted = note is not None and note.adopted
        note_worktree(git_dir, replace(made, adopted=adopted, keeps_work=keeps_work))
        write_document(os.path.join(git_dir, "queenbee-droid"), f"{self.name}\n".encode())
        unlock(git_dir)

    def undo(self) -> None:
        """Removes what was made, unless it is signed, or something was done there."""
        with suppress(QueenError, OSError):
            self._clear()
            self.end()

    def end(self) -> None:
        """Removes the note."""
        with suppress(FileNotFoundError):
            safe_open.unlink(self._note)

    def _noted(self) -> tuple[str, str, str | None] | None:
        """Returns the folder, and the commits that its branch begins with, and had."""
        try:
            noted = json.loads(safe_open.read(self._note, 1 << 16))
            base = str(noted["base"])
            return str(noted["path"]), base, noted.get("tip") or base or None
        except (OSError, QueenError, ValueError, KeyError, TypeError):
            return None

    def _found(self) -> Worktree | None:
        every = worktrees(self._layout)
        return next((each for each in every if each.linked and each.path == self.path), None)

    def _is_complete(self, found: Worktree) -> bool:
        """Returns whether git finished: it writes the index when every file is there."""
        deadline_s = time.monotonic() + _PATIENCE_S
        while not os.path.exists(os.path.join(found.git_dir, "index")):
            if time.monotonic() > deadline_s:
                return False
            time.sleep(0.05)
        return self._is_there(found)

    def _is_there(self, found: Worktree) -> bool:
        """Returns whether a worktree is the one that is wanted. A landing that was killed leaves it
        on no branch, until the next one.
        """
        own = found.branch is None and found.droid == self.name
        return own or found.branch == self.branch

    def _tip(self) -> str | None:
        # `rev-parse` would take a tag of that name, `refs/tags/refs/heads/…`.
        wanted = ("show-ref", "--verify", "--hash", no_dash(f"refs/heads/{self.branch}"))
        return line(*wanted, cwd=self._top, repository={})

    @property
    def _start(self) -> str:
        """The commit to begin with, as nobody else types it."""
        return f"{self._base}^{{commit}}"

    def _has_made_branch(self) -> bool:
        """Returns whether the branch is as this has made it, also in a call that was killed, and
        not one that a person has made there, as the first line of its log says.
        """
        asked = ("log", "--walk-reflogs", "--format=%gs", f"refs/heads/{self.branch}", "--")
        said = line(*asked, cwd=self._top, repository={})
        return self._tip() == self._base and said == f"branch: Created from {self._start}"

    def _refuse_not_made(self, found: Worktree) -> None:
        """Raises `Conflict` for a worktree that was not made, or handed over, for this."""
        note = worktree_note(found)
        if note is None or not note.is_for(self.name, self._bead):
            branch, bead = found.branch or self.branch, self._bead
            refuse_foreign(self._layout, branch, found, droid=self.name, bead=bead)
        if not self._is_there(found):
            raise Conflict(f"{self.path} is in use", hint=suggested("cd", self.path))

    def _refuse_lost(self) -> None:
        """Raises `Conflict` if git knows the branch in another folder, which is not there."""
        common_dir = str(self._layout.common_dir)
        for tree, git_dir in noted_trees(common_dir):
            has_it = Worktree(tree, git_dir, common_dir).branch == self.branch
            if has_it and tree != self.path and not os.path.lexists(tree):
                refuse_gone(common_dir, tree, f"it has the branch {mentioned(self.branch)}")

    def _clear(self) -> None:
        """Removes what a git that was killed, or that failed, has left of this worktree, and its
        branch. Raises `Conflict` if something was done there, and `ExternalFailure`.
        """
        common_dir = str(self._layout.common_dir)
        for git_dir in git_dirs_of(common_dir, self.path):
            if is_half_made(git_dir):
                found = Worktree(self.path, git_dir, common_dir)
                refuse_touched(found, self.branch, self._begun_at, droid=self.name)
                remove_half_made(self.path, git_dir, self._top)
            elif os.path.lexists(os.path.join(self.path, ".git")):
                raise Conflict(f"{self.path} is in use", hint=suggested("cd", self.path))
        if os.path.isdir(self.path) and not os.path.islink(self.path):
            with suppress(OSError):
                os.rmdir(self.path)
        if not self._base or self._tip() is None:
            return
        if not self._has_made_branch():
            raise Conflict(f"the branch {self.branch} is somebody's by now", hint="choose another")
        as_the_user("branch", "-q", "-D", "--", self.branch, cwd=self._top)

    def _let_go(self) -> None:
        """Has git take no worktree for one in this folder that is not there. Raises `Conflict`."""
        for git_dir in git_dirs_of(str(self._layout.common_dir), self.path):
            self.kept = let_go(self._layout, git_dir, self.path, branch=self.branch)


def _branch_of(layout: Layout, droid: str, top: str) -> str:
    """Returns the branch of a droid. Raises `InvalidInput` if it cannot be the name of one."""
    branch = agent_branch(layout, droid)
    known = line("check-ref-format", "--branch", no_dash(branch), cwd=top, repository={})
    if known != branch:
        raise InvalidInput(f"{branch!r} cannot be the name of a branch", hint="choose another")
    return branch


def _adopted_path(layout: Layout, name: str) -> str | None:
    """Returns where the worktree is that a person has handed over for a droid."""
    for each in worktrees(layout):
        note = worktree_note(each) if each.linked and each.branch == name else None
        if note is not None and note.adopted and note.is_for(name, None):
            return each.path
    return None


def _write_note(note: str, path: str, base: str, tip: str | None = None) -> None:
    write_document(note, json.dumps({"path": path, "base": base, "tip": tip}).encode())


def _is_empty(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path) and not os.listdir(path)


def is_guarded(path: str) -> bool:
    """Returns whether git's hooks run the guard in a worktree."""
    try:
        return all(each.state == INSTALLED for each in states(HookFolder(path)))
    except (QueenError, OSError):
        return False
