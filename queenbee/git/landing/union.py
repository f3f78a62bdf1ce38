"""Files that everybody appends to: where both sides only added lines, both are kept.

Only in the files that the setting `[land] union` names; for the others, the refusal offers it.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from queenbee.core.marked_conflicts import MARKER_SIZE, keeping_both, ranges_of_both
from queenbee.core.text import mentioned, one_line
from queenbee.errors import InvalidInput
from queenbee.git.landing.commands import git
from queenbee.git.run import user_git
from queenbee.store import safe_open

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.git.landing.commands import Commands

_SHOWN = 3
_STAGES = frozenset({"1", "2", "3"})
_REGULAR = frozenset({"100644", "100755"})


def spec_of(patterns: Sequence[str]) -> GitIgnoreSpec:
    """Returns what the setting names. Raises `InvalidInput` for what is no pattern."""
    try:
        return GitIgnoreSpec.from_lines(patterns)
    except ValueError as error:
        raise InvalidInput(
            f"land.union: {error}", hint="queen config set land.union CHANGELOG.md"
        ) from error


@dataclass(frozen=True, slots=True)
class Joined:
    """A file in which the lines of both sides were kept, and the places: the first and last line
    of each, numbered as in the result.
    """

    path: str
    lines: Sequence[Sequence[int]]

    def sentence(self) -> str:
        """Returns it in words: git joined the lines without knowing what they mean."""
        shown = ", ".join(f"{first}-{last}" for first, last in self.lines[:_SHOWN])
        more = ", …" if len(self.lines) > _SHOWN else ""
        return (
            f"kept both sides in {mentioned(one_line(self.path))} lines {shown}{more}: look at "
            "their order"
        )


class Unmerged:
    """The files of a worktree that are in conflict; `target_stage` is the target's side: 2 while
    commits are rebased, else 3.
    """

    def __init__(self, tree: str, target_stage: int) -> None:
        self._tree = tree
        self._order = (str(target_stage), "1", str(5 - target_stage))
        self.joined: list[Joined] = []
        """What `keep_both` resolved."""
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
        marked = {path: self._marked(path) for path in self._entries}
        return [path for path, text in marked.items() if text and keeping_both(text) is not None]

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
        marked = self._marked(path)
        text = keeping_both(marked) if marked is not None else None
        if marked is None or text is None:
            return False
        blob = git("hash-object", "-w", "--stdin", cwd=self._tree, stdin=text).decode().strip()
        # The file before the index: a merge can be taken back at any moment in between.
        filtered = git("cat-file", "--filters", f"--path={path}", blob, cwd=self._tree)
        safe_open.write(os.path.join(self._tree, path), filtered, os.O_TRUNC)
        literally = {"GIT_LITERAL_PATHSPECS": "1"}
        done = commands("add", "--", path, cwd=self._tree, env=literally)
        if done.status != 0:
            return False
        self.joined.append(Joined(path, ranges_of_both(marked)))
        return True

    def _marked(self, path: str) -> bytes | None:
        """Returns the file with its conflicts marked, the target's side first; None if it has not
        three versions of one kind.
        """
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
            return _merge_file("--diff3", size, *paths, cwd=self._tree)


def _merge_file(*arguments: str, cwd: str) -> bytes | None:
    """Returns the marked text, or None if git cannot merge it. Its status is that of conflicts."""
    status, out, _ = user_git("merge-file", "--stdout", "--quiet", *arguments, cwd=cwd)
    return out if 0 < status < 128 else None
