"""A worktree whose own git settings say that its files are elsewhere.

Git believes `core.worktree` in the `config.worktree` of a linked worktree: what git does "there" is
then done to any folder. Nothing of ours makes that, and nothing of ours follows it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.text import mentioned, suggested
from queenbee.errors import Conflict
from queenbee.git.run import as_the_user
from queenbee.store.git_trees import config_value, git_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = ("worktree", "bare")


def refuse_elsewhere(tree: str) -> None:
    """Raises `Conflict` for a linked worktree whose settings name another folder, or none."""
    here = git_tree(tree)
    for name in _said(here.git_dir) if here is not None and here.linked else ():
        raise Conflict(
            f"git's settings of {mentioned(tree)} alone say core.{name}: its files would be those "
            "of another folder",
            hint=f"{suggested('git -C', tree)} config --worktree --unset-all core.{name}",
        )


def bring_home(git_dir: str) -> Iterator[str]:
    """Removes such settings; yields their names. Raises `ExternalFailure`."""
    for name in _said(git_dir):
        as_the_user(
            *("config", f"--file={_file(git_dir)}", "--unset-all", f"core.{name}"), cwd=git_dir
        )
        yield f"core.{name}"


def _said(git_dir: str) -> list[str]:
    path = _file(git_dir)
    return [each for each in _NAMES if config_value(path, "core", each, includes=0) is not None]


def _file(git_dir: str) -> str:
    return os.path.join(git_dir, "config.worktree")
