"""FIFOs, sockets and devices in place of files that git tracks: git cannot add them, and fails.

There is nothing in them to keep. So what a worktree has is kept without them.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from queenbee.errors import ExternalFailure
from queenbee.git.run import git, names_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def special_files(tree: str, paths: Iterable[str]) -> list[str]:
    """Returns those of the paths of a worktree at which there is neither a file, a link nor a
    folder.
    """
    return [each for each in paths if _is_special(os.path.join(tree, each))]


def add_all(
    run: Callable[..., object], tree: str, options: Sequence[str], but: Sequence[str] = ()
) -> None:
    """Has `run` add all of a worktree to an index, without special files; `but` are pathspecs that
    leave more out. Raises `ExternalFailure`.
    """
    try:
        run("add", *options, "--", ":/", *but)
    except ExternalFailure:
        listed = git("diff-files", "--name-only", "-z", "--no-relative", cwd=tree, repository={})
        special = special_files(tree, names_in(listed))
        if not special:
            raise
        left_out = (f":(top,exclude,literal){each}" for each in special)
        run("add", *options, "--", ":/", *but, *left_out)


def _is_special(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))
