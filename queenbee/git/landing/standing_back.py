"""Who resolves a conflict is not overtaken by a landing on the same lines: it would meet the next
conflict there.

Others go on. Nobody stands back for longer than `KEPT_S` after the conflict was found, and who
comes back from one stands back for nobody: neither a droid that died nor two conflicts wedge it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.text import mentioned
from queenbee.git.landing.commands import is_commit
from queenbee.git.landing.conflicts import Unmerged
from queenbee.git.trees.in_memory import merged_in_memory
from queenbee.services.waiting import landing_steps

if TYPE_CHECKING:
    from queenbee.git.landing.conflicts import Joins
    from queenbee.git.landing.place import Place

KEPT_S = 180.0
"""Long enough to resolve some hunks and run their tests."""


class StandingBack:
    """Which landings have to let others go first."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._known: dict[tuple[str, ...], bool] = {}

    def for_whom(self, commit: str, tree: str, joins: Joins) -> str | None:
        """Returns the droid that resolves a conflict on lines which a commit of a worktree changes,
        safe to show; None if there is none.
        """
        for fields in landing_steps.left_lately(self._place.folder, KEPT_S):
            head, target = fields.get("before"), fields.get("after")
            if fields.get("tree") == tree or not (is_commit(head) and is_commit(target)):
                continue
            sides = (commit, str(head), str(target))
            if sides not in self._known:
                self._known[sides] = self._meet(*sides, joins)
            if self._known[sides]:
                return mentioned(str(fields.get("droid")))
        return None

    def _meet(self, commit: str, head: str, target: str, joins: Joins) -> bool:
        """Returns whether a commit makes other conflicts with that head than the target has made,
        with which it may be.
        """
        more = self._conflicts(commit, head, joins)
        return bool(more and more - self._conflicts(target, head, joins))

    def _conflicts(self, one: str, other: str, joins: Joins) -> set[tuple[str, bytes]]:
        """Returns the places where a merge in memory leaves a conflict: the file, and its lines."""
        tree = self._place.tree
        _, listed = merged_in_memory(tree, one, other)
        if not listed:
            return set()
        from queenbee.core.conflicts.markers import parts  # noqa: PLC0415 - start-up

        merged = Unmerged(tree, 2, other, listed)
        found = {path: merged.marked(path) or b"" for path in merged.left(joins)}
        return {
            (path, b"".join(each.main)) for path, text in found.items() for each in parts(text)[1]
        }
