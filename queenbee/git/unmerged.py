"""What each worktree has that the main branch lacks: files, from its commits and its working tree.

Git is asked once; the answer is kept in the state folder, with what it depends on: the commits and
the index, by their stamps, and the moment at which git looked. For one file, nothing more is needed
as long as the file has not changed since that moment, which its own times say. So a question costs
no git process unless there was a commit, or an edit of that very file.

Only `refresh` starts git. No filter and no fsmonitor of a worktree runs for it.
"""

from __future__ import annotations

import os
import time

from queenbee.errors import ExternalFailure, QueenError
from queenbee.store.documents import keep, recall
from queenbee.store.files import Stamp, stamp_of
from queenbee.store.git_files.worktrees import branch_head, target_branch, worktrees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout

UNTRACKED, DELETED, CHANGED = "untracked", "deleted", "changed"

_FORMAT = 1
_MOST_FILES = 2_000
"""Of one worktree: more are a folder that somebody forgot to ignore."""
_MOST_NOTES = 500
"""Of files that were not there, and of line numbers."""
_RACE_NS = 100_000_000
"""A file may change in the same tick of the clock in which git looked at it."""
_FIRST_S = 0.5
"""More, for worktrees that nobody has looked at: that happens once."""
_LIMIT_S = 2.0
"""Git is killed after so long where somebody only has a moment: in another worktree, whose files
are another agent's, it may wait for ever for one that is a FIFO."""
_LONG_LIMIT_S = 60.0
_NOT_AGAIN_NS = 600 * 1_000_000_000
"""So long, nobody who only has a moment asks again where git was too slow."""
_STALE_NS = 300 * 1_000_000_000
"""What no stamp says, such as another `.gitignore`, is seen after five minutes."""


class Work:
    """What one worktree has that the main branch lacks, as of the moment at which git looked."""

    __slots__ = (
        "absent",
        "at_ns",
        "changed",
        "committed",
        "cut",
        "head",
        "index",
        "lines",
        "target",
    )

    def __init__(self, head: str | None, target: str | None, index: Stamp) -> None:
        self.head = head
        self.target = target
        self.index = index
        self.at_ns = 0
        self.committed: set[str] = set()
        """The files that its commits change, and that the main branch has in another form."""
        self.changed: dict[str, str] = {}
        """What is not committed: each file as `changed`, `deleted` or `untracked`."""
        self.cut = False
        """Whether more files are changed than are kept here."""
        self.absent: list[str] = []
        """Files that were asked for, and that were not there."""
        self.lines: dict[str, object] = {}
        """Line numbers that were asked for, for `touched`."""

    @property
    def files(self) -> set[str]:
        """All files that it has in another form than the main branch."""
        return self.committed | set(self.changed)

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {
            "head": self.head,
            "target": self.target,
            "index": list(self.index),
            "at_ns": self.at_ns,
            "committed": sorted(self.committed),
            "changed": self.changed,
            "cut": self.cut,
            "absent": self.absent[-_MOST_NOTES:],
            "lines": dict(list(self.lines.items())[-_MOST_NOTES:]),
        }

    @classmethod
    def of(cls, kept: Mapping[str, object]) -> Work:
        """Returns what `to_dict` gave. Raises `KeyError`, `TypeError` or `ValueError`."""
        work = cls(kept["head"], kept["target"], tuple(kept["index"]))  # type: ignore[arg-type]
        work.at_ns = int(kept["at_ns"])  # type: ignore[call-overload]
        work.committed = set(kept["committed"])  # type: ignore[call-overload]
        work.changed = dict(kept["changed"])  # type: ignore[call-overload]
        work.cut = bool(kept["cut"])
        work.absent = list(kept["absent"])  # type: ignore[call-overload]
        work.lines = dict(kept["lines"])  # type: ignore[call-overload]
        return work


