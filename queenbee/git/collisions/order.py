"""An order to land in: as many as possible without a conflict, and the others behind them.

Whoever lands first merges by itself; each conflict is met by the later of the two. So those with
the fewest conflicting files among what remains go first. Clean in pairs is not clean in a row, so
the row is then merged, one after the other; where one does not merge by itself, the next is tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.git.collisions.values import Step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.git.collisions.pairs import Merger
    from queenbee.git.collisions.values import Side


_TRIES = 3


def best(names: Sequence[str], files: Mapping[tuple[str, str], Sequence[str]]) -> list[str]:
    """Returns the names in an order in which few meet a conflict.

    `files` are the conflicting files of two names, under both orders. Those that meet none come
    first; of equal ones, the first in `names`.
    """
    clean: list[str] = []
    behind: list[str] = []
    left = list(names)
    while left:
        costs = [sum(len(files.get((one, other), ())) for other in left) for one in left]
        name = left.pop(costs.index(min(costs)))
        meets = any(files.get((name, other)) for other in clean)
        (behind if meets else clean).append(name)
    # Of those behind, the one with the fewest files to resolve against all that has landed.
    row = clean
    while behind:
        costs = [sum(len(files.get((one, other), ())) for other in row) for one in behind]
        row = [*row, behind.pop(costs.index(min(costs)))]
    return row


def rehearse(
    sides: Sequence[Side],
    tip: str,
    files: Mapping[tuple[str, str], Sequence[str]],
    merger: Merger,
) -> list[Step]:
    """Returns the steps of landing everything on a commit, each with what conflicts there.

    Who conflicts only with several of the others together is tried before them.
    """
    row, best_steps = list(sides), _row(sides, tip, files, merger)
    for _ in range(_TRIES):
        late = [step.side for step in best_steps if step.files and not step.after]
        if not late or row[: len(late)] == late:
            break
        row = [*late, *(side for side in row if side not in late)]
        steps = _row(row, tip, files, merger)
        if _cost(steps) >= _cost(best_steps):
            break
        best_steps = steps
    return best_steps


def _cost(steps: Sequence[Step]) -> tuple[int, int]:
    return sum(bool(each.files) for each in steps), sum(len(each.files) for each in steps)


def _row(
    sides: Sequence[Side],
    tip: str,
    files: Mapping[tuple[str, str], Sequence[str]],
    merger: Merger,
) -> list[Step]:
    """Returns the steps of one row: the first that merges by itself lands next, in the order of
    `sides`; if none does, the one with the fewest files to resolve.
    """
    steps: list[Step] = []
    left = list(sides)
    while left:
        merged = merger.merge([(tip, str(side.commit)) for side in left])
        landed = [step.side.name for step in steps]
        found = [
            _step(side, [each.path for each in one.files], landed, files)
            for side, one in zip(left, merged, strict=True)
        ]
        number = min(range(len(left)), key=lambda number: len(found[number].files))
        side = left.pop(number)
        steps.append(found[number])
        # How a conflict will be resolved, nobody knows: the rest is merged without that side.
        if not merged[number].files:
            tip = merger.commit(merged[number].tree, tip, str(side.commit))
    return steps


def _step(
    side: Side,
    conflicting: Sequence[str],
    landed: Sequence[str],
    files: Mapping[tuple[str, str], Sequence[str]],
) -> Step:
    after = {name: list(files[side.name, name]) for name in landed if files.get((side.name, name))}
    met = [*conflicting, *(path for paths in after.values() for path in paths)]
    return Step(side, list(dict.fromkeys(met)), after)
