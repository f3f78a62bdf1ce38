"""FIFOs, sockets and devices in place of files that git tracks: git cannot add them, and fails.

There is nothing in them to keep. So what a worktree has is kept without them.
"""

from __future__ import annotations

import os
import stat
from functools import partial
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
    """Has `run` add all of a worktree to an index, without what git cannot add: special files, and
    repositories without a commit; `but` are pathspecs that leave more out. Raises
    `ExternalFailure`.
    """
    try:
        run("add", *options, "--", ":/", *but)
    except ExternalFailure:
        names = partial(git, cwd=tree, repository={})
        listed = names_in(names("diff-files", "--name-only", "-z", "--no-relative"))
        others = names_in(names("ls-files", "--others", "--exclude-standard", "-z", ":/"))
        # A repository of its own without a commit: git cannot add it.
        nested = [each.rstrip("/") for each in others if each.endswith("/")]
        skipped = [*special_files(tree, listed), *nested]
        if not skipped:
            raise
        left_out = (f":(top,exclude,literal){each}" for each in skipped)
        run("add", *options, "--", ":/", *but, *left_out)


def _is_special(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))
