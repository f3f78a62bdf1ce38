"""What there is of the work on issues whose verdict is open, by content: the files that their
branches, the worktrees of those who have them, what was kept of them, and those who released them
had, and that the main branch lacks.

A name or a commit says little: a copy has other ones. The same bytes are the same work, whoever
brings it, under which path, in whatever commit.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.timestamps import instant_ms
from queenbee.errors import QueenError
from queenbee.git.landing.commands import RAW, git, is_commit
from queenbee.git.landing.judged.reflogs import Reflog
from queenbee.git.landing.judged.stashes import stashes_since
from queenbee.git.ownership import bead_branches
from queenbee.git.run import names_in
from queenbee.git.trees.hidden import changed_of, hidden_files
from queenbee.git.unfinished import FOLDER, branch_part, commit_of_all, name_of, status_of
from queenbee.git.unmerged import DELETED, Status
from queenbee.store.droids import roster
from queenbee.store.git_files.worktrees import branch_head, target_ref, worktrees
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from queenbee.core.records import Assignment
    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout
    from queenbee.workflows.complete_hive import Hive

_RELEASED = "queenbee-released"
_CHUNK_BYTES = 2**20
_MOST_BYTES = 2**22
_MOST_FILES = 10_000
_MOST_IGNORED, _MOST_IGNORED_BYTES = 2_000, 2**24
"""So many of the files that git ignores are looked at, and so much of them is read."""
_SHORT_BYTES = 32
_EMPTY = [each(b"blob 0\0").hexdigest() for each in (hashlib.sha1, hashlib.sha256)]
_AGAIN = re.compile(r"-\d+$")
"""How the names of branches end that keep work on an issue for another time."""


Blobs = dict[str, set[str]]
"""The names of blobs, each with the paths that have it."""


@dataclass(frozen=True, slots=True)
class Commits:
    """Refs and commits with work on an issue, those that were there before it began, and the path
    of the worktree that had them, if one is known.
    """

    tips: Sequence[str]
    before: Sequence[str] = ()
    worktree: str | None = None


@dataclass
class OpenWork:
    """The work on one issue: where git has it, and the blobs of what is not committed."""

    commits: list[Commits] = field(default_factory=list)
    files: Blobs = field(default_factory=dict)


def open_work(hive: Hive, is_open: Callable[[str], bool]) -> dict[str, OpenWork]:
    """Returns the work on issues that are `is_open`, by issue."""
    found = defaultdict[str, OpenWork](OpenWork)
    for issue_id, commits in _in_git(hive):
        if commits.tips:
            found[issue_id].commits.append(commits)
    places = worktrees(hive.layout)
    for place in places:
        for issue_id, blobs in _notes(place.git_dir).items():
            _add(found[issue_id].files, ((str(each), paths) for each, paths in blobs.items()))
    works = {each: work for each, work in found.items() if is_open(each)}
    linked = {os.path.basename(each.path): each for each in places if each.linked}
    for held in hive.assignments.find(status="active"):
        if held.worktree in linked and (held.issue_id in works or is_open(held.issue_id)):
            work = works.setdefault(held.issue_id, OpenWork())
            _add(work.files, _not_committed(linked[held.worktree], held))
    return works


def any_blobs(layout: Layout, works: Iterable[OpenWork]) -> set[str]:
    """Returns the blobs of all that works may have and the main branch lacks."""
    found, tips = set[str](), set[str]()
    for each in works:
        found.update(each.files)
        tips.update(tip for commits in each.commits for tip in commits.tips)
    return found.union(_blobs(layout, layout.tree, sorted(tips))) if tips else found


def blobs_of(layout: Layout, work: OpenWork, tree: str) -> Blobs:
    """Returns the blobs of one work, as far as it was not there before, the main branch neither
    has them nor had them where the work began, and others do not have them from a worktree.
    """
    found, tips = dict[str, set[str]](), sorted({tip for each in work.commits for tip in each.tips})
    _add(found, work.files.items())
    elsewhere = [each for each in work.commits if each.worktree not in (None, tree)]
    not_its = Reflog.first_in(layout, tree) if elsewhere else ()
    for each in work.commits:
        but = not_its if each in elsewhere else ()
        _add(found, _blobs(layout, layout.tree, each.tips, each.before, but).items())
    of_main = _of_main(layout, tips) if found else ()
    return {blob: paths for blob, paths in found.items() if blob not in of_main}


def by_chance(layout: Layout, files: Mapping[str, str], work: Blobs) -> set[str]:
    """Returns those of the files, each with its blob, that are as short as two files can be by
    chance, and of which the work has none of the same name.
    """
    other = {path: blob for path, blob in files.items() if work[blob] and path not in work[blob]}
    asked = "".join(f"{blob}\n" for blob in other.values()).encode()
    said = git("cat-file", "--batch-check=%(objectsize)", cwd=layout.tree, stdin=asked)
    sizes = said.decode().split("\n")
    return {path for path, size in zip(other, sizes, strict=False) if int(size) < _SHORT_BYTES}


def _add(to: Blobs, more: Iterable[tuple[str, Iterable[str]]]) -> None:
    for blob, paths in more:
        to.setdefault(blob, set()).update(paths)


def note_released(hive: Hive, held: Assignment) -> None:
    """Notes what the worktree of an agent of a team has of an issue that it is about to release.

    Raises `ExternalFailure` and `OSError`.
    """
    layout, agent = hive.layout, roster.looked_after(hive.layout, held.droid)
    place = next((each for each in worktrees(layout) if agent and agent.is_at(each.path)), None)
    if place is None or not place.linked:
        return
    commit = commit_of_all(place, place.droid or "queen", "released")
    made, before = Reflog.of(place).between(instant_ms(held.created_at) or 0, None)
    blobs = _blobs(layout, place.path, [commit, *made], before)
    _add(blobs, _ignored(place, instant_ms(held.created_at) or 0, len(commit)))
    of_main = _of_main(layout, [commit])
    own = [(blob, sorted(paths)) for blob, paths in blobs.items() if blob not in of_main]
    note = {**_notes(place.git_dir), held.issue_id: dict(sorted(own)[:_MOST_FILES])}
    open_ = {each: said for each, said in note.items() if hive.issues.completion(each) is None}
    keep(os.path.join(place.git_dir, _RELEASED), open_)


def _not_committed(place: Worktree, held: Assignment) -> Iterator[tuple[str, list[str]]]:
    """Yields the blobs of what a worktree has not committed, as its files are, each with its path:
    also what git ignores, or was told not to look at.
    """
    with suppress(OSError, QueenError):  # Whoever works there may do anything meanwhile.
        status = Status(status_of(place))
        length = len(status.head or "")
        changed = [path for path, how in status.changed.items() if how != DELETED]
        paths = [*changed, *changed_of(place.path, hidden_files(place.path))]
        yield from _as_they_are(place.path, filter(_counts, paths[:_MOST_FILES]), length)
        yield from _ignored(place, instant_ms(held.created_at) or 0, length)


def _as_they_are(tree: str, paths: Iterable[str], length: int) -> Iterator[tuple[str, list[str]]]:
    for path in paths:
        blob = _blob_of(os.path.join(tree, path), length)
        if blob is not None and blob not in _EMPTY:
            yield blob, [path]


def _ignored(place: Worktree, since_ms: int, length: int) -> Iterator[tuple[str, list[str]]]:
    """Yields the same of what git ignores there, and that changed since then: of folders, such as
    `node_modules`, no more than so many files are looked at.
    """
    how = ("--others", "--ignored", "--exclude-standard", "--directory", "-z")
    listed = names_in(git("ls-files", *how, cwd=place.path, repository={}))
    files = [each for each in listed if not each.endswith("/")]
    inside = (path for each in listed if each.endswith("/") for path in _below(place.path, each))
    young, left_bytes = [], _MOST_IGNORED_BYTES
    for path in islice(chain(files, inside), _MOST_IGNORED):
        with suppress(OSError):
            found = os.lstat(os.path.join(place.path, path))
            if found.st_ctime_ns // 1_000_000 >= since_ms and found.st_size <= left_bytes:
                left_bytes -= found.st_size
                young.append(path)
    yield from _as_they_are(place.path, filter(_counts, young), length)


def _below(tree: str, folder: str) -> Iterator[str]:
    """Yields the files below a folder, but for those of repositories."""
    for where, folders, files in os.walk(os.path.join(tree, folder)):
        if ".git" in (*folders, *files):
            folders.clear()
            continue
        yield from (os.path.relpath(os.path.join(where, each), tree) for each in files)


def _blobs(
    layout: Layout,
    tree: str,
    tips: Sequence[str],
    before: Sequence[str] = (),
    but: Collection[str] = (),
) -> Blobs:
    """Returns the blobs that commits brought which the main branch lacks, but for some commits.
    Empty files are none of it.
    """
    how = ("--no-show-signature", "--format=%H", *RAW, "-c")
    more = ("--diff-filter=d", "--ignore-missing", *map(no_dash, tips))
    without = map(no_dash, (str(target_ref(layout)), *before))
    listed = git("log", *how, *more, "--not", *without, "--", cwd=tree)
    fields = iter(os.fsdecode(each).lstrip("\n") for each in listed.split(b"\0"))
    found, commit = dict[str, set[str]](), ""
    for said in fields:
        if said.startswith(":"):
            parents, path = len(said) - len(said.lstrip(":")), next(fields)
            blob = said.split()[2 * parents + 1]
            if commit not in but and _counts(path) and blob not in _EMPTY:
                _add(found, [(blob, [path])])
        elif is_commit(said):
            commit = said
    return found


def _counts(path: str) -> bool:
    return not path.startswith(".beads/")


def _of_main(layout: Layout, tips: Sequence[str]) -> set[str]:
    """Returns what the main branch has, and had where these commits left it."""
    target, bounds = str(target_ref(layout)), []
    if tips:
        left = ("--boundary", "--ignore-missing", *map(no_dash, tips), "--not", no_dash(target))
        listed = git("rev-list", *left, "--", cwd=layout.tree).decode().split()
        bounds = [each[1:] for each in listed if each.startswith("-")]
    of = ("--objects", "--no-object-names", "--no-walk", *map(no_dash, (target, *bounds)))
    return {*git("rev-list", *of, "--", cwd=layout.tree).decode().split()}


def _in_git(hive: Hive) -> Iterator[tuple[str, Commits]]:
    """Yields issues with refs and commits that have work on them."""
    layout = hive.layout
    for branch, issue_id in bead_branches(layout).items():
        if branch_head(str(layout.common_dir), branch) is not None:
            yield issue_id, Commits([f"refs/heads/{branch}"])
    every = hive.assignments.find(status="all")
    yield from _kept(layout, every)
    logs = {os.path.basename(each.path): (each.path, Reflog.of(each)) for each in worktrees(layout)}
    branches = {each.path: each.branch for each in worktrees(layout)}
    open_ = [each for each in every if each.status != "completed" and each.worktree in logs]
    first_ms = min((instant_ms(each.created_at) or 0 for each in open_), default=None)
    stashes = [] if first_ms is None else list(stashes_since(layout, first_ms // 1000))
    for each in open_:
        path, log = logs[str(each.worktree)]
        is_active, ended_ms = each.status == "active", instant_ms(each.updated_at) or 0
        began_ms = instant_ms(each.created_at) or 0
        made, before = log.between(began_ms, None if is_active else ended_ms)
        yield each.issue_id, Commits(made, before, path)
        times_s = (began_ms // 1000, None if is_active else ended_ms // 1000)
        stashed = [it.commit for it in stashes if it.is_of(branches[path], log, *times_s)]
        yield each.issue_id, Commits(stashed)


def _kept(layout: Layout, every: Sequence[Assignment]) -> Iterator[tuple[str, Commits]]:
    """Yields the branches that keep unfinished work, each with its issue."""
    names = {name_of(each): each.issue_id for each in every}
    names |= {branch_part(f"{each.issue_id}-while-judged"): each.issue_id for each in every}
    how = ("for-each-ref", "--format=%(refname)", f"refs/heads/{FOLDER}", f"refs/heads/{FOLDER}-*")
    for ref in os.fsdecode(git(*how, cwd=layout.tree)).split():
        name = ref.removeprefix(f"refs/heads/{FOLDER}")[1:]
        issue_id = names.get(name) or names.get(_AGAIN.sub("", name))
        if issue_id is not None:
            yield issue_id, Commits([ref])


def _notes(git_dir: str) -> dict[str, dict[str, list[str]]]:
    """Returns what was noted at releases: of each issue the blobs, each with its paths."""
    said = recall(os.path.join(git_dir, _RELEASED), _MOST_BYTES)
    every = said if isinstance(said, dict) else {}
    # Notes of before have no paths.
    return {
        issue: blobs if isinstance(blobs, dict) else {each: [] for each in blobs}
        for issue, blobs in every.items()
    }


def _blob_of(path: str, length: int) -> str | None:
    """Returns the name of a blob with what is in a file; None if it is no regular one."""
    made = hashlib.new("sha1" if length == 40 else "sha256", usedforsecurity=False)
    try:
        # Nobody waits for a FIFO, and no link is followed.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                return None
            made.update(b"blob %d\0" % found.st_size)
            while data := file.read(_CHUNK_BYTES):
                made.update(data)
    except OSError:
        return None
    return made.hexdigest()
