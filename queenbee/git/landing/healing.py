"""Brings a worktree back to its commit, where git was killed while it moved it to another one.

Git changes files first, then the index, then the branch. So the branch is where it was, and what
differs from it was written by git, if it is what git would have written there. Whatever else is in
a file is somebody's work, and stays.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.errors import ExternalFailure, Unreadable
from queenbee.git.landing.commands import git
from queenbee.git.remote.leftovers import open_files
from queenbee.git.run import names_in
from queenbee.store import safe_open

if TYPE_CHECKING:
    from queenbee.git.landing.commands import Commands

    _Blob = tuple[str, str] | None
    """The mode and the name of a blob; None where there is no file."""

_LINK = "120000"
_SUBMODULE = "160000"


def remove_locks(git_dir: str, common_dir: str, branch: str, began_ns: int) -> list[str]:
    """Removes git's locks that a killed process left, and returns those that may be another's.

    A lock counts as left if it is not older than the step, no process has it open, and it is not a
    complete index: a `git commit` that waits for its editor has one.
    """
    paths = [os.path.join(git_dir, name) for name in ("index.lock", "HEAD.lock")]
    paths.append(os.path.join(common_dir, "refs", "heads", f"{branch}.lock"))
    kept = []
    for path in paths:
        with suppress(OSError):
            status = os.stat(path, follow_symlinks=False)
            if status.st_mtime_ns < began_ns or _is_open(status) or _is_complete_index(path):
                kept.append(path)
            else:
                os.unlink(path)
    return kept


def restore(commands: Commands, tree: str, before: str, after: str) -> list[str]:
    """Undoes what git had done of a move from one commit or tree to another; returns the files
    that it left alone, because they have another content than git would have written.
    """
    changed = _changes(tree, before, after)
    index = _index(tree)
    if all(index.get(each.path) == each.after for each in changed):
        # Files and index were moved, the branch was not: git takes both back, and knows which
        # files have other changes.
        done = commands("read-tree", "-m", "-u", after, before, cwd=tree, to_the_end=True)
        return [] if done.status == 0 else [each.path for each in changed]
    if any(index.get(each.path) != each.before for each in changed):
        return [each.path for each in changed if index.get(each.path) != each.before]
    left = []
    dirty = _dirty(tree)
    for each in changed:
        there = os.path.lexists(os.path.join(tree, each.path))
        touched = each.path in dirty if each.before is not None else there
        if touched and not _restore_file(commands, tree, each, before, after):
            left.append(each.path)
    return left


@dataclass(frozen=True, slots=True)
class _Change:
    """A file that differs between two trees: its mode and blob in each, or None."""

    path: str
    before: _Blob
    after: _Blob


def _changes(tree: str, before: str, after: str) -> list[_Change]:
    fields = git("diff-tree", "-r", "-z", "--no-renames", before, after, "--", cwd=tree).split(
        b"\0"
    )
    found = []
    for said, path in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old, new, _ = said.decode().lstrip(":").split()
        found.append(_Change(os.fsdecode(path), _blob(old_mode, old), _blob(new_mode, new)))
    return found


def _blob(mode: str, name: str) -> _Blob:
    return None if not mode.strip("0") else (mode, name)


def _index(tree: str) -> dict[str, _Blob]:
    found: dict[str, _Blob] = {}
    for entry in git("ls-files", "--stage", "--full-name", "-z", cwd=tree).split(b"\0"):
        if entry:
            said, _, path = entry.partition(b"\t")
            mode, name, _ = said.decode().split()
            found[os.fsdecode(path)] = (mode, name)
    return found


def _dirty(tree: str) -> set[str]:
    listed = git("diff-files", "--name-only", "-z", "--no-relative", cwd=tree)
    return set(names_in(listed))


def _restore_file(commands: Commands, tree: str, change: _Change, before: str, after: str) -> bool:
    """Gives a file its old content, unless it has one that is neither the new one nor the
    beginning of that; returns whether it has the old one.
    """
    path = os.path.join(tree, change.path)
    there = _content(path)
    if there is not None and there != _wanted(tree, change.before, change.path, before):
        new = _wanted(tree, change.after, change.path, after)
        if new is None or not new.startswith(there):
            return False
    if change.before is not None:
        done = commands("checkout-index", "-f", "--", change.path, cwd=tree, to_the_end=True)
        return done.status == 0
    with suppress(OSError, Unreadable):
        safe_open.unlink(path)
        _remove_empty_folders(tree, os.path.dirname(path))
    return not os.path.lexists(path)


def _content(path: str) -> bytes | None:
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            return os.fsencode(os.readlink(path))
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _wanted(tree: str, blob: _Blob, path: str, revision: str) -> bytes | None:
    """Returns what git writes into the worktree for a file of a commit, or None."""
    if blob is None or blob[0] == _SUBMODULE:
        return None
    how = "blob" if blob[0] == _LINK else "--filters"
    try:
        name = blob[1] if blob[0] == _LINK else f"{revision}:{path}"
        return git("cat-file", how, name, cwd=tree)
    except ExternalFailure:
        return None


def _remove_empty_folders(tree: str, folder: str) -> None:
    while folder.startswith(tree + os.sep):
        os.rmdir(folder)
        folder = os.path.dirname(folder)


def _is_open(status: os.stat_result) -> bool:
    return (status.st_dev, status.st_ino) in (open_files() or ())


def _is_complete_index(path: str) -> bool:
    with open(path, "rb") as file:
        data = file.read()
    if not data.startswith(b"DIRC"):
        return False
    ends = (hashlib.sha1(data[:-20], usedforsecurity=False).digest(), bytes(20))
    return data[-20:] in ends or data[-32:] == hashlib.sha256(data[:-32]).digest()
