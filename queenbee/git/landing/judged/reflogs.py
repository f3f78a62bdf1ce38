"""At which commits worktrees were, and when, as git's own log of each `HEAD` says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.git.landing.commands import is_commit
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import worktrees

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from queenbee.store.git_files.worktrees import Worktree
    from queenbee.store.layout import Layout

_MOST_BYTES = 2**22


class Reflog:
    """The moves of one worktree: the commit, and when it came there (ms since 1970)."""

    def __init__(self, moves: Sequence[tuple[int, str]]) -> None:
        self._moves = moves

    @classmethod
    def of(cls, place: Worktree) -> Self:
        """Returns the log of a worktree; an empty one if it cannot be read."""
        try:
            log = safe_open.read(os.path.join(place.git_dir, "logs", "HEAD"), _MOST_BYTES)
        except OSError:
            return cls([])
        every = (
            each.partition(b"\t")[0].decode(errors="replace").split() for each in log.splitlines()
        )
        return cls(
            [
                (int(words[-2]) * 1000, words[1])
                for words in every
                if len(words) > 3 and words[-2].isdecimal() and is_commit(words[1])
            ]
        )

    def commits(self) -> set[str]:
        """Returns all commits at which it was."""
        return {commit for _, commit in self._moves}

    @staticmethod
    def first_in(layout: Layout, tree: str) -> set[str]:
        """Returns the commits at which a worktree was before any other one: it made them."""
        here, others = dict[str, int](), dict[str, int]()
        for place in worktrees(layout):
            is_here = os.path.realpath(place.path) == os.path.realpath(tree)
            for at_ms, commit in Reflog.of(place)._moves:
                times_ms = here if is_here else others
                times_ms[commit] = min(at_ms, times_ms.get(commit, at_ms))
        return {each for each, at_ms in here.items() if at_ms < others.get(each, at_ms + 1)}

    def between(self, began_ms: int, ended_ms: int | None) -> tuple[list[str], list[str]]:
        """Returns the commits at which it was while somebody had an issue there, until now without
        an end, and the one at which it was before; its branch may have left them since. Git notes
        whole seconds: those of the last one are left to what was noted at the release.
        """
        made = [
            commit
            for at_ms, commit in self._moves
            if began_ms - 1000 < at_ms and (ended_ms is None or at_ms + 1000 <= ended_ms)
        ]
        before = [commit for at_ms, commit in self._moves if at_ms <= began_ms - 1000]
        return made, before[-1:]
