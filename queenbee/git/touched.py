"""Who else has unmerged work in a file: in which worktree, for what, and in which lines.

A file counts until its change is on the main branch, also after its droid completed the issue.
`docs/worktrees.md`.
"""

from __future__ import annotations

import os

from queenbee.core.records import Reservation
from queenbee.core.text import mentioned, one_line
from queenbee.errors import NoHive, QueenError
from queenbee.git.unmerged import DELETED, UNTRACKED, Neighbours, base_of
from queenbee.services import work as loop
from queenbee.services.leases.edits import is_exempt
from queenbee.store.git_files.worktrees import are_several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from queenbee.core.glob.by_folder import ByFolder
    from queenbee.core.records import Assignment
    from queenbee.git.unmerged import Work
    from queenbee.services.hive import Services
    from queenbee.services.leases.reservations import PathStatus
    from queenbee.services.work import Begin, Nothing
    from queenbee.services.work.waiting import OnProgress
    from queenbee.store.git_files.worktrees import Worktree

BUDGET_S = 0.06
"""What a command may spend on asking git about worktrees that have changed."""
_MOST_AGE_S = 30
"""A pattern covers files that nobody looked at one by one: what was listed then is good enough."""
_MOST_FILES = 20
"""So many files of each worktree are named for a pattern."""
_SURE = 2
"""So many of them get their lines, whatever time is left."""
_MOST_RANGES = 20
_MOST_CHARS = 60
_SHOWN = 4
ADDED, DROPPED, EDITED = "added", "deleted", "changed"


class Touch:
    """Unmerged work of one worktree in one file."""

    __slots__ = (
        "branch", "committed", "droid", "how", "issue_id", "lines", "path", "uncommitted",
        "worktree",
    )  # fmt: skip

    def __init__(self, path: str, owner: Owner, work: Work) -> None:
        self.path = path
        """From the root of the repository."""
        self.droid = owner.droid
        """Whose work it is, or None if no record says."""
        self.branch = owner.branch
        self.worktree = owner.worktree
        """The name of its folder."""
        self.issue_id = owner.issue_id
        """What the droid works on there, or what it completed last."""
        self.committed = path in work.committed
        self.uncommitted = path in work.changed
        how = work.changed.get(path)
        self.how = {UNTRACKED: ADDED, DELETED: DROPPED}.get(how or "", EDITED)
        """`changed`, `added` or `deleted`."""
        self.lines: list[list[int]] | None = None
        """The first and last of the lines that it changes, numbered as where its branch began;
        None if that is not known or makes no sense."""

    @property
    def name(self) -> str:
        """Whose it is, for people: the droid, else the branch, else the folder."""
        return self.droid or self.branch or self.worktree

    @property
    def branch_or_folder(self) -> str:
        """What tells it from other work in the same file."""
        return self.branch or self.worktree

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {
            name: getattr(self, name)
            for name in (
                *("path", "droid", "branch", "worktree", "issue_id"),
                *("how", "lines", "committed", "uncommitted"),
            )
        }

    def what(self) -> str:
        """Returns how the file is changed there, in words, if it is known whose work it is."""
        where = f" {_ranges(self.lines)}" if self.lines else ""
        return f"{self.how}{where}{'' if self.committed else ', uncommitted'}"

    def sentence(self) -> str:
        """Returns it in words; all names in it are safe to show to an agent."""
        place = f"branch {_safe(self.branch)}" if self.branch else f"in {_safe(self.worktree)}"
        facts = [
            *([place] if self.droid else []),
            *([_safe(self.issue_id)] if self.issue_id else []),
            *(["uncommitted"] if not self.committed else []),
        ]
        where = f" {_ranges(self.lines)}" if self.lines else ""
        more = f" ({', '.join(facts)})" if facts else ""
        return f"{_safe(self.name)} {self.how} {_safe(self.path)}{where}{more}"


class Seen:
    """The unmerged work of others in some files."""

    def __init__(self, touches: Sequence[Touch] = (), unlooked: Sequence[str] = ()) -> None:
        self.touches = touches
        self.unlooked = unlooked
        """The worktrees at which nobody could look, or only before, by name."""

    def of(self, path: str) -> list[Touch]:
        """Returns those of one file."""
        return [each for each in self.touches if each.path == path]

    def report(self, tell: Callable[[str], None]) -> None:
        """Tells the user which worktrees are missing in the answer."""
        if not self.unlooked:
            return
        named = ", ".join(_safe(each) for each in self.unlooked[:3])
        more = f" and {len(self.unlooked) - 3} more" if len(self.unlooked) > 3 else ""
        tell(f"not looked at in time for unmerged work: {named}{more}; ask again")


