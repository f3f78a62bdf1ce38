"""A folder for what a comparison makes: objects, indexes, results. Nothing goes into `.git` itself.

It is in the hive's untracked state. Objects stay for the next comparison; an index belongs to one
run. A result is found by the ids of the two snapshots, which say all that it depends on. What a
killed run leaves behind is removed by a later one. Where the state cannot be written, a temporary
folder serves, without a memory.
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
from queenbee.store import safe_open
from queenbee.store.documents import keep, recall, sweep

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout

FOLDER = "collisions"
_VERSION = 1
MOST_BYTES = 256 * 1024 * 1024
"""Of objects; beyond that, a new folder is begun."""
_MOST_RESULTS = 4_000
_UNUSED_AFTER_S = 3_600
"""A folder of objects that nobody has used for so long serves no run that still goes on."""
_DEAD_AFTER_S = 60
"""A process may be alive in another container, where its number means nothing here."""
CONFIG = {
    "core.hooksPath": os.devnull,
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
    """The folder of one run, a context manager; with what earlier runs have found."""

    def __init__(self, layout: Layout, common_dir: str) -> None:
        self.common_dir = common_dir
        self._folder = os.path.join(layout.state_dir, FOLDER)
        self._lasting = True
        self.results: dict[str, object] = {}
        self._generation = ""
        self.run = ""
        """A folder for indexes and other files of this run alone."""
        self.objects = ""
        self.changed = False
        """Whether there are results that the next run should find."""

    def __enter__(self) -> Cache:
        try:
            safe_open.make_folder(self._folder)
            self._sweep()
            self._load()
            self._make()
        except (OSError, QueenError):
            self._folder, self._lasting = tempfile.mkdtemp(prefix="queenbee-"), False
            self.results, self._generation = {}, ""
            self._make()
        return self

    def __exit__(self, *error: object) -> None:
        if not self._lasting:
            shutil.rmtree(self._folder, ignore_errors=True)
            return
        shutil.rmtree(self.run, ignore_errors=True)
        if self.changed:
            self._keep()

    def forget(self) -> None:
        """Begins anew: an object that a result depends on may be gone."""
        self.results, self._generation = {}, ""
        shutil.rmtree(self.run, ignore_errors=True)
        self._make()

    def git(
        self,
        *arguments: str,
        place: Worktree,
        config: Mapping[str, str],
        index: str | None = None,
        stdin: bytes = b"",
        cwd: str | None = None,
        limit_s: float | None = None,
    ) -> bytes:
        """Runs git for a worktree; whatever it makes goes into this folder."""
        repository = {
            **repository_of(place),
            "GIT_OBJECT_DIRECTORY": self.objects,
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
            config={**config, **CONFIG},
            repository=repository,
            limit_s=limit_s,
        )

    def _make(self) -> None:
        self._generation = self._generation or os.urandom(8).hex()
        self.objects = os.path.join(self._folder, f"objects-{self._generation}")
        info = os.path.join(self.objects, "info")
        safe_open.make_folder(info)
        os.utime(self.objects)
        ours = os.path.join(self.common_dir, "objects")
        safe_open.write(os.path.join(info, "alternates"), os.fsencode(_quoted(ours)) + b"\n")
        self.run = os.path.join(self._folder, f"run-{os.getpid()}-{os.urandom(4).hex()}")
        safe_open.make_folder(self.run)

    def _load(self) -> None:
        kept = recall(os.path.join(self._folder, "results.json"))
        with suppress(KeyError, TypeError):
            generation = str(kept["generation"])
            objects = os.path.join(self._folder, f"objects-{generation}")
            whole = generation.isalnum() and os.path.isdir(objects)
            if kept["version"] == _VERSION and whole and isinstance(kept["results"], dict):
                self.results, self._generation = kept["results"], generation

    def _keep(self) -> None:
        results = dict(list(self.results.items())[-_MOST_RESULTS:])
        generation = self._generation if _size(self.objects) <= MOST_BYTES else ""
        kept = {"version": _VERSION, "generation": generation, "results": results}
        path = os.path.join(self._folder, "results.json")
        if keep(path, kept) and not generation:
            shutil.rmtree(self.objects, ignore_errors=True)

    def _sweep(self) -> None:
        """Removes what killed runs have left, and objects that nobody uses any more."""
        sweep(self._folder, older_than_s=_UNUSED_AFTER_S)
        now_s = time.time()
        kept = self._current()
        for name in os.listdir(self._folder):
            path = os.path.join(self._folder, name)
            with suppress(OSError, ValueError):
                age_s = now_s - os.lstat(path).st_mtime
                if name.startswith("run-"):
                    if age_s > _DEAD_AFTER_S and not _is_alive(int(name.split("-")[1])):
                        shutil.rmtree(path, ignore_errors=True)
                elif name.startswith("objects-") and age_s > _UNUSED_AFTER_S and name != kept:
                    shutil.rmtree(path, ignore_errors=True)

    def _current(self) -> str:
        kept = recall(os.path.join(self._folder, "results.json"))
        with suppress(KeyError, TypeError):
            return f"objects-{kept['generation']}"
        return ""


def repository_of(place: Worktree) -> dict[str, str]:
    """Returns the variables that name a worktree of the hive's own repository to git, whatever is
    now in the place of the worktree's `.git`.
    """
    return {"GIT_DIR": place.git_dir, "GIT_WORK_TREE": place.path}


def _size(folder: str) -> int:
    total = 0
    for above, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(above, name)).st_size
    return total


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _quoted(path: str) -> str:
    """Returns a path as git reads it in a list of alternates."""
    if path.startswith(('"', "#")) or "\n" in path:
        escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    return path
