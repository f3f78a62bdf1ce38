"""Snapshots of worktrees: what each has that the main branch lacks, committed or not.

Git is asked once; the answer is kept in the state folder, with what it depends on: the commits and
the index, by their stamps, and the moment at which git looked. For one file, nothing more is needed
as long as the file has not changed since that moment, which its own times say. So a question costs
no git process unless there was a commit, or an edit of that very file.

Only `look` starts git. No filter and no fsmonitor of a worktree runs for it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.errors import ExternalFailure, QueenError
from queenbee.git.run import TooSlow, git, line, names_in, without_programs
from queenbee.store.files import stamp_of
from queenbee.store.git_files.worktrees import ref_target, target_ref, worktrees
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout

ADDED, DELETED, CHANGED = "added", "deleted", "changed"
STATUS = (
    *("status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind"),
    *("--untracked-files=all", "--no-renames", "--ignore-submodules=dirty"),
)

_SECTIONS = {
    "core.attributesFile": os.path.join(os.path.dirname(__file__), "sections.gitattributes")
}
_FORMAT = 4
_MOST_FILES = 2_000
"""Of one worktree: more are a folder that somebody forgot to ignore."""
_MOST_LINES = 500
"""Files of one worktree whose line numbers are kept."""
_RACE_NS = 100_000_000
"""A file may change in the same tick of the clock in which git looked at it."""
_FIRST_S = 0.5
"""More, for worktrees that nobody has looked at: that happens once."""
_LIMIT_S = 2.0
"""Git is ended after so long where somebody only has a moment: in another worktree, whose files
are another agent's, it may wait for ever for one that is a FIFO."""
_LONG_LIMIT_S = 60.0
_NOT_AGAIN_NS = 600 * 1_000_000_000
"""So long, nobody who only has a moment asks again where git was too slow."""
_MANY = 4
_MANY_BYTES = 1024 * 1024
"""So many worktrees, or one with so large an index (10,000 files), are worth the two questions that
spare a look at each."""
_SHARE = 100
"""What took git so long is listed again after so many times as long, at the earliest."""
_STALE_NS = 300 * 1_000_000_000
"""What no stamp says, such as another `.gitignore`, is seen after five minutes."""


class Status:
    """What `git status`, called with the options `STATUS`, says of a worktree."""

    def __init__(self, said: bytes) -> None:
        self.head: str | None = None
        self.is_conflicted: bool = False
        """Whether a merge is under way whose conflicts are not resolved."""
        self.changed: dict[str, str] = {}
        """The files that differ from the last commit, each as `changed`, `deleted` or `added`."""
        self.untracked: set[str] = set()
        for record in said.split(b"\0"):
            kind, _, rest = record.partition(b" ")
            if kind == b"#" and rest.startswith(b"branch.oid "):
                oid = rest.split(b" ")[1].decode()
                self.head = oid if oid.isalnum() else None
            elif kind == b"1":
                states, _, mode, *_, name = rest.split(b" ", 7)
                here = ADDED if mode == b"000000" else CHANGED
                self._add(name, DELETED if b"D" in states else here)
            elif kind == b"?":
                self._add(rest, ADDED)
                self.untracked.add(os.fsdecode(rest))
            elif kind == b"u":
                self.is_conflicted = True
                self._add(rest.split(b" ", 9)[9], CHANGED)

    def _add(self, name: bytes, how: str) -> None:
        if not name.endswith(b"/"):  # A repository in the tree is not part of it.
            self.changed[os.fsdecode(name)] = how


class Snapshot:
    """What one worktree has that the main branch lacks, as of the moment at which git looked."""

    def __init__(self, **parts: Any) -> None:
        self.head: str | None = parts["head"]
        self.target: str | None = parts["target"]
        self.index: list[int] = parts["index"]
        self.at_ns: int = int(parts["at_ns"])
        self.took_ns: int = int(parts["took_ns"])
        self.committed: set[str] = set(parts["committed"])
        """The files that its commits change, and that the main branch has in another form."""
        self.changed: dict[str, str] = dict(parts["changed"])
        """What is not committed: each file as `changed`, `deleted` or `added`."""
        self.cut: bool = parts["cut"]
        """Whether more files are changed than are kept here."""
        self.lines: dict[str, Any] = dict(parts["lines"])
        """Line numbers that were asked for, for `touched`."""

    @property
    def files(self) -> set[str]:
        """All files that it has in another form than the main branch."""
        return self.committed | set(self.changed)

    def to_dict(self) -> dict[str, object]:
        """Returns what makes the same snapshot again."""
        lines = dict(list(self.lines.items())[-_MOST_LINES:])
        return {**vars(self), "committed": sorted(self.committed), "lines": lines}

    def has(self, path: str) -> bool:
        """Returns whether the worktree has a file in another form than the main branch."""
        return path in self.committed or path in self.changed

    def shows(self, top: str, path: str) -> bool:
        """Returns whether a file is still as it was when git looked: if it is not there, whether
        its folder is.
        """
        while True:
            try:
                return os.lstat(os.path.join(top, path)).st_ctime_ns < self.at_ns - _RACE_NS
            except OSError:
                if not path:
                    return False
                path = os.path.dirname(path)