class Owner:
    """Whose worktree it is, and what for."""

    __slots__ = ("branch", "droid", "issue_id", "worktree")

    def __init__(self, hive: Services, other: Worktree) -> None:
        self.branch = other.branch
        self.worktree = os.path.basename(other.path)
        known = self.worktree if other.linked else None
        self.droid = other.droid or _last_droid(hive, known, other.branch)
        self.issue_id = _issue(hive, self.droid, known) if self.droid is not None else None


class Checked:
    """Whether a path is free, and who else has unmerged work in it."""

    __slots__ = ("others", "status")

    def __init__(self, status: PathStatus, others: list[Touch]) -> None:
        self.status = status
        self.others = others

    def to_dict(self) -> dict[str, object]:
        """Returns the status of the path, with `touched_by`."""
        return {**self.status.to_dict(), "touched_by": [each.to_dict() for each in self.others]}


def by_others(hive: Services, paths: Iterable[str], *, budget_s: float = BUDGET_S) -> Seen:
    """Returns the unmerged work of other worktrees in files, named from the root.

    It is exact for the moment, except for the worktrees in `unlooked`. Never fails: where git
    does not answer, nothing is known.
    """
    wanted = [path for path in dict.fromkeys(paths) if not is_exempt(hive.layout, path)]
    if not wanted or not are_several(hive.layout):
        return Seen()
    found = Neighbours(hive.layout, budget_s=budget_s)
    met = [(other, path) for other in found.others for path in wanted if found.has(other, path)]
    return _seen(hive, found, met)


def covered(hive: Services, leases: Iterable[Reservation], *, budget_s: float = BUDGET_S) -> Seen:
    """Returns the unmerged work of other worktrees in the files that leases cover.

    What is not committed is as of at most half a minute ago.
    """
    if not are_several(hive.layout):
        return Seen()
    table = _by_folder(hive, leases)
    found = Neighbours(hive.layout, budget_s=budget_s)
    met = []
    for other in found.others:
        files = sorted(found.files(other, most_age_s=_MOST_AGE_S))
        inside = [
            each for each in files if not is_exempt(hive.layout, each) and table.covering(each)
        ]
        met += [(other, path) for path in inside[:_MOST_FILES]]
    return _seen(hive, found, met)


def check(
    open_hive: Callable[[], Services],
    statuses: Sequence[PathStatus],
    *,
    tell: Callable[[str], None],
) -> list[Checked]:
    """Returns the statuses of paths, each with the unmerged work of others in it.

    Paths that only a nested hive governs have none: their names are from another root.
    """
    try:
        hive = open_hive()
    except NoHive:
        return [Checked(each, []) for each in statuses]
    seen = by_others(hive, [each.path for each in statuses])
    seen.report(tell)
    return [Checked(each, seen.of(each.path)) for each in statuses]


def leases(
    hive: Services, granted: Sequence[Reservation], *, tell: Callable[[str], None]
) -> list[Reservation]:
    """Returns leases, each with `touched_by`: the unmerged work of others in what it covers."""
    seen = covered(hive, granted)
    seen.report(tell)
    result = []
    for lease in granted:
        met: list[Touch] = []
        if seen.touches:
            table = _by_folder(hive, [lease])
            met = [each for each in seen.touches if table.covering(each.path)]
        result.append(Reservation({**lease.fields, "touched_by": met}))
    return result


def of_lease(lease: Reservation) -> list[Touch]:
    """Returns what `leases` added to a lease."""
    added = lease.fields.get("touched_by")
    return added if isinstance(added, list) else []


def take_next(
    hive: Services,
    *,
    patterns: Sequence[str] = (),
    wait_s: float = 0,
    on_progress: OnProgress | None = None,
) -> Begin | Nothing:
    """Takes the next issue as `services.work.take_next` does, and adds the unmerged work of others
    in the files that it names; or, if everything is done, the records that are not committed.
    """
    taken = loop.take_next(hive, patterns=patterns, wait_s=wait_s, on_progress=on_progress)
    if isinstance(taken, loop.Begin):
        seen = by_others(hive, sorted(taken.files))
        taken.touched_by, taken.unlooked = seen.touches, seen.unlooked
    elif taken.state == "done":
        from queenbee.git.landed import uncommitted_records  # noqa: PLC0415 - start-up

        taken.uncommitted_records = uncommitted_records(hive.layout)
    return taken


def _by_folder(hive: Services, leases: Iterable[Reservation]) -> ByFolder:
    from queenbee.core.glob.by_folder import ByFolder  # noqa: PLC0415 - start-up

    patterns = ((lease.id, lease.pattern) for lease in leases)
    return ByFolder(patterns, fold_case=hive.reservations.fold_case)


def _seen(hive: Services, found: Neighbours, met: Sequence[tuple[Worktree, str]]) -> Seen:
    touches = list(_touches(hive, found, met))
    found.keep()
    names = [os.path.basename(each.path) for each in found.unlooked.values()]
    return Seen(sorted(touches, key=lambda each: (each.path, each.name)), names)


