"""What a droid has left in its worktree: its last change as a sign of life, and what it has not
landed, kept on a branch.

`keep` changes nothing in that worktree: not its files, its index or its branch. `put_back` and
`set_aside` bring it to a commit, in an order that loses nothing, wherever it is interrupted:

1. What was staged (the sides of a conflict) goes into a commit on a branch `unfinished/`. Then
   everything goes into the index as git adds it, and from there upon that commit.
2. What git has open there, such as a merge, is quit; the files stay.
3. `HEAD` leaves its branch for that commit. The worktree is clean now, and git knows its files.
4. Git checks the branch out, without force. It refuses if a file has changed since step 1: nothing
   is overwritten.

What git ignores stays where it is. Only where the commit has a file of that name, it is kept, too.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from queenbee.checks.consent import Consent
from queenbee.core.command_lines import no_dash
from queenbee.core.records import Assignment
from queenbee.core.text import mentioned, some, suggested
from queenbee.errors import Conflict, ExternalFailure, QueenError
from queenbee.git.ownership import worktree_note
from queenbee.git.run import git, line, names_in, user_git, without_programs
from queenbee.git.trees.elsewhere import refuse_elsewhere
from queenbee.git.trees.hidden import is_sparse, lacking, looking
from queenbee.git.trees.in_the_way import between, has_repository
from queenbee.git.trees.index_copy import index_copy
from queenbee.git.trees.open_operations import (
    KEPT,
    OPEN,
    open_operations,
    own_commits,
    waiting_patches,
)
from queenbee.git.trees.own_branch import refuse_not_own
from queenbee.git.trees.set_aside import worktrees_in
from queenbee.git.trees.special_files import add_all, special_files
from queenbee.git.trees.submodules import links, replaced, show_unseen
from queenbee.git.trees.unkept import add_taken, keep_beside, shortened
from queenbee.git.unmerged import STATUS, Status
from queenbee.services.leases.edits import is_exempt
from queenbee.services.writing.secrets import has_secret_name
from queenbee.store import safe_open
from queenbee.store.droids import presence
from queenbee.store.git_files.worktrees import (
    current_branch,
    target_branch,
    target_ref,
    worktrees,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from queenbee.services.diagnosis import Diagnosis
    from queenbee.services.hive import Services
    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout

FOLDER = "unfinished"
"""The branches of what was kept begin so."""
_LIMIT_S = 20.0
_LOOK_S = 0.25
"""So long `queen status` looks for signs of life of those who seem silent."""
_PATIENCE_S = 600.0
"""So long git may read all files of a worktree that is about to go."""
_ALONE = ("--not", "--branches", "--tags", "--remotes")
_TRIES = 20
"""So often another process may take the name, or it differs from another one only in case."""
_NAMED = 5
_AT_ONCE = 500
_NONE = ""
"""In place of a ref's old value: it must not exist. Zeros would have to be as many as in an id."""
_KEPT = "queen: kept"
"""What the reflog says of a ref that QueenBee has brought to what it kept."""
_TREE = ("rev-parse", "--verify", "--quiet", "--end-of-options")
_JOINING = frozenset(("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"))
"""What is under way if the sides of a conflict are those of commits."""
_AUTOSTASHES = ("rebase-merge/autostash", "rebase-apply/autostash", "MERGE_AUTOSTASH")
"""Files that name the commit with what git put aside before it began, and would put back."""


class Unfinished:
    """What a droid has not landed, and where it is."""

    def __init__(self, layout: Layout, place: Worktree, files: list[str], commits: int) -> None:
        self._layout = layout
        self.worktree: str = place.path
        self.files = files
        """What is not committed there, from the top of the tree."""
        self.commits = commits
        """How many commits of its branch are not on the main branch."""
        self.branch: str | None = place.branch if commits else None
        """Where to go on: with what was not committed, once that is kept."""
        self.aside: str | None = None
        """The folder with the files that no commit keeps as they are."""

    def sentence(self, issue_id: str = "ISSUE") -> str:
        """Returns where it is, and how to go on with the issue; empty if there is none."""
        parts = []
        if self.files:
            parts.append(f"{len(self.files)} file{'s' * (len(self.files) > 1)} not committed")
        if self.commits:
            parts.append(f"{self.commits} commit{'s' * (self.commits > 1)} not landed")
        if not parts:
            return ""
        kept = ""
        if self.branch is not None:
            ways = ways_on(self._layout, self.branch, issue_id)
            kept = f", on branch {mentioned(self.branch)}; {ways}"
        if self.aside is not None:
            kept += f"; what git does not keep as it is was set aside in {mentioned(self.aside)}"
        return f"unfinished in {mentioned(self.worktree)}: {' and '.join(parts)}{kept}"

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {name: value for name, value in vars(self).items() if name[0] != "_"}


