"""Files that everybody appends to: where both sides only added lines, both are kept.

Only in the files that the setting `[land] union` names; for the others, the refusal offers it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from queenbee.core.marked_conflicts import MARKER_SIZE, keeping_both
from queenbee.errors import InvalidInput
from queenbee.git.run import git
from queenbee.store import safe_open

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.git.landing.commands import Commands

_STAGES = frozenset({"1", "2", "3"})
_REGULAR = frozenset({"100644", "100755"})


def spec_of(patterns: Sequence[str]) -> GitIgnoreSpec:
    """Returns what the setting names. Raises `InvalidInput` for what is no pattern."""
    try:
        return GitIgnoreSpec.from_lines(patterns)
    except ValueError as error:
        raise InvalidInput(
            f"[land] union: {error}", hint='write patterns as in .gitignore: ["CHANGELOG.md"]'
        ) from error


class Unmerged:
    """The files of a worktree that are in conflict; `target_stage` is the target's side: 2 while
    commits are rebased, else 3.
    """

    def __init__(self, tree: str, target_stage: int) -> None:
        self._tree = tree
        self._order = (str(target_stage), "1", str(5 - target_stage))
        self._entries: dict[str, dict[str, tuple[str, str]]] = {}
        for entry in git("ls-files", "--unmerged", "-z", cwd=tree).split(b"\0"):
            if entry:
                said, _, path = entry.partition(b"\t")
                mode, name, stage = said.decode().split()
                self._entries.setdefault(os.fsdecode(path), {})[stage] = (mode, name)

    @property
    def files(self) -> list[str]:
        """The files, from the top of the worktree."""
        return list(self._entries)

    def only_added(self) -> list[str]:
        """Returns the files in which both sides only added lines at one place."""
        return [path for path in self._entries if self._both(path) is not None]

    def keep_both(self, commands: Commands, spec: GitIgnoreSpec) -> list[str]:
        """Resolves those of the files that `spec` names and in which both sides only added lines;
        returns the ones that are still in conflict.
        """
        return [
            path
            for path in self._entries
            if not spec.match_file(path) or not self._resolve(commands, path)
        ]

    def _resolve(self, commands: Commands, path: str) -> bool:
        text = self._both(path)
        if text is None:
            return False
        blob = git("hash-object", "-w", "--stdin", cwd=self._tree, stdin=text).decode().strip()
        # The file before the index: a merge can be taken back at any moment in between.
        filtered = git("cat-file", "--filters", f"--path={path}", blob, cwd=self._tree)
        safe_open.write(os.path.join(self._tree, path), filtered, os.O_TRUNC)
        literally = {"GIT_LITERAL_PATHSPECS": "1"}
        done = commands("add", "--", path, cwd=self._tree, env=literally)
        return done.status == 0

    def _both(self, path: str) -> bytes | None:
        """Returns the file with the lines of both sides, the target's first, or None."""
        stages = self._entries[path]
        modes = {mode for mode, _ in stages.values()}
        if stages.keys() != _STAGES or len(modes) != 1 or not modes <= _REGULAR:
            return None
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for stage in self._order:
                paths.append(os.path.join(folder, stage))
                with open(paths[-1], "wb") as file:
                    file.write(git("cat-file", "blob", stages[stage][1], cwd=self._tree))
            size = f"--marker-size={MARKER_SIZE}"
            marked = _merge_file("--diff3", size, *paths, cwd=self._tree)
        return None if marked is None else keeping_both(marked)


def _merge_file(*arguments: str, cwd: str) -> bytes | None:
    """Returns the marked text, or None if git cannot merge it. Its status is that of conflicts."""
    done = subprocess.run(
        ["git", "merge-file", "--stdout", "--quiet", *arguments],
        cwd=cwd,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.stdout if 0 < done.returncode < 128 else None
