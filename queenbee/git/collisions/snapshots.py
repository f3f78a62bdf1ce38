"""A commit of what a worktree has now: its last commit, with the changed files as they are.

`git stash create` will not do: it writes to the index, adds objects to the repository, leaves
untracked files out, and fails while another git holds the lock. Here `git status` says what
differs, an index of our own gets these files, and all objects go into the cache. No filter is run
(`git.run.without_programs`).
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.errors import ExternalFailure, Unreadable
from queenbee.git.collisions.cache import repository_of
from queenbee.git.run import TooSlow, without_programs
from queenbee.store import safe_open

if TYPE_CHECKING:
    from queenbee.git.collisions.cache import Cache
    from queenbee.git.collisions.values import Side
    from queenbee.store.git_files.worktrees import Worktree

MOST_FILES = 5_000
MOST_BYTES = 32 * 1024 * 1024
"""Of one file that is not committed. A merge of larger ones is no merge of text."""
_UNSETTLED_NS = 100_000_000
"""A file that changed so recently can change again with the same size and time."""
_COARSE_NS = 2_000_000_000
"""The same where the file system counts in seconds."""
_STATUS = (
    *("status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind"),
    *("--untracked-files=all", "--no-renames", "--ignore-submodules=dirty"),
)
_TIMES = 3
_LIMIT_S = 30.0
"""A git that takes longer waits for a file that will never be read, such as a FIFO."""


class _Found:
    """What `git status` says of a worktree."""

    __slots__ = ("changed", "head", "unmerged")

    def __init__(self, said: bytes) -> None:
        self.head: str | None = None
        self.unmerged = False
        self.changed: dict[str, bool] = {}
        """The files that differ from the last commit, each with whether that commit has it."""
        for record in said.split(b"\0"):
            kind, _, rest = record.partition(b" ")
            if kind == b"#" and rest.startswith(b"branch.oid "):
                oid = rest.split(b" ")[1].decode()
                self.head = oid if oid.isalnum() else None
            elif kind == b"1":
                fields = rest.split(b" ", 7)
                self._add(fields[7], committed=fields[2] != b"000000")
            elif kind == b"?":
                self._add(rest, committed=False)
            elif kind == b"u":
                self.unmerged = True

    def _add(self, name: bytes, *, committed: bool) -> None:
        path = os.fsdecode(name)
        # A repository in the tree is not part of it, and the hive's records merge by themselves.
        if not path.endswith("/") and ".beads" not in path.split("/"):
            self.changed[path] = committed


class _File:
    """A changed file as it is now."""

    __slots__ = ("kind", "mark", "path", "settled", "size")

    def __init__(self, top: str, path: str, now_ns: int) -> None:
        self.path = path
        try:
            status = os.lstat(os.path.join(top, path))
        except (OSError, ValueError):
            self.kind, self.mark, self.settled, self.size = "missing", "-", True, 0
            return
        self.size = status.st_size
        if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            self.kind = "file"
        else:
            # A submodule that has moved, or a FIFO, which git does not track.
            self.kind = "folder" if stat.S_ISDIR(status.st_mode) else "missing"
        times = (status.st_mtime_ns, status.st_ctime_ns)
        self.mark = f"{status.st_mode} {status.st_ino} {self.size} {times[0]} {times[1]}"
        coarse = all(each % 1_000_000_000 == 0 for each in times)
        # Of a submodule, the commit is what counts.
        self.settled = self.kind == "file" and now_ns - max(times) > (
            _COARSE_NS if coarse else _UNSETTLED_NS
        )


def take(side: Side, place: Worktree, cache: Cache) -> None:
    """Sets what of a worktree is to be compared: its commit, how much is not committed, notes."""
    for turn in range(_TIMES):
        try:
            _take(side, place, cache)
        except TooSlow as error:
            side.commit = side.head = side.head or place.head
            side.notes.append(f"uncommitted changes are left out: {error.message}")
            return
        except (ExternalFailure, OSError) as error:
            # A file changed, shrank or vanished while git read it, which may even kill git.
            reason = error.message if isinstance(error, ExternalFailure) else str(error)
            if turn == _TIMES - 1:
                side.commit = side.head
                side.notes.append(f"uncommitted changes are left out: {reason}")
        else:
            return


def _take(side: Side, place: Worktree, cache: Cache) -> None:
    side.notes.clear()
    config, digest = without_programs(place.path, repository_of(place), limit_s=_LIMIT_S)
    now_ns = time.time_ns()
    said = cache.git(*_STATUS, place=place, config=config, limit_s=_LIMIT_S)
    found = _Found(said)
    side.head = found.head
    if found.head is None:
        side.notes.append("it has no commit")
        return
    side.commit = found.head
    if found.unmerged:
        side.notes.append("a merge is under way: its uncommitted changes are left out")
        return
    merged = _merge_heads(place.git_dir)
    files = [_File(place.path, path, now_ns) for path in found.changed]
    files = _within_bounds(side, files)
    side.uncommitted = len(files)
    if not files and not merged:
        return
    marks = "\0".join(f"{each.path}\0{each.mark}" for each in files)
    key = _key(found.head, *merged, digest, said.hex(), marks, _attributes(place, cache))
    known = cache.results.get(f"snapshot {key}")
    if isinstance(known, str) and all(each.settled for each in files):
        side.commit = known
        return
    side.commit = _commit(place, cache, config, found, files, merged)
    cache.results[f"snapshot {key}"] = side.commit
    cache.changed = True


def _within_bounds(side: Side, files: list[_File]) -> list[_File]:
    large = [each.path for each in files if each.size > MOST_BYTES]
    kept = [each for each in files if each.size <= MOST_BYTES]
    if large:
        side.notes.append(f"left out, because it is large: {', '.join(large[:3])}")
    if len(kept) > MOST_FILES:
        side.notes.append(
            f"uncommitted changes are left out: {len(kept):,} files, more than {MOST_FILES:,}"
        )
        return []
    return kept


def _commit(
    place: Worktree,
    cache: Cache,
    config: dict[str, str],
    found: _Found,
    files: list[_File],
    merged: list[str],
) -> str:
    """Returns the commit of a worktree as it is now."""
    assert found.head is not None
    index = os.path.join(cache.run, f"index-{os.urandom(6).hex()}")

    def run(*arguments: str, stdin: bytes = b"") -> bytes:
        return cache.git(
            *arguments, place=place, config=config, index=index, stdin=stdin, limit_s=_LIMIT_S
        )

    try:
        run("read-tree", found.head)
        # First what is gone: a folder may have taken the name of a file, or a link of a folder.
        gone = [each.path for each in files if each.kind == "missing" and found.changed[each.path]]
        gone += [e.path for e in files if e.kind == "folder" and found.changed[e.path]]
        there = [each.path for each in files if each.kind == "file"]
        there += [
            each.path
            for each in files
            if each.kind == "folder"
            and os.path.lexists(os.path.join(place.path, each.path, ".git"))
        ]
        if gone:
            run("update-index", "--force-remove", "-z", "--stdin", stdin=_listed(gone))
        if there:
            run(
                *("update-index", "--add", "--replace", "--remove", "-z", "--stdin"),
                stdin=_listed(there),
            )
        tree = run("write-tree").decode().strip()
        parents = [word for each in (found.head, *merged) for word in ("-p", each)]
        return run("commit-tree", *parents, tree).decode().strip()
    finally:
        for path in (index, f"{index}.lock"):
            with suppress(OSError):
                os.unlink(path)


def _attributes(place: Worktree, cache: Cache) -> str:
    """Returns what says whether the attributes of this repository alone have changed."""
    with suppress(OSError):
        status = os.stat(os.path.join(cache.common_dir, "info", "attributes"))
        return f"{status.st_size} {status.st_mtime_ns}"
    return ""


def _merge_heads(git_dir: str) -> list[str]:
    """Returns what is being merged and waits only to be committed."""
    try:
        return safe_open.read(os.path.join(git_dir, "MERGE_HEAD"), 64 * 1024).decode().split()
    except (OSError, Unreadable, UnicodeDecodeError):
        return []


def _listed(paths: list[str]) -> bytes:
    return b"".join(os.fsencode(each) + b"\0" for each in paths)


def _key(*parts: str) -> str:
    text = "\n".join(parts).encode(errors="surrogateescape")
    return hashlib.sha256(text).hexdigest()