def ways_on(layout: Layout, branch: str, issue_id: str) -> str:
    """Returns how to see what a branch keeps, and to go on with it: nothing has checked that, and
    `git merge` would bring it to the main branch where a person reads this.
    """
    shows = suggested("git diff", f"{target_branch(layout) or 'HEAD'}...{branch}")
    new = suggested("queen worktree add NAME", issue_id, branch=branch)
    return f"{shows} shows it; go on with it in your worktree, or in a new one: {new}"


def as_read_here(layout: Layout, returned: Assignment) -> Assignment:
    """Returns an assignment that was given back; if this worktree is on the branch that keeps what
    was left, its reason says so in place of how to go on with another's.
    """
    branch = layout.git_dir and current_branch(layout.git_dir)
    if not branch or not branch.startswith(f"{FOLDER}/"):
        return returned
    elsewhere = f"; {ways_on(layout, branch, returned.issue_id)}"
    reason = str(returned.reason).replace(elsewhere, ", which is checked out here")
    return Assignment({**returned.fields, "reason": reason})


class WorktreeKeeper:
    """Implements `services.work.relief.Keeper`."""

    def __init__(self, hive: Services) -> None:
        self._hive = hive

    def note_signs(self, droid: str) -> bool:
        """Notes the last change in a droid's worktree as a sign of life; returns whether it is."""
        return self._note_signs(droid, self._linked())

    def note_signs_of(self, droids: Iterable[str]) -> bool:
        """Does the same for as many of some droids as there is time for, others each time; returns
        whether one was alive.
        """
        until_s, linked = time.monotonic() + _LOOK_S, self._linked()
        signs = [
            self._note_signs(droid, linked)
            for droid in sorted(droids, key=lambda _: os.urandom(4))
            if time.monotonic() < until_s
        ]
        return any(signs)

    def _note_signs(self, droid: str, linked: Sequence[Worktree]) -> bool:
        layout, before_ms = self._hive.layout, presence.last_ms(self._hive.layout, droid)
        if before_ms is None:
            return False
        held = self._hive.assignments.find(droid=droid)
        places = {each.path: each for one in held if (each := self._place(one, linked))}
        changes_ms = [_changed_ms(self._hive, place) for place in places.values()]
        changed_ms = min(max(changes_ms, default=0), self._hive.now_ms())
        if changed_ms > before_ms:
            presence.note(layout, droid, changed_ms)
        return changed_ms > before_ms

    def keep(self, assignment: Assignment) -> Unfinished | None:
        """Returns what a droid has not landed, once that is on a branch; None if nothing is known
        of a worktree that QueenBee made for it. Files without git whose names are those of secrets
        stay where they are: another droid goes on with that branch.
        """
        place = self._place(assignment)
        note = worktree_note(place) if place is not None else None
        if place is None or note is None or note.droid != assignment.droid:
            return None
        begun = self._hive.assignments.work_in(place.git_dir)
        if assignment.worktree is None and begun and begun.issue_id != assignment.issue_id:
            return None  # It was assigned from elsewhere, and has not begun there.
        try:
            return self._kept(assignment, place)
        except (OSError, QueenError):
            return Unfinished(self._hive.layout, place, [], 0)

    def set_aside(self, assignment: Assignment) -> Unfinished | None:
        """Does the same also for commits that have not landed, and brings the worktree to the main
        branch, without what was kept. Raises `ExternalFailure`, and nothing is lost, and
        `Untrusted` if nobody has agreed to that branch.
        """
        place = self._place(assignment)
        target = target_ref(self._hive.layout)
        if place is None or target is None:
            return None
        Consent.of(self._hive).require_target()
        note = worktree_note(place)
        if note is None:
            raise Conflict(
                f"{mentioned(place.path)} is not a worktree that QueenBee made",
                hint=suggested("git -C", place.path, "status"),
            )
        branch = place.branch or note.branch
        return self.put_back(place, branch=branch, name=name_of(assignment), to=target)

    def put_back(
        self, place: Worktree, *, branch: str, name: str, to: str | None = None
    ) -> Unfinished:
        """Does as the function of this name."""
        return put_back(self._hive.layout, place, branch=branch, name=name, to=to)

    def _kept(self, assignment: Assignment, place: Worktree) -> Unfinished:
        changed = Status(status_of(place))
        secret = [each for each in changed.untracked if has_secret_name(each)]
        files = _not_exempt(self._hive.layout, sorted({*changed.changed} - {*secret}))
        target, commits = target_ref(self._hive.layout), None
        if target is not None and place.head is not None:
            ahead = ("rev-list", "--count", no_dash(f"{target}..{place.head}"), "--")
            commits = line(*ahead, cwd=place.path, repository={}, limit_s=_LIMIT_S)
        found = Unfinished(self._hive.layout, place, files, int(commits or 0))
        if files:
            droid, name = assignment.droid, name_of(assignment)
            about = f"{assignment.issue_id}: what {droid} had not committed"
            found.branch = _commit(place, droid, name, about, secret)
        return found

    def _linked(self) -> list[Worktree]:
        if self._hive.layout.common_dir is None:
            return []
        return [each for each in worktrees(self._hive.layout) if each.linked]

    def _place(
        self, assignment: Assignment, linked: Sequence[Worktree] | None = None
    ) -> Worktree | None:
        """Returns the worktree that this machine knows as the droid's, or None: which one the
        assignment names, anybody may have written.
        """
        found = self._linked() if linked is None else linked
        own = [each for each in found if each.droid == assignment.droid]
        named = [each for each in found if os.path.basename(each.path) == assignment.worktree]
        best = [each for each in named if each in own] or own
        here = self._hive.layout.tree
        return next((each for each in best if not os.path.samefile(each.path, here)), None)