class Neighbours:
    """The other worktrees of a repository, with what is known of their work.

    With `own`, that of the present one too. Spends at most about `budget_s` on asking git;
    `unlooked` then has the worktrees whose work is not known, or known only as it was before.
    """

    def __init__(self, layout: Layout, *, budget_s: float, own: bool = False) -> None:
        found = worktrees(layout)
        self.others = [each for each in found if own or each.path != layout.tree]
        self.unlooked: dict[str, Worktree] = {}
        self._layout = layout
        self._deadline_s = time.monotonic() + budget_s
        self._first_deadline_s = self._deadline_s + (_FIRST_S if budget_s > 0 else 0)
        self._path = os.path.join(layout.state_dir, "index", "unmerged.json")
        self._kept, self._slow = _load(self._path) if self.others else ({}, {})
        """The second: where git was killed because it did not answer, and when."""
        self.limit_s = min(max(_LIMIT_S, budget_s), _LONG_LIMIT_S)
        """What one git may take, in seconds."""
        self._known: set[str] = set()
        """The worktrees that git was asked about just now."""
        self._dirty = False
        self._filters: dict[str, dict[str, str]] = {}
        self._target = _target(layout, found) if self.others else None
        # Whoever was asked longest ago comes first, so that everybody's turn comes.
        self.others.sort(key=lambda each: self._asked_ns(each.git_dir))

    def has(self, other: Worktree, path: str) -> bool:
        """Returns whether a worktree has a file in another form than the main branch."""
        work = self._current(other)
        if work is not None and other.git_dir not in self._known:
            settled = _is_settled(work, os.path.join(other.path, path), path)
            work = work if settled else self._refreshed(other)
        if work is None:
            return False
        if path in work.committed or path in work.changed:
            return True
        if work.cut:
            self.unlooked[other.git_dir] = other
        elif path not in work.absent and not os.path.lexists(os.path.join(other.path, path)):
            work.absent.append(path)
            self._dirty = True
        return False

    def files(self, other: Worktree, *, most_age_s: float = 0) -> set[str]:
        """Returns all files that a worktree has in another form, as of so many seconds ago."""
        work = self._current(other)
        if work is not None and other.git_dir not in self._known:
            is_old = time.time_ns() - work.at_ns > most_age_s * 1_000_000_000
            work = self._refreshed(other) if is_old else work
        if work is not None and work.cut:
            self.unlooked[other.git_dir] = other
        return work.files if work is not None else set()

    def work(self, other: Worktree) -> Work | None:
        """Returns what is known of a worktree's work, without asking again."""
        return self._kept.get(other.git_dir)

    @property
    def in_time(self) -> bool:
        """Whether there is time left to ask git."""
        return time.monotonic() < self._deadline_s

    def note_slow(self, other: Worktree, error: Exception) -> None:
        """Remembers a worktree in which git did not answer."""
        from queenbee.git.run import TooSlow  # noqa: PLC0415 - start-up

        if isinstance(error, TooSlow):
            self._slow[other.git_dir] = time.time_ns()
            self._dirty = True

    def was_slow(self, other: Worktree) -> bool:
        """Returns whether git did not answer there lately, and somebody has but a moment."""
        age_ns = time.time_ns() - self._slow.get(other.git_dir, 0)
        return self.limit_s <= _LIMIT_S and 0 <= age_ns < _NOT_AGAIN_NS

    def note_lines(self, other: Worktree, path: str, lines: object) -> None:
        """Keeps the line numbers of a file for the next question."""
        work = self._kept.get(other.git_dir)
        if work is not None:
            work.lines[path] = lines
            self._dirty = True

    def keep(self) -> None:
        """Keeps what was learned for the next process, if possible."""
        if not self._dirty:
            return
        known = {each.git_dir for each in worktrees(self._layout)}
        slow = {key: at_ns for key, at_ns in self._slow.items() if key in known}
        _store(self._path, {key: each for key, each in self._kept.items() if key in known}, slow)
        self._dirty = False

    def _asked_ns(self, git_dir: str) -> int:
        return self._kept[git_dir].at_ns if git_dir in self._kept else 0

    def config(self, other: Worktree) -> dict[str, str]:
        """Returns the config without which git would run a program that is named as a filter."""
        from queenbee.git.run import without_programs  # noqa: PLC0415 - start-up

        # The settings are shared, unless a worktree has some of its own.
        own = os.path.join(other.git_dir, "config.worktree")
        key = own if os.path.exists(own) else ""
        if key not in self._filters:
            self._filters[key] = without_programs(other.path, {}, limit_s=self.limit_s)[0]
        return self._filters[key]

    def _current(self, other: Worktree) -> Work | None:
        """Returns the work of a worktree, for the commits and the index that it has now."""
        work = self._kept.get(other.git_dir)
        if work is not None and (
            other.git_dir in self._known
            or (
                work.head is not None
                and (work.head, work.target) == (other.head, self._target)
                and work.index == _index(other)
                and time.time_ns() - work.at_ns < _STALE_NS
            )
        ):
            return work
        return self._refreshed(other)

    def _refreshed(self, other: Worktree) -> Work | None:
        """Returns the work of a worktree as it is now; if there is no time, as it was."""
        before = self._kept.get(other.git_dir)
        if other.git_dir in self._known:
            return before
        deadline_s = self._deadline_s if before is not None else self._first_deadline_s
        if time.monotonic() >= deadline_s or self.was_slow(other):
            self.unlooked[other.git_dir] = other
            return before
        try:
            work = refresh(other, self._target, self.config(other), before, limit_s=self.limit_s)
        except (OSError, QueenError) as error:  # Another user's, or removed at this moment.
            self.unlooked[other.git_dir] = other
            self.note_slow(other, error)
            return before
        self._slow.pop(other.git_dir, None)
        self._known.add(other.git_dir)
        self._kept[other.git_dir] = work
        self._dirty = True
        return work


