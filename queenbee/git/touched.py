"""Who else has unmerged work in a file: in which worktree, for what, in which lines, and whether
it would conflict with one's own.

A file counts until its change is on the main branch, also after its droid completed the issue.
`docs/worktrees.md`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.conflicts.appended import everybody_appends_to
from queenbee.core.glob.pattern import matches
from queenbee.core.records import Reservation
from queenbee.core.text import mentioned, named, one_line, some, suggested
from queenbee.errors import ExternalFailure, NoHive, QueenError, Unreadable
from queenbee.git.lines import CHANGES, hunks, overlaps
from queenbee.git.run import UPKEEP_LATER, git, names_in, user_git
from queenbee.git.unmerged import ADDED, CHANGED, DELETED, Neighbours
from queenbee.services import work as loop
from queenbee.services.leases.edits import is_exempt
from queenbee.services.waiting.landing_record import lands_meanwhile
from queenbee.store import safe_open
from queenbee.store.droids import roster
from queenbee.store.git_files.tree_id import is_of_tree, read_tree_id
from queenbee.store.git_files.worktrees import are_several, lands_on_remote, target_ref

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any

    from queenbee.core.records import Assignment
    from queenbee.git.lines import Hunk, Overlap
    from queenbee.git.unmerged import Snapshot
    from queenbee.services.hive import Services
    from queenbee.services.leases.reservations import PathStatus
    from queenbee.services.waiting.pauses import Steps
    from queenbee.services.work import Begin, Nothing
    from queenbee.services.work.relief import Keeper
    from queenbee.services.work.waiting import OnProgress
    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout

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
MOST_BYTES = 1024 * 1024
"""A larger file is left to `queen worktree collisions`."""


class Touch:
    """Unmerged work of one worktree in one file."""

    def __init__(self, path: str, owner: Owner, work: Snapshot) -> None:
        self.path = path
        """From the root of the repository."""
        self.owner = owner
        self.committed: bool = path in work.committed
        self.uncommitted: bool = path in work.changed
        self.how: str = work.changed.get(path, CHANGED)
        """`changed`, `added` or `deleted`."""
        self.lines: list[list[int]] | None = None
        """The first and last of the lines that it changes, numbered as where its branch began;
        None if that is not known or makes no sense."""
        self.sections: list[str] = []
        """The functions or sections in which they are, as far as git names them."""

    @property
    def droid(self) -> str | None:
        """Whose work it is, or None if no record says."""
        return self.owner.droid

    @property
    def name(self) -> str:
        """Whose it is, for people: the droid, else the branch, else the folder."""
        return self.droid or self.branch_or_folder

    @property
    def branch_or_folder(self) -> str:
        """What tells it from other work in the same file."""
        return self.owner.branch or self.owner.worktree

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {
            "path": self.path,
            "droid": self.droid,
            "branch": self.owner.branch,
            "worktree": self.owner.worktree,
            "issue_id": self.owner.issue_id,
            "how": self.how,
            "lines": self.lines,
            "sections": self.sections,
            "committed": self.committed,
            "uncommitted": self.uncommitted,
        }

    def what(self) -> str:
        """Returns how the file is changed there, in words, if it is known whose work it is."""
        where = self._where().replace(" line", " old line", 1)  # Not as the reader has them.
        return f"{self.how}{where}{'' if self.committed else ', uncommitted'}"

    def sentence(self) -> str:
        """Returns it in words; all names in it are safe to show to an agent."""
        branch, folder = self.owner.branch, self.owner.worktree
        place = f"branch {_safe(branch)}" if branch else f"in {_safe(folder)}"
        facts = [
            *([place] if self.droid else []),
            *([_safe(self.owner.issue_id)] if self.owner.issue_id else []),
            *(["uncommitted"] if not self.committed else []),
        ]
        more = f" ({', '.join(facts)})" if facts else ""
        return f"{_safe(self.name)} {self.how} {_safe(self.path)}{self._where()}{more}"

    def _where(self) -> str:
        shown = [_safe(each) for each in self.sections[:_SHOWN]]
        more = ", …" if len(self.sections) > _SHOWN else ""
        inside = f" in {', '.join(shown)}{more}" if shown else ""
        return f" {_ranges(self.lines)}{inside}" if self.lines else ""


class Seen:
    """The unmerged work of others in some files."""

    def __init__(self, found: Neighbours | None = None, touches: Sequence[Touch] = ()) -> None:
        self._found = found
        self.touches = touches
        places = found.unlooked.values() if found is not None else ()
        self.unlooked: list[str] = [os.path.basename(each.path) for each in places]
        """The worktrees at which nobody could look, or only before, by name."""

    def of(self, path: str) -> list[Touch]:
        """Returns those of one file."""
        return [each for each in self.touches if each.path == path]

    def conflict(self, touch: Touch) -> list[Overlap] | None:
        """Returns where one's own change of the file would conflict with this one, or None if it
        would not; an empty list if both added the file.

        It agreed with git's merge in all but one of 600 cases. What one side deleted or renamed,
        and what is no text, is left to `queen worktree collisions`.
        """
        found, place, path = self._found, touch.owner.place, touch.path
        here = found.here if found is not None else None
        if found is None or here is None or not found.may_ask(place, sure=True):
            return None
        mine, theirs = _content(here, path), _content(place, path)
        if mine is None or theirs is None or mine == theirs:
            return None
        if touch.how == ADDED:
            return []
        if here.head is None or place.head is None:  # Only git can tell.
            return None
        try:
            of_mine = _changes(found.diff(here, place.head, path, *CHANGES))
            of_theirs = _changes(found.diff(place, here.head, path, *CHANGES))
        except ExternalFailure:
            found.keep()  # Where git was too slow, nobody asks again at once.
            return None
        if of_mine[0] != CHANGED or of_theirs[0] != CHANGED:
            return None
        return overlaps(of_mine[1], of_theirs[1]) or None

    def report(self, tell: Callable[[str], None]) -> None:
        """Tells the user which worktrees are missing in the answer."""
        if not self.unlooked:
            return
        what = some([_safe(each) for each in self.unlooked], 3)
        tell(f"not looked at in time for unmerged work: {what}; ask again")


class Owner:
    """Whose worktree it is, and what for; the records are only asked if somebody wants to know."""

    def __init__(self, hive: Services, place: Worktree) -> None:
        self._hive = hive
        self.place = place
        self.branch: str | None = place.branch
        self.worktree: str = os.path.basename(place.path)
        """The name of its folder."""
        self._known_as = self.worktree if place.linked else None

    @cached_property
    def _tree_id(self) -> str | None:
        return read_tree_id(self._hive.layout, self.place)

    @cached_property
    def droid(self) -> str | None:
        """Whose work it is, or None if no record says."""
        return self.place.droid or _last_droid(self._hive, self._tree_id, self.branch)

    @cached_property
    def issue_id(self) -> str | None:
        """What the droid works on there, or what it completed last."""
        if self.droid is None:
            return None
        find = partial(self._hive.assignments.find, droid=self.droid)
        return self.latest(find()) or self.latest(find(status="completed"))

    def latest(self, given: Iterable[Assignment]) -> str | None:
        """Returns the issue of the last of these assignments that its droid has there."""
        theirs = [
            each
            for each in given
            if each.droid == self.droid
            and is_of_tree(
                each,
                self._tree_id,
                droid=self.droid,
                folder=self._known_as,
                layout=self._hive.layout,
            )
        ]
        last = max(theirs, key=lambda each: (each.updated_at, each.id), default=None)
        return last.issue_id if last is not None else None


@dataclass(slots=True, eq=False)
class Checked:
    """Whether a path is free, and who else has unmerged work in it."""

    status: PathStatus
    others: list[Touch]

    def to_dict(self) -> dict[str, object]:
        """Returns the status of the path, with `touched_by`."""
        return {**self.status.to_dict(), "touched_by": [each.to_dict() for each in self.others]}


def by_others(hive: Services, paths: Iterable[str], *, budget_s: float = BUDGET_S) -> Seen:
    """Returns the unmerged work of other worktrees in files, named from the root.

    It is exact for the moment, except for the worktrees in `unlooked`. Never fails: where git
    does not answer, nothing is known.
    """
    wanted = [path for path in dict.fromkeys(paths) if _can_conflict(hive, path)]
    if not wanted or not are_several(hive.layout):
        return Seen()
    found = Neighbours(hive.layout, budget_s=budget_s)
    alone = len(wanted) == 1
    met = [(o, path) for o in found.others for path in wanted if found.has(o, path, alone=alone)]
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
    """Returns leases, each with `touched_by`: the unmerged work of others in what it covers.

    What is not committed is as of at most half a minute ago.
    """
    if not are_several(hive.layout):
        return [_with(lease, []) for lease in granted]

    def covers(lease: Reservation, path: str) -> bool:
        return matches(lease.pattern, path, fold_case=hive.reservations.fold_case)

    found = Neighbours(hive.layout, budget_s=BUDGET_S)
    met = []
    for other in found.others:
        files = sorted(found.files(other, most_age_s=_MOST_AGE_S))
        inside = [
            each
            for each in files
            if _can_conflict(hive, each) and any(covers(lease, each) for lease in granted)
        ]
        met += [(other, path) for path in inside[:_MOST_FILES]]
    seen = _seen(hive, found, met)
    seen.report(tell)
    firm = [lease for lease in granted if lease.exclusive]
    old = [each for each in found.outdated() if any(covers(lease, each) for lease in firm)]
    if old := sorted(each for each in old if _can_conflict(hive, each)):
        what = named(old, _SHOWN)
        target = target_ref(hive.layout) or ""
        merge = suggested("git merge", target.removeprefix("refs/heads/") or "BRANCH")
        tell(f"the main branch has changed {what} since your branch left it: {merge} first")
    return [
        _with(lease, [each for each in seen.touches if covers(lease, each.path)])
        for lease in granted
    ]


def _with(lease: Reservation, touches: list[Touch]) -> Reservation:
    return Reservation({**lease.fields, "touched_by": touches})


def of_lease(lease: Reservation) -> list[Touch]:
    """Returns what `leases` added to a lease."""
    added = lease.get("touched_by")
    return added if isinstance(added, list) else []


def _can_conflict(hive: Services, path: str) -> bool:
    """Returns whether unmerged work in a file may concern others: not where landing keeps both."""
    said = hive.layout.settings
    appended = everybody_appends_to(path, said.land_join, said.land_union)
    return not appended and not is_exempt(hive.layout, path)


def take_next(
    hive: Services,
    *,
    patterns: Sequence[str] = (),
    wait_s: float = 0,
    on_progress: OnProgress | None = None,
) -> Steps[Begin | Nothing]:
    """Takes the next issue as `services.work.take_next` does, and adds the unmerged work of others;
    or, if everything is done, the records that are not committed.
    """
    _note_empty(hive)
    taken = yield from loop.take_next(
        hive,
        patterns=patterns,
        wait_s=wait_s,
        on_progress=on_progress,
        keeper=_keeper,
    )
    if isinstance(taken, loop.Begin):
        hive.assignments.begun_here(taken.assignment)
        _go_to(hive, taken)
        _add_work(hive, taken)
        if taken.given_back is not None:
            from queenbee.git.unfinished import as_read_here  # noqa: PLC0415 - start-up

            taken.given_back = as_read_here(hive.layout, taken.given_back)
    elif taken.is_end or taken.state == "done":
        from queenbee.git.landed import say_what_is_left  # noqa: PLC0415 - start-up

        if taken.state == "done":
            _stand_on_target(hive)
        say_what_is_left(hive, taken)
    return taken


def following(
    hive: Services, on_progress: OnProgress | None, tell: Callable[[str], None]
) -> OnProgress | None:
    """Asks the host what became of pull requests, where work is proposed; returns what does so
    again while somebody waits.
    """
    if hive.layout.settings.land_by != "pr":
        return on_progress
    from queenbee.git.proposing.following import follow  # noqa: PLC0415 - start-up

    follow(hive, tell=tell)

    def look(seconds: float) -> None:
        follow(hive, tell=tell)
        if on_progress is not None:
            on_progress(seconds)

    return look


def _go_to(hive: Services, begin: Begin) -> None:
    """Brings this worktree to where the issue begins or goes on, where work is proposed."""
    if hive.layout.settings.land_by == "pr":
        from queenbee.git.proposing.standing import bring  # noqa: PLC0415 - start-up

        begin.elsewhere = bring(hive, begin.assignment.issue_id)


def _note_empty(hive: Services) -> None:
    """Notes of the worktree of an agent of a team that nothing is left there of its last issue."""
    if roster.of_tree(hive.layout) is None or hive.assignments.find(droid=hive.own_actor):
        return
    from queenbee.git.ownership import note_emptied  # noqa: PLC0415 - start-up

    commits = no_dash(f"{target_ref(hive.layout)}..HEAD")
    ahead = ("rev-list", "--max-count=1", commits, "--")
    dirty = ("status", "--porcelain", "--untracked-files=normal", "--", ":(exclude).beads")
    with suppress(ExternalFailure):  # A FIFO that is called `.gitattributes`, too.
        left = any(git(*asked, cwd=hive.layout.tree) for asked in (ahead, dirty))
        if not left and hive.layout.git_dir is not None:
            note_emptied(hive.layout.git_dir, hive.now_ms())


def _add_work(hive: Services, begin: Begin) -> None:
    """Adds the unmerged work of others: all in the files that the issue names, and the first files
    of each other worktree.
    """
    if not are_several(hive.layout):
        return
    if lands_on_remote(hive.layout):
        from queenbee.git.upstream import look_for_news  # noqa: PLC0415 - start-up

        look_for_news(hive.layout)
    found = Neighbours(hive.layout, budget_s=BUDGET_S)
    met = []
    for other in found.others:
        files = sorted(found.files(other, most_age_s=_MOST_AGE_S))
        open_ = [each for each in files if _can_conflict(hive, each)]
        met += [(other, each) for each in open_ if each in begin.files]
        met += [(other, each) for each in open_ if each not in begin.files][:_SHOWN]
    seen = _seen(hive, found, met)
    # What is on its way to the main branch brings it along, when it has landed.
    begin.in_conflict = _in_conflict(hive.layout)
    waits = begin.in_conflict is not None or lands_meanwhile(hive.layout)
    begin.behind = 0 if waits else found.behind()
    if begin.behind and not begin.again and _catch_up(hive, begin):
        begin.caught_up, begin.behind = begin.behind, 0
    begin.touched_by = [each for each in seen.touches if each.path in begin.own_files]
    begin.changing = seen.touches
    begin.unlooked = seen.unlooked


def _in_conflict(layout: Layout) -> list[str] | None:
    """Returns the files in which a merge or a rebase of this worktree waits for its droid; None if
    none is under way.
    """
    marks = (os.path.join(str(layout.git_dir), each) for each in ("MERGE_HEAD", "rebase-merge"))
    if not any(map(os.path.lexists, marks)):
        return None
    asked = ("diff", "--name-only", "--diff-filter=U", "-z")
    return names_in(user_git(*asked, cwd=layout.tree)[1])


def _stand_on_target(hive: Services) -> None:
    """Brings the worktree of whoever has no more to do to the main branch, where it can."""
    if are_several(hive.layout) and Neighbours(hive.layout, budget_s=BUDGET_S).behind():
        _catch_up(hive)


def _catch_up(hive: Services, begin: Begin | None = None) -> bool:
    """Moves the branch of this worktree to the main branch, by fast-forward: what the issue builds
    on is there. Returns whether it did: git refuses where it has commits of its own, changes in the
    same files, or files without git, ignored or not, in their place; and we where it would not.
    """
    from queenbee.git.ownership import may_move  # noqa: PLC0415 - start-up
    from queenbee.git.trees.elsewhere import refuse_elsewhere  # noqa: PLC0415 - start-up
    from queenbee.git.trees.own_branch import is_own  # noqa: PLC0415 - start-up
    from queenbee.git.trees.silent_losses import loss_by  # noqa: PLC0415 - start-up

    if not may_move(hive.layout):
        return False
    refuse_elsewhere(hive.layout.tree)
    if not is_own(hive.layout, hive.layout.tree):
        return False
    target = str(target_ref(hive.layout))
    if loss := loss_by(hive.layout.tree, "HEAD", target):
        if begin is not None:
            begin.elsewhere = f"a git merge would harm what is here: {loss.what}"
        return False
    merge = ("merge", "--ff-only", "--quiet", "--no-autostash", "--no-overwrite-ignore")
    return user_git(*merge, no_dash(target), cwd=hive.layout.tree, config=UPKEEP_LATER)[0] == 0


def changed_by(layout: Layout, droids: Collection[str], *, own: bool = False) -> set[str]:
    """Returns the files in which some droids have unmerged work in worktrees of their own, as of
    half a minute ago; with `own`, also those of the present worktree.
    """
    if not (droids or own) or not are_several(layout):
        return set()
    found = Neighbours(layout, budget_s=BUDGET_S, own=own)
    theirs = [
        each
        for each in found.others
        if each is found.here or (each.linked and each.droid in droids)
    ]
    changed = {path for each in theirs for path in found.files(each, most_age_s=_MOST_AGE_S)}
    found.keep()
    return changed


def _keeper(hive: Services) -> Keeper:
    from queenbee.git.unfinished import WorktreeKeeper  # noqa: PLC0415 - start-up

    return WorktreeKeeper(hive)


def _seen(hive: Services, found: Neighbours, met: Sequence[tuple[Worktree, str]]) -> Seen:
    touches = sorted(
        _touches(hive, found, met), key=lambda each: (each.path, each.branch_or_folder)
    )
    found.keep()
    return Seen(found, touches)


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
        if touch.how != CHANGED or _add_lines(touch, found, work, sure=count < _SURE):
            yield touch


def _add_lines(touch: Touch, found: Neighbours, work: Snapshot, *, sure: bool) -> bool:
    """Adds to a touch which lines it changes; returns whether it changes anything at all."""
    place, path = touch.owner.place, touch.path
    stamp = _stamp(os.path.join(place.path, path))
    kept: Any = work.lines.get(path)
    if not isinstance(kept, list) or kept[0] != stamp:
        if not found.may_ask(place, sure=sure):
            return True
        try:
            how, changes = _changes(found.diff(place, work.target or "HEAD", path, *CHANGES))
        except (OSError, QueenError):
            return True
        shown = changes[:_MOST_RANGES]
        sections = list(dict.fromkeys(each.section for each in shown if each.section))
        kept = [stamp, how, [list(each.range) for each in shown] or None, sections]
        found.note_lines(place, path, kept)
    if kept[1] is None:
        return False
    touch.how, touch.lines, touch.sections = kept[1:]
    return True


def _changes(diff: bytes) -> tuple[str | None, list[Hunk]]:
    """Returns how a file is changed, None if it is not; and the changes of its text."""
    head = diff.partition(b"\n@@ ")[0]
    if b"\nnew file mode " in head:
        return ADDED, []
    if b"\ndeleted file mode " in head:
        return DELETED, []
    return (CHANGED, hunks(diff.split(b"\n"))) if diff.strip() else (None, [])


def _content(place: Worktree, path: str) -> bytes | None:
    try:
        data = safe_open.read(os.path.join(place.path, path), MOST_BYTES + 1)
    except (OSError, Unreadable, ValueError):
        return None
    return data if len(data) <= MOST_BYTES else None


def _stamp(file: str) -> list[int] | None:
    try:
        status = os.lstat(file)
    except OSError:
        return None
    return [status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino]


def _last_droid(hive: Services, tree_id: str | None, branch: str | None) -> str | None:
    """Returns the droid that last took something in a working tree, or edits on its branch; None if
    no record says.
    """
    leases = hive.reservations.find()
    every: list[Assignment | Reservation] = [*leases, *hive.assignments.find(status="all")]
    theirs: list[Assignment | Reservation]
    theirs = [each for each in leases if branch is not None and each.branch == branch]
    theirs += [each for each in every if is_of_tree(each, tree_id)]
    return max(theirs, key=lambda each: each.age).droid if theirs else None


def _ranges(lines: Sequence[Sequence[int]]) -> str:
    shown = [f"{a}" if a == b else f"{a}-{b}" for a, b in lines[:_SHOWN]]
    more = ", …" if len(lines) > _SHOWN else ""
    word = "line" if len(lines) == 1 and lines[0][0] == lines[0][1] else "lines"
    return f"{word} {', '.join(shown)}{more}"


def _safe(text: str) -> str:
    return mentioned(one_line(text, _MOST_CHARS))
