"""The check on the work of all worktrees together: conflicts of meaning, before anybody lands.

All that merge by themselves are checked at once. If that fails, halves are, until no smaller
combination fails: never each two. Copies are checked; no worktree or repository changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.git.collisions.found import Failing, Together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.git.collisions.copies import Copies
    from queenbee.git.collisions.found import Side
    from queenbee.git.collisions.pairs import Merger
    from queenbee.git.landing.together.checked import Verdict


class Union:
    """The main branch with the work of some worktrees, merged in memory and checked in copies."""

    def __init__(self, merger: Merger, tip: str, copies: Copies) -> None:
        self._merger = merger
        self._tip = tip
        self._copies = copies
        self._known: dict[tuple[str, ...], Verdict] = {}

    def find(self, sides: Sequence[Side], command: str) -> Together:
        """Checks the sides together; finds the combinations without which the rest passes."""
        row: list[Side] = []
        for side in sides:
            if self._commit([*row, side]) is not None:
                row.append(side)
        left_out = [each.name for each in sides if each not in row]
        found = Together(command, [each.name for each in row], left_out)
        while self._fails(row)[0]:
            group = self._smallest([], row)
            if len(group) < 2 and self._fails([])[0]:
                group = []
            verdict = self._known[_names(group if self._fails(group)[0] else row)]
            found.failing.append(Failing(_names(group), verdict.failed or ""))
            if not group:
                break
            row.remove(group[-1])
        found.checks = len(self._known)
        return found

    def _smallest(self, base: Sequence[Side], row: Sequence[Side]) -> list[Side]:
        """Returns the least of a row that fails with the base, where the whole row does."""
        if len(row) < 2:
            return list(row)
        halves = row[: len(row) // 2], row[len(row) // 2 :]
        if self._copies.jobs > 1:
            self._fails(*([*base, *half] for half in halves))  # Side by side.
        for half in halves:
            if self._fails([*base, *half])[0]:
                return self._smallest(base, half)
        later = self._smallest([*base, *halves[0]], halves[1])
        return [*self._smallest([*base, *later], halves[0]), *later]

    def _fails(self, *groups: Sequence[Side]) -> list[bool]:
        """Returns whether each of these fails, in one go; what cannot be merged does not."""
        commits = {
            _names(each): commit
            for each in groups
            if _names(each) not in self._known and (commit := self._commit(each)) is not None
        }
        verdicts = self._copies.verdicts(list(commits.values()))
        self._known.update(zip(commits, verdicts, strict=True))
        found = [self._known.get(_names(each)) for each in groups]
        return [each is not None and each.failed is not None for each in found]

    def _commit(self, sides: Sequence[Side]) -> str | None:
        """Returns a commit of the main branch with the work of these, or None for a conflict."""
        tip = self._tip
        for side in sides:
            (merged,) = self._merger.merge([(tip, str(side.commit))])
            tree = self._merger.settled(merged)
            if tree is None:
                return None
            tip = self._merger.commit(tree, tip, str(side.commit))
        return tip


def _names(sides: Sequence[Side]) -> tuple[str, ...]:
    return tuple(each.name for each in sides)
