"""The lock of a worktree's index, held by QueenBee as git holds it; and taken away if its holder
was killed.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from queenbee.store import safe_open

_NAME = "index.lock"
_OURS = b"queenbee\n"
"""What a lock of ours contains. Those of git are empty, or an index."""


class IndexLock:
    """A block in which git changes no index of a worktree. Raises `FileExistsError` where git, or
    another process, is at work there.
    """

    def __init__(self, git_dir: str) -> None:
        self._path = os.path.join(git_dir, _NAME)
        remove_left_lock(git_dir)
        self._fd = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)

    def __enter__(self) -> None:
        # The kernel lets go of it when this process ends, however it does.
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        os.write(self._fd, _OURS)

    def __exit__(self, *error: object) -> None:
        os.unlink(self._path)
        os.close(self._fd)


def remove_left_lock(git_dir: str) -> None:
    """Removes the lock of an index if it is one of ours and whoever made it was killed."""
    path = os.path.join(git_dir, _NAME)
    with suppress(OSError):
        fd = safe_open.open_file(path, os.O_RDONLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_same = os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
            if is_same and os.read(fd, len(_OURS) + 1) == _OURS:
                os.unlink(path)
        finally:
            os.close(fd)