class Neighbours:
    """The other worktrees of a repository, with what is known of their work.

    With `own`, that of the present one too. Spends at most about `budget_s` on asking git;
    `unlooked` then has the worktrees whose work is not known, or known only as it was before.
    """

    def __init__(self, layout: Layout, *, budget_s: float, own: bool = False) -> None:
        self._layout = layout
        self._every = found = worktrees(layout)
        self.here: Worktree | None = next(
            (each for each in found if each.path == layout.tree), None
        )
        self.others: list[Worktree] = [each for each in found if own or each is not self.here]
        self.unlooked: dict[str, Worktree] = {}
        self.limit_s: float = min(max(_LIMIT_S, budget_s), _LONG_LIMIT_S)
        """What one git may take, in seconds."""
        self._deadline_s = time.monotonic() + budget_s
        self._first_deadline_s = self._deadline_s + (_FIRST_S if budget_s > 0 else 0)
        self._cache = Cache(layout)
        self._just_looked: set[str] = set()
        self._programs = Programs()
        self._moves: dict[str | None, set[str] | None] = {}
        self._merged: set[str] | None = None
        self._target = _target(layout, found) if self.others else None
        # Whoever was asked longest ago comes first, so that everybody's turn comes.
        known = self._cache.snapshots
        self.others.sort(key=lambda each: known[each.git_dir].at_ns if each.git_dir in known else 0)

    def behind(self) -> int:
        """Returns how many commits of the main branch the present worktree lacks; 0 as long as
        nobody has agreed to where work lands: nobody is to follow that.
        """
        here, lacks = self._follower, 0
        if here is not None and self._target not in (None, here.head):
            asked = ("rev-list", "--count", f"HEAD..{self._target}", "--")
            with suppress(ExternalFailure):
                said = line(*asked, cwd=here.path, repository={}, limit_s=self.limit_s)
                lacks = int(said or 0)
        return lacks

    def outdated(self) -> set[str]:
        """Returns the files that the main branch has changed since the present worktree left it;
        none as long as nobody has agreed to where work lands.
        """
        here = self._follower
        if here is None:
            return set()
        try:
            return _committed(here.path, self._target, here.head, self.limit_s)
        except ExternalFailure:
            return set()

    @cached_property
    def _follower(self) -> Worktree | None:
        """Returns the present worktree, if it may follow the main branch."""
        from queenbee.store.trust import builds_on_target  # noqa: PLC0415 - start-up

        here = self.here
        if here is None or not here.linked or not builds_on_target(self._layout):
            return None
        return here

    def has(self, other: Worktree, path: str, *, alone: bool = False) -> bool:
        """Returns whether a worktree has a file in another form than the main branch. If that file
        `alone` is asked for, git reads no other one of a large tree.
        """
        one = path if alone else None
        work = self._current(other, lambda known: known.shows(other.path, path), one)
        if work is None:
            return False
        if work.cut and not work.has(path):
            self.unlooked[other.git_dir] = other
        return work.has(path)

    def files(self, other: Worktree, *, most_age_s: float = 0) -> set[str]:
        """Returns all files that a worktree has in another form: those that are not committed as of
        so many seconds ago, or of longer where git is slow.
        """
        now_ns, most_ns = time.time_ns(), int(most_age_s * 1_000_000_000)

        def is_fresh(known: Snapshot) -> bool:
            return now_ns - known.at_ns <= (max(most_ns, _SHARE * known.took_ns) if most_ns else 0)

        work = self._with_commits(other, is_fresh) or self._current(other, is_fresh)
        if work is not None and work.cut:
            self.unlooked[other.git_dir] = other
        return work.files if work is not None else set()

    def work(self, other: Worktree) -> Snapshot | None:
        """Returns what is known of a worktree's work, without asking again."""
        return self._cache.snapshots.get(other.git_dir)

    def may_ask(self, other: Worktree, *, sure: bool = False) -> bool:
        """Returns whether to ask git more about a worktree: whether there is time left, unless it
        is `sure`, and git has answered there lately.
        """
        in_time = sure or time.monotonic() < self._deadline_s
        return in_time and not self._was_slow(other)

    def diff(self, other: Worktree, commit: str, path: str, *options: str) -> bytes:
        """Returns how a worktree changes a file since its branch and a commit have parted.

        Raises `ExternalFailure`.
        """
        try:
            return git(
                *("--literal-pathspecs", "diff", "--merge-base", "--no-renames", "--no-relative"),
                *("--ignore-submodules=all", *options, "--end-of-options", commit, "--", path),
                cwd=other.path,
                config={**self._programs.none_in(other, {}, self.limit_s), **_SECTIONS},
                repository={},
                limit_s=self.limit_s,
            )
        except TooSlow:
            self._cache.note_slow(other)
            raise

    def note_lines(self, other: Worktree, path: str, lines: object) -> None:
        """Keeps the line numbers of a file for the next question."""
        self._cache.snapshots[other.git_dir].lines[path] = lines
        self._cache.is_new = True

    def keep(self) -> None:
        """Keeps what was learned for the next process, if possible."""
        self._cache.store(self._every)

    def _moved_on(self, other: Worktree) -> Snapshot | None:
        """Returns what is known of a worktree's work. Where only the main branch has moved since,
        by files that its commits do not change, that counts for the new one, too.
        """
        known = self.work(other)
        if known is None or known.target == self._target or known.head != other.head:
            return known
        if len(self.others) < _MANY and not _is_large(other):
            return known
        moved, landed = self._moved(known.target), self._landed()
        if moved is None or landed is None or known.cut:
            return known
        if other.head in landed:
            known.committed = set()
        elif not moved.isdisjoint(known.committed):
            return known
        known.target = self._target
        self._cache.is_new = True
        return known

    def _with_commits(
        self, other: Worktree, is_fresh: Callable[[Snapshot], bool]
    ) -> Snapshot | None:
        """Returns what is known of a worktree's work, with what only its commits and those of the
        main branch have changed: for these, git reads no file of it. None if that is not enough.
        """
        known = self._moved_on(other)
        if known is None or other.head is None or not is_fresh(known):
            return None
        if (known.head, known.target) != (other.head, self._target):
            if time.monotonic() >= self._deadline_s or self._was_slow(other):
                return None
            try:
                committed = _committed(other.path, other.head, self._target, self.limit_s)
            except ExternalFailure:
                return None
            if known.head != other.head:  # Whoever asks for one file looks again.
                known.index = []
            known.head, known.target = other.head, self._target
            known.committed, known.lines = set(sorted(committed)[:_MOST_FILES]), {}
            known.cut = known.cut or len(committed) > _MOST_FILES
            self._cache.is_new = True
        return known

    def _moved(self, before: str | None) -> set[str] | None:
        """Returns the files by which the main branch differs from what it was; None if git cannot
        tell.
        """
        if before not in self._moves:
            found = None
            with suppress(ExternalFailure):
                if before is not None and self._target is not None and self.others:
                    found = _differing(self.others[0].path, before, self._target, self.limit_s)
            self._moves[before] = found
        return self._moves[before]

    def _landed(self) -> set[str] | None:
        """Returns the commits of branches that the main branch has; None if git cannot tell."""
        if self._merged is None:
            asked = ("for-each-ref", "--format=%(objectname)", f"--merged={self._target}")
            with suppress(ExternalFailure):
                top = self.others[0].path
                said = git(*asked, cwd=top, repository={}, limit_s=self.limit_s)
                self._merged = {*said.decode().split()}
        return self._merged

    def _was_slow(self, other: Worktree) -> bool:
        """Returns whether git did not answer there lately, and somebody has but a moment."""
        age_ns = time.time_ns() - self._cache.slow.get(other.git_dir, 0)
        return self.limit_s <= _LIMIT_S and 0 <= age_ns < _NOT_AGAIN_NS

    def _with_file(
        self, other: Worktree, path: str | None, config: Mapping[str, str]
    ) -> Snapshot | None:
        """Returns what is known of a worktree's work, with its commits and one file as they are
        now, where all other files are many; None if that is not enough.
        """
        known = self.work(other)
        is_merging = os.path.exists(os.path.join(other.git_dir, "MERGE_HEAD"))
        if path is None or known is None or known.cut or is_merging or not _is_large(other):
            return None
        if (known := self._with_commits(other, lambda _: True)) is not None:
            now = uncommitted(other, None, config, [path], limit_s=self.limit_s)
            for kept in (known.changed, known.lines):
                kept.pop(path, None)
            known.changed |= now.changed
        return known

    def _current(
        self, other: Worktree, is_fresh: Callable[[Snapshot], bool], path: str | None = None
    ) -> Snapshot | None:
        """Returns the work of a worktree as it is now, or of one file there; if there is no time to
        ask, as it was.
        """
        known = self._moved_on(other)
        if other.git_dir in self._just_looked or (
            known is not None
            and known.head is not None
            and (known.head, known.target) == (other.head, self._target)
            and known.index == _index(other)
            and time.time_ns() - known.at_ns < _STALE_NS
            and is_fresh(known)
        ):
            return known
        deadline_s = self._deadline_s if known is not None else self._first_deadline_s
        if time.monotonic() >= deadline_s or self._was_slow(other):
            self.unlooked[other.git_dir] = other
            return known
        try:
            config = self._programs.none_in(other, {}, self.limit_s)
            if (work := self._with_file(other, path, config)) is not None:
                return work
            work = look(other, self._target, config, known, limit_s=self.limit_s)
        except (OSError, QueenError) as error:  # Another user's, or removed at this moment.
            self.unlooked[other.git_dir] = other
            if isinstance(error, TooSlow):
                self._cache.note_slow(other)
            return known
        self._just_looked.add(other.git_dir)
        self._cache.note(other, work)
        return work