def put_back(
    layout: Layout,
    place: Worktree,
    *,
    branch: str,
    name: str,
    to: str | None = None,
) -> Unfinished:
    """Brings a worktree to its branch, and that to a commit (default: where it is), once all that
    is not there is on a branch `unfinished/NAME`; changes nothing if nothing differs.

    Raises `Conflict` if the branch is not this worktree's own, a repository is in the way, or git's
    settings lead to another folder; and `ExternalFailure` if git refuses, as for a file that
    somebody changes meanwhile. Then nothing is lost, and the same call can be repeated.
    """
    refuse_elsewhere(place.path)
    refuse_not_own(layout, place, branch)
    return _PuttingBack(layout, place, branch, name).to(to)


def _changed(hive: Services, place: Worktree) -> list[str]:
    """Returns what is not committed in a worktree. Raises `ExternalFailure`."""
    return _not_exempt(hive.layout, sorted(Status(status_of(place)).changed))


def _not_exempt(layout: Layout, paths: Iterable[str]) -> list[str]:
    return [path for path in paths if not is_exempt(layout, path)]


def all_changed(place: Worktree) -> list[str]:
    """Returns what is not committed in a worktree, records and hidden changes too, whatever the
    times of the files say. Raises `ExternalFailure` and `OSError`.
    """
    with index_copy(place, exactly=True, limit_s=_LIMIT_S) as run:
        return sorted(Status(run(*STATUS)).changed)


def status_of(place: Worktree) -> bytes:
    """Returns what git says about the files of a worktree, whatever its settings say of how closely
    it looks. Raises `ExternalFailure`.
    """
    config = {**without_programs(place.path, {}, limit_s=_LIMIT_S), **looking(place.path)}
    return git(*STATUS, cwd=place.path, config=config, repository={}, limit_s=_LIMIT_S)


def nested_in(status: bytes) -> list[str]:
    """Returns the repositories of their own that a worktree has and does not track."""
    untracked = (os.fsdecode(each[2:]) for each in status.split(b"\0") if each[:2] == b"? ")
    return [each for each in untracked if each.endswith("/")]


def _changed_ms(hive: Services, place: Worktree) -> int:
    """Returns when a worktree last changed, as far as can be told: its commits, and the files that
    are not committed. Its index also changes when somebody else runs `git status` there.
    """
    paths = [os.path.join(place.git_dir, name) for name in ("HEAD", "logs/HEAD")]
    try:
        changed = [os.path.join(place.path, each) for each in _changed(hive, place)]
    except QueenError:
        changed = []
    # Of a file that is gone, its folder says when.
    paths += [each if os.path.lexists(each) else os.path.dirname(each) for each in changed]
    return max(map(_mtime_ms, paths), default=0)


