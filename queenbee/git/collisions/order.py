"""An order to land in: as many as possible without a conflict, and the others behind them.

Whoever lands first merges by itself; each conflict is met by the later of the two. So those with
the fewest conflicting files go first. Clean in pairs is not clean in a row, so the row is then
merged, one after the other; where one does not merge by itself, the next is tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.git.collisions.found import Step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.git.collisions.found import Side
    from queenbee.git.collisions.pairs import Merger

    Files = Mapping[tuple[str, str], Sequence[str]]
    """The conflicting files of two sides by name, under both orders."""

_TRIES = 3


def best(names: Sequence[str], files: Files) -> list[str]:
    """Returns the names in the order of how many files conflict with the others; of equal ones,
    the first in `names` comes first.
    """
    return sorted(names, key=lambda one: sum(len(files.get((one, each), ())) for each in names))


def rehearse(sides: Sequence[Side], tip: str, files: Files, merger: Merger) -> list[Step]:
    """Returns the steps of landing everything on a commit, each with what conflicts there.

    Who conflicts only with several of the others together is tried before them.
    """
    rehearsal = _Rehearsal(tip, files, merger)
    row, best_steps = list(sides), rehearsal.steps(sides)
    for _ in range(_TRIES):
        late = [step.side for step in best_steps if step.files and not step.after]
        if not late or row[: len(late)] == late:
            break
        row = [*late, *(side for side in row if side not in late)]
        steps = rehearsal.steps(row)
        if _cost(steps) >= _cost(best_steps):
            break
        best_steps = steps
    return best_steps


def _cost(steps: Sequence[Step]) -> tuple[int, int]:
    return sum(bool(each.files) for each in steps), sum(len(each.files) for each in steps)


@dataclass(frozen=True, slots=True)
class _Rehearsal:
    """Landing one after the other in memory."""

    tip: str
    files: Files
    merger: Merger

    def steps(self, sides: Sequence[Side]) -> list[Step]:
        """Returns the steps of one row: the first that merges by itself lands next, in the order
        of `sides`; if none does, the one with the fewest files to resolve.
        """
        steps: list[Step] = []
        left, tip = list(sides), self.tip
        while left:
            merged = self.merger.merge([(tip, str(side.commit)) for side in left])
            open_ = [
                [each.path for each in one.files if not self.merger.is_joined(each.path)]
                for one in merged
            ]
            found = [
                self._step(side, paths, steps) for side, paths in zip(left, open_, strict=True)
            ]
            number = min(range(len(left)), key=lambda number: len(found[number].files))
            side = left.pop(number)
            steps.append(found[number])
            # How a conflict will be resolved, nobody knows: the rest is merged without that side.
            if not open_[number]:
                tip = self.merger.commit(merged[number].tree, tip, str(side.commit))
        return steps

    def _step(self, side: Side, conflicting: Sequence[str], landed: Sequence[Step]) -> Step:
        met = {step.side.name: self.files.get((side.name, step.side.name)) for step in landed}
        after = {name: list(paths) for name, paths in met.items() if paths}
        every = [*conflicting, *(path for paths in after.values() for path in paths)]
        return Step(side, list(dict.fromkeys(every)), after)
