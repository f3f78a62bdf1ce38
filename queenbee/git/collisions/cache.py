"""A folder for what a comparison makes: objects, indexes, copies. Nothing goes into `.git` itself.

It is in the hive's untracked state, and goes with the comparison; what a killed one leaves behind
is removed by a later one. Where the state cannot be written, a temporary folder serves.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.errors import QueenError
from queenbee.git.run import git
from queenbee.git.unmerged import Programs
from queenbee.store import safe_open

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout

FOLDER = "collisions"
LIMIT_S = 30.0
"""A git that takes longer in a worktree waits for a file that will never be read: a FIFO."""
_LONGEST_S = 3_600
"""No comparison takes so long: what is older is from one that was killed."""
_CONFIG = {
    "core.splitIndex": "false",
    "core.fsmonitor": "false",
    "core.safecrlf": "false",
    "gc.auto": "0",
}
_NOBODY = {
    "GIT_AUTHOR_NAME": "queenbee",
    "GIT_AUTHOR_EMAIL": "queenbee@localhost",
    "GIT_AUTHOR_DATE": "@0 +0000",
    "GIT_COMMITTER_NAME": "queenbee",
    "GIT_COMMITTER_EMAIL": "queenbee@localhost",
    "GIT_COMMITTER_DATE": "@0 +0000",
}
"""So that equal contents have equal commits."""


class Cache:
    """The folder of one comparison, a context manager, and git that writes into it alone."""

    def __init__(self, layout: Layout, common_dir: str) -> None:
        self._above = os.path.join(layout.state_dir, FOLDER)
        path = os.path.join(common_dir, "objects").replace("\\", "\\\\").replace('"', '\\"')
        self._theirs = f'"{path}"'
        self._programs = Programs()
        self.run: str = ""
        """The folder."""

    def __enter__(self) -> Cache:
        self.run = os.path.join(self._above, f"run-{os.urandom(8).hex()}")
        try:
            safe_open.make_folder(self._above)
            _sweep(self._above)
            safe_open.make_folder(os.path.join(self.run, "objects"))
        except (OSError, QueenError):
            self.run = tempfile.mkdtemp(prefix="queenbee-")
            os.mkdir(os.path.join(self.run, "objects"))
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self.run, ignore_errors=True)

    def git(
        self,
        *arguments: str,
        place: Worktree,
        index: str | None = None,
        stdin: bytes = b"",
        cwd: str | None = None,
        limit_s: float | None = None,
    ) -> bytes:
        """Runs git for a worktree, and none of its programs; what it makes goes into the folder."""
        repository = {
            **repository_of(place),
            "GIT_OBJECT_DIRECTORY": os.path.join(self.run, "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": self._theirs,
            **_NOBODY,
        }
        if cwd is not None:
            repository["GIT_WORK_TREE"] = cwd
        if index is not None:
            repository["GIT_INDEX_FILE"] = index
        return git(
            *arguments,
            cwd=cwd or place.path,
            stdin=stdin,
            config={**self.programs(place), **_CONFIG},
            repository=repository,
            limit_s=limit_s,
        )

    def programs(self, place: Worktree) -> Mapping[str, str]:
        """Returns the config without which git would run programs in a worktree."""
        return self._programs.none_in(place, repository_of(place), LIMIT_S)


def repository_of(place: Worktree) -> dict[str, str]:
    """Returns the variables that name a worktree of the hive's own repository to git, whatever is
    now in the place of the worktree's `.git`.
    """
    return {"GIT_DIR": place.git_dir, "GIT_WORK_TREE": place.path}


def _sweep(folder: str) -> None:
    """Removes what killed runs have left."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with suppress(OSError):
            if time.time() - os.lstat(path).st_mtime > _LONGEST_S:
                shutil.rmtree(path, ignore_errors=True)