class Cache:
    """What earlier processes have found, in the state folder. Nothing breaks without it."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._path = os.path.join(layout.state_dir, "index", "unmerged.json")
        self.is_new: bool = False
        """Whether there is something that the next process should find."""
        self.snapshots: dict[str, Snapshot] = {}
        self.slow: dict[str, int] = {}
        """Where git was ended because it did not answer, and when."""
        self.added: dict[str, list[str]] = {}
        """Files in which two sides only added lines and conflict, each with such pairs."""
        kept = recall(self._path)
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            if kept["format"] == _FORMAT:
                found = {str(key): Snapshot(**each) for key, each in kept["of"].items()}
                self.slow = {str(key): int(at_ns) for key, at_ns in kept["slow"].items()}
                self.added = {str(key): list(each) for key, each in kept["added"].items()}
                self.snapshots = found

    def note(self, place: Worktree, work: Snapshot) -> None:
        """Takes what git said of a worktree."""
        self.slow.pop(place.git_dir, None)
        self.snapshots[place.git_dir] = work
        self.is_new = True

    def note_slow(self, place: Worktree) -> None:
        """Remembers a worktree in which git did not answer."""
        self.slow[place.git_dir] = time.time_ns()
        self.is_new = True

    def store(self, places: Iterable[Worktree]) -> None:
        """Keeps what is known of these worktrees for the next process, if there is something new
        and it is possible; with what others have kept meanwhile.
        """
        if not self.is_new:
            return
        self._add(Cache(self._layout))
        known = {each.git_dir for each in places}
        kept = {
            "format": _FORMAT,
            "of": {key: each.to_dict() for key, each in self.snapshots.items() if key in known},
            "slow": {key: at_ns for key, at_ns in self.slow.items() if key in known},
            "added": self.added,
        }
        keep(self._path, kept)
        self.is_new = False

    def _add(self, kept: Cache) -> None:
        """Takes what others know that is newer."""
        for key, work in kept.snapshots.items():
            if key not in self.snapshots or self.snapshots[key].at_ns < work.at_ns:
                self.snapshots[key] = work
        slow = {**kept.slow, **self.slow}.items()
        works = self.snapshots
        self.slow = {k: ns for k, ns in slow if k not in works or works[k].at_ns < ns}
        self.added = {**kept.added, **self.added}


class Programs:
    """The programs that worktrees name, asked for once where they share their settings."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, str]] = {}

    def none_in(
        self, place: Worktree, repository: Mapping[str, str], limit_s: float | None = None
    ) -> dict[str, str]:
        """Returns the config without which git would run programs in a worktree."""
        own = os.path.join(place.git_dir, "config.worktree")
        key = own if os.path.exists(own) else ""
        if key not in self._found:
            self._found[key] = without_programs(place.path, repository, limit_s=limit_s)
        return self._found[key]


