"""The lock of a worktree's index, held by QueenBee as git holds it; and taken away if its holder
was killed. The index then gets what it was about to get.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress

from queenbee.core.command_lines import no_dash
from queenbee.errors import ExternalFailure
from queenbee.git.run import git
from queenbee.store import safe_open

PREPARED = "queenbee-records-"
"""How the name of a folder in the git directory begins, in which a commit prepares an index."""
INDEX = "i"
"""The name of that index."""
_NAME = "index.lock"
_OURS = b"queenbee\n"
"""What a lock of ours contains. Those of git are empty, or an index."""


class IndexLock:
    """A block in which git changes no index of a worktree. Raises `FileExistsError` where git, or
    another process, is at work there.
    """

    def __init__(self, git_dir: str) -> None:
        self._git_dir = git_dir
        self._path = os.path.join(git_dir, _NAME)
        remove_left_lock(git_dir)
        self._fd = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)

    def __enter__(self) -> None:
        # The kernel lets go of it when this process ends, however it does.
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        os.write(self._fd, _OURS)

    def __exit__(self, *error: object) -> None:
        _complete(self._git_dir)
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


def complete_left(git_dir: str) -> None:
    """Does what a process that was killed had left to do with an index, unless git is at work there
    now; also if a person has removed its lock.
    """
    with suppress(OSError):
        remove_left_lock(git_dir)
        if _prepared(git_dir):
            with IndexLock(git_dir):
                pass


def _complete(git_dir: str) -> None:
    """Has the index follow the last commit, if whoever made that was killed or interrupted before
    the index did: what is staged would take the commit back. Removes what was prepared.
    """
    index = os.path.join(git_dir, "index")
    for folder in _prepared(git_dir):
        import tempfile  # noqa: PLC0415 - start-up

        with (
            suppress(OSError, ExternalFailure),
            tempfile.TemporaryDirectory(prefix=PREPARED, dir=git_dir) as own,
        ):
            copy = shutil.copy2(os.path.join(folder, INDEX), own)  # It may be another user's.
            if _has(copy, git_dir, "HEAD") and _has(index, git_dir, "HEAD^"):
                os.replace(copy, index)
        shutil.rmtree(folder, ignore_errors=True)


def _prepared(git_dir: str) -> list[str]:
    names = os.listdir(git_dir)
    return [os.path.join(git_dir, each) for each in names if each.startswith(PREPARED)]


def _has(index: str, git_dir: str, commit: str) -> bool:
    """Returns whether an index has the files of a commit. Raises `ExternalFailure`."""
    asked = {"GIT_DIR": git_dir, "GIT_INDEX_FILE": index}
    how = ("--cached", "--ignore-submodules=none", "--name-only", no_dash(commit), "--")
    return not git("diff-index", *how, cwd=git_dir, repository=asked)
