"""An order to land in: as many as possible without a conflict, and the others behind them.

Whoever lands first merges by itself; each conflict is met by the later of the two. So those with
the fewest conflicting files among what remains go first. Clean in pairs is not clean in a row, so
the row is then merged, one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.git.collisions.values import Step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.git.collisions.pairs import Merger
    from queenbee.git.collisions.values import Side


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
    """Returns the steps of a row of landings on a commit, each with what conflicts there."""
    steps: list[Step] = []
    landed: list[str] = []
    for side in sides:
        assert side.commit is not None
        merged = merger.merge([(tip, side.commit)])[0]
        after = {
            name: list(files[side.name, name]) for name in landed if files.get((side.name, name))
        }
        found = [each.path for each in merged.files]
        names = dict.fromkeys([*found, *(path for paths in after.values() for path in paths)])
        steps.append(Step(side, list(names), after))
        landed.append(side.name)
        if not merged.files:
            tip = merger.commit(merged.tree, tip, side.commit)
    return steps