def look(
    other: Worktree,
    target: str | None,
    config: Mapping[str, str],
    before: Snapshot | None = None,
    *,
    limit_s: float | None = None,
) -> Snapshot:
    """Returns what a worktree has that the commit `target` lacks. Raises `ExternalFailure`, also if
    a git takes longer than `limit_s`.

    `config` overrides the repository's own, and `before` is what was found before.
    """
    index, at_ns = _index(other), time.time_ns()
    status = uncommitted(other, target, config, limit_s=limit_s)
    took_ns = time.time_ns() - at_ns
    head = other.head or status.head
    if before is not None and (before.head, before.target) == (head, target):
        committed, lines = before.committed, before.lines
    else:
        committed, lines = _committed(other.path, head, target, limit_s), {}
    return Snapshot(
        head=head,
        target=target,
        index=index,
        at_ns=at_ns,
        took_ns=took_ns,
        committed=sorted(committed)[:_MOST_FILES],
        changed=dict(sorted(status.changed.items())[:_MOST_FILES]),
        cut=max(len(status.changed), len(committed)) > _MOST_FILES,
        lines=lines,
    )


def uncommitted(
    other: Worktree,
    target: str | None,
    config: Mapping[str, str],
    paths: Iterable[str] = (),
    *,
    limit_s: float | None = None,
) -> Status:
    """Returns what a worktree has that it has not committed, in all or only these files; without
    what a merge under way there has brought. Raises as `look` does.
    """
    only = [f":(top,literal){path}" for path in paths]
    said = git(*STATUS, "--", *only, cwd=other.path, config=config, repository={}, limit_s=limit_s)
    status = Status(said)
    if os.path.exists(os.path.join(other.git_dir, "MERGE_HEAD")):
        own = status.untracked | _merged_otherwise(other.path, target, config, limit_s)
        status.changed = {path: how for path, how in status.changed.items() if path in own}
    return status