def refresh(
    other: Worktree,
    target: str | None,
    config: Mapping[str, str],
    before: Work | None = None,
    *,
    limit_s: float | None = None,
) -> Work:
    """Returns what a worktree has that the commit `target` lacks. Raises `ExternalFailure`, also if
    a git takes longer than `limit_s`.

    `config` overrides the repository's own, and `before` is what was found before.
    """
    from queenbee.git.run import git, line, names_in  # noqa: PLC0415 - start-up

    def names(*arguments: str) -> set[str]:
        return set(names_in(git(*arguments, cwd=other.path, repository={}, limit_s=limit_s)))

    index = _index(other)
    at_ns = time.time_ns()
    ask_head = ("rev-parse", "--verify", "HEAD")
    head = other.head or line(*ask_head, cwd=other.path, repository={}, limit_s=limit_s)
    work = Work(head, target, index)
    work.at_ns = at_ns
    if before is not None and (before.head, before.target) == (head, target):
        work.committed, work.lines = before.committed, before.lines
    elif head is not None and target is not None and head != target:
        diff = ("diff-tree", "-r", "-z", "--name-only", "--no-renames")
        base = line("merge-base", target, head, cwd=other.path, repository={}, limit_s=limit_s)
        if base != head:
            work.committed = names(*diff, target, head)
            if base not in (None, target):
                # A change that landed in another commit is on both sides.
                work.committed &= names(*diff, str(base), head)
    status = git(
        *("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"),
        "--ignore-submodules=dirty",
        cwd=other.path,
        config=config,
        repository={},
        limit_s=limit_s,
    )
    entries = names_in(status)
    found = {text[3:]: _how(text[:2]) for text in entries if not text.endswith("/")}
    work.cut = max(len(found), len(work.committed)) > _MOST_FILES
    work.changed = dict(sorted(found.items())[:_MOST_FILES])
    work.committed = set(sorted(work.committed)[:_MOST_FILES])
    return work


def base_of(other: Worktree, work: Work) -> str | None:
    """Returns the commit that a worktree's branch has in common with the main branch.

    Raises `ExternalFailure`.
    """
    from queenbee.git.run import line  # noqa: PLC0415 - start-up

    if work.head is None or work.target in (None, work.head):
        return work.head
    return line("merge-base", str(work.target), work.head, cwd=other.path, repository={})


def _is_settled(work: Work, file: str, path: str) -> bool:
    """Returns whether a file is as it was when git looked."""
    try:
        status = os.lstat(file)
    except OSError:
        return work.changed.get(path) == DELETED or path in work.absent
    return path not in work.absent and status.st_ctime_ns < work.at_ns - _RACE_NS


def _how(code: str) -> str:
    if code == "??":
        return UNTRACKED
    return DELETED if "D" in code else CHANGED


def _index(other: Worktree) -> Stamp:
    try:
        return stamp_of(os.path.join(other.git_dir, "index"))
    except QueenError:
        return ()


def _target(layout: Layout, found: Sequence[Worktree]) -> str | None:
    """Returns the commit of the main branch; without one, that of the main worktree."""
    branch = target_branch(layout)
    if branch is not None and layout.common_dir is not None:
        return branch_head(layout.common_dir, branch)
    main = next((each for each in found if not each.linked), None)
    if main is None or main.head is not None:
        return main.head if main is not None else None
    from queenbee.git.run import line  # noqa: PLC0415 - start-up

    try:
        return line("rev-parse", "--verify", "HEAD", cwd=main.path, repository={})
    except ExternalFailure:
        return None


def _load(path: str) -> tuple[dict[str, Work], dict[str, int]]:
    try:
        kept = recall(path)
        if kept["format"] == _FORMAT:
            slow = {str(key): int(at_ns) for key, at_ns in kept.get("slow", {}).items()}
            return {str(key): Work.of(each) for key, each in kept["of"].items()}, slow
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return {}, {}


def _store(path: str, works: Mapping[str, Work], slow: Mapping[str, int]) -> None:
    entries = {key: work.to_dict() for key, work in works.items()}
    keep(path, {"format": _FORMAT, "of": entries, "slow": slow})
