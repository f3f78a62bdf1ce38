"""Announced edits whose change has landed or is gone: there is nothing left to announce."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.glob.pattern import literal_path
from queenbee.git.run import git, without_filters
from queenbee.services.leases import edits
from queenbee.store.git_files.worktrees import target_branch

if TYPE_CHECKING:
    from queenbee.core.records import Reservation
    from queenbee.services.hive import Services

_NAMES = ("--name-only", "-z", "--no-renames", "--no-relative", "--no-ext-diff", "--no-textconv")


def end_landed(hive: Services) -> list[Reservation]:
    """Ends what the actor's edits announced in this working tree, as far as the files are now as
    on the branch of the main worktree; returns the leases that ended.

    A file counts as changed if it is committed differently here, or not committed, or not tracked
    there. What a droid reserved by name stays. Raises `ExternalFailure`.
    """
    layout = hive.layout
    target = target_branch(layout)
    announced = edits.announced_here(hive.reservations)
    by_path = {path: each for each in announced if (path := literal_path(each.pattern))}
    if target is None or not by_path:
        return []
    found = _changed(layout.tree, f"refs/heads/{target}", list(by_path))
    return edits.end(
        hive.reservations, [each.id for path, each in by_path.items() if path not in found]
    )


def _changed(tree: str, target: str, paths: list[str]) -> set[str]:
    """Returns those of these paths whose content in the tree is not that of the target."""
    literal = "--literal-pathspecs"
    # Without its filters, a file that has some counts as changed: it stays announced.
    config = without_filters(tree)
    differing = git(literal, "diff", *_NAMES, target, "--", *paths, cwd=tree, config=config)
    untracked = git(literal, "ls-files", "--others", "-z", "--", *paths, cwd=tree)
    return {os.fsdecode(name) for name in (differing + untracked).split(b"\0") if name}
