"""What a droid that is gone has left in its worktree: its last change as a sign of life, and what
it has not committed, kept on a branch.

Nothing in that worktree changes: not its files, its index or its branch.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import mentioned, suggested
from queenbee.errors import ExternalFailure, QueenError
from queenbee.git.run import as_the_user, git, line, without_programs
from queenbee.git.unmerged import STATUS, Status
from queenbee.services.leases.edits import is_exempt
from queenbee.store.droids import presence
from queenbee.store.git_files.worktrees import target_branch, worktrees

if TYPE_CHECKING:
    from collections.abc import Callable

    from queenbee.core.records import Assignment
    from queenbee.services.hive import Services
    from queenbee.store.git_files.worktrees import Worktree

FOLDER = "unfinished"
"""The branches of what was kept begin so."""
_LIMIT_S = 20.0
_TRIES = 20
_NONE = "0" * 40
"""In place of a ref's old value: it must not exist."""


class Unfinished:
    """What a droid has not landed, and where it is."""

    def __init__(self, place: Worktree, files: list[str], commits: int) -> None:
        self.worktree = place.path
        self.files = files
        """What is not committed there, from the top of the tree."""
        self.commits = commits
        """How many commits of its branch are not on the main branch."""
        self.branch = place.branch if commits else None
        """Where to go on: with what was not committed, once that is kept."""

    def sentence(self) -> str:
        """Returns where it is, in words; empty if there is none."""
        parts = []
        if self.files:
            parts.append(f"{len(self.files)} file{'s' * (len(self.files) > 1)} not committed")
        if self.commits:
            parts.append(f"{self.commits} commit{'s' * (self.commits > 1)} not landed")
        if not parts:
            return ""
        kept = ""
        if self.branch is not None:
            kept = f", on branch {mentioned(self.branch)}: {suggested('git merge', self.branch)}"
        return f"unfinished in {mentioned(self.worktree)}: {' and '.join(parts)}{kept}"

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return dict(vars(self))


class WorktreeKeeper:
    """Implements `services.work.relief.Keeper`."""

    def __init__(self, hive: Services) -> None:
        self._hive = hive

    def note_signs(self, droid: str) -> bool:
        """Notes the last change in a droid's worktree as a sign of life; returns whether it is."""
        layout, before_ms = self._hive.layout, presence.last_ms(self._hive.layout, droid)
        if before_ms is None:
            return False
        places = map(self._place, self._hive.assignments.find(droid=droid))
        changes_ms = [_changed_ms(self._hive, place) for place in places if place is not None]
        changed_ms = min(max(changes_ms, default=0), self._hive.now_ms())
        if changed_ms > before_ms:
            presence.note(layout, droid, changed_ms)
        return changed_ms > before_ms

    def keep(self, assignment: Assignment) -> Unfinished | None:
        """Returns what a droid has not landed, once that is on a branch; None if nothing is known
        of a worktree of its own.
        """
        place = self._place(assignment)
        if place is None:
            return None
        try:
            return self._kept(assignment, place)
        except (OSError, QueenError):
            return Unfinished(place, [], 0)

    def set_aside(self, assignment: Assignment) -> Unfinished | None:
        """Does the same also for commits that have not landed, and brings the worktree to the main
        branch, without what was kept. Raises `ExternalFailure`, and nothing is lost.
        """
        place = self._place(assignment)
        target = target_branch(self._hive.layout)
        if place is None or target is None:
            return None
        found = self._kept(assignment, place)
        if found.commits and not found.files and place.head is not None:
            run = partial(git, cwd=place.path, repository={}, limit_s=_LIMIT_S)
            found.branch = _branch(run, _name_of(assignment), place.head)
        as_the_user("reset", "--quiet", "--hard", f"refs/heads/{target}", cwd=place.path)
        if found.files:
            as_the_user("clean", "--quiet", "-d", "--force", cwd=place.path)
        return found

    def _kept(self, assignment: Assignment, place: Worktree) -> Unfinished:
        files = _changed(self._hive, place)
        target, commits = target_branch(self._hive.layout), None
        if target is not None and place.head is not None:
            ahead = ("rev-list", "--count", f"refs/heads/{target}..{place.head}", "--")
            commits = line(*ahead, cwd=place.path, repository={}, limit_s=_LIMIT_S)
        found = Unfinished(place, files, int(commits or 0))
        if files:
            found.branch = _commit(self._hive, place, assignment)
        return found

    def _place(self, assignment: Assignment) -> Worktree | None:
        """Returns the worktree in which nobody but the droid works, or None."""
        if self._hive.layout.common_dir is None:
            return None
        found = [each for each in worktrees(self._hive.layout) if each.linked]
        own = [each for each in found if each.droid == assignment.droid]
        named = [each for each in found if os.path.basename(each.path) == assignment.worktree]
        best = [each for each in named if each in own] or own
        best = best or [each for each in named if each.droid is None]
        here = self._hive.layout.tree
        return next((each for each in best if not os.path.samefile(each.path, here)), None)


def _changed(hive: Services, place: Worktree) -> list[str]:
    """Returns what is not committed in a worktree. Raises `ExternalFailure`."""
    config = without_programs(place.path, {}, limit_s=_LIMIT_S)
    said = git(*STATUS, cwd=place.path, config=config, repository={}, limit_s=_LIMIT_S)
    return sorted(path for path in Status(said).changed if not is_exempt(hive.layout, path))


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


def _commit(hive: Services, place: Worktree, assignment: Assignment) -> str:
    """Returns the branch of a new commit with everything that a worktree has, ignored files apart.

    It is made with an index of its own. Raises `ExternalFailure` and `OSError`.
    """
    droid, issue_id = assignment.droid, assignment.issue_id
    with tempfile.TemporaryDirectory(prefix="queen-unfinished-") as folder:
        index = os.path.join(folder, "index")
        shutil.copyfile(os.path.join(place.git_dir, "index"), index)
        repository = {
            "GIT_DIR": place.git_dir,
            "GIT_WORK_TREE": place.path,
            "GIT_INDEX_FILE": index,
        }
        config = {
            **without_programs(place.path, repository, limit_s=_LIMIT_S),
            "core.hooksPath": os.devnull,
            "user.name": droid,
            "user.email": f"{droid}@localhost",
        }

        def run(*arguments: str) -> str:
            said = git(
                *arguments,
                cwd=place.path,
                config=config,
                repository=repository,
                limit_s=_LIMIT_S,
            )
            return said.decode().strip()

        run("add", "--all")
        tree = run("write-tree")
        parents = (f"-p{place.head}",) if place.head is not None else ()
        about = f"{issue_id}: what {droid} had not committed"
        commit = run("commit-tree", no_dash(tree), *parents, f"-m{about}")
        return _branch(run, _name_of(assignment), commit)


def _branch(run: Callable[..., object], name: str, commit: str) -> str:
    """Makes a branch of a name that none has. Raises `ExternalFailure`."""
    for number in range(_TRIES):
        branch = f"{FOLDER}/{name}{f'-{number + 1}' if number else ''}"
        try:
            run("update-ref", f"refs/heads/{branch}", no_dash(commit), _NONE)
        except ExternalFailure:
            if number == _TRIES - 1:
                raise
        else:
            return branch
    raise AssertionError(name)


def _name_of(assignment: Assignment) -> str:
    """Returns the issue and its holder as the last part of the name of a branch."""
    text = f"{assignment.issue_id}-{assignment.droid}"
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")
    return plain[:80] or "work"
