"""Git's own locks, which a git that was killed has left in a worktree."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

from queenbee.git.index_lock import remove_left_lock
from queenbee.git.remote.leftovers import open_files


class Where(NamedTuple):
    """A worktree, and the branch that git moves there."""

    tree: str
    git_dir: str
    common_dir: str
    branch: str


def lock_paths(where: Where) -> list[str]:
    """Returns where git's locks are that keep it from moving the branch there."""
    paths = [os.path.join(where.git_dir, name) for name in ("index.lock", "HEAD.lock")]
    return [*paths, os.path.join(where.common_dir, "refs", "heads", f"{where.branch}.lock")]


def remove_locks(where: Where, began_ns: int, *, sees_all: bool = True) -> list[str]:
    """Removes git's locks that a killed process left, and returns those that may be another's.

    A lock counts as left if it is not older than the step, no process has it open, and it is not a
    complete index: a `git commit` that waits for its editor has one. Where this process does not
    see those of the one that was killed, as in two containers, none counts as left.
    """
    remove_left_lock(where.git_dir)
    kept = []
    for path in lock_paths(where):
        with suppress(OSError):
            status = os.stat(path, follow_symlinks=False)
            is_left = sees_all and status.st_mtime_ns >= began_ns and not _is_open(status)
            if is_left and not _is_complete_index(path):
                os.unlink(path)
            else:
                kept.append(path)
    return kept


def _is_open(status: os.stat_result) -> bool:
    return (status.st_dev, status.st_ino) in (open_files() or ())


def _is_complete_index(path: str) -> bool:
    import hashlib  # noqa: PLC0415 - start-up

    with open(path, "rb") as file:
        data = file.read()
    if not data.startswith(b"DIRC"):
        return False
    ends = (hashlib.sha1(data[:-20], usedforsecurity=False).digest(), bytes(20))
    return data[-20:] in ends or data[-32:] == hashlib.sha256(data[:-32]).digest()