def _merged_otherwise(
    tree: str, target: str | None, config: Mapping[str, str], limit_s: float | None
) -> set[str]:
    """Returns the tracked files that a worktree has in another form than what is being merged, as
    far as the commit `target` has that.
    """
    both = ("merge-base", no_dash(target or "HEAD"), "MERGE_HEAD")
    base = line(*both, cwd=tree, repository={}, limit_s=limit_s) or "HEAD"
    diff = ("diff", "--name-only", "-z", "--no-renames", "--no-relative", "--ignore-submodules=all")
    said = git(*diff, no_dash(base), "--", cwd=tree, config=config, repository={}, limit_s=limit_s)
    return set(names_in(said))


def _committed(tree: str, head: str | None, target: str | None, limit_s: float | None) -> set[str]:
    """Returns the files that the commits of a worktree change, and that the commit `target` has in
    another form.
    """

    if head is None or target is None or head == target:
        return set()
    base = line(
        "merge-base", no_dash(target), no_dash(head), cwd=tree, repository={}, limit_s=limit_s
    )
    if base == head:
        return set()
    found = _differing(tree, target, head, limit_s)
    # A change that landed in another commit is on both sides.
    if base in (None, target):
        return found
    return found & _differing(tree, str(base), head, limit_s)


def _differing(tree: str, old: str, new: str, limit_s: float | None) -> set[str]:
    """Returns the files that differ between two commits. Raises `ExternalFailure`."""
    diff = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", no_dash(old), no_dash(new))
    return set(names_in(git(*diff, cwd=tree, repository={}, limit_s=limit_s)))


def _is_large(other: Worktree) -> bool:
    return sum(_index(other)[1:2]) >= _MANY_BYTES


def _index(other: Worktree) -> list[int]:
    try:
        return list(stamp_of(os.path.join(other.git_dir, "index")))
    except QueenError:
        return []


def _target(layout: Layout, found: Sequence[Worktree]) -> str | None:
    """Returns the commit of the main branch; without one, that of the main worktree."""
    target = target_ref(layout)
    if target is not None and layout.common_dir is not None:
        return ref_target(layout.common_dir, target)
    main = next((each for each in found if not each.linked), None)
    if main is None or main.head is not None:
        return main.head if main is not None else None
    try:
        return line("rev-parse", "--verify", "HEAD", cwd=main.path, repository={})
    except ExternalFailure:
        return None