def _mtime_ms(path: str) -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_mtime_ns // 1_000_000
    except OSError:
        return 0


def keep_worktree(place: Worktree, *, with_files: bool, name: str = "") -> str | None:
    """Returns the branch that keeps what is lost with a worktree: commits that only its `HEAD` or a
    ref of its own has, the files that are not committed, other content that was staged, and what
    git has put aside, or left to apply, for what is under way; None if there is nothing. Changes
    nothing there.

    Raises `Conflict` if a file that has changed did not get into the commit as it is there, and
    `ExternalFailure` and `OSError`.
    """
    name = name or branch_part(os.path.basename(place.path))
    droid = place.droid or "queen"
    config = {"user.name": droid, "user.email": f"{droid}@localhost"}
    run = partial(git, cwd=place.path, config=config, repository={}, limit_s=_LIMIT_S)
    left = [*_ends_alone(place), *waiting_patches(place.git_dir, run)]
    changed = all_changed(place) if with_files else []
    if len(special_files(place.path, changed)) < len(changed):
        about = f"{name}: what was not committed"
        commit = commit_of_all(place, droid, about, exactly=True)
        left = [commit, *(each for each in left if each != place.head)]
        _refuse_lacking(place, commit, changed)
    return _branch(run, name, _together(run, name, left)) if left else None


def move_unkept(place: Worktree) -> str | None:
    """Returns a new folder beside a worktree with those of its files that git refuses to add, and
    that no branch can keep: they are there no more. None if git takes all. Raises
    `ExternalFailure` and `OSError`.
    """
    changed = all_changed(place)
    with index_copy(place, exactly=False, limit_s=_PATIENCE_S) as run:
        sparse = ("--sparse",) if is_sparse(place.path) else ()
        return keep_beside(place.path, add_taken(run, place.path, ("--all", *sparse), changed), ())


def keep_late(
    place: Worktree, name: str, base: str | None, kept: str | None
) -> tuple[str, str] | None:
    """Returns the branch and the commit that keep the files which a worktree has now and a commit
    has not; None if it has all. Files that are gone do not count, nor what git ignores, nor
    repositories of their own. Goes on with a branch that keeps something already.

    Raises `ExternalFailure` and `OSError`.
    """
    droid = place.droid or "queen"
    config = {
        "user.name": droid,
        "user.email": f"{droid}@localhost",
        "core.sparseCheckout": "false",  # What is there counts.
    }
    with index_copy(place, exactly=False, limit_s=_PATIENCE_S) as copied:

        def run(*words: str) -> str:
            return copied(*words, config=config).decode().strip()

        run("read-tree", no_dash(base) if base is not None else "--empty")
        show_unseen(place.path, copied)
        others = names_in(copied("ls-files", "--others", "--exclude-standard", "-z"))
        nested = [each.rstrip("/") for each in others if each.endswith("/")]
        # Git finds no files of a submodule whose worktree has moved.
        nested += links(place.path, copied)
        but = (f":(top,exclude,literal){each}" for each in nested)
        add_all(run, place.path, ("--ignore-removal",), [*but])
        tree = run("write-tree")
        if not run("ls-files") if base is None else tree == run(*_TREE, f"{base}^{{tree}}"):
            return None
        # That branch has other files, if these are those of a commit which another one has.
        tip = run(*_TREE, f"refs/heads/{kept}") if kept is not None else None
        parents = [f"-p{each}" for each in dict.fromkeys((base, tip)) if each is not None]
        about = f"{name}: what was written while it was removed"
        commit = run("commit-tree", no_dash(tree), *parents, f"-m{about}", f"-m{KEPT}")
    where = partial(git, cwd=place.path, repository={}, limit_s=_LIMIT_S)
    if kept is None:
        return _branch(where, name, commit), commit
    where("update-ref", "-m", _KEPT, f"refs/heads/{kept}", no_dash(commit), no_dash(str(tip)))
    return kept, commit