def _touches(
    hive: Services, found: Neighbours, met: Sequence[tuple[Worktree, str]]
) -> Iterator[Touch]:
    owners: dict[str, Owner] = {}
    for count, (other, path) in enumerate(met):
        work = found.work(other)
        assert work is not None
        if other.git_dir not in owners:
            owners[other.git_dir] = Owner(hive, other)
        touch = Touch(path, owners[other.git_dir], work)
        if touch.how != EDITED or _add_lines(
            touch, found, other, work, in_time=found.in_time or count < _SURE
        ):
            yield touch


def _add_lines(
    touch: Touch, found: Neighbours, other: Worktree, work: Work, *, in_time: bool
) -> bool:
    """Adds to a touch which lines it changes; returns whether it changes anything at all."""
    stamp = _stamp(os.path.join(other.path, touch.path))
    kept: Any = work.lines.get(touch.path)
    if not isinstance(kept, list) or kept[0] != stamp:
        if not in_time or found.was_slow(other):
            return True
        try:
            kept = [stamp, *_difference(found, other, work, touch.path)]
        except (OSError, QueenError) as error:
            found.note_slow(other, error)
            return True
        found.note_lines(other, touch.path, kept)
    if kept[1] is None:
        return False
    touch.how, touch.lines = kept[1:]
    return True


def _difference(
    found: Neighbours, other: Worktree, work: Work, path: str
) -> tuple[str | None, list[list[int]] | None]:
    """Returns how a worktree changes a file since its branch began, and which lines; (None, None)
    if it does not.
    """
    from queenbee.git.run import git  # noqa: PLC0415 - start-up

    base = base_of(other, work)
    if base is None:
        return ADDED, None
    said = git(
        *("--literal-pathspecs", "diff", "-U0", "--no-color", "--no-ext-diff", "--no-textconv"),
        *("--no-renames", "--no-relative", "--diff-algorithm=histogram", "--ignore-submodules=all"),
        *("--src-prefix=a/", "--dst-prefix=b/", "--end-of-options", base, "--", path),
        cwd=other.path,
        config=found.config(other),
        repository={},
        limit_s=found.limit_s,
    )
    return _read(said)


def _read(diff: bytes) -> tuple[str | None, list[list[int]] | None]:
    head, _, rest = diff.partition(b"\n@@ ")
    if not diff.strip():
        return None, None
    if b"\nnew file mode " in head:
        return ADDED, None
    if b"\ndeleted file mode " in head:
        return DROPPED, None
    ranges: list[list[int]] = []
    # The first lines that could be one are headers: a line of the content has a sign before it.
    for each in (b"@@ " + rest).split(b"\n") if rest else ():
        if each.startswith(b"@@ -"):
            first, _, count = each[4:].split(b" ", 1)[0].partition(b",")
            start, many = int(first), int(count or b"1")
            ranges.append([max(start, 1), max(start + many - 1, start, 1)])
    return EDITED, ranges[:_MOST_RANGES] or None


def _stamp(file: str) -> list[int] | None:
    try:
        status = os.lstat(file)
    except OSError:
        return None
    return [status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino]


def _last_droid(hive: Services, worktree: str | None, branch: str | None) -> str | None:
    """Returns the droid that was last given something in a worktree, or edits on its branch; None
    if no record says.
    """
    theirs: list[Assignment | Reservation] = [
        lease
        for lease in hive.reservations.find()
        if (branch is not None and lease.branch == branch)
        or (worktree is not None and lease.worktree == worktree)
    ]
    if worktree is not None:
        given = hive.assignments.find(status="all")
        theirs += [each for each in given if each.worktree == worktree]
    return max(theirs, key=lambda each: each.age).droid if theirs else None


def _issue(hive: Services, droid: str, worktree: str | None) -> str | None:
    """Returns the issue that a droid works on in a worktree, or completed there last."""
    for status in ("active", "completed"):
        theirs = [
            each
            for each in hive.assignments.find(droid=droid, status=status)
            if each.worktree in (None, worktree)
        ]
        if theirs:
            return max(theirs, key=lambda each: (each.updated_at, each.id)).issue_id
    return None


def _ranges(lines: Sequence[Sequence[int]]) -> str:
    shown = [f"{a}" if a == b else f"{a}-{b}" for a, b in lines[:_SHOWN]]
    more = ", …" if len(lines) > _SHOWN else ""
    word = "line" if len(lines) == 1 and lines[0][0] == lines[0][1] else "lines"
    return f"{word} {', '.join(shown)}{more}"


def _safe(text: str) -> str:
    return mentioned(one_line(text, _MOST_CHARS))
