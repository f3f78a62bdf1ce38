"""What of the main worktree can be git's: only what has changed since git was asked to move it.

The time at which a file or a folder changed is set by the system, and cannot be set back. So a file
that a person cut, removed or wrote before is theirs, even if git would have written just that.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.git.landing.commands import git
from queenbee.git.run import names_in

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from queenbee.services.waiting.landing_steps import Step


def changed_since(step: Step, tree: str, path: str) -> bool:
    """Returns whether a file of a worktree, or the folder that it is missing from, has changed
    since a step was written.

    On another device than the step, whose clock may differ, all may have.
    """
    where = os.path.join(tree, path)
    while not os.path.lexists(where) and where.startswith(tree + os.sep):
        where = os.path.dirname(where)
    found, begun = os.lstat(where), os.fstat(step.fd)
    return found.st_dev != begun.st_dev or found.st_ctime_ns >= begun.st_mtime_ns


def links_above(tree: str, paths: Collection[str]) -> list[str]:
    """Returns the links that a worktree has in place of the folders of files that are to change,
    and that git does not track: it removes one without a word, where it writes below it.

    Below those that a sparse checkout leaves out, it writes nothing.
    """
    found = [*_links_above(tree, paths)]
    if not found:
        return []
    listed = names_in(git("ls-files", "-v", "-z", cwd=tree))
    left_out = {each[2:] for each in listed if each[:1] == "S"}
    return [*_links_above(tree, [each for each in paths if each not in left_out])]


def _links_above(tree: str, paths: Collection[str]) -> Iterator[str]:
    known, seen = set(paths), set[str]()
    for path in paths:
        folder = os.path.dirname(path)
        while folder and folder not in seen:
            seen.add(folder)
            if folder not in known and os.path.islink(os.path.join(tree, folder)):
                yield folder
            folder = os.path.dirname(folder)