def keep_inside(layout: Layout, path: str, name: str) -> list[str]:
    """Returns the branches that keep those commits of worktrees in a folder, or at it, that are on
    no branch. Raises as `keep_worktree` does.
    """
    kept = (
        keep_worktree(
            each, with_files=False, name=branch_part(f"{name}-{os.path.basename(each.path)}")
        )
        for each in worktrees_in(layout, path)
    )
    return [each for each in kept if each is not None]


def _refuse_lacking(place: Worktree, commit: str, changed: list[str]) -> None:
    lost = lacking(place.path, commit, changed)
    if lost:
        raise Conflict(
            f"git does not keep what is in {mentioned(place.path)}: {some(lost, _NAMED)}",
            hint=f"{suggested('git -C', place.path)} status",
            files=lost,
        )


def commits_alone(place: Worktree) -> int:
    """Returns how many commits only this worktree has: they are on no branch. Raises
    `ExternalFailure`.
    """
    return len(_rows(partial(git, cwd=place.path, repository={}), own_commits(place.git_dir)))


def _ends_alone(place: Worktree) -> list[str]:
    """Returns the ends of what only this worktree has. Raises `ExternalFailure`."""
    run = partial(git, cwd=place.path, repository={}, limit_s=_LIMIT_S)
    return _ends(run, own_commits(place.git_dir))


def _ends(
    run: Callable[..., bytes], commits: Sequence[str], lacking: Sequence[str] = _ALONE
) -> list[str]:
    """Returns those of some commits that no branch has, and none of the others."""
    rows = _rows(run, commits, lacking)
    above = {parent for parents in rows.values() for parent in parents}
    return [each for each in dict.fromkeys(commits) if each in rows and each not in above]


def _rows(
    run: Callable[..., bytes], commits: Sequence[str], lacking: Sequence[str] = _ALONE
) -> dict[str, list[str]]:
    """Returns the commits that lead to these and no branch has, each with its parents."""
    how = ("rev-list", "--parents", *map(no_dash, commits), *lacking, "--")
    said = run(*how).decode().splitlines() if commits else []
    return {commit: parents for commit, *parents in (each.split(" ") for each in said)}


def _commit(place: Worktree, droid: str, name: str, about: str, but: Sequence[str]) -> str:
    """Returns the branch of a new commit with everything that a worktree has, ignored files and
    some others apart. Raises `ExternalFailure` and `OSError`.
    """
    run = partial(git, cwd=place.path, repository={}, limit_s=_LIMIT_S)
    return _branch(run, name, commit_of_all(place, droid, about, but=but))


def commit_of_all(
    place: Worktree, droid: str, about: str, *, exactly: bool = False, but: Sequence[str] = ()
) -> str:
    """Returns a new commit, on no branch, with everything that a worktree has, ignored files and
    those of `but` apart. `exactly`: whatever the times of the files say.

    It is made with an index of its own. Raises `ExternalFailure` and `OSError`.
    """
    who = {"user.name": droid, "user.email": f"{droid}@localhost"}
    with index_copy(place, exactly=exactly, limit_s=_LIMIT_S) as run:
        signed = partial(run, config=who)
        return _committed(lambda *words: os.fsdecode(signed(*words)).strip(), place, about, but)


def _committed(run: Callable[..., str], place: Worktree, about: str, but: Sequence[str]) -> str:
    """Returns a commit of all, upon one of what is staged if that is in no file."""
    trees, before = _staged(run, place), None
    sparse = ("--sparse",) if is_sparse(place.path) else ()
    left_out = [f":(top,exclude,literal){each}" for each in but]
    add_all(run, place.path, ("--all", *sparse), left_out)
    last = run("write-tree")
    if place.head is not None:
        before = run(*_TREE, f"{no_dash(place.head)}^{{tree}}")
    commit = place.head
    for tree in (*(each for each in trees if each not in (before, last)), last):
        parents = (f"-p{commit}",) if commit is not None else ()
        commit = run("commit-tree", no_dash(tree), *parents, f"-m{about}", f"-m{KEPT}")
    assert commit is not None
    return commit


