"""Which other worktrees have files that a landing changed, in a form of their own.

Two gits read the commits of all worktrees at once, and files are compared by what is in them. Git
looks only into a worktree that has one as no commit has it, and at these files alone; where it
cannot, they count as changed. So nobody is left out for want of time, and nothing is kept.
"""

from __future__ import annotations

import os
import stat
from functools import partial
from typing import TYPE_CHECKING

from queenbee._hashing import sha1, sha256
from queenbee.core.command_lines import no_dash
from queenbee.errors import ExternalFailure, QueenError
from queenbee.git.run import git
from queenbee.git.unmerged import Programs, uncommitted
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import worktrees

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout

_MANY = 100
"""Of more files, git says which are changed in a worktree: that is quicker than to read all."""
_MOST_BYTES = 1024 * 1024
"""The same for a larger file."""
_LIMIT_S = 10.0
_UNKNOWN = ""


def concerned(
    layout: Layout, commit: str, paths: Collection[str]
) -> Iterator[tuple[Worktree, list[str]]]:
    """Yields the other linked worktrees that concerns what a landing of this commit did to these
    files, each with those that are there neither as where its branch began nor as they landed.
    Raises `ExternalFailure`.
    """
    others = [each for each in worktrees(layout) if each.linked and each.path != layout.tree]
    if not (others and paths):
        return
    names = [*dict.fromkeys(map(_head, others))]
    parted: dict[str, tuple[str, str]] = _said(partial(_parted, layout.tree, commit), names)
    pairs = {pair for head, base in parted.values() for pair in ((head, base), (base, commit))}
    moved = sorted((a, b) for a, b in pairs if a != b)
    differing = _said(partial(_differing, layout.tree, paths), moved)
    programs = Programs()
    for each in others:
        head, base = parted.get(_head(each), (commit, commit))
        landed = differing.get(base, {})
        own = differing.get(head, {}) if head != base else {}
        known = {
            path: (*landed[path], own.get(path, landed[path])[1])
            for path in paths
            if path in landed
        }
        if known and (found := _own(each, commit, known, programs)):
            yield each, found


def _own(
    place: Worktree, commit: str, known: Mapping[str, tuple[str, str, str]], programs: Programs
) -> list[str]:
    """Returns the files that a worktree has in a form of its own, of those whose form is known as
    it landed, where the branch began, and in the branch's last commit.
    """
    is_many, length = len(known) > _MANY, len(commit)
    here = {} if is_many else {path: _form(place.path, path, length) for path in known}
    left = [path for path in known if here.get(path) not in known[path][:2]]
    unsure = [path for path in left if here.get(path) != known[path][2]]
    changed: Collection[str] = ()
    if unsure:
        try:
            config = programs.none_in(place, {}, _LIMIT_S)
            asked = () if is_many else unsure
            changed = uncommitted(place, commit, config, asked, limit_s=_LIMIT_S).changed
        except (OSError, QueenError):  # Another user's, or git would wait there for ever.
            changed = unsure
    if is_many:
        here = {path: _form(place.path, path, length) for path in left if path in changed}
    return [
        path
        for path in left
        if (here[path] if path in changed else known[path][2]) not in known[path][:2]
    ]


def _head(place: Worktree) -> str:
    return place.head or f"worktrees/{os.path.basename(place.git_dir)}/HEAD"


def _said(ask: Callable[[Sequence[Any]], dict[str, Any]], of: Sequence[Any]) -> dict[str, Any]:
    """Returns what git says of several; without those of which it lacks something, and would say
    nothing at all.
    """
    try:
        return ask(of)
    except ExternalFailure:
        half = len(of) // 2
        parts = (of[:half], of[half:]) if half else ()
        return {name: each for part in parts for name, each in _said(ask, part).items()}


def _parted(tree: str, commit: str, names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Returns the head of each name, and where that parted from a commit; without those that have
    none in common with it. Raises `ExternalFailure`.
    """
    asked = [no_dash(f"{commit}...{name}") for name in names]
    said = git("rev-parse", *asked, "--", cwd=tree, repository={}).decode().split()
    # Of each: the head, the commit, and "^" with where they parted.
    begun = [at for at, each in enumerate(said[:-1]) if not each.startswith("^")][::2]
    return {
        name: (said[at], said[at + 2][1:])
        for name, at in zip(names, begun, strict=True)
        if said[at + 2].startswith("^")
    }


def _differing(
    tree: str, paths: Collection[str], pairs: Sequence[tuple[str, str]]
) -> dict[str, dict[str, tuple[str, str]]]:
    """Returns how files differ in pairs of commits, by the first of each: their blobs in the second
    and in the first. Raises `ExternalFailure`.
    """
    asked = "".join(f"{' '.join(pair)}\n" for pair in pairs).encode()
    if not asked:
        return {}
    how = ("diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--")
    few = paths if len(paths) <= _MANY else ()
    fields = iter(git("--literal-pathspecs", *how, *few, cwd=tree, repository={}, stdin=asked)
                  .split(b"\0"))  # fmt: skip
    found: dict[str, dict[str, tuple[str, str]]] = {}
    of: dict[str, tuple[str, str]] = {}
    for field in fields:
        if field.startswith(b":"):
            _, _, before, after, _ = field.decode().split()
            of[os.fsdecode(next(fields))] = (before, after)
        else:
            of = found.setdefault(field.decode(), {})
    return found


def _form(tree: str, path: str, length: int) -> str:
    """Returns the blob of what is in a file now, without what git does to line ends; zeros if there
    is none, and nothing if only git can tell.
    """
    where = os.path.join(tree, path)
    try:
        if stat.S_ISLNK(os.lstat(where).st_mode):
            data = os.fsencode(os.readlink(where))
        else:
            data = safe_open.read(where, _MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return "0" * length
    except (OSError, QueenError, ValueError):
        return _UNKNOWN
    if len(data) > _MOST_BYTES:
        return _UNKNOWN
    hashed = sha1 if length == 40 else sha256
    return hashed(b"blob %d\0" % len(data) + data).hexdigest()