def _staged(run: Callable[..., str], place: Worktree) -> list[str]:
    """Returns the tree of what is staged. Of a conflict, one for each side; one in all if a merge
    or the like is under way, whose sides are commits. That leaves the last one in the index.
    """
    with suppress(ExternalFailure):
        return [run("write-tree")]
    trees = list[str]()
    rows = [each.split("\t", 1) for each in run("ls-files", "-uz").split("\0")[:-1]]
    is_joining = _JOINING.intersection(open_operations(place.git_dir))
    for stage in ("2",) if is_joining else ("2", "3"):
        # Where a side has removed a file, that of another one stays.
        rows.sort(key=lambda row: row[0].endswith(stage))
        for first in range(0, len(rows), _AT_ONCE):
            files = [(*said.split(" ")[:2], path) for said, path in rows[first:][:_AT_ONCE]]
            words = [word for each in files for word in ("--cacheinfo", ",".join(each))]
            run("update-index", "--add", "--replace", *words)
        trees.append(run("write-tree"))
    return trees


class _PuttingBack:
    """A worktree that is brought back to its branch."""

    def __init__(self, layout: Layout, place: Worktree, branch: str, name: str) -> None:
        self._layout = layout
        self._place = place
        self._branch = branch
        self._name = name
        who = place.droid or name
        config = {"user.name": who, "user.email": f"{who}@localhost"}
        where: Any = {"cwd": place.path, "repository": {}, "limit_s": _LIMIT_S}
        self._git = partial(git, **where, config=config)
        self._line = partial(line, **where)
        self._head = self._commit_of("HEAD")
        self._refused: list[str] = []
        self._aside: str | None = None
        self._begun: tuple[str, str] | None = None
        """The branch that already has what was staged, and its commit."""

    def to(self, wanted: str | None) -> Unfinished:
        """Brings it to a commit. Raises `ExternalFailure`."""
        place, tip = self._place, self._commit_of(f"refs/heads/{self._branch}")
        to = tip if wanted is None else self._commit_of(wanted)
        if to is None:
            raise ExternalFailure(f"{wanted or self._branch} is not there", program="git")
        status = status_of(place)
        said, ways = Status(status), self._ways(to)
        changed = sorted({*said.changed, *ways})
        open_ = open_operations(place.git_dir)
        found = Unfinished(self._layout, place, _not_exempt(self._layout, changed), 0)
        if (place.branch, self._head, changed, open_) == (self._branch, to, [], []):
            return found
        kept, made = self._kept(nested_in(status), ways, changed) if changed else (self._head, 0)
        found.aside = self._aside
        # Other branches keep what they have; this one is about to move.
        lacking = ("--not", to, *self._but_own(), "--branches")
        ends = [each for each in (kept, tip, *_ends_alone(place)) if each]
        left = [*_ends(self._git, ends, lacking), *waiting_patches(place.git_dir, self._git)]
        if left:
            found.commits = self._count(*left, *lacking) - made
            found.branch = self._on_branch(_together(self._git, self._name, left))
        try:
            self._quit_all()
            if kept is not None and kept != self._head:
                # Unless somebody moves it meanwhile.
                moved = ("HEAD", kept, self._head or _NONE)
                self._git("update-ref", "--no-deref", "-m", _KEPT, *moved)
            how = ("checkout", "-q", "--no-overwrite-ignore", f"-B{self._branch}")
            self._as_the_user(*how, no_dash(to), "--")
            self._write_again([*special_files(place.path, changed), *self._refused])
        except ExternalFailure as error:
            where = f"; what was there is kept on {found.branch}" if found.branch else ""
            raise ExternalFailure(f"{error.message}{where}", program="git") from error
        return found

    def _quit_all(self) -> None:
        """Quits what git has open. What it put aside is kept, and does not go into the stash, which
        all worktrees share.
        """
        for name in _AUTOSTASHES:
            with suppress(OSError, QueenError):
                safe_open.unlink(os.path.join(self._place.git_dir, name))
        for name in OPEN:  # One may end another.
            if name in open_operations(self._place.git_dir):
                self._as_the_user(*OPEN[name])

    def _ways(self, to: str) -> list[str]:
        """Returns what git does not track and is in the way of a commit's files. Raises `Conflict`
        if a repository is.
        """
        ways = between(self._place.path, self._head or to, to)
        nested = [each for each in ways if has_repository(os.path.join(self._place.path, each))]
        nested += replaced(self._place.path, to)
        if nested:
            path = os.path.join(self._place.path, nested[0])
            raise Conflict(
                f"the repository {mentioned(path)} is where {self._branch} has files",
                hint=suggested("mv", path, f"{self._place.path}.other"),
            )
        return ways

    def _kept(
        self, nested: list[str], ways: list[str], changed: list[str]
    ) -> tuple[str | None, int]:
        """Returns a commit with everything that the worktree has, and how many it made for that: a
        second one if another content was staged.
        """
        with index_copy(self._place, exactly=False, limit_s=_LIMIT_S) as run:
            staged = _staged(lambda *words: os.fsdecode(run(*words)).strip(), self._place)
        kept, made = self._head, 0
        for tree in staged:
            kept, made = self._upon(kept, made, tree)
        if kept is not None and made:  # From here on, the index may lose it.
            self._begun = _branch(self._git, self._name, kept), kept
        but = [f":(top,exclude,literal){each.rstrip('/')}" for each in nested]
        sparse = ("--sparse",) if is_sparse(self._place.path) else ()
        files = [each for each in changed if each not in nested]
        options, top = ("--all", *sparse), self._place.path
        self._refused = add_taken(self._as_the_user, top, options, files, but)
        if here := [f":(top,literal){way}" for way in ways if way not in self._refused]:
            self._as_the_user("add", "--force", *sparse, "--", *here)
        self._aside = keep_beside(top, self._refused, shortened(top, files))
        return self._upon(kept, made, self._git("write-tree").decode().strip())

    def _upon(self, kept: str | None, made: int, tree: str) -> tuple[str | None, int]:
        """Returns a commit of a tree upon one that may have it already, and how many were made."""
        if kept is not None and tree == self._line(*_TREE, f"{kept}^{{tree}}"):
            return kept, made
        parents = ("-p", kept) if kept is not None else ()
        about = (f"-m{self._name}: what was not committed", f"-m{KEPT}")
        return self._git("commit-tree", tree, *parents, *about).decode().strip(), made + 1

    def _but_own(self) -> list[str]:
        return [f"--exclude={each}" for each in (self._branch, *(self._begun or ())[:1])]

    def _on_branch(self, commit: str) -> str:
        if self._begun is None:
            return _branch(self._git, self._name, commit)
        branch, before = self._begun
        how = ("update-ref", "--no-deref", "-m", _KEPT)
        self._git(*how, f"refs/heads/{branch}", no_dash(commit), before)
        return branch

    def _write_again(self, paths: list[str]) -> None:
        """Writes those of the files that git tracks as the index has them."""
        here = (f":(top,literal){each}" for each in paths)
        if paths and (tracked := names_in(self._git("ls-files", "-z", "--", *here))):
            self._as_the_user("checkout-index", "--force", "--", *tracked)

    def _as_the_user(self, *arguments: str) -> None:
        """Runs git with the user's filters, but without hooks. Raises `ExternalFailure`."""
        config = {**looking(self._place.path), "core.hooksPath": os.devnull}
        status, out, err = user_git(*arguments, cwd=self._place.path, config=config)
        if status != 0:
            said = os.fsdecode(out + err).strip()
            raise ExternalFailure(f"git {arguments[0]} failed: {said}", program="git")

    def _commit_of(self, name: str) -> str | None:
        return self._line(*_TREE, f"{name}^{{commit}}")

    def _count(self, *revisions: str) -> int:
        return int(self._git("rev-list", "--count", *revisions, "--"))


def keep_commits(layout: Layout, name: str, commits: Sequence[str]) -> str | None:
    """Returns the branch that keeps those commits that no branch has; None if all are on one.
    Raises `ExternalFailure`.
    """
    config = {"user.name": "queen", "user.email": "queen@localhost"}
    run = partial(git, cwd=str(layout.common_dir), config=config, repository={})
    there = [each for each in commits if line(*_TREE, f"{each}^{{commit}}", cwd=layout.tree)]
    alone = [
        each
        for each in there
        if int(run("rev-list", "--count", no_dash(each), "--not", "--branches", "--"))
    ]
    if not alone:
        return None
    ends = run("merge-base", "--independent", *map(no_dash, alone)).decode().split()
    return _branch(run, name, _together(run, name, ends))


def keep_commit(layout: Layout, name: str, commit: str) -> str:
    """Returns the branch `unfinished/…` that keeps a commit, whatever other branches have it, as
    these go on. Raises `ExternalFailure`.
    """
    asked = ("for-each-ref", "--count=1", "--format=%(refname:lstrip=2)", f"--contains={commit}")
    found = line(*asked, f"refs/heads/{FOLDER}/", cwd=layout.tree, repository={})
    return found or _branch(partial(git, cwd=layout.tree, repository={}), name, commit)


def _together(run: Callable[..., bytes], name: str, commits: list[str]) -> str:
    """Returns a commit that leads to all of these."""
    if len(commits) == 1:
        return commits[0]
    parents = [f"-p{each}" for each in commits]
    about = f"{name}: what the worktree and its branch had"
    said = run("commit-tree", no_dash(f"{commits[0]}^{{tree}}"), *parents, f"-m{about}")
    return said.decode().strip()


def _branch(run: Callable[..., bytes], name: str, commit: str) -> str:
    """Makes a branch of a name that none has. Raises `ExternalFailure`."""
    asked = ("for-each-ref", "--format=%(refname:lstrip=2)")
    taken = set(run(*asked, *(f"refs/heads/{FOLDER}{each}" for each in ("", "-*"))).split(b"\n"))
    # Where a branch is called `unfinished`, git can have none below it.
    first = f"{FOLDER}{'-' if FOLDER.encode() in taken else '/'}{name}"
    names = (first, *(f"{first}-{number}" for number in range(2, len(taken) + _TRIES)))
    free = (each for each in names if os.fsencode(each) not in taken)
    how = ("update-ref", "--no-deref", "--create-reflog", "-m", _KEPT)
    for branch in (*islice(free, _TRIES), f"{FOLDER}-{name}"):
        try:
            run(*how, f"refs/heads/{branch}", no_dash(commit), _NONE)
        except ExternalFailure as error:
            failure = error
        else:
            return branch
    raise failure


def outlived(hive: Services) -> list[Diagnosis]:
    """Returns the branches that keep work on issues which are done, by the names that the records
    give them: those that may go, as that has landed and nobody has added anything, and the others.
    """
    layout = hive.layout
    asked = ("for-each-ref", "--format=%(refname:lstrip=3)", f"refs/heads/{FOLDER}/")
    names = (line(*asked, cwd=layout.tree, repository={}) or "").split("\n")
    if not any(names):
        return []
    ended = [each for each in hive.assignments.find(status="all") if each.status != "active"]
    issues = hive.issues.some(each.issue_id for each in ended)
    done = {
        name_of(one): one.issue_id
        for one in ended
        if one.issue_id in issues and issues[one.issue_id].done
    }
    target = target_branch(layout) or "HEAD"
    old, others = list[str](), list[str]()
    for each in names:
        issue_id = done.get(each) or done.get(re.sub(r"-\d+$", "", each))
        if issue_id is not None:
            branch = f"{FOLDER}/{each}"
            may_go = _has_landed(hive, issue_id) and _is_as_kept(layout, branch, target)
            (old if may_go else others).append(branch)
    way = f"if nothing in them is needed: {suggested('git branch -D', *old)}"
    look = suggested("git log", *(f"{target}..{each}" for each in others[:_NAMED]))
    return [
        *_outlived(layout, old, "have landed since", way),
        *_outlived(layout, others, "are done, and did perhaps not land", look),
    ]


def _outlived(layout: Layout, branches: list[str], what: str, hint: str) -> Iterator[Diagnosis]:
    if branches:
        from queenbee.services.diagnosis import Diagnosis  # noqa: PLC0415 - start-up

        text = f"branches keep work on issues that {what}: {some(branches, _NAMED)}"
        yield Diagnosis("outlived", str(layout.common_dir), text, hint=hint, severity="note")


def _has_landed(hive: Services, issue_id: str) -> bool:
    completed = hive.assignments.find(issue_id=issue_id, status="completed")
    return any(each.landed for each in completed)


def _is_as_kept(layout: Layout, branch: str, target: str) -> bool:
    """Returns whether a branch has nothing but what QueenBee has put there, or what has landed."""
    ref = no_dash(f"refs/heads/{branch}")
    last = ("log", "--walk-reflogs", "--max-count=1", "--format=%gs", ref, "--")
    lacking = ("rev-list", "--count", ref, "--not", no_dash(target), "--")
    said = partial(line, cwd=layout.tree, repository={})
    return said(*last) == _KEPT or said(*lacking) == "0"


def name_of(assignment: Assignment) -> str:
    """Returns the last part of the name of the branch that keeps the work of an assignment."""
    return branch_part(f"{assignment.issue_id}-{assignment.droid}")


def branch_part(text: str) -> str:
    """Returns a text as the last part of the name of a branch."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")
    return plain[:80] or "work"
